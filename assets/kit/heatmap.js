// A matrix of weights as a map: rows read from columns.
//
// props.value: {matrix: id, rows: [text], cols: [text] (the rows' if not given), causal, title, max,
//   signed: whether there are numbers below 0, down to -max}
// props.selected: the chosen row; it changes alone.
// `max` is the number that the fullest colour stands for (`high` at publishing; 1 if not given).
// The cells come as bytes from the matrix route; the exact float32 of a row is fetched when the
// row is pointed at. Event: 'row_select' {index, column}. Saves itself as PNG on 'glassbox:export'.
// More cells than pixels are pooled by the largest; zoomed in, each cell is drawn for itself.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const canvas = part('cells'), plot = part('plot'), map = part('map'), readout = part('readout');
const MOST_CELL = 40, MOST_SIDE = 640, LABEL = 13;       // pixels: a cell, a map, a label's height
const MOST_PIXELS = 512, FEW_CELLS = 64;       // cells a side drawn at once; up to that no zoom is needed
const zoomIn = part('zoomin'), zoomOut = part('zoomout'), whole = part('whole');
let value = null, bytes = null, shape = [0, 0], at = null, exactRows = new Map(), serial = 0;
let win = {row: 0, column: 0, rows: 0, columns: 0}, pooled = 1;   // the cells in sight
let chosen = props.selected, lastRows = -1;
const columnsOf = () => value.cols ?? value.rows;
const scaleOf = () => (value?.signed ? 'difference' : 'weight');
const strength = byte => (value.signed ? Math.abs(byte - 127.5) : byte);   // how much a cell has to say
/** Numbers beside the colours: what a share of the ramp stands for. */
const tick = share => String(Number(((value.signed ? 2 * share - 1 : share) * (value.max ?? 1)).toPrecision(3)));

plot.setAttribute('aria-roledescription', say('kind'));

// --- data ----------------------------------------------------------------------------------------
async function update() {
  const next = kit.plain(props.value), turn = ++serial;
  const same = next && value && next.matrix === value.matrix;
  value = next;
  if (!next) { bytes = null; return draw(); }
  if (same && bytes) return draw();
  element.setAttribute('aria-busy', 'true');
  try {
    const answer = await kit.load(`matrix/${next.matrix}`);
    if (turn !== serial) return;               // a newer value has overtaken this one
    bytes = new Uint8Array(answer.bytes);
    shape = answer.shape;
    const kept = win.rows && next.rows.length === lastRows && win.rows < lastRows;
    lastRows = next.rows.length;
    if (!kept) win = {row: 0, column: 0, rows: shape[0], columns: shape[1]};
    exactRows = new Map();
    at = null;
    draw();
  } catch {
    if (turn === serial) { bytes = null; draw(say('gone')); }
  } finally {
    if (turn === serial) element.removeAttribute('aria-busy');
  }
}

/** The exact weights of one row, fetched once. */
function exactRow(row) {
  if (!exactRows.has(row)) {
    const {matrix} = value;
    exactRows.set(row, kit.load(`matrix/${matrix}/row/${row}`)
      .then(answer => new Float32Array(answer.bytes)));
  }
  return exactRows.get(row);
}

// --- drawing -------------------------------------------------------------------------------------
function draw(message = value ? '' : say('empty')) {
  part('empty').textContent = message;
  part('empty').hidden = Boolean(bytes);
  map.hidden = !bytes;
  part('title').textContent = value?.title ?? '';
  part('title').hidden = !value?.title;
  readout.hidden = !bytes;
  if (!bytes) return;
  const [rows, columns] = shape;
  part('zoom').hidden = Math.max(rows, columns) <= FEW_CELLS;
  const cell = Math.min(MOST_CELL, MOST_SIDE / rows);      // a tall map must fit on a screen, too
  // a width, and not the most that it may have: the labels take as much room as the plot asks for
  plot.style.width = Math.min(MOST_SIDE, columns * cell * Math.max(1, Math.min(2, 160 / (columns * cell)))) + 'px';
  plot.style.aspectRatio = `${columns} / ${rows}`;
  plot.setAttribute('aria-label', value.title ?? say('kind'));
  repaint();
  layout();
  point(at?.row, at?.column);
}

function repaint() {
  if (!bytes) return;
  kit.paint(canvas, ...inSight());
  const stops = Array.from({length: 17}, (_, i) => `rgb(${kit.colour(i / 16, scaleOf()).join(' ')})`);
  part('ramp').style.background = `linear-gradient(to top, ${stops.join(', ')})`;
}

