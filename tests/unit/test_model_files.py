"""Model files: what is saved is what is loaded, comments stay, nothing is half-written, lines are right."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import loopdyn as ld
from loopdyn import library
from loopdyn.forces.dispatch import AnyForce
from loopdyn.io import yaml as model_files
from loopdyn.io.reading import parse_document, plain_scalar
from loopdyn.io.writing import document, one_line
from loopdyn.io.yaml import load, save, schema
from loopdyn.joints.dispatch import AnyJoint

EXAMPLE = """\
loopdyn: 1
name: four_bar
units: {length: m, angle: rad}
parameters: {crank: 0.5, drive: 3.0}
gravity: [0, -9.81, 0]
bodies:
  crank:   {rod: {mass: 0.5, start: [0, 0, 0], end: [0, "crank", 0]}}
  coupler: {rod: {mass: 1.0, start: [0, "crank", 0], end: [1.2, 0.9, 0]}}
  rocker:  {mass: 0.75, com: [1.15, 0.45, 0], inertia: {xx: 0.05, yy: 0.001, zz: 0.05}}
joints:
  A: {type: revolute, parent: ground, child: crank,   at: [0, 0, 0], axis: [0, 0, 1], limits: [-3, 3]}
  B: {type: revolute, parent: crank,  child: coupler, at: [0, "crank", 0], axis: [0, 0, 1]}
  C: {type: revolute, parent: coupler, child: rocker, at: [1.2, 0.9, 0], axis: [0, 0, 1]}
  D: {type: revolute, parent: ground, child: rocker,  at: [1.1, 0, 0], axis: [0, 0, 1]}
constraints: {}
drivers: {}
forces:
  motor: {type: motor, joint: A, torque: "drive - 0.2*speed"}
