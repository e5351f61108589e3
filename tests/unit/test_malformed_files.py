"""Malformed model files: every failure that was found is kept as a case; seeded sweeps look for more."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from tests.mutants import mutant_of_data, mutant_of_text, mutant_of_xml, written
from tests.unit import test_interchange_sdf as sdf
from tests.unit import test_interchange_urdf as urdf

import loopdyn as ld
from loopdyn.io.reading import parse_document
from loopdyn.io.yaml import load_text
from loopdyn.quantities.expressions import parse

ROOT = Path(__file__).parents[2]
MJCF = re.search(r'text = """\n(.*?)"""', (ROOT / "docs" / "import.md").read_text(), re.DOTALL)[1]

pytestmark = [
    pytest.mark.filterwarnings("error"),  # overflow in NumPy counts as a failure
    pytest.mark.filterwarnings("ignore::loopdyn.errors.LoopdynWarning"),  # broken models are suspicious, too
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes a log of its warnings into the present folder."""
    monkeypatch.chdir(tmp_path)


def refused(read, source, said: str, **options) -> None:
    with pytest.raises(ld.errors.ModelError, match=said):
        read(source, **options).mechanism.compile()


# ------------------------------------------------------------------------------------------------ XML, by hand


def mjcf(body: str) -> str:
    return f"<mujoco><worldbody>{body}</worldbody></mujoco>"


@pytest.mark.parametrize("count", ["²", "٣", "9" * 5000])
@pytest.mark.parametrize("tag", ["replicate", "composite"])
def test_a_count_of_copies_that_is_none_is_refused(tag, count):
    pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")
    inside = '<body><joint/><geom size="1"/></body>'
    refused(ld.read_mjcf, mjcf(f'<body><{tag} count="{count}">{inside}</{tag}></body>'), "copies|MuJoCo refuses")


INERTIA_FROM_MESH = """<asset><mesh name="m" file="{}"/></asset>
<worldbody><body><joint/><geom type="mesh" mesh="m"/></body></worldbody>"""


@pytest.mark.parametrize("use", ['<include file="{}"/>', INERTIA_FROM_MESH])
@pytest.mark.parametrize("name", ["a" * 5000, "circle.xml"])
def test_a_file_name_that_no_file_can_have_is_refused(use, name, tmp_path):
    pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")
    (tmp_path / "circle.xml").symlink_to(tmp_path / "circle.xml")
    file = tmp_path / "model.xml"
    file.write_text(f"<mujoco>{use.format(name)}</mujoco>")
    refused(ld.read_mjcf, file, "a name that no file can have|cannot be read")


def test_files_that_include_one_another_in_a_long_row_are_refused(tmp_path):
    pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")
    for k in range(400):
        tag = "mujocoinclude" if k else "mujoco"
        (tmp_path / f"{k}.xml").write_text(f'<{tag}><include file="{k + 1}.xml"/></{tag}>')
    refused(ld.read_mjcf, tmp_path / "0.xml", "more than 200 elements and files inside one another")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('armature="0.01"', 'armature="1e308"', "'dof_armature' is .*1e.308, which no machine has"),
        ('pos="1.1 0 0"', 'pos="1e308 0 0"', "no machine has|MuJoCo refuses"),
        ('axis="0 0 1" armature', 'axis="1e308 1e308 1e308" armature', "no machine has|MuJoCo refuses"),
        ('gear="5"', 'gear="nan"', "no machine has|MuJoCo refuses"),
        ('anchor="-1.2 -.4 0"', 'anchor=""', "<connect>: its attribute 'anchor' is empty"),  # left a lock behind
    ],
)
def test_numbers_of_mjcf_that_no_machine_has_are_refused(old, new, said):
    pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")
    assert old in MJCF
    refused(ld.read_mjcf, MJCF.replace(old, new, 1), said)
    ld.read_mjcf(MJCF)  # and the next one is read


@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e61", "nan", "inf", "1e999", "", "0x10", "1,5"])
@pytest.mark.parametrize(
    ("read", "text", "old"),
    [
        (ld.read_urdf, urdf.CHAIN, 'ixx=".02"'),
        (ld.read_urdf, urdf.CHAIN, 'value="1.3"'),
        (ld.read_sdf, sdf.model(sdf.GEARS), "<ixx>.1<"),
        (ld.read_sdf, sdf.model(sdf.GEARS), "<mass>2<"),
        (ld.read_sdf, sdf.model(sdf.GEARS), "<gearbox_ratio>2.5<"),
    ],
)
def test_numbers_of_urdf_and_sdf_that_no_machine_has_are_refused(read, text, old, value):
    assert old in text
    new = re.sub(r"[\d.]+", value, old, count=1)
    refused(read, text.replace(old, new, 1), "in place of a number")


def test_an_sdf_model_without_a_name_is_refused():
    refused(ld.read_sdf, sdf.model(sdf.link("a")).replace('name="m"', ""), "<model> has no name")


# ----------------------------------------------------------------------------------------------- YAML, by hand

