// Takes the numbers along: CSV, PNG, and a snippet of Python that gives the same ones.
//
// props.value: {csv: matrix id or null, png: elem_id of the view, or of a group of class `as-picture`, to
// save or null, python: text or null, html: matrix id of a map that is also offered as a page of its
// own, or missing, file: {path: below /glassbox, words: text}, or missing}
const kit = window.glassboxKit, say = kit.speaker(props);
const part = name => element.querySelector('.' + name);
const csv = part('csv'), page = part('page'), png = part('png'), snippet = part('snippet');
const file = part('file');
let value = null;

csv.textContent = 'CSV';
csv.title = say('csv');
page.textContent = 'HTML';
page.title = say('html');
png.textContent = 'PNG';
png.title = say('png');
part('unfold').textContent = say('unfold');

png.addEventListener('click', () => {
  const group = document.getElementById(value.png);
  if (group?.classList.contains('as-picture')) kit.savePicture(group, value.png);
  else window.dispatchEvent(new CustomEvent('glassbox:export', {detail: {target: value.png}}));
});

kit.copyButton(part('copy'), say('python'), say('copied'), () => {
  snippet.open = true;
  return value.python;
});

function offer(link, path) {
  link.hidden = !path;
  if (!path) return;
  link.href = `${kit.root()}/glassbox/${path}`;
  link.setAttribute('download', '');
}

function update() {
  value = kit.plain(props.value) ?? {};
  offer(csv, value.csv && `matrix/${value.csv}.csv`);
  offer(page, value.html && `matrix/${value.html}.html`);
  offer(file, value.file?.path);
  file.textContent = value.file?.words ?? '';
  png.hidden = !value.png;
  part('copy').hidden = snippet.hidden = !value.python;
  part('source').textContent = value.python ?? '';
}
watch('value', update);
update();
