"""Makes demo.png, the picture in the README, from the page of `loopdyn demo`. Needs chromium and playwright."""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from loopdyn.analysis.comparing import compare
from loopdyn.app.demo import _run, platform, write_page
from loopdyn.library import four_bar

WIDTH, HEIGHT, MOMENT = 1000, 560, 2500  # pixels of the page, and milliseconds of motion before the picture

if __name__ == "__main__":
    mechanisms = four_bar(), platform()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        page = Path(folder) / "demo.html"
        write_page(page, [_run(m) for m in mechanisms], [compare(m.compile()) for m in mechanisms])
        arguments = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(page.as_uri())
        tab.wait_for_timeout(MOMENT)
        parts = [Image.open(io.BytesIO(frame.screenshot())) for frame in tab.locator("iframe").all()]
        browser.close()
    wide = sum(part.width for part in parts)
    picture = Image.new("RGB", (wide, max(part.height for part in parts)), "white")
    for k, part in enumerate(parts):
        picture.paste(part, (sum(q.width for q in parts[:k]), 0))
    picture.thumbnail((1300, 1300))
    picture.quantize(128).save(Path(__file__).parent / "demo.png", optimize=True)
