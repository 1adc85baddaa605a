// What one token reads: its text downwards, and an arc to every token read, as thick as its weight.
//
// props.value: {labels: [text], weights: [number], query: index, first: number of the first label}.
// Event: 'arc_click' {index}, a token to look at next. Saves itself as PNG on 'glassbox:export'.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const ROW = 24, SPAN = 150, NS = 'http://www.w3.org/2000/svg';
const list = element.querySelector('.list'), picture = element.querySelector('.arcs');
const empty = element.querySelector('.empty'), body = element.querySelector('.body');

function arc(from, to, weight) {
  const made = document.createElementNS(NS, 'path');
  const start = (from + 0.5) * ROW, end = (to + 0.5) * ROW;
  const reach = Math.min(SPAN - 8, 18 + Math.abs(end - start) / 2.4);
  const path = from === to
    ? `M ${SPAN} ${start - 5} C ${SPAN - 24} ${start - 12}, ${SPAN - 24} ${start + 12}, ${SPAN} ${start + 5}`
    : `M ${SPAN} ${start} C ${SPAN - reach} ${start}, ${SPAN - reach} ${end}, ${SPAN} ${end}`;
  made.setAttribute('d', path);
  made.setAttribute('stroke-width', String(0.75 + 8 * weight));
  made.setAttribute('opacity', String(0.25 + 0.75 * weight));
  return made;
}

function update() {
  const value = kit.plain(props.value), labels = value?.labels ?? [];
  empty.hidden = labels.length > 0;
  body.hidden = labels.length === 0;
  empty.textContent = say('empty');
  if (!labels.length) return;
  const height = labels.length * ROW;
  picture.setAttribute('viewBox', `0 0 ${SPAN} ${height}`);
  picture.style.height = height + 'px';
  picture.replaceChildren(...value.weights.map((weight, key) => [weight, key])
    .filter(([weight]) => weight >= 0.005).map(([weight, key]) => arc(value.query, key, weight)));
  list.replaceChildren(...labels.map((text, i) => {
    const row = node('button', {cls: i === value.query ? 'token on' : 'token', type: 'button'},
      node('span', {cls: 'at', text: String(i + (value.first ?? 0))}), node('bdi', {text: kit.glyphs(text)}),
      node('span', {cls: 'weight', text: value.weights[i] ? value.weights[i].toFixed(3) : ''}));
    row.title = kit.quoted(text);
    row.addEventListener('click', () => trigger('arc_click', {index: i + (value.first ?? 0)}));
    return row;
  }));
}
kit.onExport(element, props.target, () => { if (!body.hidden) kit.savePicture(body, props.target); });
watch('value', update);
update();
