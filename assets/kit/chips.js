// Token chips: one chip for each unit of text, with a read-out on hover or keyboard focus.
//
// props.value: {units: [{t, ids, hex?, special?, p?, rank?, alt?}], more, total, ids_from?}, or for an
// answer that grows, a text with the JSON of one unit a line: Gradio then sends its new end only.
// `more` and `total` count tokens; all ids of a long text are fetched from bytes route `ids_from`.
// props.weights: a weight for each unit; props.selected: the chosen one. They change alone.
// props.mode: 'plain' (six colours in turn), 'probability' (p) or 'weight' (w).
// props.lanes: whether ids and bytes stand in two rows below, linked with the chips both ways.
// props.readout: 'below' (a fixed place under the chips), 'popover' (near the chip; on a phone at the
// bottom of the screen) or 'aside' (near the chip; on a phone nowhere, for the page tells it too).
// Event: 'token_click' {index}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const box = part('chips'), readout = part('readout'), popover = part('popover');
const AT_ONCE = 256;                           // chips that are built in one go
const floating = props.readout !== 'below';
let weights = [], units = [], keys = [], chips = [], twins = new Map(), shown = -1, focused = 0, selected = -1;
let undressed = 0, due = 0;                    // the first chip without its colour; an update to come

box.setAttribute('aria-label', say('label'));
if (floating) readout.remove();
else popover.remove();
const panel = floating ? popover : readout;

// --- one chip ------------------------------------------------------------------------------------
const identity = unit => unit.ids.join(' ') || unit.t;  // a server tells no ids

const LEFTWARD = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** The way that its letters run, and numbers; other signs run as what is around them. */
const wayOf = text => (LEFTWARD.test(text) && !/^\p{N}+$/u.test(text) ? 'rtl' : /[\p{L}\p{N}]/u.test(text) ? 'ltr' : '');

function build(unit) {
  const chip = node('span', {cls: 'chip', role: 'option', tabindex: '-1'});
  chip.append(kit.visible(unit.t));
  if (!unit.t) chip.append(node('span', {cls: 'control', text: '\u2205'}));
  if (unit.ids.length > 1) {
    chip.classList.add('shared');
    chip.append(node('sup', {text: unit.ids.length, 'aria-hidden': 'true'}));
  }
  if (unit.special) chip.classList.add('special');
  const holder = node('span', {cls: 'unit'}, chip);
  if (unit.t.includes('\n')) holder.append(node('br'));
  holder.unit = unit;
  if (!unit.special) holder.dataset.way = wayOf(unit.t);
  return holder;
}

function tint(chip, unit, index) {
  const value = props.mode === 'weight' ? weights[index] : unit.p;
  let paper = '', ink = '';
  if (unit.special && props.mode !== 'weight') paper = '';
  else if (props.mode === 'plain') paper = `var(--c${(index % 6) + 1})`;
  else if (value !== undefined && value !== null) {
    const rgb = kit.colour(value, props.mode === 'weight' ? 'weight' : 'chance');
    paper = `rgb(${rgb.join(' ')})`;
    ink = kit.inkOn(rgb);
  }
  if (chip.paper === paper && chip.ink === ink) return;
  chip.style.background = chip.paper = paper;
  chip.style.color = chip.ink = ink;
}

function dress(from = 0) {
  for (let i = from; i < chips.length; i++) {
    const chip = chips[i], unit = units[i];
    tint(chip, unit, i);
    const amount = props.mode === 'weight' ? kit.exact(weights[i] ?? 0)
      : props.mode === 'probability' && unit.p !== undefined ? kit.percent(unit.p, 1) : '';
    const said = [`${i}: ${kit.quoted(unit.t)}`, unit.ids.join(' '), amount].filter(Boolean);
    chip.setAttribute('aria-label', said.join(', '));
  }
}

// --- drawing only what changed -------------------------------------------------------------------
/** The value, and for each unit the JSON by which it is told apart; known units are not read again. */
function read() {
  if (typeof props.value !== 'string') {
    const value = kit.plain(props.value) ?? {};
    return [value, (value.units ?? []).map(unit => JSON.stringify(unit))];
  }
  const lines = props.value.split('\n').filter(Boolean);
  const next = lines.map((line, i) => (line === keys[i] ? units[i] : JSON.parse(line)));
  return [{units: next}, lines];
}

