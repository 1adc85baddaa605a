// Behaviour of the page around the tabs: the model picker, keys on the tab bar, the address of a
// view. Loaded after early.js, before Gradio has drawn anything.
(() => {
  const glassbox = window.glassbox;

  // --- the model picker: a panel under the header ------------------------------------------
  const pickerButton = () => document.querySelector("#header .pill");
  const picker = () => document.querySelector("#model-picker");
  const isOpen = () => document.body.classList.contains("picker-open");

  function showPicker(open) {
    document.body.classList.toggle("picker-open", open);
    pickerButton()?.setAttribute("aria-expanded", String(open));
  }

  // Only a model that was asked for in the picker closes it: the one that the page opens by itself
  // may become ready while a visitor is still choosing.
  let asked = false;
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("#model-open")) asked = true;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.closest?.("#model-source")) asked = true;
  });
  document.addEventListener("change", (event) => {
    if (event.target.closest?.("#model-actions")) asked = true;
  });
  glassbox.onModelReady = () => {
    if (asked) showPicker(false);
    asked = false;
  };
  glassbox.togglePicker = () => {
    asked = false;
    showPicker(!isOpen());
    return isOpen();
  };

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    showPicker(false);
    pickerButton()?.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    const inside = picker()?.contains(event.target) || pickerButton()?.contains(event.target);
    if (isOpen() && !inside) showPicker(false);
  });

  // --- the tab bar: one stop for the Tab key, arrow keys move --------------------------------
  const tabsOf = (element) => [...element.closest("[role=tablist]").querySelectorAll("[role=tab]")];

  document.addEventListener("keydown", (event) => {
    const tab = event.target instanceof Element ? event.target.closest("[role=tab]") : null;
    if (!tab) return;
    const tabs = tabsOf(tab).filter((other) => !other.disabled);
    const here = tabs.indexOf(tab);
    const target = {
      ArrowRight: (here + 1) % tabs.length,
      ArrowLeft: (here - 1 + tabs.length) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    tabs[target].focus();
    tabs[target].click();
  });

  function settleTabs() {
    for (const tab of document.querySelectorAll("[role=tablist] > [role=tab]")) {
      const chosen = tab.getAttribute("aria-selected") === "true";
      const index = chosen ? 0 : -1;
      if (tab.tabIndex !== index) tab.tabIndex = index;
    }
  }

  // A formula is wider than a phone; where it scrolls, keys must be able to scroll it too.
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const formula = target.closest('[id$="-formula"]');
      if (formula) formula.tabIndex = formula.scrollWidth > formula.clientWidth ? 0 : -1;
    }
  });
  const watched = new WeakSet();
  function watchFormulas() {
    for (const formula of document.querySelectorAll('[id$="-formula"]')) {
      for (const box of [formula, ...formula.querySelectorAll(".katex-html")]) {
        if (watched.has(box)) continue;
        watched.add(box);
        sized.observe(box);
      }
    }
  }

  function onTabsChanged(changes) {
    settleTabs();
    watchFormulas();
    for (const { target } of changes) {
      // chips and options are selected, too; looking where those are would lay the page out anew
      if (!target.matches?.("[role=tab][aria-selected=true]")) continue;
      // Only sideways: the page itself must not move.
      const bar = target.parentElement;
      const middle = target.offsetLeft - (bar.clientWidth - target.offsetWidth) / 2;
      bar.scrollTo({ left: middle });
    }
  }

  new MutationObserver(onTabsChanged).observe(document, {
    subtree: true,
    childList: true,
    attributes: true,
    attributeFilter: ["aria-selected"],
  });

  // --- the address of a view -----------------------------------------------------------------
  // Which inner tab is open, for a page that is loaded again, such as in the other language.
  glassbox.withOpenPanel = (address) => {
    const chosen = document.querySelectorAll("[role=tab][aria-selected=true]");
    const open = [...chosen].find((tab) => tab.getClientRects().length > 0);
    address.searchParams.set("tab", glassbox.openTab());
    if (open) address.searchParams.set("panel", open.dataset.tabId);
    return address;
  };

  // The tab of this page; the root of the address shows the first one.
  glassbox.openTab = () => glassbox.tab || document.querySelector("#tabs a")?.dataset.tab || "";

  // Every tab has a page of its own. Its view waits in this window until the visitor comes back.
  const viewKey = (tab) => `glassbox_view_${tab}`;
  glassbox.addressOfTab = (tab) => {
    const own = new URLSearchParams(location.search);
    const kept = new URLSearchParams(sessionStorage.getItem(viewKey(tab)) ?? `tab=${tab}`);
    for (const key of ["lang", "__theme"]) {
      if (own.has(key)) kept.set(key, own.get(key));
    }
    return `./?${kept}`;
  };

  let goal = null;
  const go = () => {
    if (goal) location.assign(goal);
    goal = null;
  };
  // Called by the bar: the event that asks for the values of this view, then leaves.
  glassbox.leaveFor = (address, ask) => {
    goal = address;
    ask();
    setTimeout(go, 400);  // a page that is not ready yet has no values to give
  };
  glassbox.leaveView = (view, values) => {
    const [address] = describeView(view, values);
    sessionStorage.setItem(viewKey(view.tab), address.search.slice(1));
    go();
  };

  // The address of a view, and whether a text was too long for it.
  function describeView(view, values) {
    const address = new URL("./", location.href);
    address.searchParams.set("tab", view.tab);
    const open = view.panels
      && document.querySelector(`#${CSS.escape(view.panels)} [role=tab][aria-selected=true]`);
    if (open) address.searchParams.set("panel", open.dataset.tabId);
    let left_out = false;
    view.keys.forEach((key, index) => {
      const value = values[index];
      if (value === null || value === undefined || value === "") return;
      if (value === view.samples[index]) return;
      if (value.count === 0) return;  // a picker, before a model is there
      const text = String(value.index ?? value);
      if (text.length > view.limit) left_out = true;
      else address.searchParams.set(key, text);
    });
    return [address, left_out];
  }

  glassbox.shareView = async (view, values) => {
    const [address, left_out] = describeView(view, values);
    history.replaceState(history.state, "", address);
    const said = left_out ? glassbox.say("shell.share_too_long", { limit: view.limit }) : "";
    try {
      await navigator.clipboard.writeText(address.href);
      notify(said || glassbox.say("shell.share_copied"));
    } catch {
      // Browsers allow the clipboard on secure pages only; the address bar has the link anyway.
      notify(said || glassbox.say("shell.share_in_address_bar"));
    }
  };

  let notice = null;
  let hiding = 0;
  function notify(text) {
    if (!notice) {
      notice = document.createElement("div");
      notice.id = "notice";
      notice.setAttribute("role", "status");
      document.body.append(notice);
    }
    notice.textContent = text;
    notice.classList.add("shown");
    clearTimeout(hiding);
    hiding = setTimeout(() => notice.classList.remove("shown"), 4000);
  }
})();
