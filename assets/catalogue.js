// The list of models to choose from. value: {rows: [{id, name, detail, presence, presence_text}],
// chosen, label}. Arrow keys move; a click or Enter chooses: event `pick` with {id}.
const list = element.querySelector(".catalogue");

function makeRow(row, index, view) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("role", "radio");
  button.setAttribute("aria-checked", String(row.id === view.chosen));
  button.tabIndex = index === 0 ? 0 : -1;
  for (const [kind, text] of [["name", row.name], ["detail", row.detail], ["presence", row.presence_text]]) {
    const part = document.createElement("span");
    part.className = `catalogue-${kind}`;
    part.textContent = text;
    button.append(part);
  }
  button.dataset.presence = row.presence;
  button.addEventListener("click", () => choose(button, row.id));
  return button;
}

function choose(button, id) {
  for (const other of list.children) other.setAttribute("aria-checked", String(other === button));
  trigger("pick", { id });
}

function draw() {
  const view = props.value || { rows: [], chosen: null, label: "" };
  list.setAttribute("aria-label", view.label);
  list.replaceChildren(...view.rows.map((row, index) => makeRow(row, index, view)));
}

list.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const rows = [...list.children];
  if (!step || !rows.length) return;
  event.preventDefault();
  const here = rows.indexOf(document.activeElement);
  const next = rows[(here + step + rows.length) % rows.length];
  for (const row of rows) row.tabIndex = row === next ? 0 : -1;
  next.focus();
});

watch("value", draw);
draw();
