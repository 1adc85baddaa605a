// What the model wrote while it learnt, newest first. It listens to the view of the run (run_live.js).
//
// 'glassbox:run' {target: props.chart, run, writes, samples: [{step, prompt, text, copied: [[start, end, line]]}]}:
// places are counted in characters, and what was copied word for word from the training text is
// marked with the line where it stands there.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const list = element.querySelector('.samples'), empty = element.querySelector('.empty');
const MOST = 24;
let drawn = '';

element.querySelector('.title').textContent = say('title');
empty.textContent = say('none');

function written(sample) {
  const letters = [...sample.text], parts = [node('b', {text: sample.prompt})];
  let at = 0;
  for (const [start, end, line] of sample.copied) {
    parts.push(letters.slice(at, start).join(''));
    parts.push(node('mark', {text: letters.slice(start, end).join(''), title: say('copied', {line})}), node('sup', {text: say('line', {line})}));
    at = end;
  }
  parts.push(letters.slice(at).join(''));
  return node('p', {cls: 'text'}, ...parts);
}

window.addEventListener('glassbox:run', event => {
  if (!element.isConnected || event.detail.target !== props.chart) return;
  const samples = [...event.detail.samples].sort((a, b) => b.step - a.step).slice(0, MOST);
  element.hidden = !event.detail.writes;       // a classifier never writes anything
  const now = `${event.detail.run} ${samples.map(sample => sample.step).join()}`;
  if (now === drawn) return;
  drawn = now;
  empty.hidden = samples.length > 0;
  list.replaceChildren(...samples.map(sample => node('li', {},
    node('span', {cls: 'step', text: say('step', {step: kit.count(sample.step)})}), written(sample))));
});
