// A card that says what went wrong, or what may help. props.value: null (nothing to see) or
// {kind: 'error' | 'hint' | 'info', title, text, remedy}. Event: 'dismiss'.
const kit = window.glassboxKit, say = kit.speaker(props);
const part = name => element.querySelector('.' + name);
const card = part('card'), close = part('close');

close.setAttribute('aria-label', say('dismiss'));
close.title = say('dismiss');
close.addEventListener('click', () => {
  props.value = null;
  update();
  trigger('dismiss');
});

function update() {
  const value = kit.plain(props.value);
  kit.collapse(element, !value);
  card.hidden = !value;
  if (!value) return;
  card.className = `card ${value.kind}`;
  card.setAttribute('role', value.kind === 'error' ? 'alert' : 'status');
  for (const name of ['title', 'text', 'remedy']) {
    part(name).textContent = value[name] ?? '';
    part(name).hidden = !value[name];
  }
}
watch('value', update);
update();
