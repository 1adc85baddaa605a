// The joins of one word as a tree: symbols on top, each join below its two parts, tokens in colour.
//
// props.value: {nodes: [{t, start, end, step, rank, kids: [left, right] | [], id}], tokens: [index]}.
// props.step: how many joins are drawn; the last of them is marked. It changes alone.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const pane = element.querySelector('.pane'), empty = element.querySelector('.empty');
const CELL = 46, ROW = 64, BOX = 26, SVG = 'http://www.w3.org/2000/svg';
let nodes = [], tokens = new Map();

pane.setAttribute('aria-label', say('label'));
empty.textContent = say('empty');

function svg(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Rows from the top: a join stands below the lower of its parts. */
function rows() {
  const found = [];
  for (const one of nodes) found.push(one.kids.length ? 1 + Math.max(...one.kids.map(kid => found[kid])) : 0);
  return found;
}

const middle = one => ((one.start + one.end) / 2) * CELL;

function box(one, row, state) {
  const width = Math.max(CELL - 10, one.t.length * 8.4 + 10);
  const group = svg('g', {class: `node ${state}`});
  const title = one.step ? say('join', {step: one.step, rank: kit.count(one.rank)}) : say('symbol');
  group.append(svg('title', {}, `${one.t}: ${title}${one.id === null ? '' : ', id ' + one.id}`));
  const [x, y] = [middle(one), row * ROW + 6];
  const shape = svg('rect', {x: x - width / 2, y, width, height: BOX, rx: 5});
  group.append(shape, svg('text', {x, y: y + 17}, one.t));
  if (one.step) group.append(svg('text', {x, y: y + BOX + 12, class: 'rank'}, kit.count(one.rank)));
  return [group, shape];
}

function update() {
  const value = kit.plain(props.value);
  nodes = value?.nodes ?? [];
  tokens = new Map((value?.tokens ?? []).map((index, i) => [index, i]));
  draw();
}

function draw() {
  pane.hidden = !nodes.length;
  empty.hidden = nodes.length > 0;
  if (!nodes.length) return;
  const step = props.step ?? 0, at = rows();
  const width = Math.max(...nodes.map(one => one.end)) * CELL, height = (Math.max(...at) + 1) * ROW + 8;
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': say('label')});
  const lines = svg('g', {class: 'lines'});
  picture.append(lines);
  nodes.forEach((one, i) => {
    if (one.step > step) return;
    for (const kid of one.kids) {
      const below = nodes[kid].step ? BOX + 22 : BOX + 6;        // under the rank of a join
      const [x, y, z] = [middle(nodes[kid]), at[kid] * ROW + below, at[i] * ROW + 6];
      lines.append(svg('path', {d: `M${x} ${y}C${x} ${y + 16} ${middle(one)} ${z - 16} ${middle(one)} ${z}`}));
    }
    const last = step >= Math.max(...nodes.map(each => each.step)), token = last && tokens.has(i);
    const [group, shape] = box(one, at[i], one.step && one.step === step ? 'on' : '');
    if (token) shape.style.fill = `var(--c${(tokens.get(i) % 6) + 1})`;
    if (token) group.classList.add('token');
    picture.append(group);
  });
  pane.replaceChildren(picture);
  pane.dataset.step = step;
}

/** The picture as a PNG file, in the colours of paper. */
function picture() {
  const source = pane.querySelector('svg');
  if (!source) return;
  const copy = source.cloneNode(true), style = svg('style', {});
  style.textContent = 'rect{fill:#fff;stroke:#59626e}text{font:13px monospace;text-anchor:middle;fill:#1d232b}'
    + '.rank{font-size:10px;fill:#59626e}path{fill:none;stroke:#8b95a1}';
  for (const shape of copy.querySelectorAll('rect')) shape.removeAttribute('style');
  copy.prepend(style);
  copy.setAttribute('xmlns', SVG);
  const image = new Image(), canvas = node('canvas');
  image.onload = () => {
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    const brush = canvas.getContext('2d');
    brush.fillStyle = '#fff';
    brush.fillRect(0, 0, canvas.width, canvas.height);
    brush.drawImage(image, 0, 0, canvas.width, canvas.height);
    kit.download(canvas.toDataURL('image/png'), `${props.target}.png`);
  };
  image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(new XMLSerializer().serializeToString(copy));
}

kit.onExport(element, props.target, picture);
watch('value', update);
watch('step', draw);
update();
