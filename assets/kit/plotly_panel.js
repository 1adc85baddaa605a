// One Plotly figure, drawn with the plotly.js that the server's plotly package ships.
//
// props.value is JSON text: {figure: {data, layout}, have?} replaces the figure; {add: [{at, x, y} | null]}
// adds points to its traces. `have` and `at` count the points of a trace sent before, so a panel
// that missed some (it was not on the screen yet) notices and asks: event 'plot_gap'.
// Events: 'plot_click' and 'plot_hover' {x, y, z, index, trace}.
const kit = window.glassboxKit, say = kit.speaker(props);
const frame = element.querySelector('.frame'), plot = element.querySelector('.plot');
const note = element.querySelector('.note'), save = element.querySelector('.save');
let plotly = null, figure = null, have = [], version = 0, asked = false, waiting = false, listening = false;

frame.style.height = props.height + 'px';
frame.setAttribute('aria-label', say('label'));
note.textContent = say('empty');
save.textContent = 'PNG';
save.title = say('png');

/** The library, fetched at the first drawing and shared by all panels of the page. */
function library() {
  kit.plotly ??= new Promise((resolve, reject) => {
    const before = window.Plotly, script = kit.node('script', {src: kit.root() + '/glassbox/plotly.js'});
    script.onload = () => {
      resolve(window.Plotly);
      window.Plotly = before;                  // leave the global to gr.Plot, which has another version
    };
    script.onerror = () => {
      script.remove();
      kit.plotly = null;                       // the next drawing tries again
      reject(new Error(say('missing')));
    };
    document.head.append(script);
  });
  return kit.plotly;
}

// --- the page's colours --------------------------------------------------------------------------
const PAPER = {'--ink': '#1d232b', '--ink-2': '#59626e', '--line': '#e4e0d8', '--surface': '#ffffff'};
const LINES = {
  light: ['#0f5fae', '#c4571a', '#1b7f5c', '#a03c78', '#6a55b5', '#7a6a14'],
  dark: ['#6db3f8', '#f0a35b', '#55c79d', '#ee8fbf', '#b3a1f5', '#d8c55a'],
};

/** Plotly's template in the colours of the page, or for a saved picture those of paper. */
function template(print = false) {
  const page = getComputedStyle(element);
  const colour = name => (print ? PAPER[name] : page.getPropertyValue(name).trim());
  const ink = colour('--ink-2'), line = colour('--line');
  const axis = {gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true,
    tickfont: {color: ink, size: 12}, title: {font: {color: ink, size: 13}, standoff: 8}};
  return {layout: {
    paper_bgcolor: print ? PAPER['--surface'] : 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    font: {color: colour('--ink'), family: page.fontFamily, size: 13},
    colorway: LINES[kit.dark() && !print ? 'dark' : 'light'],
    xaxis: axis, yaxis: axis, margin: {l: 56, r: 16, t: 16, b: 44},
    legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0}, hovermode: 'x unified',
    hoverlabel: {bgcolor: colour('--surface'), bordercolor: line, font: {color: colour('--ink')}},
    modebar: {bgcolor: 'rgba(0,0,0,0)', color: ink, activecolor: colour('--ink')},
  }};
}

// --- drawing -------------------------------------------------------------------------------------
const CONFIG = {displaylogo: false, showSendToCloud: false, plotlyServerURL: '', showTips: false,
  displayNotifier: false, responsive: false,
  modeBarButtonsToRemove: ['toImage', 'select2d', 'lasso2d', 'autoScale2d']};

async function draw() {
  waiting = false;
  if (!figure || !plot.clientWidth) return;    // in a hidden tab: the ResizeObserver calls again
  try {
    if (!plotly) frame.setAttribute('aria-busy', 'true');
    plotly ??= await library();
    const layout = {...structuredClone(figure.layout), width: plot.clientWidth, height: props.height,
      template: template(), datarevision: ++version};
    await plotly.react(plot, figure.data, layout, CONFIG);
    if (layout.meta?.places)                   // only now it is known where the points are
      await plotly.react(plot, figure.data.map(place), {...layout, datarevision: ++version}, CONFIG);
    listen();
    note.textContent = '';
    save.hidden = false;
    plot.dataset.drawn = version;
  } catch (error) {
    note.textContent = error.message;
  } finally {
    frame.removeAttribute('aria-busy');
  }
}

// --- names of points -----------------------------------------------------------------------------
const NAME_SIZE = 12, NAME_HEIGHT = 15, GAP = 5;   // pixels
// Where a name may stand; from its point, its left end and top in parts of its own size.
const PLACES = [['top center', -0.5, -1], ['bottom center', -0.5, 0], ['middle right', 0, -0.5],
  ['middle left', -1, -0.5], ['top right', 0, -1], ['top left', -1, -1], ['bottom right', 0, 0],
  ['bottom left', -1, 0]];

