"""The documentation site: built with warnings as errors, then read in a real browser, without another host."""

import io
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
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


@contextmanager
def served(site):
    """Address of the site on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def in_the_browser(site):
    """Open pages: they say nothing on the console, ask no other host, and a mechanism of the gallery moves."""
    said, asked = [], []
    with served(site) as host, chromium.launched() as browser:
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
        by_keyboard(page, host)
        in_a_narrow_window(browser, host)
    assert said == [], said
    assert [url for url in asked if not url.startswith((host, "data:", "blob:"))] == []


FOCUS = """() => {
    const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
    return {tag: e.tagName, words: e.innerText || e.getAttribute("aria-label") || e.id || "", y: box.top + scrollY,
            ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none",
            seen: box.width > 0 && box.height > 0 && style.visibility === "visible"};
}"""


def by_keyboard(page, host):
    """The first stop skips to the text; each stop is seen and marked; a film stops, an animation plays and stops."""
    page.goto(host + "index.html")
    page.keyboard.press("Tab")
    first = page.evaluate(FOCUS)
    assert (first["words"], first["seen"]) == ("Skip to content", True)
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash.length > 1 && document.querySelector(location.hash) !== null")
    stops = []
    while len(stops) < 40 and (not stops or stops[-1]["tag"] != "BODY"):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUS))
    reached = [stop for stop in stops if stop["tag"] != "BODY"]
    assert len(reached) > 15
    assert [stop for stop in reached if not (stop["seen"] and stop["ring"])] == []
    page.goto(host + "index.html")
    assert page.locator("img.moving").first.is_visible()
    page.locator(".film input").first.focus()
    page.keyboard.press("Space")
    assert page.locator("img.still").first.is_visible()
    assert not page.locator("img.moving").first.is_visible()
    alone = page.context.browser.new_page()  # an animation asks for an icon, which a file does not have
    alone.goto(host + "gallery/animations/four_bar.html")
    alone.wait_for_function("window.page !== undefined")
    before = alone.evaluate("page.playing")
    alone.locator("body").press("Space")
    assert alone.evaluate("page.playing") is not before
    alone.close()


def in_a_narrow_window(browser, host):
    """Nothing is cut at the width of a telephone: what is wider scrolls in itself."""
    page = browser.new_page(viewport={"width": 400, "height": 900})
    for name in (*PAGES, "theory/partition.html", "benchmarks.html", "reference/elements.html", "notation.html"):
        page.goto(host + name)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name


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
        assert not re.findall(r'<span title="loopdyn[^"]*"><code>', page.read_text("utf-8")), (
            page
        )  # a link without an end
    models = (site / "reference" / "models.html").read_text("utf-8")
    assert re.search(
        r'<a class="autorefs[^>]*href="[^"]*loopdyn.Inertia"[^>]*><code>loopdyn.Inertia</code></a>', models
    )
    in_the_browser(site)