start: {q: {A: 0.3}, v: {A: 2.0}}
include: []
"""


def everything() -> ld.Mechanism:
    """A mechanism that uses every kind of thing a model file can hold."""
    m = ld.Mechanism(
        "everything",
        gravity=(0, "-g", 1e-7),
        units={"length": "mm", "angle": "deg", "mass": "g", "force": "mN"},
        parameters={"g": 9.81, "crank": 120, "double": "2*crank"},
    )
    shapes = {
        "rod": ld.Inertia.rod(mass=0.5, start=(0, 0, 0), end=("crank", 0, 0), radius=3),
        "box": ld.Inertia.box(mass=1, size=(1, 2, 3), at=(0.5, 0, 0), rotation={"rpy": (0, 30, "crank/4")}),
        "cylinder": ld.Inertia.cylinder(mass=1, radius=2, length=3, axis=(0, 0, 1), inner_radius=1),
        "sphere": ld.Inertia.sphere(mass=1, radius="crank/10"),
        "point": ld.Inertia.point(mass=2.5, at=(1, 2, 3)),
        "flat": ld.Inertia.planar(mass=1, com=(0, 1, 0), izz=4, normal=(0, 1, 0)),
        "principal": ld.Inertia.from_principal(1, (0, 0, 0), (1, 1.5, 2), rotation=(1, 0, 0.1, 0)),
        "direct": ld.Inertia(1.0, (1, 2, 3), [[2, 0.1, 0], [0.1, 2, 0.2], [0, 0.2, 2]]),
        "sum": ld.Inertia.rod(0.3, (0, 0, 0), (1, 0, 0))
        + ld.Inertia.rod(0.3, (0, 0, 0), (0, 1, 0))
        + ld.Inertia.point(5),
        "massless": ld.Inertia.massless(),
    }
    frame = ld.Frame(position=(0, "crank", 0), rotation=ld.joints.Rotation(axis=(0, 0, 1), angle=45))
    for name, inertia in shapes.items():
        m.add_body(name, inertia)
    m.add_body("framed", shapes["box"], pose=frame, axes="body", frames={"tip": frame, "base": ld.Frame()})
    joints = {
        "rod": (ld.Revolute(axis=(0, 0, 1)), {"at": (0, 0, 0), "limits": (-90, "crank")}),
        "box": (ld.Prismatic(axis=(0, 1, 0)), {"at": "high"}),
        "cylinder": (ld.joints.Helical(axis=(1, 0, 0), pitch=0.02), {"at": (0, 0, 0)}),
        "sphere": (ld.Cylindrical(axis=(1, 0, 0)), {"at": (0, 0, 0), "limits": {"angle": (-1, 1), "slide": (0, 9)}}),
        "point": (ld.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), {"at": (1, 2, 3)}),
        "flat": (ld.Planar(normal=(0, 0, 1), x=(1, 1, 0)), {"at": (0, 0, 0)}),
        "principal": (ld.joints.Translational(), {"at": (0, 0, 0)}),
        "direct": (ld.Spherical(), {"at": (0, 0, 0)}),
        "sum": (ld.Free(), {"at": (0, 0, 0)}),
        "framed": (ld.Revolute(axis=(0, 0, 1)), {"parent_frame": frame, "child_frame": "tip"}),
    }
    for name, (joint, where) in joints.items():
        m.add_joint(f"J {name}", joint, m.ground, name, **where)
    m.add_joint("weld", ld.joints.Weld(), "direct", "massless", at=(0, 0, 0))
    table = ld.forces.Table(of="speed", points=[(0, 10), (100, "crank"), (200, 0)])
    m.add_motor("motor", "J rod", torque=table)
    m.add_motor("slide", "J box", force="3 - 0.2*speed")
    ends = {"body1": "ground", "body2": "rod", "point1": (0, 0, 0), "point2": (1, 0, 0)}
    m.add_force("spring", ld.forces.SpringDamper(**ends, stiffness=100, damping="g", length=0.5))
    m.add_force("jack", ld.forces.Actuator(**ends, force="1000*step(t - 1)"))
    m.add_force("return", ld.forces.JointSpring(joint="J sphere.slide", stiffness=5, rest=0.2))
    m.add_force("brake", ld.forces.JointFriction(joint="J rod", viscous=0.01, coulomb=0.2, transition=0.05))
    m.add_force(
        "rubber", ld.forces.Bushing(body1="rod", body2="box", at=(0, 0, 0), rotation=(1, 0, 0, 0), stiffness=(1, 2, 3))
    )
    m.add_force("belt", ld.forces.JointTendon(terms={"J rod": 0.5}, force="-length"))
    m.add_force("push", ld.forces.AppliedForce(body="rod", at=(0, 0, 0), force=(0, "sin(t)", table), axes="body"))
    m.move_base(x="0.01*sin(2*pi*5*t)", rz=ld.forces.Table(points=[(0, 0), (1, 1)]))
    m.add_point("high", (0, "double", 0))
    m.add_point("low", on="rod", from_="high", length="crank", angle=-90)
    m.add_point("far", on="box", from_=("high", "low"), lengths=(100, "crank"), side="left")
    m.add_point("half", from_="far", to=(1, 2, 0), share=0.5)
    m.add_point("beside", from_="high", to="far", length=3, angle="crank/4", normal=(0, 0, -1))
    m.add_measure("gap", "distance(low, far) - crank")
    m.add_measure("swing", "'J rod' + angle(low, far, about=x)")
    m.start = {"q": {"J rod": 30, "J sphere.angle": "crank/2"}, "v": {"J direct.wx": 1.5}}
    return m


def types(union: Any) -> list[str]:
    return [part.model_fields["type"].default for part in get_args(get_args(union)[0])]


def comments(text: str) -> list[str]:
    return [line[line.index("#") :] for line in text.splitlines() if "#" in line]


# ------------------------------------------------------------------------------------------------ round trips


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    m = everything()
    assert {j.type for j in m.joints.values()} == set(types(AnyJoint)), "every type of joint is tried"
    assert {f.type for f in m.forces.values()} == set(types(AnyForce)), "every type of force is tried"
    m.save(tmp_path / "m.yaml")
    again = load(tmp_path / "m.yaml")
    assert again == m
    assert again.model_dump() == m.model_dump()
    again.save(tmp_path / "n.yaml")
    assert (tmp_path / "n.yaml").read_text() == (tmp_path / "m.yaml").read_text()


@pytest.mark.parametrize("name", sorted(library.ALL))
def test_library_models_survive_a_file(name: str, tmp_path: Path) -> None:
    m = library.ALL[name]()
    m.save(tmp_path / "m.yaml")
    assert load(tmp_path / "m.yaml") == m


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.text(max_size=20),
    bodies=st.dictionaries(st.text(min_size=1, max_size=8), st.floats(-1e60, 1e60), max_size=4),
    formula=st.text(max_size=30),
    number=st.floats(-1e60, 1e60) | st.integers(-(10**12), 10**12),
)
def test_any_name_number_and_formula_survives_a_file(
    tmp_path: Path, name: str, bodies: dict[str, float], formula: str, number: float
) -> None:
    m = ld.Mechanism(name, gravity=(number, formula, 0), parameters={"p": number, "f": formula})
    for body, mass in bodies.items():
        m.bodies[body] = ld.Body(mass=mass, com=(number, formula, -number))
    m.save(tmp_path / "m.yaml")
    again = load(tmp_path / "m.yaml")
    assert again == m
    assert list(again.bodies) == list(m.bodies)


@given(st.text(max_size=12) | st.from_regex(r"[-+0-9.eExo_:~]{1,8}|null|[Tt]rue|\.?(nan|inf)", fullmatch=True))
def test_a_text_stays_a_text_and_a_number_a_number(text: str) -> None:
    read = parse_document(f"[{one_line(text)}, {one_line({text: 1})}]", "x").root.plain()
    assert read == [text, {text: 1}]
    value = plain_scalar(text)
    if isinstance(value, float) and math.isfinite(value):
        assert parse_document(f"a: {one_line(value)}", "x").root.plain() == {"a": value}


def test_defaults_are_not_written_and_short_things_stand_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(EXAMPLE)
    m = load(path)
    fresh = ld.Mechanism(**m.model_dump(by_alias=True, exclude_defaults=False, exclude={"loopdyn"}))
    assert fresh == m
    fresh.save(tmp_path / "fresh.yaml")
    assert (
        (tmp_path / "fresh.yaml").read_text()
        == """\
