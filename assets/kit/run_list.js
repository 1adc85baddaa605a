// The visitor's runs, newest first; one is chosen.
//
// props.value: {runs: [{id, name, state, step, n_steps, detail, validation}], selected: id}. Events: 'pick' {run}, 'rename'
// {run, name}, 'remove' {run}: asked once more before it is sent, since nothing brings a run back.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const list = element.querySelector('.runs'), empty = element.querySelector('.empty');
let live = '';                                 // what the run on the screen said last
let busy = false;                              // a name is being typed: nothing may redraw it away

element.querySelector('.title').textContent = say('title');
empty.textContent = say('none');

function button(key, action) {
  const made = node('button', {cls: 'link', type: 'button', text: say(key)});
  made.addEventListener('click', action);
  return made;
}

function renaming(run, row) {
  const name = node('input', {type: 'text', maxlength: 80, 'aria-label': say('name')});
  name.value = run.name;
  busy = true;
  const end = send => {
    if (!busy) return;
    busy = false;
    if (send && name.value.trim() && name.value !== run.name) trigger('rename', {run: run.id, name: name.value});
    update();
  };
  name.addEventListener('keydown', event => {
    if (event.key === 'Enter') end(true);
    if (event.key === 'Escape') end(false);
  });
  name.addEventListener('blur', () => end(true));
  row.querySelector('.actions').replaceChildren(name);
  name.focus();
  name.select();
}

function removing(run, row) {
  row.querySelector('.actions').replaceChildren(
    node('span', {text: say('sure')}), button('remove_really', () => trigger('remove', {run: run.id})), button('keep', update));
}

function detail(run, step, validation) {
  if (run.state === 'broken') return run.detail;
  const parts = [say('steps', {step: kit.count(step), n: kit.count(run.n_steps)}), run.detail];
  if (Number.isFinite(validation)) parts.push(say('validation', {loss: validation.toFixed(3)}));
  return parts.join(' \u00b7 ');
}

function line(run, selected) {
  const choose = node('button', {cls: 'choose', type: 'button', 'aria-pressed': run.id === selected},
    node('b', {text: run.name}), node('span', {cls: 'state', text: say('state_' + run.state), 'data-state': run.state}),
    node('span', {cls: 'detail', text: detail(run, run.step, run.validation)}));
  choose.addEventListener('click', () => trigger('pick', {run: run.id}));
  const row = node('li', {}, choose);
  choose.disabled = run.state === 'broken';
  if (choose.disabled) row.append(node('div', {cls: 'actions'}, button('remove', () => removing(run, row))));
  if (run.id === selected)
    row.append(node('div', {cls: 'actions'}, button('rename', () => renaming(run, row)), button('remove', () => removing(run, row))));
  return row;
}

function update() {
  if (busy) return;
  const value = kit.plain(props.value), runs = value?.runs ?? [];
  empty.hidden = runs.length > 0;
  list.replaceChildren(...runs.map(run => line(run, value.selected)));
}
window.addEventListener('glassbox:run', event => {
  const {run, step, state, validation} = event.detail, now = `${run} ${step} ${state} ${validation}`;
  if (!element.isConnected || now === live) return;
  live = now;
  const choose = list.querySelector('.choose[aria-pressed=true]'), value = kit.plain(props.value);
  const shown = value?.runs?.find(one => one.id === run && value.selected === run);
  if (!choose || !shown) return;
  choose.querySelector('.state').textContent = say('state_' + state);
  choose.querySelector('.state').dataset.state = state;
  choose.querySelector('.detail').textContent = detail({...shown, state}, step, validation);
});
watch('value', update);
update();
