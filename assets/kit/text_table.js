// A table of texts with a search box: rows of a data set, answers side by side.
//
// props.value: {cols: [text], rows: [[text]], total?: rows in all, marks?: [row -> {cell: 'good' | 'bad'}]}.
// Event when a row is pressed, where props.clickable: 'row_click' {index}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const search = part('search'), STEP = 50;
let value = null, shown = STEP;

search.placeholder = say('search');
search.setAttribute('aria-label', say('search'));
part('pane').setAttribute('aria-label', say('label'));
part('further').textContent = say('further');

function line(cells, index) {
  const made = node('tr', {}, ...cells.map((cell, column) => {
    const mark = value.marks?.[index]?.[column];
    return node('td', {cls: mark ?? ''}, node('bdi', {}, kit.visible(String(cell), false)));
  }));
  if (props.clickable) {
    made.tabIndex = 0;
    made.classList.add('press');
    made.addEventListener('click', () => trigger('row_click', {index}));
    made.addEventListener('keydown', event => event.key === 'Enter' && trigger('row_click', {index}));
  }
  return made;
}

function draw() {
  const wanted = search.value.trim().toLowerCase();
  const found = value.rows.map((cells, index) => ({cells, index}))
    .filter(({cells}) => !wanted || cells.some(cell => String(cell).toLowerCase().includes(wanted)));
  part('lines').replaceChildren(...found.slice(0, shown).map(({cells, index}) => line(cells, index)));
  part('count').textContent = say('count', {shown: kit.count(Math.min(shown, found.length)), found: kit.count(found.length), total: kit.count(value.total ?? value.rows.length)});
  part('further').hidden = found.length <= shown;
}

function update() {
  value = kit.plain(props.value);
  part('body').hidden = !value;
  kit.collapse(element, !value);
  if (!value) return;
  shown = STEP;
  search.hidden = value.rows.length < 6;
  part('columns').replaceChildren(...value.cols.map(text => node('th', {scope: 'col', text})));
  draw();
}

search.addEventListener('input', () => { shown = STEP; draw(); });
part('further').addEventListener('click', () => { shown += STEP; draw(); });
watch('value', update);
update();
