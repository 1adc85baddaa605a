// Where the numbers come from. props.value: null or {tensor, shape: [n], dtype, file, test}.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const line = element.querySelector('.facts');

// What the formula above is called where it scrolls and keys stop at it (shell.js).
const own = element.closest('[id$="-facts"]');
const formula = own && document.getElementById(own.id.replace(/-facts$/, '-formula'));
if (formula) {
  formula.setAttribute('role', 'group');
  formula.setAttribute('aria-label', say('formula'));
}

/** A sentence with its {places} taken by nodes in code style. */
function sentence(key, facts) {
  return say(key).split(/(\{\w+\})/).map(piece => {
    const place = /^\{(\w+)\}$/.exec(piece)?.[1];
    return place ? node(place === 'plain' ? 'span' : 'code', {text: facts[place]}) : piece;
  });
}

function update() {
  const value = kit.plain(props.value);
  line.hidden = !value;
  if (!value) return;
  const parts = [];
  if (value.tensor) parts.push([...sentence('tensor', value), ...(value.shape ? [` (${value.shape.join(', ')})`] : [])]);
  if (value.dtype) parts.push([value.dtype]);
  if (value.file) parts.push(sentence('file', value));
  if (value.test) parts.push(sentence('test', value));
  line.replaceChildren(...parts.flatMap((nodes, i) => (i ? [' \u00b7 ', ...nodes] : nodes)));
}
watch('value', update);
update();