function update() {
  const [value, fresh] = read(), next = value.units ?? [], least = Math.min(fresh.length, keys.length);
  let head = 0, tail = 0;
  while (head < least && fresh[head] === keys[head]) head++;
  while (tail < least - head && fresh.at(-1 - tail) === keys.at(-1 - tail)) tail++;
  while (box.children.length > head + tail) box.children[head].remove();
  const added = document.createDocumentFragment(), wanted = next.slice(head, next.length - tail);
  // a thousand at once would hold the page: the rest follows, a part at a time
  const rest = tail ? 0 : Math.max(0, wanted.length - AT_ONCE);
  for (const unit of wanted.slice(0, wanted.length - rest)) added.append(build(unit));
  box.insertBefore(added, box.children[head] ?? null);
  const moved = fresh.length !== keys.length || head < least;
  units = next;
  keys = fresh.slice(0, fresh.length - rest);
  if (rest) due ||= setTimeout(() => { due = 0; update(); });
  const way = direction();
  if (box.dir !== way) box.dir = way;  // even the same one anew costs the styles of all chips
  const both = box.querySelector('[data-way=rtl]') !== null;
  if (box.classList.contains('both') !== both) box.classList.toggle('both', both);
  chips = Array.from(box.children, holder => holder.firstChild);
  chips.forEach((chip, i) => { chip.index = i; });
  if (moved && props.mode === 'weight') undressed = Math.min(undressed, head);  // `weigh` dresses them
  else if (moved) dress(head);
  twins = group();
  lanes();
  focused = Math.min(focused, Math.max(0, chips.length - 1));
  kit.rove(chips, focused);
  weigh();
  finish(value);
}

function weigh() {
  if (props.mode === 'weight') {
    const now = kit.plain(props.weights) ?? [];
    const same = now.length === weights.length && now.every((weight, i) => weight === weights[i]);
    weights = now;
    if (!same) dress();
    else if (undressed < chips.length) dress(undressed);
    undressed = chips.length;
  }
  select(props.selected ?? -1);
}

// --- ids and bytes in rows of their own ----------------------------------------------------------
const lane = {ids: part('lane-ids'), bytes: part('lane-bytes')};

function lanes() {
  if (!props.lanes) return;
  const hex = unit => (unit.hex ?? (unit.special ? [] : [hexOf(unit.t)])).join(' | ') || '\u2205';
  const cells = read => units.map((unit, i) => node('span', {cls: 'cell', text: read(unit), 'data-index': i}));
  lane.ids.replaceChildren(...cells(identity));
  lane.bytes.replaceChildren(...cells(hex));
  part('lanes').hidden = !units.length;
}

function link(index) {
  for (const row of Object.values(lane)) {
    row?.querySelector('.linked')?.classList.remove('linked');
    row?.children[index]?.classList.add('linked');
  }
  for (const linked of box.querySelectorAll('.chip.linked')) linked.classList.remove('linked');
  chips[index]?.classList.add('linked');
}

function group() {
  const groups = new Map();
  for (const chip of chips) {
    const key = identity(units[chip.index]);
    if (groups.has(key)) groups.get(key).push(chip);
    else groups.set(key, [chip]);
  }
  return groups;
}

/** The text runs the way of its first letter. */
function direction() {
  const letter = units.filter(unit => !unit.special).map(unit => unit.t).join('').match(/\p{L}/u)?.[0];
  return letter && LEFTWARD.test(letter) ? 'rtl' : 'ltr';
}

function select(index) {
  chips[selected]?.classList.remove('on');
  chips[selected]?.setAttribute('aria-selected', 'false');
  selected = index;
  chips[selected]?.classList.add('on');
  chips[selected]?.setAttribute('aria-selected', 'true');
  requestAnimationFrame(reveal);
}

/** Where the chips scroll, the chosen one comes into sight; the page itself does not move. */
function reveal() {
  const chip = chips[selected];
  if (!chip || box.scrollHeight <= box.clientHeight) return;
  const top = chip.offsetTop, bottom = top + chip.offsetHeight;
  if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
}

function finish(value) {
  const more = value.more ?? 0, button = part('copy');
  part('more').textContent = more
    ? say('more', {shown: kit.count(value.total - more), total: kit.count(value.total), n: kit.count(more)})
    : '';
  part('legend').hidden = props.mode === 'plain' || !units.length;
  button.hidden = !props.copy || !units.length;
  for (const other of [part('copy-text'), part('copy-json')]) other.hidden = button.hidden || !props.lanes;
  part('foot').hidden = button.hidden && !more;
  if (shown >= units.length) hide();
  else if (shown >= 0 && !floating) tell(shown);
}

