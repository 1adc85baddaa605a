// A run as it goes on: state, progress, numbers; and the owner of its curves.
//
// props.value: {run: id} or null. It asks GET /glassbox/run/{id} twice a second while the run works,
// seldom while nobody looks, and tells the page:
//   'glassbox:draw' {target: props.chart, message}   a figure for the panel with the curves
//   'glassbox:run'  {run, state, step, samples}      for the views of samples and of all runs
// Event for Python, when the state changes or a checkpoint is there: 'run_change' {run, state}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const FAILURES = ['run-not-finite', 'run-disk-full', 'run-out-of-memory'];
const WORKING = ['queued', 'running', 'pausing', 'stopping'], ENDED = ['finished', 'stopped', 'failed', 'interrupted'];
const QUICK = 400, CALM = 1500, SELDOM = 5000;   // milliseconds between two questions
const BLOCK = 16;                                // steps asked from are a multiple: a class asks the same question
const MOST_POINTS = 1000;
const TILES = ['loss', 'validation', 'perplexity', 'rate', 'norm', 'speed', 'mfu', 'left'];
const CHARTS = {loss: 'losses', perplexity: 'losses', rate: 'rates', norm: 'norms', score: 'scores', logp: 'scores', length: 'scores'};
// Scores of one unit share a chart: nats, tokens; all others are shares from 0 to 1.
const UNITS = {
  logp: ['margin', 'policy_chosen', 'policy_rejected', 'reference_chosen', 'reference_rejected', 'drift'],
  length: ['answer_tokens'],
};
const chartOf = score => Object.keys(UNITS).find(chart => UNITS[chart].includes(score)) ?? 'score';
let run = null, timer = 0, asking = 0, data = null, told = '', drawn = '';
const shown = {chart: 'loss', axis: 'steps', log: false, smooth: 0.6};

// --- the parts ---------------------------------------------------------------------------------
const tiles = Object.fromEntries(TILES.map(name => {
  const number = node('b', {text: '\u2013'});
  const tile = node('div', {cls: 'tile', title: say(name + '_help')}, node('span', {text: say(name)}), number);
  part('tiles').append(tile);
  return [name, number];
}));
part('bar').setAttribute('aria-label', say('progress'));
part('empty').textContent = say('empty');

function choices(box, key, names, choose) {
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', say(key));
  const buttons = names.map(name => {
    const button = node('button', {cls: 'button', type: 'button', text: say(key + '_' + name)});
    button.addEventListener('click', () => { choose(name); press(); redraw(true); });
    return button;
  });
  const press = () => buttons.forEach((button, i) => button.setAttribute('aria-pressed', shown[key] === names[i]));
  box.append(...buttons);
  press();
  return {press, of: Object.fromEntries(names.map((name, i) => [name, buttons[i]]))};
}
const chartButtons = choices(part('charts'), 'chart', Object.keys(CHARTS), name => { shown.chart = name; });
choices(part('axes'), 'axis', ['steps', 'tokens'], name => { shown.axis = name; });
const log = node('input', {type: 'checkbox'});
part('log').append(log, say('log'));
log.addEventListener('change', () => { shown.log = log.checked; redraw(true); });
const smooth = node('input', {type: 'range', min: 0, max: 0.98, step: 0.02, value: shown.smooth, 'aria-label': say('smooth')});
part('smooth').append(say('smooth'), smooth);
smooth.addEventListener('input', () => { shown.smooth = Number(smooth.value); redraw(true); });
part('csv').textContent = say('csv');
part('tensorboard').textContent = say('tensorboard');
part('tensorboard').title = say('tensorboard_help');

// --- numbers in words --------------------------------------------------------------------------
const digits = (value, n = 3) => (value == null || !Number.isFinite(value) ? '\u2013' : value.toFixed(n));
const short = value => (value == null || !Number.isFinite(value) ? '\u2013'
  : value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential(2) : String(Number(value.toPrecision(4))));

function duration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return '\u2013';
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  if (hours) return say('hours', {hours, minutes});
  return minutes ? say('minutes', {minutes, seconds: whole % 60}) : say('seconds', {seconds: whole});
}

// --- asking ------------------------------------------------------------------------------------
const fresh = () => ({starts: 0, have: 0, steps: [], tokens: [], losses: [], rates: [], norms: [], evaluated: [], scores: [], samples: new Map(), last: null});
const looked = () => !document.hidden && element.getClientRects().length > 0;

