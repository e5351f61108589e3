"""Makes studio.png, the picture in studio.md, from the studio itself. Needs chromium, playwright and NiceGUI."""

import io
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT, MOMENT = 1300, 760, 1500  # pixels of the page, and milliseconds until the picture stands still

if __name__ == "__main__":
    command = [sys.executable, "-m", "loopdyn", "studio", "four_bar_mm.yaml", "--no-browser", "--port", "0"]
    folder = HERE.parent / "examples" / "mechanisms"
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as studio, sync_playwright() as p:
        address = re.search(r"http://\S+", studio.stdout.readline())[0]
        arguments = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(address)
        tab.get_by_text("1 degree of freedom, 3 redundant").first.wait_for(timeout=600_000)
        tab.locator("[data-key=value]").fill("40")
        tab.get_by_text("A = 40 deg: all loops closed").wait_for()
        tab.wait_for_timeout(MOMENT)
        picture = Image.open(io.BytesIO(tab.screenshot()))
        browser.close()
        studio.send_signal(signal.SIGINT)
    picture.convert("RGB").quantize(128).save(HERE / "studio.png", optimize=True)
