// Guess the next token, against the model. The score lives in this browser tab and goes nowhere.
//
// props.value: {deal, rounds: [{context, options: [{t, p, came}], model, right}]} or null
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const part = name => element.querySelector('.' + name);
const KEY = 'glassbox.game';
let rounds = [], at = 0, answered = false;
const fresh = () => ({you: 0, model: 0, played: 0});
const read = () => { try { return JSON.parse(sessionStorage.getItem(KEY)) ?? fresh(); } catch { return fresh(); } };
let score = read();

function tell() {
  part('score').textContent = say('score', score);
  part('round').textContent = rounds.length ? say('round', {k: at + 1, n: rounds.length}) : '';
}

function show() {
  answered = false;
  const one = rounds[at];
  part('empty').hidden = Boolean(one);
  part('empty').textContent = say('empty');
  part('board').hidden = !one;
  tell();
  if (!one) return;
  const tail = one.context.slice(-400);
  part('context').replaceChildren(node('span', {text: (tail.length < one.context.length ? '\u2026' : '') + tail}),
    node('b', {cls: 'gap', text: ' ? '}));
  part('verdict').textContent = '';
  part('next').hidden = true;
  part('options').replaceChildren(...one.options.map((option, index) => {
    const button = node('button', {cls: 'button option', type: 'button'}, node('bdi', {text: option.t}),
      node('span', {cls: 'chance'}));
    button.addEventListener('click', () => answer(index));
    return button;
  }));
}

function answer(index) {
  if (answered) return;
  answered = true;
  const one = rounds[at], right = one.options[index].came;
  score = {you: score.you + right, model: score.model + one.right, played: score.played + 1};
  try { sessionStorage.setItem(KEY, JSON.stringify(score)); } catch { /* private windows keep no score */ }
  one.options.forEach((option, i) => {
    const button = part('options').children[i];
    button.lastChild.textContent = kit.percent(option.p, option.p < 0.01 ? 3 : 1);
    button.disabled = true;
    if (option.came) button.classList.add('came');
    else if (i === index) button.classList.add('wrong');
  });
  const facts = {token: one.options.find(option => option.came).t, model: one.model};
  part('verdict').textContent = `${say(right ? 'right' : 'wrong', facts)} ${say(one.right ? 'model_right' : 'model_wrong', facts)}`;
  const more = part('next');
  more.textContent = at + 1 < rounds.length ? say('next') : say('again');
  more.hidden = false;
  more.focus();
  tell();
}

part('next').addEventListener('click', () => {
  at = at + 1 < rounds.length ? at + 1 : 0;
  show();
});
kit.onExport(element, props.target, () => kit.savePicture(part('board'), props.target));
function update() {
  rounds = kit.plain(props.value)?.rounds ?? [];
  at = 0;
  show();
}
watch('value', update);
update();
