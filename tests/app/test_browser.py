"""The page of a run in a real browser: Debian's chromium, headless, with software rendering."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from tests import chromium, sweeps

import loopdyn as ld
from loopdyn.output.viewer.page import write_page


@pytest.fixture(scope="module")
def browser():
    with chromium.launched() as found:
        yield found


def run_in_millimetres():
    model = ld.load(Path(__file__).parents[2] / "examples" / "mechanisms" / "four_bar_mm.yaml")
    return ld.simulate(model.compile(), t_span=(0, 0.2), progress=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "four_bar": write_page(sweeps.four_bar(), folder / "four_bar.html", traces=["C"], plots=["q", "wrench:C"]),
        "platform": write_page(sweeps.platform(), folder / "platform.html"),
        "millimetres": write_page(run_in_millimetres(), folder / "millimetres.html"),
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


# ------------------------------------------------------------------------------------ kinematics in the plane


def pins(frame):
    """Positions of the four pins of the four-bar, and the speed of the crank, at a frame."""
    run = sweeps.four_bar()
    x, R = run.poses()
    at = {name: (x[frame, j.child] + R[frame, j.child] @ j.M[0])[:2] for name, j in run.system.joints.items()}
    return at, float(run.states[frame].v[0])


def crossing(a, b, c, d):
    """Intersection of the lines through a, b and through c, d."""
    s, _ = np.linalg.solve(np.column_stack([b - a, c - d]), c - a)
    return a + s * (b - a)


def test_a_planar_mechanism_opens_square_to_its_plane_and_a_spatial_one_does_not(open_page):
    square = "[0, 1, 2].map(n => page.camera.matrixWorld.elements[8 + n])"  # towards the viewer
    np.testing.assert_allclose(open_page("four_bar").evaluate(square), [0, 0, 1], atol=1e-6)
    assert max(map(abs, open_page("platform").evaluate(square))) < 0.95


@pytest.mark.parametrize("frame", [3, 17, 27])
def test_instant_centres_are_those_of_kennedys_theorem(open_page, frame):
    page = open_page("four_bar")
    at, _ = pins(frame)
    page.evaluate(f"page.pause(); page.seek({float(sweeps.four_bar().data['time'].values[frame])})")
    size = 1.2  # m; stored numbers have 24 bits, and the centre is at most some ten sizes away
    for one, other, wanted in (
        ("coupler", "ground", crossing(at["A"], at["B"], at["D"], at["C"])),
        ("crank", "rocker", crossing(at["A"], at["D"], at["B"], at["C"])),
        ("crank", "ground", at["A"]),
        ("coupler", "rocker", at["C"]),
    ):
        found = page.evaluate(f"page.centreOf({one!r}, {other!r})")
        np.testing.assert_allclose(found[:2], wanted, atol=1e-5 * max(size, np.abs(wanted).max() ** 2))


def test_centrodes_are_the_paths_of_the_instant_centre_in_both_bodies(open_page):
    page, run = open_page("four_bar"), sweeps.four_bar()
    page.select_option("#centre-one", label="coupler")
    page.select_option("#centre-other", label="ground")
    page.click("#centre button:has-text('Show')")
    loci = page.evaluate(
        "[...page.centrodes.values()][0].loci.map(l => Array.from(l.geometry.getAttribute('position').array))"
    )
    wanted = {k: crossing(p["A"], p["B"], p["D"], p["C"]) for k, (p, _) in ((k, pins(k)) for k in range(41))}
    x, R = run.poses()
    row = run.system.bodies.index("coupler")
    moving = {k: R[k, row].T @ (np.array([*p, 0.0]) - x[k, row]) for k, p in wanted.items()}
    for locus, place in zip(loci, (wanted, moving), strict=True):
        points = np.reshape(locus, (-1, 3))
        assert len(points) > 20
        nearest = [min(np.linalg.norm(p[:2] - w[:2]) for w in place.values()) for p in points]
        assert max(nearest) < 1e-3  # m, up to 7 m away: the centre is a quotient of rounded numbers
    page.click("#centre button:has-text('Show')")
    assert page.evaluate("page.centrodes.size") == 0


def test_the_velocity_polygon_is_that_of_the_loop_closure(open_page):
    """v_B = w x AB; v_C from v_C - v_B normal to BC and v_C normal to DC: two linear equations."""
    page, frame = open_page("four_bar"), 11
    page.evaluate(f"page.pause(); page.seek({float(sweeps.four_bar().data['time'].values[frame])})")
    at, speed = pins(frame)
    ab, bc, dc = at["B"] - at["A"], at["C"] - at["B"], at["C"] - at["D"]
    v_b = speed * np.array([-ab[1], ab[0]])
    v_c = np.linalg.solve(np.array([bc, dc]), [bc @ v_b, 0.0])
    found = {b["name"]: {p["joint"]: p["velocity"] for p in b["points"]} for b in page.evaluate("page.polygonNow()")}
    wanted = {"crank": {"A": 0 * v_b, "B": v_b}, "coupler": {"B": v_b, "C": v_c}, "rocker": {"C": v_c, "D": 0 * v_c}}
    for body, velocities in wanted.items():
        for joint, velocity in velocities.items():
            np.testing.assert_allclose(found[body][joint], velocity, atol=1e-5 * abs(speed))
    page.keyboard.press("v")
    still(page)
    assert {"o", "b", "c"} <= set(page.locator(".plot svg text").all_text_contents())


def test_any_point_of_a_body_leaves_its_path(open_page):
    page, run = open_page("four_bar"), sweeps.four_bar()
    page.select_option("#point-body", label="coupler")
    page.fill("#point-at", "0.6, 1.1")
    page.click("#point button")
    name = "coupler (0.6, 1.1, 0)"
    ring = page.evaluate(f"Array.from(page.traces.get({name!r}).whole.geometry.getAttribute('position').array)")
    middle = np.reshape(ring, (-1, 6, 3)).mean(axis=1)  # six corners around each point of the path
    row = run.system.bodies.index("coupler")
    (p, Q), (x, R) = run.system.reference_poses[row], run.poses()
    own = Q.T @ (np.array([0.6, 1.1, 0.0]) - p)
    np.testing.assert_allclose(middle, x[:, row] + R[:, row] @ own, atol=1e-5)
    page.fill("#point-at", "here")
    page.click("#point button")
    assert page.evaluate("document.getElementById('point-at').validationMessage").startswith("Give x, y")


# ------------------------------------------------------------------------------------------- exports, units


def saved(page, button):
    with page.expect_download() as download:
        page.locator(".plot").first.locator(button).click()
    with open(download.value.path(), encoding="utf-8") as file:
        return file.read()


def test_a_plot_is_saved_as_table_and_as_drawing(open_page):
    page, run = open_page("four_bar"), sweeps.four_bar()
    head, *lines = saved(page, "button:has-text('CSV')").splitlines()
    assert head == ",".join(["time [s]", *(f"{name} [rad]" for name in run.system.coordinates)])
    table = np.array([[float(x) for x in line.split(",")] for line in lines])
    np.testing.assert_allclose(table[:, 0], run.data["time"].values, atol=1e-15)
    np.testing.assert_allclose(table[:, 1:], run.data["q"].values, rtol=1e-7)  # single precision
    page.locator(".plot").first.locator(".legend button").first.click()  # a hidden line is left out
    drawing = ElementTree.fromstring(saved(page, "button:has-text('SVG')"))
    lines = [e.get("d") for e in drawing.iter("{http://www.w3.org/2000/svg}path") if e.get("fill") == "none"]
    assert len(lines) == len(run.system.coordinates) - 1
    assert all(line.count("L") + line.count("M") == len(run.data["time"]) for line in lines)
    assert "Coordinates (rad)" in "".join(drawing.itertext())


def test_a_page_speaks_in_the_units_of_the_model(open_page):
    page = open_page("millimetres")
    page.evaluate("page.pause(); page.seek(0)")
    scales = page.locator("#scales").inner_text()
    assert re.search(r"floor: \d+ mm squares", scales)
    assert page.locator("#point-unit").inner_text() == "mm"
    still(page)
    label = page.locator("#labels .body", has_text="coupler").bounding_box()
    page.mouse.move(label["x"] - 8, label["y"] - 6)  # the name stands beside the centre of mass by this much
    text = page.locator("#tip").inner_text()
    assert "coupler" in text
    (x,) = [line.split() for line in text.splitlines() if line.startswith("centre x")]
    assert x[-1] == "mm"
