// The choice of the next token: a strip of steps, and for each candidate two bars, before and after.
//
// props.value: {id, settings} or null: the id of kept logits and the dials of the moment. The numbers
// come from GET next/{id}. While a slider moves, the page says so itself, without Python:
// 'glassbox:dials' {target, settings}. Event: 'pick' {index, id, label}, where props.clickable.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const steps = part('steps'), rows = part('rows'), note = part('note'), legend = part('legend');
const NAMES = ['logits', 'penalty', 'temperature', 'top_k', 'top_p', 'min_p', 'pick'];
const FILTERS = ['top_k', 'top_p', 'min_p'];
const FATES = {top_k: 'fate_top_k', top_p: 'fate_top_p', min_p: 'fate_min_p'};
const EFFECTS = {repetition_penalty: 'by_repetition_penalty', temperature: 'by_temperature'};
let id = null, settings = {}, busy = false, again = false, found = null;

legend.append(node('i', {cls: 'own'}), node('span', {text: say('own')}),
  node('i', {cls: 'final'}), node('span', {text: say('final')}));
rows.setAttribute('aria-label', say('label'));
if (props.clickable) rows.setAttribute('role', 'group'); // of buttons, no list
steps.setAttribute('aria-label', say('steps'));

// --- asking: one request at a time, and after it the newest ---------------------------------------
async function ask() {
  if (!id) return;
  if (busy) { again = true; return; }
  busy = true;
  const asked = id, started = performance.now();
  try {
    const query = new URLSearchParams(settings);
    const answer = await fetch(`${kit.root()}/glassbox/next/${asked}?${query}`);
    const content = await answer.json();
    if (asked === id) {
      if (answer.ok) { found = content; draw(); note.textContent = ''; }
      else note.textContent = content.error === 'gone' ? say('gone') : content.error;
      element.dataset.tookMs = Math.round(performance.now() - started);
    }
  } catch {
    note.textContent = say('unreachable');
  } finally {
    busy = false;
    if (again) { again = false; ask(); }
  }
}

// --- drawing ----------------------------------------------------------------------------------------
const share = value => value >= 0.0995 ? kit.percent(value, 1) : value >= 0.00095 ? kit.percent(value, 2)
  : value === 0 ? '0' : value < 1e-6 ? '< 0.0001 %' : kit.percent(value, 4);

function stepCard(name) {
  return node('li', {cls: `step ${name}`}, node('b', {text: say(name)}), node('span', {cls: 'kept'}),
    node('span', {cls: 'lost'}), node('span', {cls: 'spread'}));
}

function effectOf(setting) {
  const value = Number(settings[setting] ?? 1);
  return value === 1 ? say('nothing') : say(EFFECTS[setting], {value});
}

function effect(stage) {
  if (stage.name === 'logits') return say('all');
  if (FILTERS.includes(stage.name)) return stage.removed
    ? say('removed', {n: kit.count(stage.removed), mass: share(stage.removed_mass)}) : say('nothing');
  const setting = {penalty: 'repetition_penalty', temperature: 'temperature'}[stage.name];
  return setting ? effectOf(setting)
    : found.greedy ? say('greedy') : say('drawn');
}

function drawSteps() {
  while (steps.children.length < NAMES.length) steps.append(stepCard(NAMES[steps.children.length]));
  found.stages.forEach((stage, i) => {
    const [, kept, lost, spread] = steps.children[i].children;
    kept.textContent = say('kept', {n: kit.count(stage.kept)});
    lost.textContent = effect(stage);
    spread.textContent = say('spread', {perplexity: stage.perplexity.toFixed(2), entropy: stage.entropy_nats.toFixed(3)});
    steps.children[i].classList.toggle('acts', stage.removed > 0);
  });
}

/** Why a token is gone, in numbers. */
function fate(one) {
  const facts = {rank: one.rank, k: settings.top_k, p: settings.top_p, m: settings.min_p,
    reached: kit.percent(Math.max(0, one.reached - one.weighed), 1), weighed: share(one.weighed)};
  return one.removed_by ? say(FATES[one.removed_by], facts) : '';
}

function buildRow() {
  const row = node('li', {cls: 'row'}, node('span', {cls: 'word'}), node('span', {cls: 'logit'}),
    node('span', {cls: 'track'}, node('i', {cls: 'own'}), node('i', {cls: 'final'})),
    node('span', {cls: 'number own'}), node('span', {cls: 'number final'}), node('span', {cls: 'fate'}));
  if (!props.clickable) return row;
  row.tabIndex = -1;
  row.setAttribute('role', 'button');
  return row;
}

function drawRows() {
  const list = found.candidates, most = Math.max(...list.map(one => Math.max(one.probability, one.final)), 1e-12);
  while (rows.children.length > list.length) rows.lastChild.remove();
  while (rows.children.length < list.length) rows.append(buildRow());
  list.forEach((one, i) => {
    const row = rows.children[i], [word, logit, track, own, final, why] = row.children;
    word.replaceChildren(node('bdi', {text: one.label}));
    word.title = `${one.label} \u00b7 id ${one.id}`;
    logit.textContent = one.logit === null ? '-\u221e' : one.logit.toFixed(2);
    track.children[0].style.width = 100 * one.probability / most + '%';
    track.children[1].style.width = 100 * one.final / most + '%';
    own.textContent = share(one.probability);
    final.textContent = share(one.final);
    why.textContent = fate(one);
    row.classList.toggle('gone', one.final === 0);
    row.index = i;
  });
  if (props.clickable) kit.rove(Array.from(rows.children), 0);
}

function draw() {
  part('chart').hidden = !found;
  part('empty').hidden = Boolean(found);
  if (!found) return;
  drawSteps();
  drawRows();
  element.dataset.drawn = JSON.stringify(settings);
}

// --- choosing a row ---------------------------------------------------------------------------------
function press(row) {
  const one = found.candidates[row.index];
  trigger('pick', {index: row.index, id: one.id, label: one.label});
}
rows.addEventListener('click', event => {
  const row = event.target.closest('.row');
  if (row && props.clickable) press(row);
});
rows.addEventListener('keydown', event => {
  const row = event.target.closest('.row'), step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (!row || !props.clickable) return;
  if (event.key === 'Enter' || event.key === ' ') press(row);
  else if (step && rows.children[row.index + step]) {
    kit.rove(Array.from(rows.children), row.index + step);
    rows.children[row.index + step].focus();
  } else return;
  event.preventDefault();
});

window.addEventListener('glassbox:dials', event => {
  if (!element.isConnected || event.detail.target !== props.dials) return;
  settings = event.detail.settings;
  ask();
});
function update() {
  const value = kit.plain(props.value);
  part('empty').textContent = say('empty');
  if (!value) { id = found = null; return draw(); }
  ({id, settings} = value);
  ask();
}
kit.onExport(element, props.target, () => kit.savePicture(part('chart'), props.target));
watch('value', update);
update();
draw();
