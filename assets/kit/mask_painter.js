// A mask to paint: which key (column) each query (row) may attend to.
//
// props.value: {labels: [text], rows: ['0101', ...]}; 1 = may attend. Dragging paints with what the
// first cell becomes. Event: 'paint' {rows} once the pointer is lifted, or at a key press.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const canvas = part('cells'), plot = part('plot'), readout = part('readout');
let labels = [], cells = [], at = null, brush = null;

function update() {
  const value = kit.plain(props.value);
  labels = value?.labels ?? [];
  cells = (value?.rows ?? []).map(row => Array.from(row, cell => cell === '1'));
  part('empty').hidden = cells.length > 0;
  part('map').hidden = readout.hidden = cells.length === 0;
  part('empty').textContent = say('empty');
  if (!cells.length) return;
  const n = cells.length;
  plot.style.maxWidth = `min(100%, ${Math.max(180, n * 26)}px)`;
  plot.setAttribute('aria-label', say('label'));
  draw();
  name();
  point(at);
}

function draw() {
  const n = cells.length, size = Math.max(8, Math.min(26, Math.floor(1200 / n)));
  canvas.width = canvas.height = n * size;
  const pen = canvas.getContext('2d');
  const style = getComputedStyle(element), ink = style.getPropertyValue('--accent');
  const paper = style.getPropertyValue('--mask'), line = style.getPropertyValue('--surface');
  pen.fillStyle = line;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  cells.forEach((row, i) => row.forEach((open, k) => {
    pen.fillStyle = open ? ink : paper;
    pen.fillRect(k * size, i * size, size - 1, size - 1);
  }));
}

/** Labels at the left, as many as have room. */
function name() {
  const n = cells.length, height = canvas.clientHeight || 1;
  const step = Math.max(1, Math.ceil((14 * n) / height));
  part('rows').replaceChildren(...labels.map((text, i) => {
    const label = node('div', {title: kit.quoted(text)}, node('bdi', {text: kit.glyphs(text)}));
    label.style.top = (100 * (i + 0.5)) / n + '%';
    label.hidden = i % step > 0;
    return label;
  }));
}

function point(place) {
  at = place && place.row < cells.length && place.column < cells.length ? place : null;
  const frame = part('cell'), n = cells.length;
  frame.hidden = !at;
  if (!at) return readout.replaceChildren(node('span', {cls: 'help', text: say('hint')}));
  frame.style.top = (100 * at.row) / n + '%';
  frame.style.left = (100 * at.column) / n + '%';
  frame.style.height = frame.style.width = 100 / n + '%';
  const key = cells[at.row][at.column] ? 'open' : 'shut';
  readout.textContent = say(key, {row: `${kit.glyphs(labels[at.row])} ${at.row}`,
    column: `${kit.glyphs(labels[at.column])} ${at.column}`});
}

function cellAt(event) {
  const area = canvas.getBoundingClientRect(), n = cells.length;
  const clamp = share => Math.min(n - 1, Math.max(0, Math.floor(share * n)));
  return {row: clamp((event.clientY - area.top) / area.height),
    column: clamp((event.clientX - area.left) / area.width)};
}

const rows = () => cells.map(row => row.map(open => (open ? '1' : '0')).join(''));
function put({row, column}, open) {
  if (cells[row][column] === open) return;
  cells[row][column] = open;
  draw();
}
function send() {
  props.value = {labels, rows: rows()};
  trigger('paint', {rows: rows()});
}

plot.addEventListener('pointerdown', event => {
  if (!cells.length) return;
  const place = cellAt(event);
  brush = !cells[place.row][place.column];
  plot.setPointerCapture(event.pointerId);
  put(place, brush);
  point(place);
  event.preventDefault();
  plot.focus({preventScroll: true});
});
plot.addEventListener('pointermove', event => {
  if (!cells.length) return;
  const place = cellAt(event);
  if (brush !== null) put(place, brush);
  point(place);
});
plot.addEventListener('pointerup', () => {
  if (brush === null) return;
  brush = null;
  send();
});
plot.addEventListener('pointercancel', () => { brush = null; });
plot.addEventListener('keydown', event => {
  if (!cells.length) return;
  const {row, column} = at ?? {row: 0, column: 0}, last = cells.length - 1;
  const clamp = index => Math.min(last, Math.max(0, index));
  const to = {ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1]}[event.key];
  if (to) point({row: clamp(to[0]), column: clamp(to[1])});
  else if (event.key === ' ' || event.key === 'Enter') {
    put({row, column}, !cells[row][column]);
    point({row, column});
    send();
  } else return;
  event.preventDefault();
});
kit.onTheme(element, () => cells.length && draw());
new ResizeObserver(() => cells.length && name()).observe(plot);
watch('value', update);
update();
