"""The page of a run: what it contains. How it behaves in a browser is tested in test_browser.py."""

import base64
import json
import re
import tempfile

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests import sweeps

import loopdyn as ld
from loopdyn.output.animation import animate
from loopdyn.output.viewer.page import write_page
from loopdyn.output.viewer.scene import describe

FLOAT32 = np.finfo(np.float32).eps  # 1.2e-7, rounding of the stored numbers


def embedded(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def array(packed: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), packed["type"]).reshape(packed["shape"])


def page_of(run: ld.results.Run) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return write_page(run, f"{folder}/page.html").read_text("utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "four_bar.html"
    return write_page(sweeps.four_bar(), path, traces=["C"], plots=["q", "wrench:C"]).read_text("utf-8")


def test_the_page_fetches_nothing(page):
    markup = re.sub(r"<script[^>]*>.*?</script>", "<script></script>", page, flags=re.S)
    assert not re.search(r"\b(src|href)\s*=|@import|url\(", markup)
    assert not re.search(r"<script[^>]*\bsrc\b", page.split('id="licence"')[0])


def test_embedded_poses_are_those_of_the_run_to_single_precision(page):
    data = embedded(page)
    position, rotation = sweeps.four_bar().poses()
    np.testing.assert_array_equal(array(data["arrays"]["position"]), position.astype(np.float32))
    wxyz = array(data["arrays"]["rotation"]).astype(float)
    matrices = Rotation.from_quat(np.roll(wxyz, -1, axis=-1).reshape(-1, 4)).as_matrix().reshape(rotation.shape)
    # an entry of the matrix is a sum of two products of components, each rounded once
    np.testing.assert_allclose(matrices, rotation, atol=8 * FLOAT32)
    np.testing.assert_array_equal(array(data["arrays"]["time"]), sweeps.four_bar().data["time"].values)


def test_embedded_results_are_those_of_the_run(page):
    data, run = embedded(page), sweeps.four_bar()
    for name in ("q", "v", "a", "wrench"):
        np.testing.assert_array_equal(array(data["arrays"][name]), run.data[name].values.astype(np.float32))
    energy = next(g for g in data["quantities"] if g["key"] == "energy")
    assert energy["names"] == ["kinetic", "potential", "total"]
    total = run.data["energy_kinetic"].values + run.data["energy_potential"].values
    np.testing.assert_array_equal(array(data["arrays"]["energy"])[:, 2], total.astype(np.float32))


def test_components_that_redundancy_leaves_open_are_marked(page):
    # Pins along z in a plane loop: only what acts in the plane is determined.
    groups = [g for g in embedded(page)["quantities"] if g["key"] == "wrench:C"]
    marks = {name: mark for g in groups for name, mark in zip(g["names"], g["open"], strict=True)}
    assert marks == {"fx": False, "fy": False, "fz": True, "tx": True, "ty": True, "tz": False}


def test_a_thousand_frames_of_the_platform_stay_below_6_megabytes(tmp_path):
    run = sweeps.platform().repeated(1000)
    path = write_page(run, tmp_path / "platform.html", frames=1000)
    assert len(array(embedded(path.read_text("utf-8"))["arrays"]["time"])) == 1000
    assert path.stat().st_size < 6e6


def test_frames_are_thinned_out_evenly_from_first_to_last():
    run = sweeps.four_bar().repeated(500)
    data = describe(run, frames=50)
    time, all_times = array(data["arrays"]["time"]), run.data["time"].values
    assert 45 <= len(time) <= 50
    assert (time[0], time[-1]) == (all_times[0], all_times[-1])
    assert np.isin(time, all_times).all()
    assert np.ptp(np.diff(time)) <= 2.001 * (all_times[1] - all_times[0])  # each is the next sample of an even row
    assert data["samples"] == 500
    assert len(array(describe(run, frames=None)["arrays"]["time"])) == 500


def test_reactions_can_be_left_out_or_chosen():
    run = sweeps.four_bar()
    assert "wrench" not in describe(run, forces=False)["arrays"]
    chosen = describe(run, forces=["D", "A"])
    np.testing.assert_array_equal(
        array(chosen["arrays"]["wrench"]), run.data["wrench"].sel(joint=["D", "A"]).values.astype(np.float32)
    )
    assert {j["name"]: j["wrench"] for j in chosen["joints"]} == {"A": 1, "B": -1, "C": -1, "D": 0}


def test_the_slide_of_a_guide_spans_the_stroke():
    # Offset slider-crank: over a turn the slider moves between the two stretched positions.
    (joint,) = [j for j in describe(sweeps.slider_crank(361))["joints"] if j["name"] == "D"]
    r, rod, e = 0.15, 0.45, 0.02
    stroke = np.sqrt((rod + r) ** 2 - e**2) - np.sqrt((rod - r) ** 2 - e**2)
    low, high = joint["travel"]
    # samples every degree miss a turning point by at most half a degree: r/2 (0.5 deg)^2
    assert high - low == pytest.approx(stroke, abs=2 * r * np.radians(0.5) ** 2)


def test_traces_are_points_of_their_body():
    run = sweeps.four_bar()
    at = np.array([0.3, 0.4, 0.1])
    joint, point = describe(run, traces=["C", ("coupler", at)])["traces"]
    position, rotation = run.poses()
    motion = [ld.tree.body_motion(run.system, s) for s in run.states]
    C = run.system.joints["C"]
    for k in (0, 17):
        found = position[k, joint["body"]] + rotation[k, joint["body"]] @ joint["point"]
        np.testing.assert_allclose(found, motion[k].position[C.child] + motion[k].rotation[C.child] @ C.M[0])
    p, R = run.system.reference_poses[point["body"]]
    np.testing.assert_allclose(p + R @ point["point"], at)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"traces": ["c"]}, r"joint 'c'.*C"),
        ({"traces": [("couppler", (0, 0, 0))]}, r"body 'couppler'.*coupler"),
        ({"traces": [("coupler", (0, 0))]}, "coupler.*x, y, z"),
        ({"forces": ["X"]}, "joint 'X'"),
        ({"plots": ["energi"]}, "'energi'.*energy"),
        ({"frames": 0}, "frames is 0"),
        ({"theme": "blue"}, "theme 'blue'.*light"),
    ],
)
def test_wrong_options_are_named(options, words, tmp_path):
    with pytest.raises(ld.LoopdynError, match=words):
        write_page(sweeps.four_bar(), tmp_path / "page.html", **options)
    assert not (tmp_path / "page.html").exists()