ARM = """loopdyn: 1
units: {angle: rad}
bodies: {arm: {mass: 1, com: [1, 0, 0]}}
joints: {A: {type: revolute, parent: ground, child: arm, at: [0, 0, 0], axis: [0, 0, 1]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("angle: rad", "angle: {a: 1}", "unknown unit a mapping of angle. Known: rad, deg, turn"),
        ("angle: rad", "angle: [rad]", "unknown unit a list of 1 of angle"),
        ("mass: 1", "mass: 1e308", "1e.308 is more than any machine has"),
        ("mass: 1", "mass: '1e200*1e100'", "a number is 1e.300, more than any machine has"),
        ("mass: 1", f"mass: 0x{'f' * 1000}", "inf is not a finite number"),
        ("[1, 0, 0]", "[-1.7e308, 0, 0]", "more than any machine has"),
        ("[0, 0, 1]", "[0, 1e200, 1e200]", "more than any machine has"),
    ],
)
def test_numbers_and_units_of_a_model_file_that_cannot_be_are_refused(old, new, said):
    with pytest.raises(ld.errors.ModelError, match=said):
        load_text(ARM.replace(old, new), "arm.yaml").compile()


def test_a_long_integer_of_the_builder_is_refused():
    with pytest.raises(ld.errors.ModelError, match="a number of many digits is more than any machine has"):
        ld.Revolute(axis=(0, 0, 10**5000))


def test_an_assembly_from_nowhere_is_refused_at_once_and_a_far_one_is_closed_directly():
    """Before, the path to 1e300 rad was followed for ever. 1e5 rad is the same crank pose as its remainder."""
    system = ld.library.four_bar().compile()
    started = time.perf_counter()
    for value, words in ((1e300, "cannot be a pose"), (float("nan"), "q is"), (1e10, "cannot be a pose")):
        with pytest.raises(ld.errors.ModelError, match=words):
            ld.assemble(system, q={"A": value})
    state = ld.assemble(system, q={"A": 1e5})
    assert re.search("too far to follow|other closures may exist", state.note)
    assert state.q[system.coordinates.index("A")] == 1e5
    assert time.perf_counter() - started < 5.0  # a second or so; the machine may be busy


def test_a_profile_with_more_corners_than_steps_can_have_is_refused():
    m = ld.library.pendulum()
    m.add_driver("d", "A", ld.profiles.Harmonic(distance=1.0, time=1e-9, back=True, cycles=1e9))
    system = m.compile()
    with pytest.raises(ld.LoopdynError, match=r"repeats every 2e-09 s.*Check 'time' and 'cycles'"):
        ld.simulate(system, ld.assemble(system), (0.0, 1.0), progress=False)


# ----------------------------------------------------------------------------------------------------- sweeps

FILES = ("four_bar_mm", "slider_crank", "double_wishbone", "delta_robot", "pendulum", "quick_return", "rssr")


def xml_sources():
    found = [(ld.read_urdf, t) for t in (urdf.CHAIN, urdf.robot(*urdf.BARS, urdf.LOOP), urdf.geared_leg(12.0))]
    nested = sdf.world(sdf.FLOOR, f'<model name="arm">{sdf.NESTED}</model>')
    found += [(ld.read_sdf, t) for t in (nested, sdf.model(sdf.GEARS))]
    try:
        import mujoco  # noqa: F401
    except ImportError:
        return found
    return [*found, (ld.read_mjcf, MJCF)]


def read_xml_mutants(seed: int, number: int) -> None:
    rng = random.Random(seed)
    sources = xml_sources()
    for n in range(number):
        read, text = rng.choice(sources)
        mutant = mutant_of_xml(rng, text)
        survives(lambda read=read, mutant=mutant: read(mutant).mechanism.compile(), mutant, f"seed {seed}, mutant {n}")


def read_yaml_mutants(seed: int, number: int) -> None:
    rng = random.Random(seed)
    texts = [(ROOT / "examples" / "mechanisms" / f"{name}.yaml").read_text() for name in FILES]
    sources = [(text, parse_document(text, "x").root.plain()) for text in texts]
    for n in range(number):
        text, data = rng.choice(sources)
        mutant = mutant_of_text(rng, text) if rng.random() < 0.2 else written(mutant_of_data(rng, data))
        survives(lambda mutant=mutant: load_text(mutant, "x.yaml").compile(), mutant, f"seed {seed}, mutant {n}")


def survives(read, mutant: str, which: str) -> None:
    """Reading ends in a mechanism or in a refusal in words."""
    try:
        read()
    except ld.LoopdynError as error:
        said = str(error).strip()
        if not said:
            pytest.fail(f"{which}: refused without a word\n{mutant}")
    except Exception as error:
        pytest.fail(f"{which}: {type(error).__name__}: {error}\n{mutant}")


def test_some_hundred_mutants_of_xml_are_read_or_refused_in_words():
    read_xml_mutants(seed=0, number=200)


def test_some_mutants_of_model_files_are_read_or_refused_in_words():
    read_yaml_mutants(seed=0, number=50)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_thousands_of_mutants_of_xml_are_read_or_refused_in_words(seed):
    read_xml_mutants(seed, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_thousands_of_mutants_of_model_files_are_read_or_refused_in_words(seed):
    read_yaml_mutants(seed, 800)


WORDS = ("x", "1", "0", "2.5", "1e308", "-", "+", "*", "/", "**", "(", ")", ",", "sin", "sqrt(", "log(", "min(",
         "atan2(", "<", " if ", " else ", "pi", "mod(", ".", "__class__", "lambda", "[", "'", "²", "\0", "=",
         "and ", "not ")  # fmt: skip


@pytest.mark.slow
def test_thousands_of_random_formulas_are_evaluated_or_refused_in_words():
    rng = random.Random(5)
    for n in range(20_000):
        text = "".join(rng.choice(WORDS) for _ in range(rng.randint(1, 14)))
        survives(lambda text=text: parse(text).evaluate({"x": 0.7}), text, f"formula {n}")