loopdyn: 1
name: four_bar
parameters: {crank: 0.5, drive: 3}
gravity: [0, -9.81, 0]
bodies:
  crank: {rod: {mass: 0.5, start: [0, 0, 0], end: [0, "crank", 0]}}
  coupler: {rod: {mass: 1, start: [0, "crank", 0], end: [1.2, 0.9, 0]}}
  rocker: {mass: 0.75, com: [1.15, 0.45, 0], inertia: {xx: 0.05, yy: 0.001, zz: 0.05}}
joints:
  A: {type: revolute, parent: ground, child: crank, at: [0, 0, 0], axis: [0, 0, 1], limits: [-3, 3]}
  B: {type: revolute, parent: crank, child: coupler, at: [0, "crank", 0], axis: [0, 0, 1]}
  C: {type: revolute, parent: coupler, child: rocker, at: [1.2, 0.9, 0], axis: [0, 0, 1]}
  D: {type: revolute, parent: ground, child: rocker, at: [1.1, 0, 0], axis: [0, 0, 1]}
forces:
  motor: {type: motor, joint: A, torque: "drive - 0.2*speed"}
start: {q: {A: 0.3}, v: {A: 2}}
"""
    )


def test_several_shapes_are_a_list_and_a_single_one_is_not(tmp_path: Path) -> None:
    m = ld.Mechanism("m")
    rod = ld.Inertia.rod(1, (0, 0, 0), (1, 0, 0))
    m.add_body("one", rod)
    m.add_body("two", rod + ld.Inertia.rod(2, (0, 0, 0), (0, 1, 0)) + ld.Inertia.point(3))
    m.save(tmp_path / "m.yaml")
    assert (
        (tmp_path / "m.yaml").read_text()
        == """\
