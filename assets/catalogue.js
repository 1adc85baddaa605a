// The list of models to choose from. value: {rows: [{id, name, detail, presence, presence_text,
// fits, fits_text, gate_text}], chosen, label}. The Tab key stops at the chosen row, else at the first; arrow keys move from there;
// a click or Enter chooses: event `pick` with {id}.
const list = element.querySelector(".catalogue");

function makeRow(row, view) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("role", "radio");
  button.setAttribute("aria-checked", String(row.id === view.chosen));
  for (const [kind, text] of [["name", row.name], ["detail", row.detail], ["presence", row.presence_text], ["fits", row.fits_text], ["gate", row.gate_text]]) {
    if (!text) continue;
    const part = document.createElement("span");
    part.className = `catalogue-${kind}`;
    part.textContent = text;
    button.append(part);
  }
  button.dataset.presence = row.presence;
  if (row.fits) button.dataset.fits = row.fits;
  button.addEventListener("click", () => choose(button, row.id));
  return button;
}

function choose(button, id) {
  for (const other of list.children) other.setAttribute("aria-checked", String(other === button));
  stopAt(button);
  trigger("pick", { id });
}

function stopAt(stop) {
  for (const row of list.children) row.tabIndex = row === stop ? 0 : -1;
}

function draw() {
  const view = props.value || { rows: [], chosen: null, label: "" };
  list.setAttribute("aria-label", view.label);
  list.replaceChildren(...view.rows.map((row) => makeRow(row, view)));
  stopAt(list.querySelector('[aria-checked="true"]') ?? list.firstElementChild);
}

list.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const rows = [...list.children];
  if (!step || !rows.length) return;
  event.preventDefault();
  const here = rows.indexOf(document.activeElement);
  const next = rows[(here + step + rows.length) % rows.length];
  stopAt(next);
  next.focus();
});

watch("value", draw);
draw();
