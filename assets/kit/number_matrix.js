// A table of numbers with labelled rows and columns; the twin of a figure.
//
// props.value: {rows: [text], cols: [text], cells: [[number | text | null]], digits?, corner?,
// tokens?: [index of a column whose text is that of tokens], wide?: texts wrap in place of being
// cut, shade?: number that stands for the
// darkest cell, selected_row?}. null is a masked cell. Spaces can be seen in the text of tokens only.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
let value = null;

part('pane').setAttribute('aria-label', say('label'));

const shown = cell => (typeof cell === 'number' ? cell.toFixed(value.digits ?? 4) : cell ?? '\u2013');

function labelled(scope, text) {
  return node('th', {scope, title: kit.quoted(text)}, node('bdi', {}, kit.visible(text, false)));
}

/** Over words on the left, over numbers on the right, as what stands below it. */
function heading(text, column) {
  const made = labelled('col', text);
  if (typeof value.cells[0]?.[column] === 'string') made.classList.add('over-words');
  return made;
}

function body(cell, column) {
  const made = node('td', {cls: typeof cell === 'string' ? 'words' : 'number'});
  const spaces = value.tokens?.includes(column) ?? false;
  if (typeof cell === 'string') made.append(node('bdi', {}, kit.visible(cell, spaces)));
  else made.textContent = shown(cell);
  if (cell === null) made.classList.add('masked');
  if (value.shade && typeof cell === 'number') {
    const rgb = kit.colour(Math.abs(cell) / value.shade);
    made.style.background = `rgb(${rgb.join(' ')})`;
    made.style.color = kit.inkOn(rgb);
  }
  return made;
}

function update() {
  value = kit.plain(props.value);
  part('pane').hidden = part('foot').hidden = !value;
  if (!value) return;
  part('pane').classList.toggle('wide', Boolean(value.wide));
  const corner = node('td', {cls: 'corner', text: value.corner ?? ''});
  const named = value.rows.length > 0;
  part('columns').replaceChildren(...(named ? [corner] : []), ...value.cols.map(heading));
  part('lines').replaceChildren(...value.cells.map((cells, i) => {
    const line = node('tr', {}, ...(named ? [labelled('row', value.rows[i])] : []), ...cells.map(body));
    if (i === value.selected_row) line.classList.add('on');
    return line;
  }));
}

/** Tab-separated, as a spreadsheet takes it: all digits, and control characters as escapes. */
function separated() {
  const clean = cell => (typeof cell === 'string' ? kit.quoted(cell).slice(1, -1) : cell ?? '');
  const named = value.rows.length > 0;
  const head = [...(named ? [value.corner ?? ''] : []), ...value.cols].map(clean);
  const lines = value.cells.map((cells, i) => [...(named ? [value.rows[i]] : []), ...cells].map(clean));
  return [head, ...lines].map(line => line.join('\t')).join('\n');
}

kit.copyButton(part('copy'), say('copy'), say('copied'), separated);
kit.onTheme(element, () => value?.shade && update());
watch('value', update);
update();
