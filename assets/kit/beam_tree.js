// A beam search as a tree: one column a token; what was dropped stays faint, the best way is strong.
//
// props.value: {root, nodes: [{t, up, d, p, s, is, best}]} or null, parents before children.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const pane = part('pane'), sheet = part('sheet');
const COLUMN = 152, ROW = 40, WIDTH = 112, HEIGHT = 34;
const STATES = {kept: 'kept', dropped: 'dropped', finished: 'finished'};
const SVG = 'http://www.w3.org/2000/svg';
pane.setAttribute('aria-label', say('label'));

/** Rows by depth: children near their parents, the likelier first. */
function place(nodes) {
  const columns = [];
  nodes.forEach((one, index) => (columns[one.d - 1] ??= []).push(index));
  const row = [];
  for (const column of columns) {
    column.sort((a, b) => (row[nodes[a].up] ?? 0) - (row[nodes[b].up] ?? 0) || nodes[b].s - nodes[a].s);
    column.forEach((index, i) => { row[index] = i; });
  }
  return {row, height: Math.max(...columns.map(column => column.length), 1), width: columns.length};
}

function line(from, to, cls) {
  const path = document.createElementNS(SVG, 'path'), bend = (COLUMN - WIDTH) / 2;
  path.setAttribute('d', `M${from.x} ${from.y} C${from.x + bend} ${from.y} ${to.x - bend} ${to.y} ${to.x} ${to.y}`);
  path.setAttribute('class', cls);
  return path;
}

function update() {
  const value = kit.plain(props.value), nodes = value?.nodes ?? [];
  part('empty').textContent = say('empty');
  part('empty').hidden = nodes.length > 0;
  pane.hidden = nodes.length === 0;
  if (!nodes.length) return;
  const {row, height, width} = place(nodes), lines = document.createElementNS(SVG, 'svg');
  const at = index => index === null ? {x: 0, y: ROW * height / 2} : {x: COLUMN * nodes[index].d, y: ROW * (row[index] + 0.5)};
  sheet.style.width = COLUMN * (width + 1) + 'px';
  sheet.style.height = ROW * height + 'px';
  lines.setAttribute('width', COLUMN * (width + 1));
  lines.setAttribute('height', ROW * height);
  const root = node('div', {cls: 'node root', title: value.root}, node('bdi', {text: value.root}));
  root.style.top = ROW * height / 2 - HEIGHT / 2 + 'px';
  const made = nodes.map((one, index) => {
    const cls = `${one.is} ${one.best ? 'best' : ''}`;
    const from = at(one.up), to = at(index);
    lines.append(line({x: from.x + WIDTH, y: from.y}, to, cls));
    const box = node('div', {cls: `node ${cls}`, title: say('title', {token: one.t, p: Math.exp(one.p).toPrecision(3),
      log: one.p.toFixed(3), sum: one.s.toFixed(3), status: say(STATES[one.is])})},
    node('bdi', {cls: 'word', text: one.t}), node('span', {cls: 'sum', text: one.s.toFixed(2)}));
    box.style.left = to.x + 'px';
    box.style.top = to.y - HEIGHT / 2 + 'px';
    return box;
  });
  sheet.replaceChildren(lines, root, ...made);
}
kit.onExport(element, props.target, () => kit.savePicture(sheet, props.target));
watch('value', update);
update();