loopdyn: 1
name: m
bodies:
  one: {rod: {mass: 1, start: [0, 0, 0], end: [1, 0, 0]}}
  two:
    rod: [{mass: 1, start: [0, 0, 0], end: [1, 0, 0]}, {mass: 2, start: [0, 0, 0], end: [0, 1, 0]}]
    point: {mass: 3}
"""
    )
    assert load(tmp_path / "m.yaml") == m


def test_empty_sections_and_an_empty_mechanism_are_legal(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("loopdyn: 1\nbodies:\nforces:  # none yet\ninclude:\nstart:\n")
    assert load(path) == ld.Mechanism("mechanism")


def test_a_file_of_another_format_is_refused_by_its_ending(tmp_path: Path) -> None:
    for name in ("robot.urdf", "robot.xml", "robot"):
        (tmp_path / name).write_text("<robot/>")
        with pytest.raises(ld.errors.ModelError, match=r"\.yaml"):
            load(tmp_path / name)
        with pytest.raises(ld.errors.ModelError, match=r"\.yaml"):
            save(ld.Mechanism("m"), tmp_path / name)


def test_a_thousand_bodies_load_in_a_few_seconds(tmp_path: Path) -> None:
    m = ld.Mechanism("chain")
    last = m.ground
    for k in range(1000):
        body = m.add_body(f"b{k}", ld.Inertia.rod(mass=0.5, start=(k, 0, 0), end=(k + 1, 0, 0)))
        m.add_joint(f"j{k}", ld.Revolute(axis=(0, 0, 1)), last, body, at=(k, 0, 0))
        last = body
    m.save(tmp_path / "m.yaml")
    began = time.process_time()
    again = load(tmp_path / "m.yaml")
    assert time.process_time() - began < 6.0  # 1.5 s on an idle machine
    assert again == m


# ---------------------------------------------------------------------------------------------------- comments

COMMENTED = """\
# a model with remarks
loopdyn: 1   # the format

parameters:
  a: 1.0     # first
  # about b
  b: "2*a"
bodies:
  x: {rod: {mass: 0.5,  start: [0, 0, 0], end: [0, "a", 0]}}   # the rod
  # the second body
  y:
    mass: 2    # kg
    com: [1,
          2,  # sideways
          3]
    inertia: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
  z: {mass: 1}

# now the joints
joints:
  A: {type: revolute, parent: ground, child: x, at: [0, 0, 0], axis: [0, 0, 1]}
  B:
    type: revolute
    parent: x   # not y
    child: y
    at: [0, 0, 0]
    axis: [0, 0, 1]
    # below B
