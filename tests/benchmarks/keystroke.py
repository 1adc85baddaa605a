"""Milliseconds from a keystroke to new token chips, and what long texts of attention cost the page.

    python app.py --port 7860 &
    python tests/benchmarks/keystroke.py http://127.0.0.1:7860/

Prints milliseconds (limit: 150 for a keystroke on loopback) and the longest task that the page's
main thread had. Run it on a quiet machine; recorded results are in results.md.
"""

import os
import statistics
import sys

from playwright.sync_api import sync_playwright

# From the key to the drawn chips, measured inside the page: no time of the test driver counts.
WATCH = """
() => {
  window.tookMs = [];
  const box = document.querySelector('#tokens-text textarea');
  let asked = 0;
  box.addEventListener('input', () => { asked = performance.now(); });
  new MutationObserver(() => {
    if (asked) { window.tookMs.push(performance.now() - asked); asked = 0; }
  }).observe(document.querySelector('#tokens-chips .chips'), {childList: true, subtree: true});
}
"""

WATCH_TASKS = """
() => {
  window.longestMs = 0;
  new PerformanceObserver(list => list.getEntries().forEach(
    entry => { window.longestMs = Math.max(window.longestMs, entry.duration); }
  )).observe({type: 'longtask'});
}
"""
SENTENCE = "The blue cat sat on the mat. "  # seven words and a stop: eight tokens of SmolLM2


def main():
    url = sys.argv[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url + "?tab=tokens")
        page.wait_for_selector('#header .pill[data-state="ready"]', timeout=60_000)
        page.wait_for_selector("#tokens-chips .chips > *")
        page.wait_for_timeout(2000)
        page.evaluate(WATCH)
        page.locator("#tokens-text textarea").click()
        page.keyboard.press("End")
        for letter in " and a few more words, typed one by one":
            page.keyboard.type(letter)
            page.wait_for_timeout(250)
        took = page.evaluate("window.tookMs")
        print(
            f"{len(took)} keystrokes: median {statistics.median(took):.0f} ms, "
            f"largest {max(took):.0f} ms (limit: 150)"
        )
        page.goto(url + "?tab=attention")
        page.wait_for_selector('#header .pill[data-state="ready"]', timeout=60_000)
        page.wait_for_selector("#attention-map canvas", state="visible")
        page.wait_for_timeout(2000)
        page.evaluate(WATCH_TASKS)
        for n_tokens, sentences, cells in ((505, 63, 505), (1024, 145, 512)):
            page.evaluate("window.longestMs = 0")
            page.locator("#attention-text textarea").fill(SENTENCE * sentences)
            page.wait_for_function(
                f"document.querySelector('#attention-map canvas').width === {cells}"
                f" && document.querySelectorAll('#attention-chips .chip').length > {n_tokens - 20}"
            )
            page.wait_for_timeout(2000)
            longest = page.evaluate("window.longestMs")
            print(f"{n_tokens} tokens of attention: longest task {longest:.0f} ms (limit: 200)")
        browser.close()


if __name__ == "__main__":
    main()