/** What of the map is in sight: bytes, rows and columns to paint, and where each row's mask begins. */
function inSight() {
  const [rows, columns] = shape;
  pooled = Math.max(1, Math.ceil(Math.max(win.rows, win.columns) / MOST_PIXELS));
  const height = Math.ceil(win.rows / pooled), width = Math.ceil(win.columns / pooled);
  const seen = new Uint8Array(height * width).fill(value.signed ? 128 : 0);
  for (let row = 0; row < win.rows; row++) {
    const from = (win.row + row) * columns + win.column, to = Math.floor(row / pooled) * width;
    for (let column = 0; column < win.columns; column++) {
      const place = to + Math.floor(column / pooled), byte = bytes[from + column];
      if (strength(byte) > strength(seen[place])) seen[place] = byte;
    }
  }
  const last = row => Math.min(rows - 1, win.row + (row + 1) * pooled - 1);
  const stops = Array.from({length: height}, (_, row) => !value.causal ? width
    : Math.min(width, Math.max(0, Math.ceil((last(row) + columns - rows - win.column + 1) / pooled))));
  return [seen, height, width, {stops, scale: scaleOf()}];
}

/** Every how many cells a label fits: 1, 2, 5, 10, 20, ... */
function stride(cells, pixels) {
  const least = (cells * LABEL) / Math.max(1, pixels);
  for (let ten = 1; ; ten *= 10) for (const step of [1, 2, 5]) if (step * ten >= least) return step * ten;
}

function labels(holder, texts, first, count, pixels, side) {
  const step = stride(count, pixels), made = [];
  for (let i = Math.ceil(first / step) * step; i < first + count; i += step) {
    const label = node('div', {title: kit.quoted(texts[i])}, node('bdi', {text: kit.glyphs(texts[i])}));
    label.style[side] = (100 * (i - first + 0.5)) / count + '%';
    label.dataset.index = i;
    made.push(label);
  }
  holder.replaceChildren(...made);
}

function layout() {
  if (!bytes || !canvas.clientWidth) return;
  labels(part('rows'), value.rows, win.row, win.rows, canvas.clientHeight, 'top');
  labels(part('columns'), columnsOf(), win.column, win.columns, canvas.clientWidth, 'left');
  zoomIn.disabled = Math.max(win.rows, win.columns) <= 8;
  zoomOut.disabled = whole.disabled = !zoomed();
  part('insight').textContent = zoomed() ? say('part', {first: win.row, last: win.row + win.rows - 1,
    left: win.column, right: win.column + win.columns - 1}) : pooled > 1 ? say('pooled', {n: pooled}) : '';
  plot.classList.toggle('zoomed', zoomed());
  part('ticks').replaceChildren(...[1, 0.75, 0.5, 0.25, 0].map(share => node('span', {text: tick(share)})));
  band(part('chosen'), chosen);
}

/** Lays a frame over one row (or, given a column too, over one cell). */
function band(frame, row, column) {
  const inside = (index, first, count) => index >= first && index < first + count;
  frame.hidden = row === undefined || row === null || !inside(row, win.row, win.rows)
    || (column !== undefined && !inside(column, win.column, win.columns));
  if (frame.hidden) return;
  frame.style.top = (100 * (row - win.row)) / win.rows + '%';
  frame.style.height = 100 / win.rows + '%';
  frame.style.left = column === undefined ? 0 : (100 * (column - win.column)) / win.columns + '%';
  frame.style.width = column === undefined ? '100%' : 100 / win.columns + '%';
}

// --- zoom ----------------------------------------------------------------------------------------
const zoomed = () => win.rows < shape[0] || win.columns < shape[1];

/** Puts a part of the map into sight, around a cell, moved so that it lies within the map. */
function look(rows, columns, row, column) {
  const [all, wide] = shape, size = (wanted, most) => Math.min(most, Math.max(4, Math.round(wanted)));
  const start = (middle, count, most) => Math.min(most - count, Math.max(0, Math.round(middle - count / 2)));
  win = {rows: size(rows, all), columns: size(columns, wide)};
  win.row = start(row, win.rows, all);
  win.column = start(column, win.columns, wide);
  repaint();
  layout();
  point(at?.row, at?.column);
}

/** Twice as near, or half as near, around the cell that is pointed at, or the middle. */
function zoom(factor, centre = at) {
  if (!bytes) return;
  const {row, column} = centre ?? {row: win.row + win.rows / 2, column: win.column + win.columns / 2};
  look(win.rows / factor, win.columns / factor, row, column);
}

