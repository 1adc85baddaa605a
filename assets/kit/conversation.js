// A conversation. Whatever is in a message is drawn as text: nodes are made one by one, and no
// message is ever parsed as HTML. Of Markdown it knows code, lists, headings, quotes, bold, italic.
//
// props.value: {busy, earlier, shown, messages: [{index, role: 'user' | 'assistant', text, more,
// thought?, thinks?, branch?: [place, count], tokens?, cut?}]}; `shown` is the index whose tokens are
// shown, `cut` says that it was stopped before its end.
// Events: 'regenerate', 'another', 'reword' {index, text}, 'halt' (Escape while busy),
// 'switch' {index, by}, 'inspect' {index}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const talk = part('talk'), list = part('messages');
let value = {busy: false, earlier: 0, messages: []}, keys = [], editing = -1;

// --- Markdown, as nodes --------------------------------------------------------------------------
const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*)/;

function inline(text) {
  return text.split(INLINE).filter(Boolean).map(piece => {
    if (/^`[^`]+`$/.test(piece)) return node('code', {text: piece.slice(1, -1)});
    if (/^\*\*.+\*\*$/.test(piece)) return node('strong', {text: piece.slice(2, -2)});
    if (/^\*[^*]+\*$/.test(piece)) return node('em', {text: piece.slice(1, -1)});
    return document.createTextNode(piece);
  });
}

const KINDS = [
  ['heading', /^#{1,6}\s+(.*)$/],
  ['item', /^\s*[-*+]\s+(.*)$/],
  ['step', /^\s*\d{1,4}[.)]\s+(.*)$/],
  ['quote', /^>\s?(.*)$/],
];
const HOLDERS = {item: 'ul', step: 'ol', quote: 'blockquote'};
const ROWS = {item: 'li', step: 'li', quote: 'p', heading: 'h3'};

function kindOf(line) {
  for (const [kind, pattern] of KINDS) {
    const found = pattern.exec(line);
    if (found) return [kind, found[1], Number(/^\s*(\d+)/.exec(line)?.[1] ?? 1)];
  }
  return ['text', line, 1];
}

/** Runs of lines of one kind, as blocks. */
function blocks(text) {
  const made = [];
  let holder = null, holderKind = '', paragraph = [];
  const endParagraph = () => {
    const joined = paragraph.join('\n');
    if (joined.trim()) made.push(node('p', {dir: 'auto'}, ...inline(joined)));
    paragraph = [];
  };
  for (const line of text.split('\n')) {
    const [kind, content, number] = kindOf(line);
    if (kind !== 'text') endParagraph();
    if (kind !== holderKind) holder = null;
    holderKind = kind;
    if (kind === 'text') {
      if (line.trim()) paragraph.push(line);
      else endParagraph();
      continue;
    }
    const row = node(ROWS[kind], {dir: 'auto'}, ...inline(content));
    if (kind === 'heading') { made.push(row); continue; }
    if (!holder) {
      holder = node(HOLDERS[kind]);
      if (kind === 'step') holder.start = number;
      made.push(holder);
    }
    holder.append(row);
  }
  endParagraph();
  return made;
}

/** Text between fences is code; a fence that is not closed yet holds the rest. */
function markdown(text) {
  return text.split(/^[ \t]*```/m).flatMap((piece, i) => {
    if (i % 2 === 0) return blocks(piece);
    const code = piece.includes('\n') ? piece.slice(piece.indexOf('\n') + 1) : '';
    return [node('pre', {tabindex: '0', dir: 'ltr'}, node('code', {text: code.replace(/\n$/, '')}))];
  });
}

// --- one message ---------------------------------------------------------------------------------
function action(key, run) {
  const button = node('button', {cls: 'act', type: 'button', text: say(key)});
  if (['regenerate', 'another', 'inspect', 'answer'].includes(key)) button.title = say(key + '_help');
  button.addEventListener('click', run);
  return button;
}

/** Which branch this is, and the ways to the others. */
function branches(message) {
  const [place, count] = message.branch;
  const go = (by, sign, key) => {
    const button = node('button', {cls: 'act step', type: 'button', text: sign, 'aria-label': say(key)});
    button.addEventListener('click', () => trigger('switch', {index: message.index, by}));
    return button;
  };
  return node('span', {cls: 'branches'}, go(-1, '\u2039', 'branch_before'),
    node('span', {text: say('branch', {place: place + 1, count})}), go(1, '\u203a', 'branch_next'));
}

function actions(message, last) {
  const bar = node('div', {cls: 'actions'});
  if (message.branch) bar.append(branches(message));
  if (message.tokens) {
    const look = action('inspect', () => trigger('inspect', {index: message.index}));
    look.setAttribute('aria-pressed', String(message.index === value.shown));
    bar.append(look);
  }
  const copy = node('button', {cls: 'act', type: 'button'});
  kit.copyButton(copy, say('copy'), say('copied'), () => message.text);
  if (message.role === 'user') {
    if (!message.more) bar.append(action('edit', () => openEditor(message)));
    if (last && !value.busy) bar.append(action('answer', () => trigger('regenerate')));
  } else if (last) {
    bar.append(action('regenerate', () => trigger('regenerate')));
    bar.append(action('another', () => trigger('another')));
  }
  bar.append(copy);
  return bar;
}

/** Which thoughts the reader has unfolded; they stay so while more comes. */
const unfolded = new Set();

/** What the model thought aloud: folded, but open to look at also while it goes on. */
function thoughts(message) {
  const fold = node('details', {cls: 'thoughts'},
    node('summary', {text: say(message.thinks ? 'thinks' : 'thought')}),
    node('p', {cls: 'help', text: say('thought_help')}),
    node('div', {cls: 'thought', dir: 'auto', text: message.thought}));
  fold.open = unfolded.has(message.index);
  fold.addEventListener('toggle', () => unfolded[fold.open ? 'add' : 'delete'](message.index));
  return fold;
}

function build(message, last) {
  const mine = message.role === 'user', writing = last && value.busy && !mine;
  const text = node('div', {cls: 'text', dir: 'auto'});
  if (mine) text.textContent = message.text;
  else text.append(...markdown(message.text));
  if (!mine && !message.text && !message.thought && !writing) text.append(node('p', {cls: 'help', text: say('empty_answer')}));
  if (writing) text.classList.add('writing');
  const parts = [node('div', {cls: 'who', text: say(mine ? 'you' : 'model')})];
  if (message.thought) parts.push(thoughts(message));
  parts.push(text);
  if (message.more) parts.push(node('p', {cls: 'help', text: say('more', {n: kit.count(message.more)})}));
  if (message.cut) parts.push(node('p', {cls: 'help', text: say('was_cut')}));
  parts.push(actions(message, last));
  return node('article', {cls: `message ${message.role}`, 'data-index': message.index}, ...parts);
}

// --- editing in place ----------------------------------------------------------------------------
function openEditor(message) {
  const holder = list.querySelector(`[data-index="${message.index}"]`);
  const area = node('textarea', {'aria-label': say('edit_label'), rows: 3, dir: 'auto'});
  area.value = message.text;
  const send = () => { close(); trigger('reword', {index: message.index, text: area.value}); };
  const close = () => { editing = -1; keys = []; update(); };
  area.addEventListener('keydown', event => {
    if (event.key === 'Escape') close();
    else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const bar = node('div', {cls: 'actions'}, action('edit_send', send), action('cancel', close));
  editing = message.index;
  holder.replaceChildren(node('div', {cls: 'who', text: say('you')}), area, bar);
  area.focus();
}

// --- drawing only what changed -------------------------------------------------------------------
let first = '';
function update() {
  value = kit.plain(props.value) ?? {busy: false, earlier: 0, messages: []};
  if (first !== value.messages[0]?.text) unfolded.clear();  // another conversation
  first = value.messages[0]?.text;
  const {messages, busy} = value;
  const near = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
  const fresh = messages.map((message, i) => {
    const last = i === messages.length - 1;
    return JSON.stringify([message, last, last && busy, message.index === value.shown]);
  });
  if (editing >= 0 && busy) editing = -1;
  while (list.children.length > fresh.length) list.lastChild.remove();
  fresh.forEach((key, i) => {
    if (key === keys[i] || messages[i].index === editing) return;
    const made = build(messages[i], i === messages.length - 1);
    if (list.children[i]) list.children[i].replaceWith(made);
    else list.append(made);
  });
  const grew = fresh.length !== keys.length;
  keys = fresh;
  finish(busy);
  if (near || grew) talk.scrollTop = talk.scrollHeight;
}

function finish(busy) {
  const empty = !value.messages.length, earlier = part('earlier');
  part('greeting').hidden = !empty;
  earlier.hidden = !value.earlier;
  earlier.textContent = say('earlier', {n: kit.count(value.earlier ?? 0)});
  talk.classList.toggle('busy', busy);
  talk.classList.toggle('waiting', busy && value.messages.at(-1)?.role === 'user');
  talk.setAttribute('aria-busy', String(busy));
  // What would begin a second answer can be reached neither by pointer nor by key meanwhile.
  document.body.dataset.chat = busy ? 'busy' : 'idle';
  for (const id of ['chat-examples', 'chat-new', 'chat-talks']) {
    const other = document.getElementById(id);
    if (other) other.inert = busy;
  }
}

document.addEventListener('keydown', event => {
  const here = element.isConnected && element.offsetParent !== null;
  if (event.key === 'Escape' && value.busy && here && !event.defaultPrevented) trigger('halt');
});

part('greeting').append(node('b', {text: say('greeting')}), node('p', {text: say('greeting_help')}));
talk.setAttribute('aria-label', say('label'));
let due = 0;
watch('value', () => { due ||= requestAnimationFrame(() => { due = 0; update(); }); });
update();
