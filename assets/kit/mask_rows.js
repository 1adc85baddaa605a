// Rows of a batch: what is learned is lit, what is only read is hatched, what fills up is grey.
//
// props.value: {rows: [{note?: text, units: [{t: text, k: 'learned' | 'prompt' | 'pad', ids: [id]}]}]} or null.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const list = element.querySelector('.rows'), legend = element.querySelector('.legend');
for (const kind of ['learned', 'prompt', 'pad'])
  legend.append(node('span', {cls: 'entry'}, node('i', {cls: 'unit ' + kind, text: '\u00a0\u00a0'}), say(kind)));

function unit(piece) {
  const ids = piece.ids.length ? ` \u00b7 ${piece.ids.join(' ')}` : '';
  return node('span', {cls: 'unit ' + piece.k, title: kit.quoted(piece.t) + ids + ' \u00b7 ' + say(piece.k)}, kit.visible(piece.t));
}

function update() {
  const value = kit.plain(props.value);
  kit.collapse(element, !value);
  legend.hidden = !value;
  list.replaceChildren(...(value?.rows ?? []).map((row, i) => node('li', {},
    node('div', {cls: 'note', text: row.note ?? String(i + 1)}),
    node('div', {cls: 'units', tabindex: '0', role: 'group', 'aria-label': row.note ?? String(i + 1)}, ...row.units.map(unit)))));
}
watch('value', update);
update();
