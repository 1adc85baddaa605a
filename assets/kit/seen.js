// Tells Python that somebody looks at this part of the page, once, and once more whenever its value
// has become another one since. Event: 'seen'.
const kit = window.glassboxKit;
let told = kit.plain(props.value);
const watcher = new IntersectionObserver(entries => {
  if (!entries.some(entry => entry.isIntersecting)) return;
  watcher.disconnect();
  trigger('seen');
}, {rootMargin: '100000px 0px 0px 0px'});      // what somebody has scrolled past counts as seen
watcher.observe(element);
watch('value', () => {
  const now = kit.plain(props.value), first = told === null;
  if (now === null || now === told) return;
  told = now;
  if (first) return;                           // the first value is what is seen already
  watcher.disconnect();
  watcher.observe(element);
});
