// Saves a published file to the visitor's disk. props.value: null or {id, name}.
const kit = window.glassboxKit;
watch('value', () => {
  const value = kit.plain(props.value);
  if (value) kit.download(`${kit.root()}/glassbox/bytes/${value.id}`, value.name);
});
kit.collapse(element, true);
