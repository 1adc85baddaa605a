// A list of bars: a label, its bar, its number.
//
// props.value: {bars: [{label, value, note?}], unit?, max?, digits?, named?}. With the unit '%' a
// value is a share from 0 to 1; named bars have names, which wrap, in place of tokens. The longest bar stands for `max`, or for the largest value where none is given.
// Event, when props.clickable: 'bar_click' {index}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const list = element.querySelector('.list'), empty = element.querySelector('.empty');
list.setAttribute('aria-label', say('label'));
if (props.clickable) list.setAttribute('role', 'group');

function shown(number, unit, digits) {
  if (unit === '%') return kit.percent(number, digits ?? 1);
  const text = digits === undefined ? kit.exact(number) : number.toFixed(digits);
  return unit ? `${text} ${unit}` : text;
}

function build() {
  const row = node('li', {cls: 'row'}, node('div', {cls: 'label'}),
    node('div', {cls: 'track'}, node('i')), node('span', {cls: 'number'}));
  if (!props.clickable) return row;
  row.tabIndex = -1;
  row.setAttribute('role', 'button');
  return row;
}

/** Rows are kept and refilled, so that a bar grows or shrinks in its place. */
function update() {
  const value = kit.plain(props.value) ?? {}, bars = value.bars ?? [];
  const most = value.max ?? Math.max(...bars.map(bar => Math.abs(bar.value)), 0);
  while (list.children.length > bars.length) list.lastChild.remove();
  while (list.children.length < bars.length) list.append(build());
  list.classList.toggle('named', Boolean(value.named));
  bars.forEach((bar, i) => {
    const [label, track, number] = list.children[i].children;
    label.replaceChildren(node('bdi', {}, kit.visible(bar.label, !value.named)));
    label.title = kit.quoted(bar.label);
    if (bar.note) label.append(node('small', {text: bar.note}));
    const share = most ? Math.min(1, Math.abs(bar.value) / most) : 0;
    track.firstChild.style.width = 100 * share + '%';
    track.firstChild.classList.toggle('negative', bar.value < 0);
    number.textContent = shown(bar.value, value.unit, value.digits);
    list.children[i].index = i;
  });
  if (props.clickable) kit.rove(Array.from(list.children), 0);
  empty.textContent = bars.length ? '' : say('empty');
}

const press = row => trigger('bar_click', {index: row.index});
list.addEventListener('click', event => {
  const row = event.target.closest('.row');
  if (row && props.clickable) press(row);
});
list.addEventListener('keydown', event => {
  const row = event.target.closest('.row'), step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (!row || !props.clickable) return;
  if (event.key === 'Enter' || event.key === ' ') press(row);
  else if (step && list.children[row.index + step]) {
    kit.rove(Array.from(list.children), row.index + step);
    list.children[row.index + step].focus();
  } else return;
  event.preventDefault();
});
watch('value', update);
update();
