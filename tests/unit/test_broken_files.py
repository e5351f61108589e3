"""Broken model files: each has its own clear message at the right line, and `loopdyn inspect` ends with code 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.cli import app
from loopdyn.io import reading
from loopdyn.io.yaml import load


class Broken(NamedTuple):
    name: str
    text: str
    says: tuple[str, ...]  # what the message must contain
    line: int | None  # where the problem stands; None: it concerns the whole file


def joint(**changes: str) -> str:
    """A model of one body on one joint, with some keys of the joint (line 3 onwards, one a line) changed."""
    keys = {"type": "revolute", "parent": "ground", "child": "arm", "at": "[0, 0, 0]", "axis": "[0, 0, 1]", **changes}
    lines = [f"    {key}: {value}" for key, value in keys.items() if value]
    return "\n".join(["loopdyn: 1", "joints:", "  A:", *lines, "bodies: {arm: {mass: 1}}"])


def body(text: str) -> str:
    """A model of one free body; the text is on line 3."""
    return f"loopdyn: 1\nbodies:\n  arm: {text}\n"


def force(text: str) -> str:
    """A model of a pin A, a slider S and a ball U, with a force on line 8."""
    return (
        "loopdyn: 1\nbodies: {arm: {mass: 1}, block: {mass: 1}, ball: {mass: 1}}\njoints:\n"
        "  A: {type: revolute, parent: ground, child: arm, at: [0, 0, 0], axis: [0, 0, 1]}\n"
        "  S: {type: prismatic, parent: arm, child: block, at: [0, 0, 0], axis: [1, 0, 0]}\n"
        "  U: {type: spherical, parent: arm, child: ball, at: [0, 0, 0]}\n"
        f"forces:\n  f: {text}\n"
    )


def after(text: str) -> str:
    """The model of `force`, without a force, with a section on line 7."""
    return force("").split("forces:")[0] + text


POINTS = "body1: ground, body2: arm, point1: [0, 0, 0], point2: [1, 0, 0]"
LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))

BROKEN = [
    # the file as a whole
    Broken("empty file", "", ("file is empty",), 1),
    Broken("only comments", "# nothing\n# here\n", ("file is empty",), 1),
    Broken("a list", "- a\n- b\n", ("expected keys such as 'bodies:'",), 1),
    Broken("a word", "mechanism", ("expected keys such as 'bodies:'",), 1),
    Broken("no version", "name: x\nbodies: {}", ("'loopdyn' is missing", "Write 'loopdyn: 1'"), 1),
    Broken("version of the future", "name: x\nloopdyn: 2\n", ("version 2", "not known", "loopdyn: 1"), 2),
    Broken("version as text", "loopdyn: 'one'\n", ("version 'one'", "not known"), 1),
    Broken("two documents", "loopdyn: 1\n---\nloopdyn: 1\n", ("second document begins here",), 2),
    # the syntax of YAML
    Broken("open bracket", "loopdyn: 1\ngravity: [0, 0,\nbodies: {}\n", ("list [...] is not finished", "or ']'"), 2),
    Broken("open brace", body("{mass: 1") + "joints:\n", ("mapping {...} is not finished",), 3),
    Broken("open quote", 'loopdyn: 1\nname: "x\n', ("text in quotes is not finished", "Add the closing quote"), 2),
    Broken("tab", "loopdyn: 1\nbodies:\n\tarm: {mass: 1}\n", ("tab stands where only blanks can",), 3),
    Broken("bad indentation", "loopdyn: 1\nbodies:\n  a: {mass: 1}\n   b: {mass: 1}\n", ("indentation",), 4),
    Broken("indentation back", "loopdyn: 1\nbodies:\n    a: {mass: 1}\n  b: {mass: 1}\n", ("indentation does not",), 4),
    Broken("no colon", "loopdyn: 1\nbodies\njoints: {}\n", ("has no ':' behind it",), 3),
    Broken("control character", "loopdyn: 1\nname: a\x07b\n", ("character U+0007 cannot stand",), 2),
    Broken("impossible escape", 'loopdyn: 1\nname: "\\UFFFFFFFF"\n', ("escape", "does not exist"), None),
    Broken("key that is a number", "loopdyn: 1\nbodies:\n  1: {mass: 1}\n", ("key '1' is not a text", "'1'"), 3),
    Broken("key that is a list", "loopdyn: 1\nbodies:\n  ? [a, b]\n  : {mass: 1}\n", ("is not a text",), 3),
    Broken("duplicate key", "loopdyn: 1\nname: a\nname: b\n", ("'name' occurs twice, first on line 2",), 3),
    Broken(
        "duplicate body",
        "loopdyn: 1\nbodies:\n  arm: {mass: 1}\n  leg: {mass: 1}\n  arm: {mass: 2}\n",
        ("bodies", "'arm' occurs twice, first on line 3", "Rename"),
        5,
    ),
    # what could make a small file expensive, or run something
    Broken("python object", "loopdyn: 1\nname: !!python/object/apply:os.system ['true']\n", ("tag", "is not read"), 2),
    Broken("own tag", "loopdyn: 1\nname: !secret x\n", ("tag '!secret' is not read",), 2),
    Broken("billion laughs", "loopdyn: 1\n" + LAUGHS, ("anchor &a is not read",), 2),
    Broken("alias", "loopdyn: 1\nbodies: *all\n", ("references such as *all are not read", "parameters"), 2),
    Broken("merge key", "loopdyn: 1\nbodies:\n  a: {mass: 1}\n  <<: {b: {mass: 2}}\n", ("merge key '<<'",), 4),
    Broken("deep list", "loopdyn: 1\nname: " + "[" * 500 + "]" * 500, ("levels of nesting",), 2),
    Broken("deep mapping", "loopdyn: 1\n" + "".join(" " * k + "a:\n" for k in range(200)), ("levels of nesting",), 32),
    # keys and types
    Broken("unknown section", "loopdyn: 1\nbodys: {}\n", ("unknown key 'bodys'", "Did you mean 'bodies'?"), 2),
    Broken("unknown key of a body", body("{mass: 1, comm: [0, 0, 0]}"), ("body 'arm'", "Did you mean 'com'?"), 3),
    Broken("unknown key of a joint", joint(axsi="[0, 0, 1]", axis=""), ("joint 'A'", "Did you mean 'axis'?"), 8),
    Broken("unknown key of a shape", body("{rod: {mass: 1, start: [0, 0, 0], ende: [0, 0, 1]}}"), ("rod", "'end'"), 3),
    Broken("unknown joint type", joint(type="revolut"), ("unknown type 'revolut'", "Did you mean 'revolute'?"), 4),
    Broken("no joint type", joint(type=""), ("joint 'A': 'type' is missing", "prismatic"), 3),
    Broken("unknown force type", force("{type: moter, joint: A}"), ("unknown type 'moter'", "'motor'"), 8),
    Broken("name in a force", force("{type: motor, name: m, joint: A, torque: 1}"), ("'name'", "its key"), 8),
    Broken("functions", "loopdyn: 1\nuser_forces: {f: print}\n", ("unknown key 'user_forces'", "in Python"), 2),
    Broken("rows", "loopdyn: 1\nuser_constraints: {f: print}\n", ("unknown key 'user_constraints'", "in Python"), 2),
    Broken("missing axis", joint(axis=""), ("joint 'A': 'axis' is missing", "Add 'axis'"), 3),
    Broken("body that is a number", body("5"), ("body 'arm': expected a mapping, found 5",), 3),
    Broken("section that is a list", "loopdyn: 1\njoints: [a]\n", ("joints: expected a mapping of names",), 2),
    Broken("text for a vector", joint(at="middle"), ("there is no point 'middle'",), 7),
    Broken("too short a vector", joint(axis="[0, 1]"), ("expected a list of 3 numbers, found a list of 2",), 8),
    Broken("true for a mass", body("{mass: true}"), ("mass: expected a number or a formula, found true/false",), 3),
    Broken("number for a name", joint(parent="7"), ("parent: expected a text, found 7", "quotes"), 5),
    Broken("wrong word", body("{mass: 1, axes: wrld}"), ("axes: expected 'world' or 'body', found 'wrld'",), 3),
    Broken("frame that is a number", joint(parent_frame="5"), ("expected a name or a mapping, found 5",), 9),
    Broken("table without points", force("{type: motor, joint: A, torque: {of: t}}"), ("'points' is missing",), 8),
    Broken("not a number", body("{mass: .nan}"), ("nan is not a finite number",), 3),
    Broken("infinite", joint(at="[0, .inf, 0]"), ("inf is not a finite number",), 7),
    Broken("huge integer", body("{mass: " + "9" * 5000 + "}"), ("inf is not a finite number",), 3),
    Broken("unknown unit", "loopdyn: 1\nunits: {length: inch}\n", ("unknown unit 'inch' of length", "mm"), 2),
    Broken("unknown kind of unit", "loopdyn: 1\nunits: {lenght: m}\n", ("'lenght'", "Did you mean 'length'?"), 2),
    # bodies
    Broken("negative mass", body("{mass: -1}"), ("body 'arm': mass is negative (-1 kg)",), 3),
    Broken("no mass", body("{com: [0, 0, 0]}"), ("has no mass properties", "mass: 0"), 3),
    Broken("impossible inertia", body("{mass: 1, inertia: {xx: 1, yy: 1, zz: 3}}"), ("triangle inequality",), 3),
    Broken("negative inertia", body("{mass: 1, inertia: {xx: -1, yy: 1, zz: 1}}"), ("negative principal moment",), 3),
    Broken("lopsided inertia", body("{mass: 1, inertia: [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}"), ("not symmetric",), 3),
    Broken("inertia of 2x2", body("{mass: 1, inertia: [[1, 0], [0, 1]]}"), ("expected a 3x3 matrix",), 3),
    Broken("rod without length", body("{rod: {mass: 1, start: [1, 1, 1], end: [1, 1, 1]}}"), ("length zero",), 3),
    Broken("missing mesh", body("{mesh: {file: no.stl, density: 1}}"), ("cannot read mesh", "No such file"), 3),
    Broken("escaping mesh", body("{mesh: {file: ../no.stl, density: 1}}"), ("leaves the folder of the model",), 3),
    Broken("body called ground", "loopdyn: 1\nbodies:\n  ground: {mass: 1}\n", ("reserved",), 3),
    Broken("body with a point", "loopdyn: 1\nbodies:\n  a.b: {mass: 1}\n", ("the name has '.'",), 3),
    Broken("unclear rotation", body("{mass: 1, pose: {rotation: {angle: 1, rpy: [0, 0, 1]}}}"), ("not clear",), 3),
    Broken("zero quaternion", body("{mass: 1, pose: {rotation: [0, 0, 0, 0]}}"), ("'quaternion' has length zero",), 3),
    # joints
    Broken("unknown body", joint(child="amr"), ("joint 'A': there is no body 'amr'", "Did you mean 'arm'?"), 6),
    Broken("joint to itself", joint(parent="arm"), ("joins body 'arm' to itself",), 6),
    Broken("no parent", joint(parent=""), ("'parent' is missing",), 3),
    Broken("zero axis", joint(axis="[0, 0, 0]"), ("joint 'A': 'axis' has length zero", "[0, 0, 1]"), 8),
    Broken(
        "parallel axes",
        joint(type="universal", axis="", axis1="[0, 0, 1]", axis2="[0, 0, -2]"),
        ("'axis1' and 'axis2' are parallel",),
        9,
    ),
    Broken("zero pitch", joint(type="helical", pitch="0"), ("'pitch' is zero", "revolute"), 9),
    Broken("no placement", joint(at=""), ("has no place", "parent_frame"), 3),
    Broken("two places", joint(parent_frame="{}", child_frame="{}"), ("is placed twice",), 7),
    Broken("unknown frame", joint(at="", parent_frame="{}", child_frame="tip"), ("body 'arm' has no frame 'tip'",), 9),
    Broken("limits the wrong way", joint(limits="[1, -1]"), ("lower limit is above the upper one",), 9),
    Broken("limits of a slide on a pin", joint(limits="{slide: [0, 1]}"), ("no coordinate 'slide' for limits",), 9),
    Broken("unknown constraint", "loopdyn: 1\nconstraints:\n  c: {type: distanc}\n", ("unknown type", "distance"), 3),
    Broken("driver of nothing", "loopdyn: 1\ndrivers:\n  d: {joint: A, motion: t}\n", ("there is no joint 'A'",), 3),
    # forces
    Broken("motor on nothing", force("{type: motor, joint: B, torque: 1}"), ("force 'f': there is no joint 'B'",), 8),
    Broken("torque on a slider", force("{type: motor, joint: S, torque: 1}"), ("'S' takes a force, not a torque",), 8),
    Broken("motor without torque", force("{type: motor, joint: A}"), ("takes a torque",), 8),
    Broken("unknown coordinate", force("{type: motor, joint: A.slide, torque: 1}"), ("no freedom 'A.slide'",), 8),
    Broken("spring on a ball", force("{type: joint_spring, joint: U.wx, stiffness: 1}"), ("no single coordinate",), 8),
    Broken("friction on a ball", force("{type: joint_friction, joint: U}"), ("no freedom 'U'", "U.wx"), 8),
    Broken("no transition", force("{type: joint_friction, joint: A, transition: 0}"), ("must be positive",), 8),
    Broken(
        "negative stiffness",
        force("{type: spring_damper, " + POINTS + ", stiffness: -1}"),
        ("'stiffness' is negative",),
        8,
    ),
    Broken(
        "spring to itself",
        force("{type: spring_damper, " + POINTS.replace("ground", "arm") + "}"),
        ("joins a body to itself",),
        8,
    ),
    Broken("force on nothing", force("{type: applied, body: leg, at: [0, 0, 0]}"), ("no body 'leg'",), 8),
    Broken(
        "force of two numbers",
        force("{type: applied, body: arm, at: [0, 0, 0], force: [1, 2]}"),
        ("entry 3 of the list is missing",),
        8,
    ),
    Broken(
        "table of one point",
        force("{type: motor, joint: A, torque: {of: t, points: [[0, 1]]}}"),
        ("table has 1 point", "at least two"),
        8,
    ),
    Broken(
        "table of an unknown variable",
        force("{type: motor, joint: A, torque: {of: length, points: [[0, 1], [1, 2]]}}"),
        ("a table of 'length' is not possible here", "speed"),
        8,
    ),
    # parameters and formulas
    Broken("undefined name", body('{mass: "2*m"}'), ("body 'arm'", "unknown name 'm'"), 3),
    Broken("undefined parameter", "loopdyn: 1\nparameters: {a: b}\n", ("parameter 'a'", "unknown name 'b'"), 2),
    Broken("cyclic parameters", "loopdyn: 1\nparameters:\n  a: b\n  b: a\n", ("refers to itself: a -> b -> a",), 3),
    Broken("parameter called pi", "loopdyn: 1\nparameters: {pi: 3}\n", ("'pi' already means",), 2),
    Broken("forbidden function", body('{mass: "eval(1)"}'), ("body 'arm'", "eval"), 3),
    Broken("import", body("{mass: \"__import__('os').system('true')\"}"), ("body 'arm'", "formula"), 3),
    Broken("attribute", body('{mass: "t.__class__"}'), ("body 'arm'", "formula"), 3),
    Broken("division by zero", body('{mass: "1/0"}'), ("body 'arm'", "formula '1/0'"), 3),
    Broken("decimal comma", body("{mass: '0,5'}"), ("body 'arm'", "formula '0,5'"), 3),
    Broken(
        "position of a ball", force("{type: motor, joint: U.wx, torque: position}"), ("unknown name 'position'",), 8
    ),
    # start, base, gravity
    Broken("unknown coordinate at the start", after("start: {q: {B: 1}}\n"), ("start", "'B'"), 7),
    Broken("start with a list", after("start:\n  q: [1, 2]\n"), ("start, q: expected a mapping",), 8),
    Broken("motion of nothing", after("base:\n  table: {x: t}\n"), ("there is no body 'table'",), 8),
    Broken("motion by position", after("base:\n  ground: {x: position}\n"), ("unknown name 'position'",), 8),
    Broken("gravity as a number", after("gravity: -9.81\n"), ("gravity: expected a list of 3 numbers",), 7),
    # other files
    Broken("missing include", "loopdyn: 1\ninclude: [other.yaml]\n", ("'other.yaml'", "no such file"), 2),
    Broken("include upwards", "loopdyn: 1\ninclude: [../other.yaml]\n", ("leaves the folder of the model",), 2),
    Broken("include by absolute path", "loopdyn: 1\ninclude: [/etc/passwd]\n", ("leaves the folder",), 2),
    Broken("include of itself", "loopdyn: 1\ninclude: [model.yaml]\n", ("include one another", "model.yaml ->"), 2),
    Broken("include that is no list", "loopdyn: 1\ninclude: other.yaml\n", ("expected a list of file names",), 2),
    Broken("include of a folder", "loopdyn: 1\ninclude: ['.']\n", ("this is a folder",), 2),
]


def inspect(path: Path) -> tuple[int, str]:
    """Exit code and error output of `loopdyn inspect`, run in this process."""
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert not result.stdout
    return result.exit_code, result.stderr


def check(path: Path, says: tuple[str, ...], line: int | None) -> None:
    code, output = inspect(path)
    assert code == 1
    problem, *others, next_step = output.splitlines()
    assert not others, "one mistake is said once"
    place = f"{path}: " if line is None else f"{path}:{line}: "
    assert problem.startswith(place)
    for fragment in says:
        assert fragment in problem
    for jargon in ("pydantic", "Input should", "validation", "function-", "type=", "Errno"):
        assert jargon not in problem
    assert next_step == f"1 problem. Correct the model, then run again: loopdyn inspect {path}"


def test_there_are_enough_and_each_has_its_own_name() -> None:
    assert len(BROKEN) >= 45
    assert len({case.name for case in BROKEN}) == len(BROKEN)


@pytest.mark.parametrize("case", BROKEN, ids=[case.name for case in BROKEN])
def test_a_broken_file_is_explained(case: Broken, tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(case.text, newline="\n")
    check(path, case.says, case.line)


def test_the_models_that_are_broken_are_otherwise_sound(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    for text in (joint(), body("{mass: 1}"), force("{type: motor, joint: A, torque: 1}"), after("")):
        path.write_text(text)
        assert load(path).compile().nb >= 1


# -------------------------------------------------------------------------------- files that are not a text


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    check(tmp_path / "none.yaml", ("there is no such file",), None)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").mkdir()
    check(tmp_path / "model.yaml", ("this is a folder",), None)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    check(tmp_path / "model.txt", ("'.txt' cannot be read", ".yaml", ".urdf"), None)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_bytes("loopdyn: 1\nname: Gelenk für Tür\n".encode("latin-1"))
    check(path, ("not UTF-8",), 2)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.yaml"
    with open(path, "wb") as stream:
        stream.truncate(reading.MAX_BYTES + 1)  # takes no space on the disk
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("was read"))
    check(path, ("too large (50 MB, the limit is 50 MB)", "include"), None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    os.mkfifo(path)
    check(path, ("not an ordinary file",), None)


# ------------------------------------------------------------------------------------------- several files


def test_a_cycle_of_includes_is_reported_as_the_cycle(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text("loopdyn: 1\ninclude: [a.yaml]\n")
    (tmp_path / "a.yaml").write_text("include: [b.yaml]\n")
    (tmp_path / "b.yaml").write_text("# back\ninclude:\n  - a.yaml\n")
    code, output = inspect(path)
    assert code == 1
    assert output.startswith(f"{tmp_path / 'b.yaml'}:3: include: the files include one another: ")
    assert "a.yaml -> " in output
    assert "b.yaml -> " in output


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("bodies: {secret: {mass: 1}}")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    path = tmp_path / "model" / "model.yaml"
    path.write_text("loopdyn: 1\ninclude: [link.yaml]\n")
    check(path, ("'link.yaml' leaves the folder of the model",), 2)


def test_a_long_row_of_includes_is_refused(tmp_path: Path) -> None:
    for k in range(40):
        (tmp_path / f"{k}.yaml").write_text(f"loopdyn: 1\ninclude: ['{k + 1}.yaml']\n")
    code, output = inspect(tmp_path / "0.yaml")
    assert code == 1
    assert "files include one another in a row" in output


# ------------------------------------------------------------------------------------------ all at once

FIVE = """\
loopdyn: 1
parameters: {a: 1, b: "a + c"}
bodies:
  arm: {mass: 1, comm: [0, 0, 0]}
  leg: {mass: -2}
