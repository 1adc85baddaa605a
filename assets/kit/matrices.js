// Several small matrices side by side, each cell of which can be changed where that is allowed.
//
// props.value: {items: [{name, title, rows: [text], cols: [text], cells: [[number | text | null]],
// digits?, shade?: number of the fullest colour, editable?, changed?: [[row, column]],
// veiled?: row whose cells are hidden until one is picked, picked?: [row, column], row?: marked row}]}
// null is a masked cell; infinity and NaN come as text. Events: 'edit' {matrix, row, column, value},
// 'pick' {matrix, row, column}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const list = element.querySelector('.list');
let value = null;

const shown = (cell, item) => (typeof cell === 'number' ? cell.toFixed(item.digits ?? 4) : cell ?? '\u2013');
const has = (places, row, column) => (places ?? []).some(([i, j]) => i === row && j === column);

function cellOf(item, row, column) {
  const cell = item.cells[row][column], made = node('td', {cls: 'number'});
  const veiled = item.veiled === row && cell !== null;
  made.dataset.place = JSON.stringify([item.name, row, column]);
  made.textContent = veiled ? '?' : shown(cell, item);
  if (cell === null) made.classList.add('masked');
  if (item.shade && typeof cell === 'number' && !veiled) {
    const rgb = kit.colour(Math.abs(cell) / item.shade);
    made.style.background = kit.css(rgb);
    made.style.color = kit.inkOn(rgb);
  }
  if (has(item.changed, row, column)) made.classList.add('changed');
  if (item.picked && has([item.picked], row, column)) made.classList.add('picked');
  if (veiled || (item.editable && cell !== null)) {
    made.tabIndex = -1;
    made.classList.add('live');
    made.setAttribute('aria-label', say(veiled ? 'pick' : 'cell',
      {row: item.rows[row], column: item.cols[column], value: made.textContent}));
  }
  return made;
}

function table(item) {
  const head = node('tr', {}, node('td'), ...item.cols.map(text => node('th', {scope: 'col', text})));
  const lines = item.cells.map((cells, row) => {
    const line = node('tr', {}, node('th', {scope: 'row', text: item.rows[row]}),
      ...cells.map((_, column) => cellOf(item, row, column)));
    if (item.row === row) line.classList.add('on');
    return line;
  });
  const made = node('table', {}, node('thead', {}, head), node('tbody', {}, ...lines));
  made.setAttribute('aria-label', item.title);
  return node('figure', {}, node('figcaption', {text: item.title}), node('div', {cls: 'pane'}, made));
}

function update() {
  value = kit.plain(props.value);
  const held = document.activeElement?.dataset?.place;
  list.replaceChildren(...(value?.items ?? []).map(table));
  for (const made of list.querySelectorAll('table')) kit.rove(Array.from(made.querySelectorAll('.live')), 0);
  if (!held) return;
  const again = Array.from(list.querySelectorAll('.live')).find(cell => cell.dataset.place === held);
  again?.focus();
}

function find(cell) {
  const [name, row, column] = JSON.parse(cell.dataset.place);
  return {item: value.items.find(item => item.name === name), name, row, column};
}

function act(cell) {
  const {item, name, row, column} = find(cell);
  if (item.veiled === row) return trigger('pick', {matrix: name, row, column});
  if (!item.editable || cell.querySelector('input')) return;
  const before = item.cells[row][column];
  const input = node('input', {type: 'text', inputmode: 'decimal', value: String(before)});
  input.setAttribute('aria-label', cell.getAttribute('aria-label'));
  cell.replaceChildren(input);
  input.select();
  let done = false;
  const finish = keep => {
    if (done) return;
    done = true;
    const text = input.value.trim().replace(',', '.');
    cell.textContent = shown(before, item);
    if (keep && text !== '' && text !== String(before)) trigger('edit', {matrix: name, row, column, value: text});
    cell.focus();
  };
  input.addEventListener('blur', () => finish(true));
  input.addEventListener('keydown', event => {
    event.stopPropagation();
    if (event.key === 'Enter') finish(true);
    if (event.key === 'Escape') finish(false);
  });
}

list.addEventListener('click', event => {
  const cell = event.target.closest('td.live');
  if (cell) act(cell);
});
list.addEventListener('keydown', event => {
  const cell = event.target.closest('td.live');
  if (!cell) return;
  const columns = cell.parentElement.children.length - 1;
  const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns}[event.key];
  if (event.key === 'Enter' || event.key === ' ' || event.key === 'F2') act(cell);
  else if (step) {
    const all = Array.from(cell.closest('table').querySelectorAll('td.number'));
    const next = all[all.indexOf(cell) + step];
    if (!next?.classList.contains('live')) return;
    kit.rove(all.filter(other => other.classList.contains('live')), -1);
    next.tabIndex = 0;
    cell.tabIndex = -1;
    next.focus();
  } else return;
  event.preventDefault();
});
kit.onTheme(element, update);
watch('value', update);
update();
