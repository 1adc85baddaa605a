"""Milliseconds from a moved slider to redrawn bars, and seconds of a lens of 60 tokens (Chromium).

    python app.py --model smollm2-135m-instruct --port 7860 &
    python tests/benchmarks/inspector.py http://127.0.0.1:7860/

Prints the time from a slider's event to the drawn bars (limit: 100 ms on loopback), and for a new
text of 60 tokens, read by all 30 layers of SmolLM2-135M, the time to the first row (limit: 1 s) and
to the last (limit: 5 s). Run it on a quiet machine; recorded results are in results.md.
"""

import os
import statistics
import sys

from playwright.sync_api import sync_playwright

ROUNDS = 3
SLIDERS = ("temperature", "top_k", "top_p", "min_p")
# 60 tokens with SmolLM2's tokenizer, the last ones numbers: each round has others
SENTENCE = "The blue cat sat on the warm mat and looked at the moon. " * 4
READY = '#header .pill[data-state="ready"]'

# Measured inside the page: no time of the test driver counts.
WATCH_BARS = """
() => {
  window.tookMs = [];
  let moved = 0;
  document.addEventListener('input', event => {
    if (event.target.closest('[id^=next-dial]')) moved ||= performance.now();
  }, true);
  new MutationObserver(() => {
    if (!moved) return;
    const began = moved;
    moved = 0;
    requestAnimationFrame(() => window.tookMs.push(performance.now() - began));
  }).observe(document.querySelector('#next-bars'),
    {subtree: true, attributes: true, attributeFilter: ['data-drawn']});
}
"""
WATCH_LENS = """
() => {
  window.lens = {};
  let asked = 0;
  document.querySelector('#layers-text textarea').addEventListener('input', () => {
    asked = performance.now();
    window.lens = {};
  });
  new MutationObserver(() => {
    const rows = document.querySelectorAll('#lens-grid .rows tr').length;
    const columns = document.querySelectorAll('#lens-grid .heads th').length - 1;
    if (!asked || columns === window.lens.before) return;
    window.lens.first ??= performance.now() - asked;
    window.lens.columns = columns;
    if (rows === 31) window.lens.all ??= performance.now() - asked;
  }).observe(document.querySelector('#lens-grid'), {subtree: true, childList: true});
}
"""


def measure_bars(page, url):
    page.goto(url + "?tab=next&text=The+capital+of+France+is")
    page.wait_for_selector(READY, timeout=120_000)
    page.wait_for_selector("#next-bars .rows .row")
    page.wait_for_timeout(2_000)
    page.evaluate(WATCH_BARS)
    for name in SLIDERS:
        page.locator(f"#next-dial-{name} input[type=range]").focus()
        for key in ["ArrowRight"] * 10 + ["ArrowLeft"] * 5:
            page.keyboard.press(key)
            page.wait_for_timeout(200)
    took = sorted(page.evaluate("window.tookMs"))
    print(
        f"{len(took)} moves of a slider to drawn bars: median {statistics.median(took):.0f} ms, "
        f"95 % {took[int(0.95 * len(took))]:.0f} ms, largest {took[-1]:.0f} ms (limit: 100)"
    )


def measure_lens(page, url):
    page.goto(url + "?tab=layers")
    page.wait_for_selector(READY, timeout=120_000)
    page.wait_for_function("document.querySelectorAll('#lens-grid .rows tr').length === 31")
    page.wait_for_timeout(2_000)
    page.evaluate(WATCH_LENS)
    for number in range(ROUNDS):
        page.locator("#layers-text textarea").fill(SENTENCE + f"It is {number} again")
        page.wait_for_function("window.lens.all", timeout=120_000)
        page.wait_for_timeout(1_000)
        found = page.evaluate("window.lens")
        print(
            f"lens of {found['columns']} tokens, 30 layers: first rows {found['first'] / 1000:.2f} "
            f"s (limit: 1), all {found['all'] / 1000:.2f} s (limit: 5)"
        )


def main():
    url = sys.argv[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US")
        measure_bars(page, url)
        measure_lens(page, url)
        browser.close()


if __name__ == "__main__":
    main()
