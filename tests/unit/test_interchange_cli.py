"""`loopdyn convert`: what it writes and prints, and its exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.cli import app


def run(*arguments: object):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


@pytest.fixture
def four_bar(tmp_path):
    file = tmp_path / "four_bar.yaml"
    ld.library.four_bar().save(file)
    return file


def test_convert_prints_what_became_of_the_model(four_bar, tmp_path):
    result = run(four_bar, tmp_path / "out.xml")
    assert result.exit_code == 0
    for text in ("carried over: 3 bodies", "the start, as the keyframe 'start'", "out.xml"):
        assert text in result.output


def test_convert_json_holds_the_same(four_bar, tmp_path):
    result = run(four_bar, tmp_path / "out.urdf", "--json")
    assert result.exit_code == 0
    (report,) = json.loads(result.output)
    assert report["left_out"] == []
    assert (tmp_path / "out.loops.yaml").is_file()


def test_the_sidecar_beside_a_urdf_is_found_and_can_be_named(four_bar, tmp_path):
    urdf, sidecar = tmp_path / "out.urdf", tmp_path / "out.loops.yaml"
    run(four_bar, urdf)
    assert run(urdf, tmp_path / "again.yaml").exit_code == 0
    assert ld.load(tmp_path / "again.yaml").compile().nc == 5
    other = sidecar.rename(tmp_path / "other.yaml")
    assert run(urdf, tmp_path / "open.yaml").exit_code == 0
    assert ld.load(tmp_path / "open.yaml").compile().nc == 0
    assert run(urdf, tmp_path / "again.yaml", "--loops", other).exit_code == 0
    assert ld.load(tmp_path / "again.yaml").compile().nc == 5


def test_what_cannot_be_held_ends_with_exit_code_one_unless_it_is_left_out(four_bar, tmp_path):
    m = ld.load(four_bar)
    m.add_motor("wave", "A", torque="sin(t)")
    m.save(four_bar)
    result = run(four_bar, tmp_path / "out.xml")
    assert result.exit_code == 1
    assert "force 'wave'" in result.stderr
    result = run(four_bar, tmp_path / "out.xml", "--leave-out")
    assert result.exit_code == 0
    assert "left out:     force 'wave'" in result.output


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("four_bar.yaml", "out.sdf", "files ending in '.sdf' cannot be written"),
        ("four_bar.yaml", "no/out.xml", "cannot be written"),
        ("four_bar.txt", "out.xml", "files ending in '.txt' cannot be read"),
        ("none.urdf", "out.xml", "there is no such file"),
    ],
)
def test_wrong_files_are_said_plainly(four_bar, tmp_path, source, target, said):
    result = run(tmp_path / source, tmp_path / target)
    assert result.exit_code == 1
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_options_that_do_not_fit_are_refused(four_bar, tmp_path):
    assert "only MJCF has keyframes" in run(four_bar, tmp_path / "o.xml", "--keyframe", "k").stderr
    assert "only a URDF has a sidecar" in run(four_bar, tmp_path / "o.xml", "--loops", "k").stderr


def test_sdf_becomes_a_model_file(tmp_path):
    text = '<sdf version="1.7"><model name="m"><link name="a"><inertial><mass>1</mass></inertial></link></model></sdf>'
    (tmp_path / "m.sdf").write_text(text)
    assert run(tmp_path / "m.sdf", tmp_path / "m.yaml").exit_code == 0
    assert list(ld.load(tmp_path / "m.yaml").bodies) == ["a"]
