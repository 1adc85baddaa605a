// The line under a conversation. props.value: null or {phase: 'waiting' | 'writing' | 'done', text,
// facts: [[name, value]], notes?: [sentence], prompt?, answer?, limit?, meter?: sentence}.
const kit = window.glassboxKit, {node} = kit;
const part = name => element.querySelector('.' + name);
const meter = part('meter');

// --- the focus -----------------------------------------------------------------------------------
// Send and Stop take each other's place. Whichever goes while it has the focus would drop it to the
// page: it moves on to Stop, and to the message at the end.
let held = null;
document.addEventListener('focusin', event => { held = event.target.closest('#chat-send, #chat-stop'); });
document.addEventListener('pointerdown', event => { if (!held?.contains(event.target)) held = null; });

function passOn() {
  if (!held || document.activeElement !== document.body) return;
  const seen = id => document.getElementById(id)?.offsetParent;
  if (seen('chat-stop')) document.getElementById('chat-stop').focus();
  else if (seen('chat-send')) document.querySelector('#chat-message textarea').focus();
}
const buttons = new MutationObserver(passOn);
const composer = document.querySelector('.composer');
if (composer) buttons.observe(composer, {subtree: true, childList: true, attributes: true});

// --- the line ------------------------------------------------------------------------------------
function update() {
  const value = kit.plain(props.value);
  part('status').hidden = !value;
  if (!value) return;
  part('status').className = `status ${value.phase}`;
  if (part('state').textContent !== value.text) part('state').textContent = value.text;
  part('facts').replaceChildren(...value.facts.map(([name, fact]) =>
    node('span', {cls: 'fact', text: name + ' '}, node('b', {text: fact}))));
  part('notes').replaceChildren(...(value.notes ?? []).map(text => node('p', {text})));
  part('context').hidden = !value.limit;
  if (!value.limit) return;
  part('words').textContent = value.meter;
  meter.setAttribute('aria-label', value.meter);
  meter.setAttribute('aria-valuemax', value.limit);
  meter.setAttribute('aria-valuenow', value.prompt + value.answer);
  for (const name of ['prompt', 'answer'])
    meter.querySelector('.' + name).style.width = `${Math.min(100, (100 * value[name]) / value.limit)}%`;
}
watch('value', update);
update();