// --- the read-out --------------------------------------------------------------------------------
function fact(name, ...values) {
  return node('div', {cls: 'fact'}, node('dt', {text: name}), node('dd', {}, ...values));
}

const hexOf = text => Array.from(new TextEncoder().encode(text), byte =>
  byte.toString(16).padStart(2, '0')).join(' ');

function bars(alternatives) {
  const most = Math.max(...alternatives.map(([, p]) => p));
  return node('div', {cls: 'bars'}, ...alternatives.flatMap(([text, p]) => {
    const fillBar = node('i', {style: `width:${(100 * p) / most}%`});
    return [node('bdi', {cls: 'alt'}, kit.visible(text)), node('div', {cls: 'track'}, fillBar),
      node('span', {cls: 'num', text: kit.percent(p)})];
  }));
}

function describe(unit, index) {
  const facts = [fact(say('position'), String(index))];
  if (unit.ids.length) facts.push(fact(say('ids'), unit.ids.join(' ')));
  if (unit.p !== undefined && unit.p !== null) {
    const rank = unit.rank === undefined ? '' : ' \u00b7 ' + say('rank', {rank: unit.rank});
    facts.push(fact(say('probability'), kit.percent(unit.p, 2) + rank));
  }
  if (weights[index] !== undefined) facts.push(fact(say('weight'), kit.exact(weights[index])));
  if (unit.t) facts.push(fact(say('characters'), kit.codePoints(unit.t)));
  if (unit.t || unit.hex) facts.push(fact(say('bytes'), (unit.hex ?? [hexOf(unit.t)]).join(' | ')));
  const list = node('dl', {}, ...facts);
  const title = node('bdi', {cls: 'literal', dir: 'auto', text: kit.quoted(unit.t)});
  const kinds = [];
  if (unit.special) kinds.push(say('special'));
  if (unit.ids.length > 1) kinds.push(say('shared', {n: unit.ids.length}));
  const times = twins.get(identity(unit))?.length ?? 1;
  if (times > 1) kinds.push(say('repeated', {n: times}));
  const top = node('div', {cls: 'top'}, title, node('span', {cls: 'help', text: kinds.join(' \u00b7 ')}));
  return [top, list, ...(unit.alt?.length ? [bars(unit.alt)] : [])];
}

function tell(index) {
  mark(index);
  if (props.lanes) link(index);
  shown = index;
  panel.replaceChildren(...describe(units[index], index));
  if (floating) place(chips[index]);
}

function mark(index) {
  for (const chip of box.querySelectorAll('.same')) chip.classList.remove('same');
  const same = index >= 0 ? twins.get(identity(units[index])) : null;
  if (same?.length > 1) for (const chip of same) chip.classList.add('same');
}

function place(chip) {
  const room = 8, around = chip.getBoundingClientRect(), phone = innerWidth <= 640;
  if (phone && props.readout === 'aside') return;
  if (!popover.matches(':popover-open')) popover.showPopover();
  const size = popover.getBoundingClientRect();
  popover.classList.toggle('sheet', phone);
  if (phone) { popover.style.left = popover.style.top = ''; return; }
  const below = around.bottom + room, fits = below + size.height < innerHeight;
  const top = fits ? below : Math.max(room, around.top - size.height - room);
  const left = Math.max(room, Math.min(around.left, innerWidth - size.width - room));
  popover.style.top = top + 'px';
  popover.style.left = left + 'px';
}

function hide() {
  shown = -1;
  mark(-1);
  if (!floating) panel.replaceChildren(node('span', {cls: 'help', text: say('hint')}));
  else if (popover.matches(':popover-open')) popover.hidePopover();
}

// --- pointer and keyboard ------------------------------------------------------------------------
const chipOf = event => event.target.closest('.chip');
const press = index => { select(index); trigger('token_click', {index}); };

