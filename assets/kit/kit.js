// What the views of the kit share: words, data routes, the colour scales, readable text, keyboard.
//
// Each view (chips.js, heatmap.js, ...) is the body of a function that Gradio calls with
// (element, trigger, props, server, upload, watch). This file is given to every view as its `head`:
// Gradio puts it into the page once, before the first view runs.
window.glassboxKit ??= (() => {
  const locale = () => (/^zh/i.test(navigator.language) ? 'zh-CN' : 'en');
  const root = () => (window.gradio_config?.root ?? '').replace(/\/$/, '');
  const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

  // --- words and values --------------------------------------------------------------------
  const fill = (sentence, facts) =>
    sentence.replace(/\{(\w+)\}/g, (all, key) => (key in facts ? String(facts[key]) : all));

  /** A function that gives the sentence of a key in the reader's language, its {places} filled. */
  const speaker = props => (key, facts = {}) => fill(props.words[locale()][key], facts);

  /** Gradio hands out `props` as live proxies, slow to read a thousand times: take a plain copy. */
  const plain = value => (value == null ? null : JSON.parse(JSON.stringify(value)));

  const count = number => number.toLocaleString(locale());

  /** The shortest decimal that reads back as the same float32, so nothing is rounded away. */
  function exact(number) {
    for (let digits = 1; digits < 9; digits++) {
      const text = number.toPrecision(digits);
      if (Math.fround(Number(text)) === number) return String(Number(text));
    }
    return String(Number(number.toPrecision(9)));
  }

  const percent = (share, digits = 1) => (100 * share).toFixed(digits) + ' %';

  // --- nodes -------------------------------------------------------------------------------
  /** A new element. Text always goes in as text, never as markup. */
  function node(tag, {text, cls, ...attributes} = {}, ...children) {
    const made = document.createElement(tag);
    if (cls) made.className = cls;
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  /** Hides the whole Gradio block, so that an empty view leaves no gap in its column. */
  function collapse(element, hidden) {
    const block = element.closest('.block');
    if (block) block.style.display = hidden ? 'none' : '';
  }

  // --- text that can be seen ---------------------------------------------------------------
  const INVISIBLE = /[\u0080-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\ud800-\udfff]|[\u{e0000}-\u{10ffff}]/u;
  const CONTROLS = ('NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK '
    + 'SYN ETB CAN EM SUB ESC FS GS RS US').split(' ');
  const JOINS = /[\u200d\ufe0e\ufe0f\u{e0020}-\u{e007f}]/u;
  const hex = character => character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');

  /**
   * Cuts a text into pieces that can be shown: {kind: 'text' | 'space' | 'control', text}.
   * A space becomes a dot (unless `spaces` is false), line ends and tabs become arrows, other
   * controls their ASCII names (few fonts have the pictures of U+2400), and what has no shape at all
   * its code. Joiners inside an emoji are left alone.
   */
  function pieces(text, spaces = true) {
    const found = [];
    const add = (kind, shown) => {
      const last = found.at(-1);
      if (kind === 'text' && last?.kind === 'text') last.text += shown;
      else found.push({kind, text: shown});
    };
    [...text].forEach(letter => {
      const code = letter.codePointAt(0);
      if (letter === ' ' && spaces) add('space', '\u00b7');
      else if (letter === '\n') add('control', '\u23ce');
      else if (letter === '\t') add('control', '\u21e5');
      else if (code < 0x20) add('control', CONTROLS[code]);
      else if (code === 0x7f) add('control', 'DEL');
      else if (JOINS.test(letter) && found.at(-1)?.kind === 'text') add('text', letter);
      else if (INVISIBLE.test(letter)) add('control', hex(letter));
      else if (/\p{M}/u.test(letter) && found.at(-1)?.kind !== 'text') add('text', '\u25cc' + letter);
      else add('text', letter);
    });
    return found;
  }

  const glyphs = text => pieces(text).map(piece => piece.text).join('');

  /** The pieces of a text as nodes. */
  function visible(text, spaces = true) {
    const part = document.createDocumentFragment();
    for (const piece of pieces(text, spaces)) {
      if (piece.kind === 'text') part.append(piece.text);
      else part.append(node('span', {cls: piece.kind, text: piece.text}));
    }
    return part;
  }

  /** A text as a quoted literal: what cannot be seen is written as an escape. */
  const quoted = text =>
    JSON.stringify(text).replace(new RegExp(INVISIBLE.source, 'gu'), letter =>
      letter.codePointAt(0) > 0xffff ? `\\u{${hex(letter)}}` : '\\u' + hex(letter).toLowerCase());

  const codePoints = text => [...text].map(letter => 'U+' + hex(letter)).join(' ');

  // --- colour ------------------------------------------------------------------------------
  // One scale per quantity, everywhere. `weight` grows out of the paper in one hue. `chance` is
  // the other way round: what was certain stays paper, what was a surprise glows.
  const SCALES = {
    weight: {
      light: [[255, 255, 255], [214, 230, 244], [164, 203, 231], [106, 167, 214], [57, 126, 186],
        [24, 82, 143], [8, 39, 84]],
      dark: [[24, 29, 36], [24, 52, 84], [26, 84, 134], [52, 124, 182], [116, 170, 214],
        [186, 213, 236], [240, 247, 252]],
      bend: 0.6,
    },
    chance: {
      light: [[233, 150, 62], [243, 180, 106], [249, 208, 154], [252, 229, 197], [248, 243, 234]],
      dark: [[163, 88, 14], [132, 74, 20], [100, 61, 26], [69, 47, 31], [35, 39, 45]],
      bend: 1,
    },
    // From -1 (as 0) over nothing (as a half) to 1.
    difference: {
      light: [[140, 54, 8], [214, 118, 52], [250, 216, 184], [255, 255, 255], [191, 217, 239], [57, 126, 186],
        [8, 55, 112]],
      dark: [[255, 205, 158], [226, 140, 70], [110, 66, 36], [24, 29, 36], [26, 70, 114], [86, 150, 206],
        [208, 229, 248]],
      bend: 0.6, signed: true,
    },
  };
  // Asked for every cell and chip: a selector would search the whole page each time.
  const dark = () => [document.body, document.documentElement].some(it => it.classList.contains('dark'));

  /** The colour [r, g, b] of a value from 0 to 1. */
  function colour(value, scale = 'weight', theme = dark() ? 'dark' : 'light') {
    const {bend, signed, [theme]: stops} = SCALES[scale], inside = Math.min(1, Math.max(0, value));
    const way = 2 * inside - 1, size = Math.abs(way) < 1 / 128 ? 0 : Math.abs(way);  // no byte is a half exactly
    const at = (signed ? 0.5 + 0.5 * Math.sign(way) * size ** bend : inside ** bend) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at)), share = at - low;
    return stops[low].map((from, k) => Math.round(from + (stops[low + 1][k] - from) * share));
  }

  const css = rgb => `rgb(${rgb.join(' ')})`;

  /** Letters that stand out at least 4.5 to 1 on any colour (WCAG relative luminance). */
  function inkOn(rgb) {
    const [r, g, b] = rgb.map(part => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    if (luminance > 0.25) return '#14181d';
    return luminance > 0.179 ? '#000000' : '#ffffff';
  }

  /** For each byte the pixel to draw: RGBA in one 32-bit number (canvas memory is little endian). */
  function pixels(theme, scale) {
    return Uint32Array.from({length: 256}, (_, byte) => {
      const [r, g, b] = colour(byte / 255, scale, theme);
      return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    });
  }

  /**
   * Draws bytes as one pixel a cell. Cells after the diagonal stay clear where `causal`: the mask
   * is the canvas's background, and follows the theme by itself. `stops`: for each row how many
   * cells are drawn, where the diagonal is another one.
   */
  function paint(canvas, bytes, rows, columns, {causal = false, stops, theme, scale = 'weight'} = {}) {
    canvas.width = columns;
    canvas.height = rows;
    const image = new ImageData(columns, rows), table = pixels(theme, scale);
    const target = new Uint32Array(image.data.buffer);
    for (let row = 0; row < rows; row++) {
      const stop = stops ? stops[row] : causal ? Math.min(columns, row + 1 + columns - rows) : columns;
      for (let k = row * columns; k < row * columns + stop; k++) target[k] = table[bytes[k]];
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
  }

  // --- the page's theme, data and exports ------------------------------------------------------
  const views = new Set();

  /** Runs `redraw` when the page turns light or dark, for as long as the view is in the page. */
  function onTheme(element, redraw) {
    views.add({element, redraw});
  }
  function retheme() {
    for (const view of views) {
      if (view.element.isConnected) view.redraw();
      else views.delete(view);
    }
  }
  const classes = {attributes: true, attributeFilter: ['class']};
  for (const holder of [document.documentElement, document.body])
    new MutationObserver(retheme).observe(holder, classes);

  /** GET <root>/glassbox/<path>: the bytes, and the numbers of the X-Shape header. */
  async function load(path) {
    const answer = await fetch(`${root()}/glassbox/${path}`);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    const shape = (answer.headers.get('X-Shape') ?? '').split(',').map(Number);
    return {bytes: await answer.arrayBuffer(), shape};
  }

  /** Runs `save` when some button of the page asks this view (by its elem_id) for a picture. */
  function onExport(element, target, save) {
    window.addEventListener('glassbox:export', event => {
      if (element.isConnected && event.detail?.target === target) save();
    });
  }

  function download(href, name) {
    const link = node('a', {href, download: name});
    document.body.append(link);
    link.click();
    link.remove();
  }

  /** A copy of a part of the page that carries its looks in itself. */
  function withLooks(part) {
    const copied = part.cloneNode(true), from = [part, ...part.querySelectorAll('*')];
    [copied, ...copied.querySelectorAll('*')].forEach((one, i) => {
      const looks = getComputedStyle(from[i]);
      one.setAttribute('style', Array.from(looks, name => `${name}:${looks.getPropertyValue(name)}`).join(';'));
    });
    return copied;
  }

  const asData = async address => {
    const blob = await (await fetch(address)).blob();
    return new Promise(done => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result);
      reader.readAsDataURL(blob);
    });
  };

  /** The page's own fonts with their letters in them: a picture may load no files. */
  async function readFonts() {
    const rules = Array.from(document.styleSheets).flatMap(sheet => Array.from(sheet.cssRules))
      .filter(rule => rule instanceof CSSFontFaceRule && rule.style.fontFamily.includes('Glassbox'));
    const own = rules.map(async rule => {
      const file = new URL(rule.style.src.match(/url\(["']?([^"')]+)/)[1], rule.parentStyleSheet.href ?? document.baseURI);
      const {fontFamily, fontWeight} = rule.style;
      return `@font-face { font-family: ${fontFamily}; font-weight: ${fontWeight}; src: url("${await asData(file)}"); }`;
    });
    return (await Promise.all(own)).join('\n');
  }
  let fonts = null;

  /** Saves a part of the page, text and all, as a PNG picture on the page's own paper. */
  async function savePicture(part, name) {
    const {width, height} = {width: part.scrollWidth, height: part.scrollHeight}, zoom = 2;
    fonts ??= readFonts().catch(() => '');  // then it is drawn with those of the system
    const style = `<style xmlns="http://www.w3.org/1999/xhtml">${await fonts}</style>`;
    const inner = style + new XMLSerializer().serializeToString(withLooks(part));
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`
      + `<foreignObject width="100%" height="100%">${inner}</foreignObject></svg>`;
    const image = new Image();
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(svg);
    await image.decode();
    const sheet = node('canvas'), pen = sheet.getContext('2d'), rim = 16;
    sheet.width = zoom * (width + 2 * rim);
    sheet.height = zoom * (height + 2 * rim);
    pen.scale(zoom, zoom);
    pen.fillStyle = getComputedStyle(document.body).getPropertyValue('--surface');
    pen.fillRect(0, 0, width + 2 * rim, height + 2 * rim);
    pen.drawImage(image, rim, rim);
    download(sheet.toDataURL('image/png'), `${name}.png`);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {                                  // plain http from another machine: no clipboard API
      const area = node('textarea', {'aria-hidden': 'true', style: 'position:fixed;opacity:0'});
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand('copy');
      area.remove();
    }
  }

  /** A button that copies what `read()` gives and says so for a moment, keeping its width. */
  function copyButton(button, label, done, read) {
    let timer = 0;
    button.textContent = label;
    button.addEventListener('click', async () => {
      button.style.minWidth = button.offsetWidth + 'px';
      await copy(await read());
      button.textContent = done;
      button.setAttribute('aria-live', 'polite');
      clearTimeout(timer);
      timer = setTimeout(() => { button.textContent = label; }, 1600);
    });
  }

  /** At most one call per `wait` milliseconds, the last one always made. */
  function calmly(action, wait = 120) {
    let timer = 0, latest;
    return (...values) => {
      latest = values;
      timer ||= setTimeout(() => { timer = 0; action(...latest); }, wait);
    };
  }

  /** One node of `nodes` can be reached with Tab; the others from it with the arrow keys. */
  function rove(nodes, at) {
    for (const other of nodes) if (other.tabIndex === 0) other.tabIndex = -1;
    if (nodes[at]) nodes[at].tabIndex = 0;
  }

  return {speaker, plain, count, exact, percent, node, collapse, pieces, glyphs, visible, quoted,
    codePoints, colour, css, inkOn, paint, onTheme, load, root, onExport, download, savePicture, copy,
    copyButton, calmly, rove, calm, dark, fill, locale};
})();
