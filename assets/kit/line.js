// One line of text. props.value: the text.
const line = element.querySelector('.line');
const update = () => { line.textContent = props.value ?? ''; };
watch('value', update);
update();