box.addEventListener('mouseover', event => {
  const chip = chipOf(event);
  if (chip && chip.index !== shown) tell(chip.index);
});
box.addEventListener('mouseleave', event => {
  if (floating && popover.contains(event.relatedTarget)) return;  // the pointer went to read it
  const held = box.querySelector('.chip:focus-visible');
  if (held) tell(held.index);
  else if (floating) hide();
  else mark(-1);
});
box.addEventListener('focusin', event => {
  const chip = chipOf(event);
  if (!chip) return;
  focused = chip.index;
  kit.rove(chips, focused);
  tell(focused);
});
box.addEventListener('focusout', () => { if (floating) hide(); else mark(-1); });
box.addEventListener('click', event => {
  const chip = chipOf(event);
  if (chip) press(chip.index);
});

/** The chip in the line above or below whose middle is nearest. */
function beside(index, direction) {
  const middle = at => (at.left + at.right) / 2, here = chips[index].getBoundingClientRect();
  let best = index, least = Infinity, line = null;
  for (let i = index + direction; chips[i]; i += direction) {
    const there = chips[i].getBoundingClientRect();
    if (Math.abs(there.top - here.top) < here.height / 2) continue;
    line ??= there.top;
    if (Math.abs(there.top - line) > here.height / 2) break;
    const gap = Math.abs(middle(there) - middle(here));
    if (gap < least) { least = gap; best = i; }
  }
  return best;
}

box.addEventListener('keydown', event => {
  const chip = chipOf(event);
  if (!chip) return;
  const at = chip.index, flip = getComputedStyle(box).direction === 'rtl' ? -1 : 1;
  const to = {ArrowRight: () => at + flip, ArrowLeft: () => at - flip, Home: () => 0,
    End: () => chips.length - 1, ArrowDown: () => beside(at, 1), ArrowUp: () => beside(at, -1)};
  if (event.key === 'Enter' || event.key === ' ') press(at);
  else if (to[event.key]) chips[to[event.key]()]?.focus();
  else return;
  event.preventDefault();
});

// Escape takes the read-out away whether it came by pointer or by focus (WCAG 1.4.13).
if (floating) {
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape' && element.isConnected && popover.matches(':popover-open')) hide();
  });
  popover.addEventListener('mouseleave', hide);
}

// --- legend, copy, start -------------------------------------------------------------------------
function legend() {
  const scale = props.mode === 'weight' ? 'weight' : 'chance', steps = [0, 0.1, 0.25, 0.5, 0.75, 1];
  const stops = steps.map(v => `rgb(${kit.colour(v, scale).join(' ')}) ${100 * v}%`).join(', ');
  part('ramp').style.background = `linear-gradient(to right, ${stops})`;
}
part('quantity').textContent = say(props.mode === 'weight' ? 'legend_weight' : 'legend_probability');
const full = props.mode === 'weight' ? '1' : '100 %';
part('low').textContent = full.replace(/1(00)?/, '0');
part('high').textContent = full;

async function allIds() {
  const from = kit.plain(props.value)?.ids_from;
  if (!from) return JSON.stringify(units.flatMap(unit => unit.ids));
  return new TextDecoder().decode((await kit.load(`bytes/${from}`)).bytes);
}
kit.copyButton(part('copy'), say('copy'), say('copied'), allIds);
if (props.lanes) {
  const text = async () => {
    const from = kit.plain(props.value)?.text_from;
    if (!from) return units.map(unit => unit.t).join('');
    return new TextDecoder().decode((await kit.load(`bytes/${from}`)).bytes);
  };
  const whole = async () => JSON.stringify({text: await text(), ids: JSON.parse(await allIds())});
  kit.copyButton(part('copy-text'), say('copy_text'), say('copied'), text);
  kit.copyButton(part('copy-json'), say('copy_json'), say('copied'), whole);
  part('lane-ids').setAttribute('aria-label', say('ids'));
  part('lane-bytes').setAttribute('aria-label', say('bytes'));
  part('name-ids').textContent = say('ids');
  part('name-bytes').textContent = say('bytes');
  part('lanes').addEventListener('mouseover', event => {
    const cell = event.target.closest('.cell');
    if (cell && Number(cell.dataset.index) !== shown) tell(Number(cell.dataset.index));
  });
}
kit.onTheme(element, () => { legend(); dress(); });
// Drawn in a task of its own: Gradio has just spent one on the value.
watch('value', () => { due ||= setTimeout(() => { due = 0; update(); }); });
watch(['weights', 'selected'], () => { if (!due) weigh(); });
legend();
hide();
update();
