// Windows drawn on a text: its tokens in a row, below it each window as a bar under the tokens that
// it reads, and a marked cell under the one more that its last target is.
//
// props.value: {tokens: [text], reads: [times read as input], context, rows: [{name, start, batch | null, label}], more}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const pane = element.querySelector('.pane'), foot = element.querySelector('.foot');

pane.setAttribute('aria-label', say('label'));

function cell(text, column, row, cls) {
  const made = node('div', {cls, style: `grid-column:${column};grid-row:${row}`});
  made.append(text);
  return made;
}

function span(row, line, context, last) {
  const found = [], first = row.start + 2, end = Math.min(row.start + context, last);
  const title = say('window', {name: row.name, first: row.start, last: row.start + context - 1, target: row.start + context});
  found.push(cell(row.name, 1, line, 'name'));
  if (end > row.start) {
    const bar = cell(row.label, `${first} / ${end + 2}`, line, row.batch === null ? 'bar' : `bar c${(row.batch % 6) + 1}`);
    bar.title = title;
    found.push(bar);
  }
  if (row.start + context < last) found.push(cell('\u2192', row.start + context + 2, line, 'target'));
  return found;
}

function update() {
  const value = kit.plain(props.value);
  pane.hidden = foot.hidden = !value;
  if (!value) return;
  const last = value.tokens.length;
  const grid = node('div', {cls: 'grid', style: `grid-template-columns:auto repeat(${last}, max-content)`});
  grid.append(cell(say('token'), 1, 1, 'name'), cell(say('reads'), 1, 2, 'name'));
  value.tokens.forEach((text, i) => {
    const label = cell(node('bdi', {text}), i + 2, 1, 'token');
    label.title = String(i);
    grid.append(label, cell(String(value.reads[i]), i + 2, 2, 'reads'));
  });
  value.rows.forEach((row, i) => grid.append(...span(row, i + 3, value.context, last)));
  pane.replaceChildren(grid);
  foot.textContent = value.more;
}

watch('value', update);
update();
