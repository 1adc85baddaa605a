// One token of an answer: how sure the model was, and what else could have come, before and after
// temperature and filters. props.value: null or {token, facts: [[name, value]], before: [[label, p]],
// after: [[label, p]], at (place of this token in `before`, -1 if it is not among them), chosen,
// choosable, reason (why nothing can be chosen)}. Event: 'choose' {alternative}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);

function bar(share, most) {
  return node('div', {cls: 'track'}, node('i', {style: `width:${most ? (100 * share) / most : 0}%`}));
}

function row(value, [label, share], index, most, before) {
  const here = before && index === value.at;
  const name = node('bdi', {cls: 'alt'}, kit.visible(label, false));
  const number = node('span', {cls: 'num', text: kit.percent(share, share < 0.001 ? 3 : 1)});
  if (!before || !value.choosable || here) {
    const line = node('li', {cls: here ? 'row here' : 'row'}, name, bar(share, most), number);
    if (here) line.title = say('here');
    return line;
  }
  const button = node('button', {cls: 'row pick', type: 'button', title: say('choose_help')}, name,
    bar(share, most), number);
  button.setAttribute('aria-label', say('choose', {token: label, share: kit.percent(share, 1)}));
  button.addEventListener('click', () => trigger('choose', {alternative: index}));
  return node('li', {}, button);
}

function list(value, name) {
  const rows = value[name], most = Math.max(0, ...rows.map(([, share]) => share));
  return node('section', {}, node('h3', {text: say(name)}),
    rows.length ? node('ol', {}, ...rows.map((r, i) => row(value, r, i, most, name === 'before')))
      : node('p', {cls: 'help', text: say('none_' + name)}));
}

function update() {
  const value = kit.plain(props.value), box = part('choice');
  part('hint').hidden = Boolean(value);
  box.hidden = !value;
  if (!value) { box.replaceChildren(); return; }
  box.replaceChildren(
    node('div', {cls: 'top'}, node('bdi', {cls: 'literal', dir: 'auto'}, kit.visible(value.token, false)),
      ...(value.chosen ? [node('span', {cls: 'help', text: say('chosen')})] : [])),
    node('dl', {}, ...value.facts.map(([name, fact]) =>
      node('div', {cls: 'fact'}, node('dt', {text: name}), node('dd', {text: fact})))),
    node('div', {cls: 'lists'}, list(value, 'before'), list(value, 'after')),
    node('p', {cls: 'help', text: value.choosable ? say('choose_below') : value.reason}));
}
part('hint').textContent = say('hint');
part('choice').setAttribute('aria-label', say('label'));
watch('value', update);
update();