function pace(state) {
  if (!looked()) return SELDOM;
  if (WORKING.includes(state)) return QUICK;
  return ENDED.includes(state) ? SELDOM : CALM;
}

async function ask() {
  clearTimeout(timer);
  if (!run || !element.isConnected) return;
  const mine = ++asking, of = run, since = data.have - data.have % BLOCK;
  let wait = CALM;
  try {
    const answer = await fetch(`${kit.root()}/glassbox/run/${of}?since=${since}&starts=${data.starts}`);
    if (mine !== asking || of !== run) return;
    if (answer.status === 404) return gone((await answer.json()).error);
    if (!answer.ok) throw new Error(String(answer.status));
    take(await answer.json());
    wait = pace(data.last.state);
  } catch (error) {
    if (mine !== asking) return;
    if (!(error instanceof TypeError)) throw error;
    say_message('waiting', say('lost_connection'));
  }
  timer = setTimeout(ask, wait);
}

function gone(message) {
  data = fresh();
  part('body').hidden = true;
  part('empty').hidden = false;
  part('empty').textContent = message;
  trigger('run_change', {run, state: 'gone'});
}

function take(answer) {
  if (answer.reset) Object.assign(data, fresh(), {samples: data.samples});
  data.starts = answer.n_starts;
  const points = answer.points, known = data.steps.at(-1) ?? -1;
  points.steps.forEach((step, i) => {
    if (step <= known) return;
    data.steps.push(step);
    data.tokens.push(points.tokens[i]);
    data.losses.push(points.losses[i]);
    data.rates.push(points.learning_rates[i]);
    data.norms.push(points.gradient_norms[i]);
  });
  data.have = answer.have;
  data.evaluated = answer.evaluated;
  data.scores = answer.scores ?? [];
  for (const sample of answer.samples) data.samples.set(`${sample.step} ${sample.prompt}`, sample);
  data.last = answer;
  element.dataset.state = answer.state;
  element.dataset.step = answer.step;
  show();
  tell();
}

/** What Python and the other views have to know. */
function tell() {
  const {state, checkpoints} = data.last, now = `${run} ${state} ${checkpoints.length} ${checkpoints.at(-1)} ${data.starts}`;
  window.dispatchEvent(new CustomEvent('glassbox:run', {detail: {target: props.chart, run, state, step: data.last.step,
    validation: data.last.validation, writes: data.last.writes, samples: [...data.samples.values()]}}));
  if (now === told) return;
  told = now;
  trigger('run_change', {run, state});
}

// --- showing -----------------------------------------------------------------------------------
function show() {
  const last = data.last, at = data.losses.length - 1, evaluation = data.evaluated.at(-1);
  part('body').hidden = false;
  part('empty').hidden = true;
  part('state').textContent = say('state_' + last.state);
  part('state').dataset.state = last.state;
  part('place').textContent = last.place == null ? say('steps', {step: kit.count(last.step), n: kit.count(last.n_steps)})
    : say('place', {place: last.place + 1});
  const share = last.n_steps ? last.step / last.n_steps : 0;
  part('bar').setAttribute('aria-valuenow', Math.round(100 * share));
  part('fill').style.width = 100 * share + '%';
  tiles.loss.textContent = digits(data.losses[at]);
  tiles.validation.textContent = digits(evaluation?.[3]);
  tiles.perplexity.textContent = evaluation?.[3] == null ? '\u2013' : short(Math.exp(evaluation[3]));
  tiles.rate.textContent = short(data.rates[at]);
  tiles.norm.textContent = short(data.norms[at]);
  tiles.speed.textContent = last.tokens_per_s == null ? '\u2013' : say('per_second', {n: kit.count(Math.round(last.tokens_per_s))});
  tiles.mfu.textContent = last.mfu == null ? '\u2013' : kit.percent(last.mfu, 0);
  tiles.left.textContent = last.state === 'running' ? duration(last.seconds_left) : '\u2013';
  part('csv').href = `${kit.root()}/glassbox/run/${run}/metrics.csv`;
  part('tensorboard').href = `${kit.root()}/glassbox/run/${run}/tensorboard.zip`;
  part('zip').hidden = last.offered == null;
  if (last.offered != null) {
    part('zip').textContent = say('zip_step', {step: kit.count(last.offered)});
    part('zip').href = `${kit.root()}/glassbox/run/${run}/step-${last.offered}.zip`;
  }
  explain(last);
  tiles.perplexity.parentNode.hidden = chartButtons.of.perplexity.hidden = !last.per_token;
  part('fit').hidden = !overfits();
  if (overfits()) part('fit').textContent = say('overfit', facts_of_fit());
  offer_charts();
  redraw(false);
}