/** A trace whose names do not cover each other; who finds no place is left out. */
function place(trace) {
  if (!trace.text?.length) return trace;
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `${NAME_SIZE}px ${getComputedStyle(element).fontFamily}`;
  const {xaxis, yaxis} = plot._fullLayout, taken = [];
  const dots = trace.x.map((x, i) => [xaxis.c2p(x), yaxis.c2p(trace.y[i])]);
  const shift = part => (part === 0 ? GAP : part === -1 ? -GAP : 0);
  const box = ([x, y], width, [, across, down]) => {
    const left = x + across * width + shift(across), top = y + down * NAME_HEIGHT + shift(down);
    return {left, top, right: left + width, bottom: top + NAME_HEIGHT};
  };
  const inside = b => b.left >= 0 && b.top >= 0 && b.right <= xaxis._length && b.bottom <= yaxis._length;
  const free = b => taken.every(o => b.left >= o.right || b.right <= o.left || b.top >= o.bottom || b.bottom <= o.top);
  const covers = b => dots.filter(([x, y]) => x > b.left && x < b.right && y > b.top && y < b.bottom).length;
  const chosen = trace.text.map((text, i) => {
    const width = pen.measureText(plainly(text)).width;
    const able = PLACES.map(at => ({at, box: box(dots[i], width, at)})).filter(one => inside(one.box) && free(one.box));
    const best = able.sort((a, b) => covers(a.box) - covers(b.box))[0];
    if (best) taken.push(best.box);
    return best?.at[0];
  });
  return {...trace, textfont: {size: NAME_SIZE}, textposition: chosen.map(at => at ?? 'top center'),
    text: trace.text.map((text, i) => (chosen[i] ? text : ''))};
}

/** What a name looks like: Python wrote its marks so that Plotly shows them. */
const plainly = text => text.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&');

/** At most one drawing per frame of the screen. */
function redraw() {
  if (waiting || !element.isConnected) return;
  waiting = true;
  requestAnimationFrame(draw);
}

function listen() {
  if (listening) return;
  listening = true;
  const spot = ({points: [point]}) => ({x: point.x, y: point.y, z: point.z ?? null,
    index: point.pointIndex ?? point.pointNumber, trace: point.curveNumber});
  const hovered = kit.calmly(event => trigger('plot_hover', spot(event)), 100);
  plot.on('plotly_click', event => trigger('plot_click', spot(event)));
  plot.on('plotly_hover', hovered);
  plot.on('plotly_relayout', () => figure.layout.meta?.places && redraw());
}

function picture() {
  if (!plotly) return;
  const layout = {...plot.layout, template: template(true)};
  plotly.downloadImage({data: plot.data, layout}, {format: 'png', scale: 2, width: plot.clientWidth,
    height: props.height, filename: props.target ?? 'figure'});
}

// --- live points ---------------------------------------------------------------------------------
/** Halves a trace: of every four points the lowest and the highest stay, so that spikes do. */
function thin(trace) {
  const kept = [];
  for (let start = 0; start < trace.y.length; start += 4) {
    const four = trace.y.slice(start, start + 4).map((_, i) => start + i);
    const lowest = four.reduce((a, b) => (trace.y[b] < trace.y[a] ? b : a));
    const highest = four.reduce((a, b) => (trace.y[b] > trace.y[a] ? b : a));
    kept.push(...new Set([Math.min(lowest, highest), Math.max(lowest, highest)]));
  }
  trace.x = kept.map(i => trace.x[i]);
  trace.y = kept.map(i => trace.y[i]);
}

function extend(chunk, index) {
  const trace = figure?.data[index], known = (have[index] ?? 0) - chunk.at;
  if (!trace || known < 0) {
    if (!asked) trigger('plot_gap');
    asked = true;
    return;
  }
  trace.x.push(...chunk.x.slice(known));
  trace.y.push(...chunk.y.slice(known).map(value => value ?? NaN));
  have[index] = Math.max(have[index] ?? 0, chunk.at + chunk.x.length);
  while (trace.x.length > props.max_points) thin(trace);
}

function receive(message = props.value && JSON.parse(props.value)) {
  if (!message) return;
  if (message.figure) {
    ({figure, have} = message);
    have ??= [];
    asked = false;
  } else message.add.forEach((chunk, index) => chunk && extend(chunk, index));
  redraw();
}

save.addEventListener('click', picture);
kit.onExport(element, props.target, picture);
kit.onTheme(element, redraw);
new ResizeObserver(redraw).observe(plot);
/** A script of the page that has the numbers itself draws here without a word from Python. */
window.addEventListener('glassbox:draw', event => {
  if (element.isConnected && event.detail.target === props.target) receive(event.detail.message);
});
watch('value', () => receive());
receive();
