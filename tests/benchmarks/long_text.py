"""Seconds from a pasted text of 100,000 characters to its chips on a responsive page, in Chromium.

    python app.py --port 7860 &
    python tests/benchmarks/long_text.py http://127.0.0.1:7860/

For each tokenizer and text it prints the time from the paste to the drawn chips (limit: 1 s), the
longest task of the page's main thread meanwhile and afterwards, and what the page says it does not
show. Run it on a quiet machine; recorded results are in results.md.
"""

import os
import sys

from playwright.sync_api import sync_playwright

N_CHARACTERS = 100_000
LIMIT_S = 1.0
TEXTS = {
    "English": "The quick brown fox jumps over the lazy dog, and 1,234 others. ",
    "Chinese": "每个人都有他的作战策略，直到脸上中了一拳。",
    "mixed": "naïve 😶‍🌫️ שָׁלוֹם ខ្មែរ <b>x</b>\n\t",
}
TOKENIZERS = ("model", "gpt2", "cl100k_base")

# Set the box as a paste does, and wait inside the page for the chips: no time of the test driver.
PASTE = """
text => new Promise(done => {
  const box = document.querySelector('#tokens-text textarea');
  const chips = document.querySelector('#tokens-chips .chips');
  let longestMs = 0;
  const tasks = new PerformanceObserver(list => list.getEntries().forEach(
    entry => { longestMs = Math.max(longestMs, entry.duration); }
  ));
  tasks.observe({type: 'longtask'});
  const began = performance.now();
  const seen = new MutationObserver(() => requestAnimationFrame(() => {
    if (seen.told) return;
    seen.told = true;
    seen.disconnect();
    const tookMs = performance.now() - began;
    setTimeout(() => {
      tasks.disconnect();
      const more = document.querySelector('#tokens-chips .more').textContent;
      done({tookMs, longestMs, chips: chips.children.length, more});
    }, 1500);
  }));
  seen.observe(chips, {childList: true, subtree: true});
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(box, text);
  box.dispatchEvent(new Event('input', {bubbles: true}));
})
"""


def main():
    url = sys.argv[1]
    slowest_s = 0.0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        for tokenizer in TOKENIZERS:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{url}?tab=tokens&panel=chips&lang=en&tokenizer={tokenizer}")
            page.wait_for_selector('#header .pill[data-state="ready"]', timeout=60_000)
            page.wait_for_selector("#tokens-chips .chips > *")
            page.wait_for_timeout(2000)
            for name, piece in TEXTS.items():
                text = (piece * (N_CHARACTERS // len(piece) + 1))[:N_CHARACTERS]
                found = page.evaluate(PASTE, text)
                slowest_s = max(slowest_s, found["tookMs"] / 1000)
                print(
                    f"{tokenizer}, {name}: {found['tookMs'] / 1000:.2f} s, longest task "
                    f"{found['longestMs']:.0f} ms, {found['chips']} chips; {found['more']!r}"
                )
            page.close()
        browser.close()
    print(f"slowest: {slowest_s:.2f} s (limit: {LIMIT_S:.0f})")


if __name__ == "__main__":
    main()
