// Back, play, next, speed: walks through the steps of something.
//
// props.value: {index, count}. Event: 'step' {index} at every move; the value goes along, so that
// Python can also read it as an input.
const kit = window.glassboxKit, say = kit.speaker(props);
const part = name => element.querySelector('.' + name);
const SLOWEST_STEP = 1600;                     // milliseconds a step takes at half speed
const back = part('back'), play = part('play'), next = part('next'), speed = part('speed');
const slider = part('slider'), place = part('place');
let index = 0, count = 0, clock = 0;

element.querySelector('.stepper').setAttribute('aria-label', say('label'));
for (const [button, key] of [[back, 'back'], [next, 'next'], [speed, 'speed'], [slider, 'position']])
  button.setAttribute('aria-label', say(key));
back.title = say('back');
next.title = say('next');
speed.title = say('speed');
if (kit.calm()) speed.value = '0.5';           // asked for less motion: start slowly

function show() {
  place.textContent = count ? say('place', {k: kit.count(index + 1), n: kit.count(count)}) : '';
  slider.max = Math.max(0, count - 1);
  slider.value = index;
  slider.setAttribute('aria-valuetext', place.textContent);
  back.disabled = index <= 0;
  next.disabled = index >= count - 1;
  play.disabled = count < 2;
  slider.disabled = count < 2;
  play.classList.toggle('playing', clock > 0);
  play.setAttribute('aria-label', say(clock ? 'pause' : 'play'));
  play.title = say(clock ? 'pause' : 'play');
}

function go(to) {
  const wanted = Math.min(count - 1, Math.max(0, to));
  if (wanted === index || count === 0) return;
  index = wanted;
  if (index >= count - 1) stop();
  show();
  props.value = {index, count};
  trigger('step', {index});
}

function stop() {
  clearInterval(clock);
  clock = 0;
  show();
}

function start() {
  if (index >= count - 1) go(0);
  clearInterval(clock);
  clock = setInterval(() => (element.isConnected ? go(index + 1) : stop()), SLOWEST_STEP / (2 * speed.value));
  show();
}

back.addEventListener('click', () => { stop(); go(index - 1); });
next.addEventListener('click', () => { stop(); go(index + 1); });
play.addEventListener('click', () => (clock ? stop() : start()));
speed.addEventListener('change', () => clock && start());
slider.addEventListener('input', () => { stop(); go(Number(slider.value)); });
element.addEventListener('keydown', event => {
  const to = {ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: count - 1}[event.key];
  if (to === undefined || event.target === speed || event.target === slider) return;
  event.preventDefault();
  stop();
  go(to);
});

function update() {
  const value = kit.plain(props.value) ?? {index: 0, count: 0};
  if (value.count !== count) stop();
  ({index, count} = value);
  show();
}
watch('value', update);
update();
