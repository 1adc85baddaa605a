"""Take the picture of the README: the Attention tab with the real model.

    python app.py --port 7860 &
    python tests/e2e/make_screenshot.py http://127.0.0.1:7860/

Writes assets/screenshot.png.
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parents[2] / "assets" / "screenshot.png"
VIEW = "?tab=attention&at=13.4.14&lang=en&__theme=light"


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 940})
        page.goto(sys.argv[1] + VIEW)
        page.wait_for_selector('#header .pill[data-state="ready"]', timeout=120_000)
        page.wait_for_function(
            "document.querySelector('#attention-map').innerText.includes('Head 4')"
        )
        page.locator("#attention-working .label-wrap").click()
        page.wait_for_timeout(3_000)
        page.screenshot(path=PICTURE, full_page=False)
        browser.close()


if __name__ == "__main__":
    main()
