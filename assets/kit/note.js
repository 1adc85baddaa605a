// "What to look for": a fixed text in the reader's language. `code` and *emphasis* are understood.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const text = say('text'), line = element.querySelector('.note');

line.append(node('b', {text: say('lead')}), ' ');
for (const piece of text.split(/(`[^`]+`|\*[^*]+\*)/)) {
  if (/^`.+`$/.test(piece)) line.append(node('code', {text: piece.slice(1, -1)}));
  else if (/^\*.+\*$/.test(piece)) line.append(node('em', {text: piece.slice(1, -1)}));
  else line.append(piece);
}
