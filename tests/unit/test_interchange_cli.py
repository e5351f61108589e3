"""`loopdyn convert`: what it writes and prints, and its exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.cli import app


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


PENDULUM = {
    ".urdf": """<robot name="p"><link name="world"/><link name="arm"><inertial><origin xyz="0 0 -1"/><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial><visual/></link>
<joint name="A" type="continuous"><parent link="world"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>""",
    ".sdf": """<sdf version="1.9"><model name="p"><link name="arm"><inertial><pose>0 0 -1 0 0 0</pose><mass>2</mass>
</inertial><visual/></link><joint name="A" type="revolute"><parent>world</parent><child>arm</child>
<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>""",
    ".xml": """<mujoco model="p"><worldbody><body name="arm"><joint name="A" axis="0 1 0"/>
<inertial pos="0 0 -1" mass="2" diaginertia="1 1 1"/></body></worldbody><sensor><jointpos joint="A"/></sensor>
</mujoco>""",
}


@pytest.fixture(params=PENDULUM)
def pendulum(request, tmp_path):
    if request.param == ".xml":
        pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")
    file = tmp_path / f"pendulum{request.param}"
    file.write_text(PENDULUM[request.param])
    return file


def test_load_reads_every_format_and_warns_of_what_was_lost(pendulum):
    with pytest.warns(ld.LoopdynWarning, match="left out: .*(1 visual|1 sensor|sensors)") as caught:
        m = ld.load(pendulum)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert m.joints["A"].type == "revolute"
    assert m.bodies["arm"].mass == 2.0


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "{}", "--json"), ("run", "{}", "-t", "0.01", "--json"), ("compare", "{}", "--json"),
        ("drive", "{}", "A", "--from", "0", "--to", "0.1", "--points", "2", "--json"), ("equilibrium", "{}", "--json"),
        ("inverse", "{}", "--motion", "A=t", "-t", "0.01", "--json"), ("report", "{}", "-t", "0.01", "-o", "{}.html"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_every_command_reads_every_format(command, tmp_path):
    file = tmp_path / "pendulum.sdf"
    file.write_text(PENDULUM[".sdf"])
    result = CliRunner().invoke(app, [part.format(file) for part in command])
    assert result.exit_code == 0, result.output
    assert "left out:     1 visual shapes" in result.stderr
    if "--json" in command:
        json.loads(result.stdout)


def test_inspect_reads_a_urdf_with_the_sidecar_beside_it(four_bar, tmp_path):
    urdf = tmp_path / "out.urdf"
    run(four_bar, urdf)
    result = CliRunner().invoke(app, ["inspect", str(urdf), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["nc"] == 5


def test_studio_converts_other_formats_to_a_model_file_of_the_same_name(pendulum, monkeypatch):
    pytest.importorskip("nicegui", reason="the studio is optional")
    opened = []
    monkeypatch.setattr("loopdyn.app.studio.open_studio", lambda file, **options: opened.append(file))
    monkeypatch.chdir(pendulum.parent)
    result = CliRunner().invoke(app, ["studio", pendulum.name, "--no-browser"])
    assert result.exit_code == 0, result.output
    assert [file.name for file in opened] == ["pendulum.yaml"]
    assert len(ld.load(opened[0]).joints) == 1


def test_a_model_of_an_sdf_with_several_is_chosen_by_its_name(tmp_path):
    file, target = tmp_path / "two.sdf", tmp_path / "two.yaml"
    file.write_text(PENDULUM[".sdf"].replace("<model", '<model name="q"><link name="b"/></model><model'))
    assert "2 models that can move: q, p" in run(file, target).stderr
    result = run(file, target, "--model", "q")
    assert result.exit_code == 0
    assert "1 other models of the file: p" in result.output
    assert list(ld.load(target).bodies) == ["b"]
    assert "only an SDF has several models" in run(target, tmp_path / "x.xml", "--model", "q").stderr


def test_load_takes_the_options_of_each_format_and_refuses_those_of_others(tmp_path):
    sdf, urdf, yaml = tmp_path / "two.sdf", tmp_path / "arm.urdf", tmp_path / "m.yaml"
    models = [f"<model name='{m}'><link name='{n}'/></model>" for m, n in ("ax", "by")]
    sdf.write_text(f"<sdf version='1.7'>{''.join(models)}</sdf>")
    inertia = '<mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/>'
    urdf.write_text(f'<robot name="r"><link name="arm"><inertial>{inertia}</inertial></link></robot>')
    yaml.write_text("loopdyn: 1\nbodies: {block: {mass: 2}}")
    with pytest.warns(ld.LoopdynWarning):
        assert list(ld.load(sdf, model="b").bodies) == ["y"]
    with pytest.raises(ld.errors.ModelError, match=r"Choose one: ld.load\(file, model=NAME\)"):
        ld.load(sdf)
    with pytest.warns(ld.LoopdynWarning, match="mended by 0.5"):  # the nearest possible inertia is 1.5, 1.5, 3
        ld.load(urdf, mend=True).compile()
    for options in ({"mend": True}, {"keyframe": 0}, {"model": "a"}, {"loops": yaml}, {"folder": tmp_path}):
        (name,) = options
        with pytest.raises(ld.errors.ModelError, match=f"Leave out '{name}'"):
            ld.load(yaml, **options)
    assert run(yaml, tmp_path / "out.yaml", "--mend").exit_code == 1
