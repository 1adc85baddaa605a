// Picks one of a numbered row of things: a layer, a head.
//
// props.value: {index, count}. Event: 'pick' {index}; the value goes along, so that Python can also
// read it as an input.
const kit = window.glassboxKit, say = kit.speaker(props);
const part = name => element.querySelector('.' + name);
const slider = part('slider'), name = say(props.what);
let index = 0, count = 0;

part('name').textContent = name;
slider.setAttribute('aria-label', name);

function show() {
  const last = Math.max(0, count - 1);
  slider.max = last;
  slider.value = index;
  slider.disabled = count < 2;
  part('place').textContent = count ? say('place', {index, last}) : '';
  slider.setAttribute('aria-valuetext', part('place').textContent);
  slider.style.setProperty('--share', last ? (100 * index) / last + '%' : '0%');
}

const announce = kit.calmly(() => {
  props.value = {index, count};
  trigger('pick', {index});
});
slider.addEventListener('input', () => {
  index = Number(slider.value);
  show();
  announce();
});

function update() {
  ({index, count} = kit.plain(props.value) ?? {index: 0, count: 0});
  show();
}
watch('value', update);
update();