def test_the_ending_of_the_name_says_what_is_written(tmp_path):
    with pytest.raises(ld.LoopdynError, match=r"page.txt.*page.html"):
        animate(sweeps.four_bar(), tmp_path / "page.txt")
    assert animate(sweeps.four_bar(), tmp_path / "page.html", frames=3).stat().st_size > 0
    assert animate(sweeps.four_bar(), tmp_path / "page.png", dpi=30).read_bytes()[:4] == b"\x89PNG"


def test_names_cannot_break_out_of_the_page(tmp_path):
    m = ld.Mechanism("</script><b>bold", gravity=(0, -9.81, 0))
    b = m.add_body("b", ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(1, 0, 0), radius=0.01))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    run = sweeps.sweep(m, lambda t: ({"A": t}, {"A": 1.0}), [0.0, 1.0])
    text = write_page(run, tmp_path / "page.html").read_text("utf-8")
    assert "<b>bold" not in re.sub(r"<\\/script><b>bold", "", text)
    assert embedded(text)["name"] == "</script><b>bold"


def test_without_three_js_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr("loopdyn.output.viewer.page.files", lambda package: tmp_path)
    with pytest.raises(ld.LoopdynError, match=r"three\.js.*pip install"):
        write_page(sweeps.four_bar(), tmp_path / "page.html")


def test_the_licence_of_the_inlined_library_is_in_the_page(page):
    assert "MIT" in page.split('id="licence"')[1].split("</script>")[0]


# ---------------------------------------------------------------------------------- kinematics in the plane


def test_transmission_angles_are_those_of_the_law_of_cosines():
    run = sweeps.four_bar()
    scene = describe(run)
    (group,) = [g for g in scene["quantities"] if g["key"] == "transmission"]
    assert (group["names"], group["unit"]) == (["at A", "at D"], "rad")
    x, R = run.poses()
    at = {name: x[:, j.child] + R[:, j.child] @ j.M[0] for name, j in run.system.joints.items()}

    def between(corner, one, other):
        """Angle of the triangle at `corner` from its three sides, as the acute one."""
        a, b, c = (np.linalg.norm(at[p] - at[q], axis=1) for p, q in ((corner, one), (corner, other), (one, other)))
        return np.arccos(np.abs(a**2 + b**2 - c**2) / (2 * a * b))

    found = array(scene["arrays"]["transmission"])
    np.testing.assert_allclose(found[:, 1], between("C", "B", "D"), atol=4 * FLOAT32)
    np.testing.assert_allclose(found[:, 0], between("B", "A", "C"), atol=4 * FLOAT32)


def test_velocities_are_stored_for_motions_in_one_plane_only():
    scene, run = describe(sweeps.four_bar()), sweeps.four_bar()
    np.testing.assert_allclose(scene["in_plane"]["normal"], [0, 0, 1], atol=1e-12)
    spin = array(scene["arrays"]["spin"])[:, run.system.bodies.index("crank")]
    np.testing.assert_allclose(spin, [s.v[0] for s in run.states], rtol=2 * FLOAT32)
    platform = describe(sweeps.platform())
    assert platform["in_plane"] is None
    assert not {"velocity", "spin"} & set(platform["arrays"])


def test_gaps_and_forces_of_contacts_can_be_plotted():
    """A stop of a slide and one of an angle: each in its unit."""
    m = ld.Mechanism("stops", gravity=(0, -9.81, 0), units={"length": "mm", "angle": "deg"})
    for name, joint in (("slide", ld.Prismatic(axis=(0, 1, 0))), ("flap", ld.Revolute(axis=(0, 0, 1)))):
        m.add_body(name, ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(300, 0, 0)))
        m.add_joint(name[0], joint, m.ground, name, at=(0, 0, 0))
        m.add_contact(f"{name} stop", ld.contacts.Stop(joint=name[0], lower=-20))
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 0.3), progress=False)
    for name in m.contacts:
        np.testing.assert_array_equal(run.data["gap"].sel(contact=name), run[f"{name}.gap"])
        np.testing.assert_array_equal(run.data["contact_force"].sel(contact=name), run[f"{name}.force"])
    groups = embedded(page_of(run))["quantities"]
    shown = {(g["key"], g["unit"]): g["names"] for g in groups if "gap" in g["key"] or "contact" in g["key"]}
    assert shown == {
        ("gap", "mm"): ["slide stop"],
        ("gap", "deg"): ["flap stop"],
        ("contact_force", "N"): ["slide stop"],
        ("contact_force", "N*m"): ["flap stop"],
    }