/** Moves what is in sight so that a cell lies in it. */
function follow(row, column) {
  const shift = (index, first, count) => (index < first ? index - first : Math.max(0, index - first - count + 1));
  const down = shift(row, win.row, win.rows), right = shift(column, win.column, win.columns);
  if (down || right) look(win.rows, win.columns, win.row + down + win.rows / 2, win.column + right + win.columns / 2);
}

for (const [button, key, act] of [[zoomIn, 'zoom_in', () => zoom(2)], [zoomOut, 'zoom_out', () => zoom(0.5)],
  [whole, 'whole', () => look(...shape, 0, 0)]]) {
  button.setAttribute('aria-label', say(key));
  button.title = say(key);
  button.addEventListener('click', act);
}
whole.textContent = say('whole');
plot.addEventListener('wheel', event => {
  if (!bytes || part('zoom').hidden || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  zoom(event.deltaY < 0 ? 2 : 0.5, cellAt(event));
}, {passive: false});

// --- crosshair and read-out ------------------------------------------------------------------------
const masked = (row, column) => value.causal && column > row + shape[1] - shape[0];
const named = (text, index) => [node('bdi', {cls: 'code', text: kit.quoted(text)}),
  node('span', {cls: 'help', text: ` ${index} `})];

async function point(row, column) {
  at = row === undefined ? null : {row, column};
  band(part('crossrow'), at ? row : null);
  band(part('cell'), at ? row : null, column);
  const stripe = part('crosscolumn');
  stripe.hidden = !at || column < win.column || column >= win.column + win.columns;
  if (!at) return readout.replaceChildren(node('span', {cls: 'help', text: say('hint')}));
  stripe.style.left = (100 * (column - win.column)) / win.columns + '%';
  stripe.style.width = 100 / win.columns + '%';
  const [before, between] = say('reads').split('{row}')[1].split('{column}');
  const weight = node('b', {cls: 'weight', text: '\u2026'});
  readout.replaceChildren(...named(value.rows[row], row), node('span', {text: before}),
    ...named(columnsOf()[column], column), node('span', {text: between ?? ''}), weight);
  if (masked(row, column)) { weight.textContent = say('masked'); return; }
  try {
    weight.textContent = kit.exact((await exactRow(row))[column]);
  } catch {
    exactRows.delete(row);
    weight.textContent = say('gone');
  }
}

/** The cell below the pointer; where several are pooled, the one that is drawn. */
function cellAt(event) {
  const area = canvas.getBoundingClientRect(), {rows, columns} = win;
  const clamp = (index, count) => Math.min(count - 1, Math.max(0, Math.floor(index)));
  const row = win.row + clamp(((event.clientY - area.top) / area.height) * rows, rows);
  const column = win.column + clamp(((event.clientX - area.left) / area.width) * columns, columns);
  return pooled > 1 ? largestNear(row, column) : {row, column};
}

function largestNear(row, column) {
  const from = index => index - index % pooled;
  let best = {row, column}, most = strength(bytes[row * shape[1] + column]);
  for (let i = from(row); i < Math.min(shape[0], from(row) + pooled); i++)
    for (let k = from(column); k < Math.min(shape[1], from(column) + pooled); k++)
      if (strength(bytes[i * shape[1] + k]) > most) { most = strength(bytes[i * shape[1] + k]); best = {row: i, column: k}; }
  return best;
}

function choose() {
  if (!at) return;
  chosen = at.row;
  band(part('chosen'), at.row);
  trigger('row_select', {index: at.row, column: at.column});
}

let drag = null;                               // where a zoomed map was taken hold of
plot.addEventListener('pointerdown', event => {
  if (!bytes || !zoomed() || event.button) return;
  drag = {x: event.clientX, y: event.clientY, ...win, moved: false};
});
window.addEventListener('pointerup', () => { if (drag && !drag.moved) drag = null; });
function pan(event) {
  const area = canvas.getBoundingClientRect();
  const down = ((drag.y - event.clientY) / area.height) * win.rows;
  const right = ((drag.x - event.clientX) / area.width) * win.columns;
  drag.moved ||= Math.abs(drag.x - event.clientX) + Math.abs(drag.y - event.clientY) > 6;
  if (drag.moved) look(win.rows, win.columns, drag.row + down + win.rows / 2, drag.column + right + win.columns / 2);
}
plot.addEventListener('pointermove', event => {
  if (!bytes) return;
  if (drag && event.buttons) return pan(event);
  drag = null;
  const {row, column} = cellAt(event);
  if (row !== at?.row || column !== at?.column) point(row, column);
});
plot.addEventListener('pointerleave', () => { if (document.activeElement !== plot) point(); });
plot.addEventListener('click', event => {
  const panned = drag?.moved;
  drag = null;
  if (panned || !bytes) return;
  const {row, column} = cellAt(event);
  point(row, column);
  choose();
});
plot.addEventListener('focus', () => {
  if (!at && bytes && plot.matches(':focus-visible')) point(Math.max(0, chosen ?? 0), 0);
});
plot.addEventListener('blur', () => point());
plot.addEventListener('keydown', event => {
  if (!bytes) return;
  const [rows, columns] = shape, {row, column} = at ?? {row: 0, column: 0};
  const clamp = (index, size) => Math.min(size - 1, Math.max(0, index));
  const to = {ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1], PageUp: [row - 10, column], PageDown: [row + 10, column],
    Home: [row, 0], End: [row, columns - 1]}[event.key];
  if (to) {
    follow(clamp(to[0], rows), clamp(to[1], columns));
    point(clamp(to[0], rows), clamp(to[1], columns));
  } else if (event.key === '+' || event.key === '=') zoom(2);
  else if (event.key === '-') zoom(0.5);
  else if (event.key === 'Enter' || event.key === ' ') choose();
  else if (event.key === 'Escape') point();
  else return;
  event.preventDefault();
});

