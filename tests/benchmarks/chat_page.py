"""Seconds from Enter to the first text of an answer, and what 600 tokens cost the page (Chromium).

    python app.py --port 7860 &
    python tests/benchmarks/chat_page.py http://127.0.0.1:7860/

Prints the time to the first text with a prompt of about 40 tokens (limit: 1.5 s), and the longest
task of the page's main thread while 600 tokens come (limit: 100 ms): from the open model, as fast
as it writes, and from a model server of this script's own, 60 tokens a second with ten
alternatives each. Run it on a quiet machine; recorded results are in results.md.
"""

import os
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.explorer.model_server import END, make_delta, serve_models

N_TOKENS, EVERY_S, ROUNDS = 600, 1 / 60, 5
QUESTION = "Hi there, what is the capital of France?"  # 40 tokens with SmolLM2's own template
# SmolLM2 writes on until it is cut, at the settings that the page begins with
LONG_QUESTION = "Write a long fairy tale in ten chapters about a farmer, a dragon and a lost city."
WORDS = ["A", "*long*", "answer", "of", "plain", "words,", "with", "breaks", "now and then.\n\n"]

# Measured inside the page: no time of the test driver counts.
WATCH = """
() => {
  window.tasksMs = []; window.firstMs = []; window.updates = {text: 0, chips: 0};
  new PerformanceObserver(list => list.getEntries().forEach(
    entry => { window.tasksMs.push(Math.round(entry.duration)); }
  )).observe({type: 'longtask'});
  let asked = 0;
  const talk = document.querySelector('#chat-conversation .messages');
  document.addEventListener('keydown', event => {
    if (event.key === 'Enter') asked = performance.now();
  }, true);
  new MutationObserver(() => {
    window.updates.text += 1;
    const answer = talk.lastChild;
    if (asked && answer?.matches('.assistant') && answer.querySelector('.text').innerText.trim()) {
      window.firstMs.push(performance.now() - asked);
      asked = 0;
    }
  }).observe(talk, {childList: true, subtree: true});
  new MutationObserver(() => { window.updates.chips += 1; })
    .observe(document.querySelector('#chat-chips .chips'), {childList: true});
}
"""


def ask(page, question, timeout_s=300):
    """Send a question and wait until the page is at rest again."""
    page.locator("#chat-message textarea").fill(question)
    page.keyboard.press("Enter")
    page.wait_for_selector("body[data-chat=busy]")
    page.wait_for_selector("body[data-chat=idle]", timeout=1000 * timeout_s)
    page.wait_for_timeout(1000)
    return page.locator("#chat-status .words").inner_text()


def start_anew(page):
    page.locator("#chat-new").click()
    page.locator("#chat-conversation .greeting").wait_for()


def set_longest(page, n_tokens):
    page.locator("#chat-settings > button").click()
    field = page.locator("#chat-settings-max_new_tokens input[type=number]")
    field.fill(str(n_tokens))
    field.press("Tab")
    page.locator("#chat-settings > button").click()


def report_long_answer(page, kind, question):
    """Let 600 tokens come, and print how long the page's tasks were."""
    start_anew(page)
    page.evaluate("window.tasksMs = []; window.updates = {text: 0, chips: 0}")
    meter = ask(page, question)
    chips = page.locator("#chat-chips .chip").count()
    tasks, updates = page.evaluate("[window.tasksMs, window.updates]")
    print(
        f"{kind}: {chips} chips, {meter or 'no meter'}; {updates['text']} updates of the text, "
        f"{updates['chips']} of the chips; {len(tasks)} tasks over 50 ms, longest "
        f"{max(tasks, default=0)} ms (limit: 100): {sorted(tasks)[-8:]}"
    )


def use_server(page, server):
    server.pieces = []
    for i in range(N_TOKENS):
        word = WORDS[i % len(WORDS)] + " "
        server.pieces += [make_delta(word, log_probability=-0.1 * (i % 30)), EVERY_S]
    server.pieces.append(END)
    page.locator("#chat-server > button").click()
    page.locator("#chat-server-url input, #chat-server-url textarea").fill(server.url)
    page.locator("#chat-server-find").click()
    page.locator("#chat-server-line").get_by_text("answers").wait_for()


def main():
    url = sys.argv[1]
    with sync_playwright() as playwright, serve_models() as server:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US")
        page.goto(url + "?tab=chat")
        page.wait_for_selector('#header .pill[data-state="ready"]', timeout=120_000)
        page.wait_for_timeout(2000)
        page.evaluate(WATCH)
        set_longest(page, 8)
        for _ in range(ROUNDS):
            start_anew(page)
            meter = ask(page, QUESTION)
        took = [ms / 1000 for ms in page.evaluate("window.firstMs")]
        print(
            f"first text of {len(took)} answers: median {statistics.median(took):.2f} s, longest "
            f"{max(took):.2f} s (limit: 1.5); {meter}"
        )
        set_longest(page, N_TOKENS)
        if "--server-only" not in sys.argv:
            report_long_answer(page, "the open model", LONG_QUESTION)
        use_server(page, server)
        report_long_answer(page, "a server", LONG_QUESTION)
        browser.close()


if __name__ == "__main__":
    main()
