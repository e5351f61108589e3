"""Draw tutorial_page.png: the page that step 8 of the tutorial writes, in a browser. Needs chromium and playwright.

python docs/tutorial_page_picture.py
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT, TIME = 1300, 680, 1.05  # pixels of the page; time of the motion in s

if __name__ == "__main__":
    text = (HERE / "tutorial.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        os.chdir(folder)
        names: dict = {}
        for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
            exec(compile(block, "tutorial.md", "exec"), names)
        command = next(line for line in text.splitlines() if line.startswith("loopdyn run"))
        subprocess.run([sys.executable, "-m", *command.split()], check=True)
        arguments = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto((Path(folder) / "page.html").as_uri())
        tab.wait_for_function("window.page !== undefined")
        tab.evaluate(f"page.pause(); page.seek({TIME})")
        tab.wait_for_timeout(800)  # milliseconds, until it is drawn
        picture = Image.open(io.BytesIO(tab.screenshot()))
        browser.close()
        os.chdir(HERE)
    picture.convert("RGB").quantize(128).save(HERE / "tutorial_page.png", optimize=True)
