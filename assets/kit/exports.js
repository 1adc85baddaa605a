// Takes the numbers along: CSV, PNG, and a snippet of Python that gives the same ones.
//
// props.value: {csv: matrix id or null, png: elem_id of the view, or of a group of class `as-picture`, to
// save or null, python: text or null, html: matrix id of a map that is also offered as a page of its
// own, or missing}
const kit = window.glassboxKit, say = kit.speaker(props);
const part = name => element.querySelector('.' + name);
const csv = part('csv'), page = part('page'), png = part('png'), snippet = part('snippet');
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

function update() {
  value = kit.plain(props.value) ?? {};
  for (const [link, id, kind] of [[csv, value.csv, 'csv'], [page, value.html, 'html']]) {
    link.hidden = !id;
    if (!id) continue;
    link.href = `${kit.root()}/glassbox/matrix/${id}.${kind}`;
    link.setAttribute('download', '');
  }
  png.hidden = !value.png;
  part('copy').hidden = snippet.hidden = !value.python;
  part('source').textContent = value.python ?? '';
}
watch('value', update);
update();