/** Charts of scores that this run has; from one that it has not the panel goes back to the loss. */
function offer_charts() {
  const scored = new Set(data.scores.map(row => chartOf(row[1])));
  for (const [chart, from] of Object.entries(CHARTS)) if (from === 'scores') chartButtons.of[chart].hidden = !scored.has(chart);
  if (!chartButtons.of[shown.chart].hidden) return;
  shown.chart = 'loss';
  chartButtons.press();
}

function say_message(kind, text) {
  part('message').hidden = !text;
  part('message').className = 'message ' + kind;
  part('message').textContent = text ?? '';
}

function explain(last) {
  if (last.failed) {
    const [code, english, step, tensor] = last.failed;
    const message = FAILURES.includes(code) ? say(code) : english;
    return say_message('bad', tensor ? say('failed_tensor', {step, tensor, message}) : say('failed', {step, message}));
  }
  if (last.state === 'interrupted') return say_message('bad', say('interrupted', {step: last.checkpoints.at(-1) ?? 0}));
  if (last.lost_steps) return say_message('waiting', say('lost_steps', {n: last.lost_steps}));
  if (last.state === 'running' && !data.steps.length && !data.evaluated.length) return say_message('waiting', say('loading'));
  return say_message('', '');
}

/** Position in `evaluated` of the lowest validation loss after a step; -1 before there is one. */
function lowest() {
  let best = -1;
  data.evaluated.forEach((row, i) => { if (row[0] && row[3] != null && (best < 0 || row[3] < data.evaluated[best][3])) best = i; });
  return best;
}

/** Text is learnt by heart where validation has risen for three evaluations or more, and training fell. */
function overfits() {
  const best = lowest(), end = data.evaluated.at(-1);
  if (best < 0 || data.evaluated.length - 1 - best < 3 || end[3] == null) return false;
  return end[3] > 1.02 * data.evaluated[best][3] && end[2] < data.evaluated[best][2];
}

function facts_of_fit() {
  const best = data.evaluated[lowest()], end = data.evaluated.at(-1);
  return {step: kit.count(best[0]), low: digits(best[3]), now: digits(end[3]), training: digits(end[2])};
}

// --- curves ------------------------------------------------------------------------------------
/** At most so many points: of each block the lowest and the highest, so that spikes stay. */
function thin(values, most) {
  if (values.length <= most) return values.map((_, i) => i);
  const size = Math.ceil(values.length / (most / 2)), kept = [];
  for (let start = 0; start < values.length; start += size) {
    let low = start, high = start;
    for (let i = start; i < Math.min(start + size, values.length); i++) {
      if (values[i] < values[low]) low = i;
      if (values[i] > values[high]) high = i;
    }
    kept.push(...(low === high ? [low] : low < high ? [low, high] : [high, low]));
  }
  return kept;
}

/** Exponential moving average, freed of its bias to the beginning (Kingma & Ba 2015, section 3). */
function smoothed(values, share) {
  let mean = 0, weight = 0;
  return values.map(value => {
    if (value == null) return null;
    mean = share * mean + (1 - share) * value;
    weight = share * weight + (1 - share);
    return mean / weight;
  });
}

const curve = (name, x, y, more = {}) => ({type: 'scatter', mode: 'lines', name, x, y, ...more});

/** One line for each score of the chart; a press on a name hides its line. */
function scoreTraces() {
  const names = [...new Set(data.scores.map(row => row[1]))].filter(name => chartOf(name) === shown.chart);
  const at = step => (shown.axis === 'steps' ? step : step && data.tokens[data.steps.indexOf(step)]);
  return names.map(name => {
    const rows = data.scores.filter(row => row[1] === name);
    return curve(props.words.en['score_' + name] ? say('score_' + name) : name, rows.map(row => at(row[0])), rows.map(row => row[2]), {mode: 'lines+markers', marker: {size: 4}});
  });
}

