// Runs before anything of Gradio, in the head of the page: chooses language and theme, so that
// neither text nor colours flash, and gives the other scripts of the page their words.
(() => {
  const query = new URLSearchParams(location.search);

  // Storage throws in some privacy modes and framed pages; the choice then lasts for one page.
  const recall = (key) => {
    try { return localStorage.getItem(key); } catch { return null; }
  };
  const remember = (key, value) => {
    try { localStorage.setItem(key, value); } catch { /* nothing to keep it in */ }
  };

  // Language: the address, then the last choice, then the browser. Gradio itself knows zh-CN and
  // zh-TW only, so every kind of Chinese becomes zh-CN, and it reads navigator.language.
  const asked = query.get("lang");
  if (asked) remember("glassbox_language", asked);
  const wanted = asked || recall("glassbox_language") || navigator.language || "en";
  const locale = /^zh/i.test(wanted) ? "zh-CN" : "en";
  Object.defineProperty(navigator, "language", { get: () => locale, configurable: true });
  Object.defineProperty(navigator, "languages", { get: () => [locale], configurable: true });
  document.documentElement.lang = locale;
  document.cookie = `glassbox_language=${locale};path=/;max-age=31536000;SameSite=Lax`;

  // Theme: the address, then the last choice, then the system.
  const named = query.get("__theme");
  if (named === "dark" || named === "light") remember("glassbox_theme", named);
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const first = recall("glassbox_theme") || system;

  const words = GLASSBOX_WORDS[locale];
  window.glassbox = {
    locale,
    remember,
    theme: first,
    say: (key, values = {}) =>
      words[key].replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole),
    setTheme(theme) {
      window.glassbox.theme = theme;
      remember("glassbox_theme", theme);
      document.documentElement.dataset.theme = theme;
      document.body.classList.toggle("dark", theme === "dark");
      window.dispatchEvent(new CustomEvent("glassbox-theme", { detail: theme }));
    },
  };
  document.documentElement.dataset.theme = first;

  // Each tab is a page of Gradio's, which its script would look up by the path of the address. Ours
  // is named by `?tab=`, so the page that was sent becomes that of the root.
  let config;
  Object.defineProperty(window, "gradio_config", {
    configurable: true,
    get: () => config,
    set(sent) {
      window.glassbox.tab ??= sent.current_page ?? "";
      if (sent.page) sent.page[""] = sent.page[window.glassbox.tab];
      config = { ...sent, current_page: "" };
    },
  });

  // Gradio's element reads theme_mode when its deferred script runs, which is after the parser has
  // put the element in: set both as soon as they appear, still before the first paint.
  const observer = new MutationObserver(() => {
    if (document.body) document.body.classList.toggle("dark", first === "dark");
    const app = document.querySelector("gradio-app");
    if (!app) return;
    app.setAttribute("theme_mode", first);
    observer.disconnect();
  });
  observer.observe(document.documentElement, { childList: true, subtree: true });
})();
