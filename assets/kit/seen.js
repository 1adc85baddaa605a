// Tells Python once that somebody looks at this part of the page. Event: 'seen'.
const watcher = new IntersectionObserver(entries => {
  if (!entries.some(entry => entry.isIntersecting)) return;
  watcher.disconnect();
  trigger('seen');
});
watcher.observe(element);
