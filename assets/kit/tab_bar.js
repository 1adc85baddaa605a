// The tabs as links, each to its own page. props.tabs: their ids; leaving asks for the view's values.
const kit = window.glassboxKit, say = kit.speaker(props), {node} = kit;
const glassbox = window.glassbox, bar = element.querySelector('nav');

bar.setAttribute('aria-label', say('label'));
for (const id of props.tabs) {
  const link = node('a', {text: say(id), href: `./?tab=${id}`});
  link.dataset.tab = id;
  // a link that is dragged, copied or opened beside this page carries what was seen there last
  link.addEventListener('pointerenter', () => { link.href = glassbox.addressOfTab(id); });
  link.addEventListener('click', (event) => {
    link.href = glassbox.addressOfTab(id);
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    glassbox.leaveFor(link.href, () => trigger('leave', {}));
  });
  bar.append(link);
}

const open = [...bar.children].find((link) => link.dataset.tab === glassbox.openTab()) ?? bar.firstChild;
open.setAttribute('aria-current', 'page');
// only sideways: the page itself must not move
requestAnimationFrame(() => {
  bar.scrollTo({left: open.offsetLeft - (bar.clientWidth - open.offsetWidth) / 2});
});
