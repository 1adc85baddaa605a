// "Try this": a row of buttons. The words are props.words; event: 'example' {index}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const row = element.querySelector('.row');

element.querySelector('.heading').textContent = say('title');
row.setAttribute('aria-label', say('title'));
for (let index = 0; index < props.count; index++) {
  const button = node('button', {cls: 'button', type: 'button', text: say('example_' + index)});
  button.addEventListener('click', () => trigger('example', {index}));
  row.append(button);
}
