"""The documentation site: built with warnings as errors, then read in a real browser, without another host."""

import io
import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests import chromium

pytestmark = pytest.mark.slow  # half a minute and more: all animations of the gallery are made

ROOT = Path(__file__).parents[2]
PAGES = ("index.html", "tutorial.html", "gallery/index.html", "reference/models.html", "howto/reactions.html")


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="builds the site: pip install 'loopdyn[docs]'")
    folder = tmp_path_factory.mktemp("site")
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


def in_the_browser(site):
    """Open pages: they say nothing on the console, ask no other host, and a mechanism of the gallery moves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}/"
    said, asked = [], []
    with chromium.launched() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        for name in PAGES:
            page.goto(host + name)
            assert page.locator("h1").first.inner_text()
        page.goto(host + "gallery/four_bar.html")
        frame = page.locator("iframe.animation")
        frame.scroll_into_view_if_needed()
        inside = frame.element_handle().content_frame()
        inside.wait_for_function("window.page !== undefined && page.playing && page.time > 0.2")
        pictures = []
        for time in (0.5, 2.0):
            inside.evaluate(f"page.pause(); page.seek({time})")
            inside.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            picture = inside.locator("#stage").screenshot()
            pictures.append(np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), float))
        assert np.abs(pictures[1] - pictures[0]).max() > 50
    server.shutdown()
    server.server_close()
    assert said == []
    assert [url for url in asked if not url.startswith((host, "data:", "blob:"))] == []


# One test: the site takes most of a minute to build, and test processes do not share it.
def test_the_site_is_built_without_a_warning_and_read_without_a_network(site):
    animated = {page.stem for page in (site / "gallery" / "animations").glob("*.html")}
    described = {page.stem for page in (ROOT / "docs" / "gallery").glob("*.md")} - {"index"}
    assert animated == described
    assert len(animated) >= 15
    for page in set(site.rglob("*.html")) - set(site.glob("gallery/animations/*")):
        # what a browser would load by itself; links to other places may be clicked
        loaded = re.findall(r"<(?:script|img|iframe|link)[^>]*?(?:src|href)=[\"']?(https?:)", page.read_text("utf-8"))
        assert loaded == [], page
    for page in set(site.rglob("*.html")) - set(site.glob("gallery/animations/*")):
        assert not re.findall(r":(?:class|func|meth|attr|data|mod):|class=\"arithmatex\"", page.read_text("utf-8")), (
            page
        )
    models = (site / "reference" / "models.html").read_text("utf-8")
    assert re.search(
        r'<a class="autorefs[^>]*href="[^"]*loopdyn.Inertia"[^>]*><code>loopdyn.Inertia</code></a>', models
    )
    in_the_browser(site)
