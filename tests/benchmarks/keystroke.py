"""Milliseconds from a keystroke to new token chips, and what 512 tokens cost the page, in Chromium.

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
  window.tookMs = []; window.longestMs = 0;
  new PerformanceObserver(list => list.getEntries().forEach(
    entry => { window.longestMs = Math.max(window.longestMs, entry.duration); }
  )).observe({type: 'longtask'});
  const box = document.querySelector('#tokens-text textarea');
  let asked = 0;
  box.addEventListener('input', () => { asked = performance.now(); });
  new MutationObserver(() => {
    if (asked) { window.tookMs.push(performance.now() - asked); asked = 0; }
  }).observe(document.querySelector('#tokens-chips .chips'), {childList: true, subtree: true});
}
"""


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
        page.evaluate("window.longestMs = 0")
        page.get_by_role("tab", name="Attention").click()
        page.locator("#attention-text textarea").fill("The blue cat sat on the mat. " * 90)
        page.wait_for_function(
            "document.querySelector('#attention-counts').innerText.includes('first 512')"
        )
        page.wait_for_timeout(1500)
        longest = page.evaluate("window.longestMs")
        print(f"512 tokens of attention: longest task of the page {longest:.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
