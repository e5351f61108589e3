"""The page of a run in a real browser: Debian's chromium, headless, with software rendering."""

import io

import numpy as np
import pytest
from PIL import Image
from tests import chromium, sweeps

from loopdyn.output.viewer.page import write_page


@pytest.fixture(scope="module")
def browser():
    with chromium.launched() as found:
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "four_bar": write_page(sweeps.four_bar(), folder / "four_bar.html", traces=["C"], plots=["q", "wrench:C"]),
        "platform": write_page(sweeps.platform(), folder / "platform.html"),
    }


@pytest.fixture
def open_page(browser, files):
    """Function that opens a page; at the end nothing may have been said on the console or asked of the network."""
    said, asked, pages = [], [], []

    def open_it(name, **options):
        page = browser.new_page(viewport={"width": 1200, "height": 760}, **options)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(files[name].as_uri())
        page.wait_for_function("window.page !== undefined")
        return page

    yield open_it
    for page in pages:
        page.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def still(page):
    """Pixels of the stage, the page standing still, names hidden."""
    page.evaluate("page.pause()")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = page.locator("#stage").screenshot()
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), float)


def of_colour(pixels, colour):
    """Share of the pixels of about the hue of a colour: shading changes lightness, not the order of the channels."""
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)], float)
    norm = np.linalg.norm(pixels, axis=2)
    cosine = pixels @ wanted / np.maximum(norm * np.linalg.norm(wanted), 1e-9)
    grey = np.ptp(pixels, axis=2) < 40
    return float(np.mean((cosine > 0.985) & ~grey))


@pytest.mark.parametrize("name", ["four_bar", "platform"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_shows_a_mechanism_and_not_an_empty_canvas(open_page, name, theme):
    page = open_page(name, color_scheme=theme)
    pixels = still(page)
    for body in page.evaluate("page.data.bodies.slice(page.data.bases)")[:3]:
        assert of_colour(pixels, body["colour"]) > 5e-4, body["name"]  # a bar is some 100 by 6 pixels of 600,000
    brightness = pixels[:30].mean()
    assert brightness > 200 if theme == "light" else brightness < 60


def test_playing_moves_time_and_the_mechanism_and_space_stops_it(open_page):
    page = open_page("four_bar")
    assert page.evaluate("page.playing")
    page.wait_for_function("page.time > 0.2")
    page.keyboard.press("Space")
    assert not page.evaluate("page.playing")
    stopped = page.evaluate("page.time")
    first = still(page)
    page.wait_for_timeout(150)
    assert page.evaluate("page.time") == stopped
    page.click("#play")
    page.wait_for_function(f"Math.abs(page.time - {stopped}) > 0.2")
    assert np.abs(still(page) - first).max() > 50


def test_scrubbing_puts_every_body_where_the_run_has_it(open_page):
    page, run = open_page("four_bar"), sweeps.four_bar()
    position, rotation = run.poses()
    scrub = page.locator("#scrub")
    box = scrub.bounding_box()
    scrub.click(position={"x": 0.7 * box["width"], "y": box["height"] / 2})  # waits until the page stands still
    page.wait_for_function("!page.playing")
    assert page.evaluate("page.time") == pytest.approx(1.4, abs=0.05)  # of 2 s
    page.evaluate(f"page.seek({float(run.data['time'].values[23])})")
    still(page)
    for row, name in enumerate(run.system.bodies):
        pose = page.evaluate(f"page.bodyPose({name!r})")
        w, x, y, z = pose["rotation"]
        found = np.array([[1 - 2 * (y * y + z * z)], [2 * (x * y + w * z)], [2 * (x * z - w * y)]])[:, 0]
        np.testing.assert_allclose(pose["position"], position[23, row], atol=1e-6)  # single precision
        np.testing.assert_allclose(found, rotation[23, row, :, 0], atol=1e-6)


def test_arrow_keys_step_from_frame_to_frame(open_page):
    page, time = open_page("four_bar"), sweeps.four_bar().data["time"].values
    page.evaluate("page.pause(); page.seek(0)")
    for keys, frame in (("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10), ("End", 40), ("Home", 0)):
        page.keyboard.press(keys)
        assert page.evaluate("page.time") == pytest.approx(time[frame], abs=1e-12)


def test_pointing_at_a_joint_tells_its_name_and_values(open_page):
    page, run = open_page("four_bar"), sweeps.four_bar()
    page.evaluate("page.pause(); page.seek(0)")
    page.evaluate("page.look('front')")
    still(page)
    label = page.locator("#labels .joint", has_text="C").bounding_box()
    page.mouse.move(label["x"] - 10, label["y"] + 24)  # the name stands beside its joint by this much
    tip = page.locator("#tip")
    text = tip.inner_text().replace("−", "-")
    assert "C" in text
    assert "revolute: coupler → rocker" in text
    fx = float(run.data["wrench"].sel(joint="C", component="fx").values[0])
    (shown,) = [line.split()[1] for line in text.splitlines() if line.startswith("fx")]
    assert float(shown) == pytest.approx(fx, rel=1e-3)  # four digits are shown
    assert "fz ?" in text


def test_plots_follow_the_time_and_can_be_added_and_removed(open_page):
    page, run = open_page("four_bar"), sweeps.four_bar()
    page.evaluate(f"page.pause(); page.seek({float(run.data['time'].values[7])})")
    still(page)
    first = page.locator(".plot").first
    assert first.locator("h3").inner_text() == "Coordinates (rad)"
    shown = [float(v.replace("−", "-")) for v in first.locator("var").all_inner_texts()]
    np.testing.assert_allclose(shown, run.data["q"].values[7], atol=6e-4)  # three or four decimals are shown
    count = page.locator(".plot").count()
    page.select_option("#add", label="Energy (J)")
    assert page.locator(".plot").count() == count + 1
    page.locator(".plot .close").last.click()
    assert page.locator(".plot").count() == count


def test_dark_and_light_names_forces_and_views_can_be_switched(open_page):
    page = open_page("four_bar", color_scheme="light")
    light = still(page)
    page.keyboard.press("d")
    assert still(page).mean() < 0.5 * light.mean()
    red = of_colour(still(page), "#d7263d")
    page.keyboard.press("f")
    assert of_colour(still(page), "#d7263d") < 0.2 * red
    page.keyboard.press("l")
    still(page)
    assert page.locator("#labels").is_hidden()
    before = still(page)
    page.click("[data-view=top]")
    assert np.abs(still(page) - before).max() > 50


def test_the_picture_can_be_saved(open_page):
    page = open_page("four_bar")
    page.evaluate("page.pause(); page.seek(0.5)")
    with page.expect_download() as download:
        page.click("#picture")
    assert download.value.suggested_filename == "four_bar_0.500s.png"
    with Image.open(download.value.path()) as picture:
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 100