# no forces
forces:
# the end
"""


def changed(tmp_path: Path, change: Callable[[ld.Mechanism], None]) -> str:
    """Text of the commented file after a change; checked to say what was meant."""
    path = tmp_path / "m.yaml"
    path.write_text(COMMENTED)
    m = load(path)
    change(m)
    m.save(path)
    assert load(path) == m
    return path.read_text()


def test_an_unchanged_model_is_saved_as_it_was_written(tmp_path: Path) -> None:
    assert changed(tmp_path, lambda m: None) == COMMENTED


def test_changing_a_number_touches_that_number_only(tmp_path: Path) -> None:
    def change(m: ld.Mechanism) -> None:
        m.parameters = {**m.parameters, "a": 1.5}

    assert changed(tmp_path, change) == COMMENTED.replace("a: 1.0 ", "a: 1.5 ")


def test_changing_a_deep_value_keeps_the_comments_around_it(tmp_path: Path) -> None:
    def change(m: ld.Mechanism) -> None:
        m.bodies["y"] = m.bodies["y"].model_copy(update={"mass": 7.0})
        m.joints["B"] = m.joints["B"].model_copy(update={"limits": (0.0, 1.0), "parent": "z"})

    assert changed(tmp_path, change) == COMMENTED.replace("mass: 2 ", "mass: 7 ").replace(
        "parent: x   # not y", "parent: z   # not y"
    ).replace("    axis: [0, 0, 1]\n", "    axis: [0, 0, 1]\n    limits: [0, 1]\n")


def test_removed_elements_disappear_and_new_ones_are_added(tmp_path: Path) -> None:
    def change(m: ld.Mechanism) -> None:
        del m.bodies["x"], m.joints["A"]
        m.add_body("w", ld.Inertia.point(3))
        m.add_motor("drive", "B", torque="a*t")
        m.gravity = (0, 0, -9.81)

    text = changed(tmp_path, change)
    expected = [line for line in COMMENTED.splitlines() if not line.startswith(("  x:", "  A:"))]
    assert [line for line in text.splitlines() if line in expected] == expected
    added = [line for line in text.splitlines() if line not in expected]
    assert added == [
        "  w: {point: {mass: 3}}",
        '  drive: {type: motor, joint: B, torque: "a*t"}',
        "gravity: [0, 0, -9.81]",
    ]


def test_any_change_keeps_the_comments_of_what_stays(tmp_path: Path) -> None:
    rng = random.Random(7)
    for trial in range(150):
        path = tmp_path / "m.yaml"
        path.write_text(COMMENTED if trial % 2 else EXAMPLE)
        m = load(path)
        for _ in range(rng.randint(1, 4)):
            randomly_change(m, rng)
        assert m._source.text_for(m, path) is not None, "the text could not be edited in place"
        m.save(path)
        assert load(path) == m
        if trial % 2:
            lost = set(comments(COMMENTED)) - set(comments(path.read_text()))
            assert lost <= {"# the rod", "# kg", "# sideways", "# not y", "# first", "# about b"}  # inside what went


def randomly_change(m: ld.Mechanism, rng: random.Random) -> None:
    def number() -> float | str:
        return rng.choice([0, 1, 2.5, -3e-9, "a", "a*2 + 1", 1e20])

    kind = rng.randrange(7)
    if kind == 0 and m.bodies:
        del m.bodies[rng.choice(list(m.bodies))]
    elif kind == 1:
        parts = [{"mass": number()}, {"mass": 1, "inertia": {"xx": number()}}, {"mass": 1, "frames": {"f": {}}}, {}]
        m.bodies[rng.choice(["x", "y", "z", "crank", "new", "a b", "1", "null", "ü"])] = ld.Body(**rng.choice(parts))
    elif kind == 2 and m.joints:
        del m.joints[rng.choice(list(m.joints))]
    elif kind == 3:
        joint = ld.Revolute(parent="ground", child="x", at=(number(), 0, 0), axis=(0, 0, 1))
        m.joints[rng.choice("ABCX")] = joint
    elif kind == 4:
        m.forces[rng.choice(["motor", "n"])] = ld.forces.Motor(joint="A", torque=number())
    elif kind == 5:
        m.parameters = {k: v for k, v in m.parameters.items() if k != rng.choice(list("ab"))} | {
            rng.choice("abc"): number()
        }
    else:
        m.name, m.start = rng.choice(["mechanism", "x: y", "# no", "4"]), {"q": {"A": number()}}


# ------------------------------------------------------------------------------------------------------ saving


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(EXAMPLE)
    m = load(path)
    m.name = "other"
    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(os, function, fail)
            with pytest.raises(ld.LoopdynError, match="No space left"):
                m.save(path)
        assert path.read_text() == EXAMPLE
        assert os.listdir(tmp_path) == ["m.yaml"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            m.save(path)
    assert os.listdir(tmp_path) == ["m.yaml"]
    m.save(path)
    assert load(path).name == "other"


def test_saving_keeps_permissions_and_follows_links(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(EXAMPLE)
    path.chmod(0o640)
    (tmp_path / "link.yaml").symlink_to(path)
    m = load(tmp_path / "link.yaml")
    m.name = "other"
    m.save(tmp_path / "link.yaml")
    assert (tmp_path / "link.yaml").is_symlink()
    assert load(path).name == "other"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_python_function_cannot_be_saved(tmp_path: Path) -> None:
    m = ld.Mechanism("m")
    m.add_force("brake", ld.forces.UserForce(function=lambda t, q, v, out: None))
    with pytest.raises(ld.errors.ModelError, match=r"force 'brake': a Python function cannot be saved"):
        m.save(tmp_path / "m.yaml")
    assert not os.listdir(tmp_path)


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(ld.LoopdynError, match="cannot be written"):
        ld.Mechanism("m").save(tmp_path / "nowhere" / "m.yaml")


# ---------------------------------------------------------------------------------------------------- includes


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / "main.yaml"


def test_included_files_become_part_of_the_mechanism(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(
        tmp_path / "parts",
        arm="name: ignored\nbodies: {arm: {mass: 1}}\nparameters: {l: 2}\ninclude: [deep.yaml]",
        deep='bodies: {tip: {mass: "l"}}\nstart: {q: {B: 1}}',
    )
    main = write(
        tmp_path,
        main="loopdyn: 1\n# a remark\ninclude: [parts/arm.yaml, parts/deep.yaml]  # twice is once\n"
        "bodies: {base: {mass: 3}}\nstart: {q: {A: 2}}\n",
    )
    m = load(main)
    assert m.name == "mechanism"
    assert set(m.bodies) == {"base", "arm", "tip"}
    assert m.start.q == {"A": 2.0, "B": 1.0}
    m.save(main)
    assert "include" not in main.read_text()
    assert "# a remark" in main.read_text()
    assert load(main) == m


def test_units_of_an_included_file_must_be_those_of_the_main_file(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main="loopdyn: 1\nunits: {length: mm}\ninclude: [same.yaml, none.yaml, other.yaml]",
        same="units: {length: mm, angle: rad}",
        none="bodies: {}",
        other="# in metres\nunits: {length: m}",
    )
    with pytest.raises(ld.errors.ModelError) as caught:
        load(main)
    (problem,) = caught.value.problems
    assert (Path(problem.file).name, problem.line) == ("other.yaml", 2)
    assert "units of this file differ" in problem.message


def test_the_same_name_in_two_files_is_reported_with_both_places(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main="loopdyn: 1\ninclude: [part.yaml]\nbodies:\n  arm: {mass: 1}",
        part="# one more\n\nbodies:\n  arm: {mass: 2}",
    )
    with pytest.raises(ld.errors.ModelError) as caught:
        load(main)
    (problem,) = caught.value.problems
    assert (Path(problem.file).name, problem.line, problem.element) == ("part.yaml", 4, "body 'arm'")
    assert problem.message.endswith("main.yaml:4")


def test_problems_of_an_included_file_are_reported_at_their_line_there(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main="loopdyn: 1\ninclude: [part.yaml]",
        part="bodies:\n  arm: {mass: 2}\njoints:\n  A: {type: revolute, parent: ground, child: arm, at: [0, 0, 0],\n"
        "      axis: [0, 0, 0]}",
    )
    with pytest.raises(ld.errors.ModelError) as caught:
        load(main).compile()
    (problem,) = caught.value.problems
    assert (Path(problem.file).name, problem.line) == ("part.yaml", 5)


# ------------------------------------------------------------------------------------------------------ meshes


def cube(path: Path) -> None:
    """A unit cube as binary STL."""
    faces = []
    for axis in range(3):
        for side in (0, 1):
            corners = []
            for a, b in ((0, 0), (1, 0), (1, 1), (0, 1)):
                p = [0.0, 0.0, 0.0]
                p[axis], p[(axis + 1) % 3], p[(axis + 2) % 3] = side, a, b
                corners.append(p)
            corners = corners if side else corners[::-1]
            faces += [(corners[0], corners[1], corners[2]), (corners[0], corners[2], corners[3])]
    data = b"".join(struct.pack("<12fH", 0, 0, 0, *a, *b, *c, 0) for a, b, c in faces)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + data)


def test_a_mesh_is_found_beside_the_file_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model" / "meshes").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    cube(tmp_path / "model" / "meshes" / "cube.stl")
    path = tmp_path / "model" / "m.yaml"
    path.write_text("loopdyn: 1\nbodies: {cube: {mesh: {file: ./meshes/cube.stl, density: 2}}}  # a die\n")
    monkeypatch.chdir(tmp_path / "other")
    m = load(path)
    monkeypatch.chdir(tmp_path)
    assert m.compile().nb == 1
    m.save(path)
    assert "file: ./meshes/cube.stl" in path.read_text(), "an unchanged path keeps its notation"
    for target in ("model/n.yaml", "other/m.yaml", "up.yaml"):
        m.save(target)
        assert load(target) == m
        assert load(target).compile().nb == 1
    assert "file: model/meshes/cube.stl" in Path("up.yaml").read_text()
    assert "file: meshes/cube.stl" in Path("model/n.yaml").read_text() or "./meshes" in Path("model/n.yaml").read_text()


def test_meshes_of_the_builder_are_relative_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    cube(tmp_path / "cube.stl")
    monkeypatch.chdir(tmp_path)
    m = ld.Mechanism("m")
    m.add_body("cube", ld.Inertia.from_mesh("cube.stl", density=1.0))
    for target in ("m.yaml", "models/m.yaml"):
        m.save(target)
        assert load(target) == m


# ------------------------------------------------------------------------------------------------------ schema


def accepts(text: str) -> bool:
    return Draft202012Validator(schema()).is_valid(parse_document(text, "x").root.plain())


def test_the_schema_is_valid_and_accepts_what_loads() -> None:
    Draft202012Validator.check_schema(json.loads(json.dumps(schema())))
    assert accepts(EXAMPLE)
    assert accepts(COMMENTED.replace("forces:\n", "forces: {}\n"))
    assert accepts(document(model_files.plain(everything(), Path())))


def test_the_schema_refuses_what_does_not_load() -> None:
    assert not accepts(EXAMPLE.replace("loopdyn: 1", "loopdyn: 2"))
    assert not accepts(EXAMPLE.replace("type: revolute", "type: revolut"))
    assert not accepts(EXAMPLE.replace("axis: [0, 0, 1]", "axis: [0, 1]"))
    assert not accepts(EXAMPLE.replace("child:", "chidl:"))
    assert not accepts(EXAMPLE.replace("type: motor,", "type: motor, name: m,"))
    assert not accepts(EXAMPLE + "user_forces: {}")


# --------------------------------------------------------------------------------------------- lines of problems


def test_semantic_problems_have_the_line_of_the_value(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        COMMENTED.replace("    at: [0, 0, 0]\n    axis: [0, 0, 1]", "    at: [0, 0, 0]\n    axis: [0, 0, 0]")
    )
    with pytest.raises(ld.errors.ModelError) as caught:
        load(path).compile()
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    assert path.read_text().splitlines()[problem.line - 1].strip() == "axis: [0, 0, 0]"


def test_a_copy_with_other_parameters_still_knows_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(EXAMPLE)
    with pytest.raises(ld.errors.ModelError, match=r"m\.yaml:7: body 'crank': rod has length zero"):
        load(path).with_(crank=0).compile()


def test_equality_is_about_what_a_mechanism_says(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(EXAMPLE)
    a, b = load(path), load(path)
    assert a == b
    b.name = "other"
    assert a != b


def test_a_gravity_that_looks_like_millimetres_is_noted() -> None:
    assert ld.Mechanism("lamp", gravity=(0, 0, -9.81)).compile().warnings == ()
    with pytest.warns(ld.LoopdynWarning, match=r"write units: {acceleration: mm/s\^2}"):
        ld.Mechanism("lamp", gravity=(0, 0, -9810.0)).compile()
