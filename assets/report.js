// "Save report": the open panel as one HTML file that opens anywhere, without this app or a network.
//
// What can be seen goes along as it is: numbers, tables, pictures (canvases become images, charts
// stay drawings), settings as they stand, and what is unfolded of the drawers. Scripts do not, and the
// file's own rule forbids it to load anything.
(() => {
  const glassbox = window.glassbox;

  /** Every rule of the page's styles, without what would have to be fetched. */
  function styles() {
    const rules = [];
    for (const sheet of document.styleSheets) {
      try {
        for (const rule of sheet.cssRules) if (!(rule instanceof CSSFontFaceRule)) rules.push(rule.cssText);
      } catch { /* a style of another origin cannot be read, and there is none of ours */ }
    }
    return rules.join("\n").replace(/url\((?!["']?data:)[^)]*\)/g, "none").replaceAll("</style", "<\\/style");
  }

  /** What a reader typed and chose is no part of the markup: write it there. */
  function keepValues(from, to) {
    const pairs = Array.from(from.querySelectorAll("input, textarea, select"));
    Array.from(to.querySelectorAll("input, textarea, select")).forEach((copied, i) => {
      const { value, checked } = pairs[i];
      copied.disabled = true;
      if (copied.tagName === "TEXTAREA") copied.textContent = value;
      else if (copied.tagName === "SELECT") {
        for (const option of copied.options) option.toggleAttribute("selected", option.value === value);
      } else copied.setAttribute("value", value);
      if (checked) copied.setAttribute("checked", "");
    });
  }

  function keepPictures(from, to) {
    const canvases = Array.from(from.querySelectorAll("canvas"));
    Array.from(to.querySelectorAll("canvas")).forEach((copied, i) => {
      const image = document.createElement("img");
      image.src = canvases[i].toDataURL("image/png");
      image.className = copied.className;
      image.style.imageRendering = "pixelated";
      copied.replaceWith(image);
    });
  }

  function snapshot(tab) {
    const copied = tab.cloneNode(true);
    keepValues(tab, copied);
    keepPictures(tab, copied);
    for (const needless of copied.querySelectorAll("script, iframe, link, style")) {
      if (needless.tagName !== "STYLE") needless.remove();
    }
    for (const one of [copied, ...copied.querySelectorAll("*")]) {
      for (const { name } of Array.from(one.attributes)) if (/^on|^(src|href)set$/.test(name)) one.removeAttribute(name);
      if (one.tagName === "A") one.removeAttribute("href");
      if (one.tagName === "BUTTON") one.disabled = true;
    }
    // parts of a drawing that others refer to, such as a gradient, are named with the page's address
    const inside = (text) => text.replace(/url\(["']?[^"')#]*(#[^"')]+)["']?\)/g, "url($1)");
    for (const one of copied.querySelectorAll("[clip-path], [style*='#']")) {
      for (const name of ["clip-path", "style"]) {
        if (one.hasAttribute(name)) one.setAttribute(name, inside(one.getAttribute(name)));
      }
    }
    copied.querySelector(".tab-actions")?.remove();
    return copied;
  }

  const escaped = (text) => text.replace(/[&<>]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[letter]);

  glassbox.makeReport = (tabId) => {
    const tab = document.getElementById(`tab-${tabId}`);
    const model = document.querySelector("#header .pill")?.innerText.replace(/\s+/g, " ") ?? "";
    const html = document.documentElement, body = document.body;
    const around = tab.closest(".gradio-container").className;  // its rules are for this version of Gradio
    const about = `${model} · ${new Date().toLocaleString(html.lang || undefined)}`;
    const rule = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    return `<!doctype html>
<html lang="${html.lang}" class="${html.className}" data-theme="${html.dataset.theme ?? ""}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${rule}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Glassbox: ${escaped(tab.querySelector("h1")?.textContent ?? tabId)}</title><style>${styles()}</style></head>
<body class="${body.className}" style="margin:0"><gradio-app><div class="${around}"><p style="padding:16px 24px 0;color:var(--ink-2)">
<b>Glassbox</b> · ${escaped(about)}<br><small>${escaped(location.href)}</small></p><div id="tabs">
${snapshot(tab).outerHTML}</div></div></gradio-app></body></html>`;
  };

  glassbox.saveReport = (tabId) => {
    const file = new Blob([glassbox.makeReport(tabId)], { type: "text/html" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `glassbox-${tabId}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
})();