// --- picture -------------------------------------------------------------------------------------
/** The whole figure on one canvas, always in the light colours: pictures end up on paper. */
function picture() {
  const [rows, columns] = shape, zoom = Math.max(2, Math.ceil(1024 / Math.max(rows, columns)));
  const width = columns * zoom, height = rows * zoom, font = 22, margin = 200, bar = value.signed ? 170 : 130, top = 60;
  const sheet = node('canvas'), pen = sheet.getContext('2d');
  sheet.width = margin + width + bar;
  sheet.height = top + height + margin;
  pen.fillStyle = '#ffffff';
  pen.fillRect(0, 0, sheet.width, sheet.height);
  const cells = node('canvas');
  kit.paint(cells, bytes, rows, columns, {causal: value.causal, theme: 'light', scale: scaleOf()});
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = '#efece5';
  pen.fillRect(margin, top, width, height);
  pen.drawImage(cells, margin, top, width, height);
  pen.fillStyle = '#1d232b';
  pen.textBaseline = 'middle';
  pen.font = `600 26px ${getComputedStyle(element).fontFamily}`;
  pen.fillText(value.title ?? '', margin, top / 2);
  pen.font = `${font}px ${getComputedStyle(readout).getPropertyValue('--mono') || 'monospace'}`;
  write(pen, value.rows, rows, zoom, font, (text, middle) => {
    pen.textAlign = 'right';
    pen.fillText(text, margin - 10, top + middle, margin - 20);
  });
  write(pen, columnsOf(), columns, zoom, font, (text, middle) => {
    pen.save();
    pen.translate(margin + middle, top + height + 10);
    pen.rotate(Math.PI / 2);
    pen.textAlign = 'left';
    pen.fillText(text, 0, 0, margin - 20);
    pen.restore();
  });
  scale(pen, margin + width + 24, top, height);
  return sheet;
}

function write(pen, texts, cells, zoom, font, put) {
  const step = Math.max(1, Math.ceil((font + 4) / zoom));
  for (let i = 0; i < cells; i += step) put(kit.glyphs(texts[i]), (i + 0.5) * zoom);
}

function scale(pen, left, top, height) {
  for (let y = 0; y < height; y++) {
    pen.fillStyle = `rgb(${kit.colour(1 - y / height, scaleOf(), 'light').join(' ')})`;
    pen.fillRect(left, top + y, 24, 1);
  }
  pen.fillStyle = '#1d232b';
  pen.textAlign = 'left';
  for (const share of [0, 0.25, 0.5, 0.75, 1]) pen.fillText(tick(share), left + 34, top + height * (1 - share));
}

kit.onExport(element, props.target, () => {
  if (bytes) kit.download(picture().toDataURL('image/png'), `${props.target}.png`);
});
kit.onTheme(element, repaint);
new ResizeObserver(layout).observe(plot);
watch('value', update);
watch('selected', () => { chosen = props.selected; if (bytes) band(part('chosen'), chosen); });
update();
