// The header: logo, the pill that names the open model, language and theme.
// value: {state, name, detail, fraction, opened}; state is empty, loading or ready; opened is true
// for a model that was opened just now.
const say = window.glassbox.say;
const pill = element.querySelector(".pill");
const name = element.querySelector(".pill-name");
const detail = element.querySelector(".pill-detail");
const language = element.querySelector(".language");
const theme = element.querySelector(".theme");

function drawPill() {
  const view = props.value || { state: "loading", name: "", detail: say("shell.pill_starting") };
  pill.dataset.state = view.state;
  name.textContent = view.name;
  pill.setAttribute("aria-label", say("shell.choose_model", { name: view.name || view.detail }));
  detail.textContent = view.detail;
  const known = typeof view.fraction === "number";
  pill.style.setProperty("--done", known ? `${view.fraction * 100}%` : "0%");
  pill.classList.toggle("busy", view.state === "loading" && !known);
  if (view.opened) window.glassbox.onModelReady();
}

function drawTheme() {
  const dark = window.glassbox.theme === "dark";
  theme.textContent = say(dark ? "shell.light" : "shell.dark");
}

pill.setAttribute("aria-describedby", "model-pill-detail");
pill.addEventListener("click", () => {
  if (window.glassbox.togglePicker()) trigger("open_picker", {});
});

language.textContent = say("shell.other_language");
language.lang = window.glassbox.locale === "en" ? "zh-CN" : "en";
language.addEventListener("click", () => {
  window.glassbox.remember("glassbox_language", language.lang);
  const address = new URL(location.href);
  address.searchParams.delete("lang");
  location.assign(window.glassbox.withOpenPanel(address));
});

theme.addEventListener("click", () => {
  window.glassbox.setTheme(window.glassbox.theme === "dark" ? "light" : "dark");
  drawTheme();
});

watch("value", drawPill);
drawPill();
drawTheme();