function traces() {
  if (CHARTS[shown.chart] === 'scores') return scoreTraces();
  const grow = shown.chart === 'perplexity' ? value => (value == null ? null : Math.exp(value)) : value => value;
  const xs = shown.axis === 'tokens' ? data.tokens : data.steps, column = shown.axis === 'tokens' ? 1 : 0;
  const values = data[CHARTS[shown.chart]];
  const kept = thin(values, MOST_POINTS), x = kept.map(i => xs[i]);
  const main = say('line_' + shown.chart), made = [];
  const even = smoothed(values, shown.smooth);
  if (shown.smooth > 0) made.push(curve(main, x, kept.map(i => grow(values[i])), {opacity: 0.28, showlegend: false, hoverinfo: 'skip', line: {width: 1}}));
  made.push(curve(main, x, kept.map(i => grow(even[i])), {line: {width: 2}}));
  if (CHARTS[shown.chart] !== 'losses') return made;
  const points = data.evaluated.length < 60 ? 'lines+markers' : 'lines', at = data.evaluated.map(row => row[column]);
  made.push(curve(say('line_training'), at, data.evaluated.map(row => grow(row[2])), {line: {dash: 'dot', width: 1.5}}));
  made.push(curve(say('line_validation'), at, data.evaluated.map(row => grow(row[3])), {mode: points, marker: {size: 5}}));
  const best = data.evaluated[lowest()];
  if (best && data.evaluated.length > 2)
    made.push(curve(say('line_lowest'), [best[column]], [grow(best[3])], {mode: 'markers', marker: {size: 11, symbol: 'circle-open', line: {width: 2}}}));
  return colour(made);
}

/** The faint line has the colour of the one that it was smoothed to. */
function colour(made) {
  const palette = kit.dark() ? ['#6db3f8', '#949eaa', '#f0a35b', '#f0a35b'] : ['#0f5fae', '#606872', '#c4571a', '#c4571a'];
  const rest = made.length - (shown.smooth > 0 ? 1 : 0);
  return made.map((trace, i) => {
    const place = Math.max(0, i - (made.length - rest));
    return {...trace, line: {...trace.line, color: palette[place]}, marker: {...trace.marker, color: palette[place]}};
  });
}

function redraw(forced) {
  if (!data?.last) return;
  const state = `${data.have} ${data.evaluated.length} ${data.scores.length} ${data.starts} ${run}`;
  if (!forced && state === drawn) return;
  drawn = state;
  const draw = message => window.dispatchEvent(new CustomEvent('glassbox:draw', {detail: {target: props.chart, message}}));
  if (!data.steps.length && !data.evaluated.length) return draw(nothing_yet());
  const layout = {
    uirevision: `${run} ${shown.chart} ${shown.axis} ${shown.log}`, showlegend: true,
    xaxis: {title: {text: say('x_' + shown.axis)}, rangemode: 'tozero'},
    yaxis: {title: {text: say(shown.chart === 'loss' && !data.last.per_token ? 'y_loss_row' : 'y_' + shown.chart)}, type: shown.log ? 'log' : 'linear'},
  };
  draw({figure: {data: traces(), layout}});
}

/** Before the first point: a sentence in place of two empty axes. */
function nothing_yet() {
  const hidden = {visible: false}, text = say('no_points');
  const middle = {text, xref: 'paper', yref: 'paper', x: 0.5, y: 0.5, showarrow: false};
  return {figure: {data: [], layout: {xaxis: hidden, yaxis: hidden, annotations: [middle]}}};
}

// --- which run ---------------------------------------------------------------------------------
function update() {
  const wanted = kit.plain(props.value)?.run ?? null;
  if (wanted === run && data) return ask();
  run = wanted;
  data = fresh();
  told = drawn = '';
  part('body').hidden = true;
  part('empty').hidden = Boolean(run);
  part('empty').textContent = say('empty');
  if (run) ask();
}
document.addEventListener('visibilitychange', () => looked() && ask());
new ResizeObserver(() => { if (looked()) { drawn = ''; ask(); } }).observe(element);
kit.onTheme(element, () => redraw(true));
watch('value', update);
update();
