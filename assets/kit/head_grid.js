// A small map for every head of a layer; one of them is chosen.
//
// props.value: {stack: id, n, size: [h, w], labels: [text], selected, groups?: [heads per KV head]}
// The maps come as bytes, one after the other, from the stack route. Event: 'head_select' {index}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const grid = element.querySelector('.grid'), note = element.querySelector('.help');
let value = null, bytes = null, buttons = [], plan = '', serial = 0, chosen = 0;

grid.setAttribute('aria-label', say('label'));

async function update() {
  const next = kit.plain(props.value), turn = ++serial;
  const same = next && value && next.stack === value.stack;
  value = next;
  note.textContent = value ? '' : say('empty');
  grid.hidden = !value;
  if (!value) return;
  build();
  mark(value.selected ?? 0);
  if (same && bytes) return;
  try {
    const answer = await kit.load(`stack/${value.stack}`);
    if (turn !== serial) return;
    bytes = new Uint8Array(answer.bytes);
    repaint();
  } catch {
    if (turn === serial) note.textContent = say('gone');
  }
}

/** Makes the buttons anew only when there are other heads than before: nothing flickers. */
function build() {
  const wanted = JSON.stringify([value.n, value.labels, value.groups ?? null]);
  if (wanted === plan) return;
  plan = wanted;
  buttons = Array.from({length: value.n}, (_, index) => {
    const button = node('button', {cls: 'head', type: 'button', tabindex: '-1', 'aria-pressed': 'false'},
      node('canvas'), node('span', {text: value.labels[index]}));
    button.addEventListener('click', () => choose(index));
    return button;
  });
  if (!value.groups) { grid.classList.remove('grouped'); return grid.replaceChildren(...buttons); }
  grid.classList.add('grouped');
  let start = 0;
  grid.replaceChildren(...value.groups.map((size, group) => {
    const heads = node('div', {cls: 'heads'}, ...buttons.slice(start, start + size));
    start += size;
    heads.style.setProperty('--heads', size);
    const caption = node('span', {cls: 'caption', text: say('group', {index: group})});
    return node('div', {cls: 'group', role: 'group', 'aria-label': say('group', {index: group})}, caption, heads);
  }));
}

function repaint() {
  if (!bytes || !value) return;
  const [height, width] = value.size, area = height * width;
  buttons.forEach((button, i) => kit.paint(button.firstChild, bytes.subarray(i * area, (i + 1) * area),
    height, width, {causal: value.causal ?? props.causal}));
}

function mark(index) {
  chosen = index;
  buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(i === index)));
  kit.rove(buttons, index);
}

const announce = kit.calmly(index => trigger('head_select', {index}));
function choose(index) {
  if (!buttons[index]) return;
  mark(index);
  announce(index);
}

/** How many heads stand in one line of the grid, as it is laid out now. */
function columns() {
  const top = buttons[0].getBoundingClientRect().top;
  const next = buttons.findIndex(button => button.getBoundingClientRect().top > top + 4);
  return next < 0 ? buttons.length : next;
}

grid.addEventListener('keydown', event => {
  const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns(), ArrowUp: -columns()}[event.key];
  const to = {Home: 0, End: buttons.length - 1}[event.key] ?? (step && chosen + step);
  if (to === undefined) return;
  event.preventDefault();
  if (!buttons[to]) return;
  buttons[to].focus();
  choose(to);
});

kit.onTheme(element, repaint);
watch('value', update);
update();
