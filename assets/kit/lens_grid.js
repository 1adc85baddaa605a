// The logit lens: what each layer would say after each token. The last layer stands on top.
//
// props.value: text, JSON a line (see components/kit/lens_grid.py); it grows while layers are read,
// and only new rows are drawn. Event: 'cell' {row, column}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const rows = part('rows'), choice = part('choice'), pane = part('pane');
let head = null, lines = [], first = '';

pane.setAttribute('aria-label', say('label'));
part('by').textContent = say('by');
choice.id = props.target + '-by';
part('by').htmlFor = choice.id;
choice.append(...Object.entries({p: 'by_p', e: 'by_e', r: 'by_r'}).map(([value, key]) => node('option', {value, text: say(key)})));

/** How strongly a cell is coloured, 0 to 1. */
function strength(line, i) {
  if (choice.value === 'p') return line.p[i];
  if (choice.value === 'e') return Math.max(0, 1 - line.e[i] / 8);
  return Math.max(0, 1 - Math.log10(line.r[i]) / 4);
}

function tint(cell, line, i) {
  const rgb = kit.colour(strength(line, i));
  cell.style.background = kit.css(rgb);
  cell.style.color = kit.inkOn(rgb);
}

function buildRow(line, row) {
  const made = node('tr', {}, node('th', {scope: 'row', text: line.s}));
  line.t.forEach((label, column) => {
    const cell = node('td', {tabindex: '-1', title: say('title', {token: label, p: kit.percent(line.p[column], 2),
      rank: kit.count(line.r[column]), entropy: line.e[column].toFixed(2)})}, node('bdi', {text: label}));
    cell.row = row;
    cell.column = column;
    if (column === head.at) cell.classList.add('at');
    tint(cell, line, column);
    made.append(cell);
  });
  return made;
}

function update() {
  const texts = (typeof props.value === 'string' ? props.value : '').split('\n').filter(Boolean);
  part('empty').textContent = say('empty');
  part('empty').hidden = texts.length > 0;
  part('line').hidden = pane.hidden = texts.length === 0;
  if (!texts.length) { head = null; lines = []; first = ''; rows.replaceChildren(); return; }
  if (texts[0] !== first || texts.length - 1 < lines.length) {
    first = texts[0];
    head = JSON.parse(first);
    lines = [];
    rows.replaceChildren();
    part('heads').replaceChildren(node('th', {cls: 'corner', text: head.corner}), ...head.cols.map((label, i) =>
      node('th', {scope: 'col', title: kit.quoted(label), cls: i === head.at ? 'at' : ''}, node('bdi', {text: label}))));
  }
  for (const text of texts.slice(1 + lines.length)) {
    const line = JSON.parse(text);
    rows.prepend(buildRow(line, lines.length));
    lines.push(line);
  }
  part('done').textContent = lines.length < head.stages ? say('reading', {k: lines.length, n: head.stages}) : '';
  rows.querySelector('td')?.setAttribute('tabindex', '0');
}

function recolour() {
  for (const row of rows.children) for (const cell of row.querySelectorAll('td')) tint(cell, lines[cell.row], cell.column);
}

const press = cell => trigger('cell', {row: cell.row, column: cell.column});
rows.addEventListener('click', event => { const cell = event.target.closest('td'); if (cell) press(cell); });
rows.addEventListener('keydown', event => {
  const cell = event.target.closest('td');
  if (!cell) return;
  const line = cell.parentElement, index = Array.from(line.children).indexOf(cell);
  const to = {ArrowLeft: cell.previousElementSibling, ArrowRight: cell.nextElementSibling,
    ArrowUp: line.previousElementSibling?.children[index], ArrowDown: line.nextElementSibling?.children[index]}[event.key];
  if (event.key === 'Enter' || event.key === ' ') press(cell);
  else if (to?.tagName === 'TD') { cell.tabIndex = -1; to.tabIndex = 0; to.focus(); }
  else return;
  event.preventDefault();
});
choice.addEventListener('change', recolour);
kit.onTheme(element, recolour);
kit.onExport(element, props.target, () => kit.savePicture(pane.querySelector('table'), props.target));
watch('value', update);
update();
