// Takes the numbers along: CSV, PNG, and a snippet of Python that gives the same ones.
//
// props.value: {csv: matrix id or null, png: elem_id of the view to save or null, python: text or null}
const kit = window.glassboxKit, say = kit.speaker(props);
const part = name => element.querySelector('.' + name);
const csv = part('csv'), png = part('png'), snippet = part('snippet');
let value = null;

csv.textContent = 'CSV';
csv.title = say('csv');
png.textContent = 'PNG';
png.title = say('png');
part('unfold').textContent = say('unfold');

png.addEventListener('click', () =>
  window.dispatchEvent(new CustomEvent('glassbox:export', {detail: {target: value.png}})));

kit.copyButton(part('copy'), say('python'), say('copied'), () => {
  snippet.open = true;
  return value.python;
});

function update() {
  value = kit.plain(props.value) ?? {};
  csv.hidden = !value.csv;
  if (value.csv) {
    csv.href = `${kit.root()}/glassbox/matrix/${value.csv}.csv`;
    csv.setAttribute('download', '');
  }
  png.hidden = !value.png;
  part('copy').hidden = snippet.hidden = !value.python;
  part('source').textContent = value.python ?? '';
}
watch('value', update);
update();