joints:
  A: {type: revolute, parent: ground, child: arm, at: [0, 0, 0], axis: [0, 0, 0]}
  B: {type: revolut, parent: arm, child: leg, at: [0, 0, 0], axis: [0, 0, 1]}
forces:
  motor: {type: motor, joint: B, torque: 1}     # B is at fault, not the motor
  spring: {type: joint_spring, joint: C}
"""


def test_all_problems_are_reported_at_once_and_nothing_that_follows_from_them(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(FIVE)
    code, output = inspect(path)
    assert code == 1
    *problems, next_step = output.splitlines()
    expected = [
        (2, "parameter 'b'", "unknown name 'c'"),
        (4, "body 'arm'", "unknown key 'comm'"),
        (5, "body 'leg'", "mass is negative"),
        (7, "joint 'A'", "'axis' has length zero"),
        (8, "joint 'B'", "unknown type 'revolut'"),
        (11, "force 'spring'", "there is no joint 'C'"),
    ]
    assert len(problems) == len(expected)
    for problem, (line, element, message) in zip(problems, expected, strict=True):
        assert problem.startswith(f"{path}:{line}: {element}: ")
        assert message in problem
    assert next_step.startswith("6 problems.")


def test_semantic_problems_of_a_builder_are_reported_at_once_too() -> None:
    m = ld.Mechanism("m", parameters={"a": "b"})
    m.add_body("arm", ld.Inertia(-1.0))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 0)), m.ground, "arm", at=(0, 0, 0))
    m.add_motor("drive", "B", torque=1)
    with pytest.raises(ld.errors.ModelError) as caught:
        m.compile()
    assert [p.element for p in caught.value.problems] == ["parameter 'a'", "body 'arm'", "joint 'A'", "force 'drive'"]


# ------------------------------------------------------------------------------------------ the real command


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(ld.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-m", "loopdyn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def test_the_command_ends_with_code_1_and_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(FIVE)
    done = run("inspect", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 7


def test_the_command_shows_a_sound_model_and_ends_with_code_0(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    ld.library.four_bar().save(path)
    done = run("inspect", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 bodies, 4 joints, 1 loop, 1 cut" in done.stdout


def test_wrong_use_ends_with_code_2() -> None:
    for arguments in ([], ["inspect"], ["inspekt"], ["inspect", "a.yaml", "--jsn"], ["schema", "x"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2, arguments
        assert "Traceback" not in result.output


def test_inspect_prints_json_on_request(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    ld.library.four_bar().save(path)
    result = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert (shown["nb"], len(shown["cut_joints"]), len(shown["loops"])) == (3, 1, 1)
    assert len(shown["constraint_rows"]) == shown["nc"] == 5


def test_every_command_explains_itself() -> None:
    for arguments in (["--help"], ["inspect", "--help"], ["schema", "--help"], ["demo", "--help"], ["--version"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0
        assert result.stdout.strip()


def test_names_in_a_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text('loopdyn: 1\n"\\e[31mred\\nline": 1\n')
    code, output = inspect(path)
    assert code == 1
    assert "\x1b" not in output
    assert len(output.splitlines()) == 2
