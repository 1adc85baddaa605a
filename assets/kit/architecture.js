// Block diagrams of models, side by side; a box opens to what it holds.
//
// props.value: {models: [{name, note, sections: [{title, repeats, boxes: [{title, detail, kind,
// differs, facts: [[name, text]], tensors: [[name, shape]], parameters, formula, file}]}]}]}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const models = element.querySelector('.models');
models.setAttribute('aria-label', say('label'));

const row = ([name, text]) => [node('dt', {text: name}), node('dd', {text})];

function inside(box) {
  const facts = node('dl', {}, ...box.facts.flatMap(row));
  const tensors = node('dl', {cls: 'tensors'}, ...box.tensors.flatMap(row));
  return node('div', {cls: 'inside'}, node('code', {cls: 'formula', text: box.formula}), facts, tensors,
    node('p', {cls: 'parameters', text: box.parameters}), node('p', {cls: 'file', text: box.file}));
}

function drawn(box) {
  const title = node('summary', {}, node('span', {cls: 'what', text: box.title}),
    node('span', {cls: 'detail', text: box.detail}));
  if (box.differs) title.append(node('span', {cls: 'differs', text: say('differs')}));
  const made = node('details', {cls: `box box-${box.kind}`}, title, inside(box));
  made.classList.toggle('other', box.differs);
  return made;
}

function section(part) {
  const boxes = node('div', {cls: 'boxes'}, ...part.boxes.map(drawn));
  const made = node('section', {cls: 'part'}, node('div', {cls: 'times', text: part.title}), boxes);
  made.classList.toggle('repeats', part.repeats);
  return made;
}

function update() {
  const value = kit.plain(props.value);
  models.replaceChildren(...(value?.models ?? []).map(model =>
    node('div', {cls: 'model'}, node('div', {cls: 'name', text: model.name}),
      node('div', {cls: 'note', text: model.note}), ...model.sections.map(section))));
  models.style.setProperty('--count', value?.models?.length ?? 1);
}
watch('value', update);
update();
