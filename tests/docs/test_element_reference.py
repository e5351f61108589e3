"""Pages and pictures that scripts write from the classes are those that the scripts write now."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

import loopdyn as ld

ROOT = Path(__file__).parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses read the names of their module
    spec.loader.exec_module(module)
    return module


def test_the_element_reference_is_written_from_the_classes():
    made = script("element_reference")
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run: python docs/element_reference.py"


def test_every_key_of_the_schema_of_an_element_is_in_the_reference():
    from loopdyn.io.yaml import schema

    text = script("element_reference").PAGE.read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("\n### ")[1:]}
    found = 0
    for definition in schema()["$defs"].values():
        name = definition.get("properties", {}).get("type", {}).get("const")
        if name in sections:
            common = sections["Keys of all joints"] if "parent" in definition["properties"] else ""
            for key in set(definition["properties"]) - {"type", "name"}:
                assert f"| `{key}` |" in sections[name] + common, (name, key)
            found += 1
    assert found >= 28, json.dumps(sorted(sections))  # ten joints, ten constraints, eight forces


def test_the_table_of_a_run_has_the_variables_and_dimensions_of_a_run():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, v={"A": 1.0})
    listed = script("element_reference").RUN
    run = ld.simulate(system, state, (0, 0.01), formulation="partition", progress=False)
    data = run.data
    assert set(data.data_vars) <= set(listed)
    assert set(listed) - set(data.data_vars) <= {"measures", "load", "power", "work"}  # the model has none of these
    for name, variable in data.data_vars.items():
        assert ", ".join(variable.dims) == listed[name][0], name
        assert variable.attrs.get("units", "-").replace("*", " ").replace("^2", "²") in listed[name][1], name


@pytest.mark.parametrize("name", sorted(script("joint_pictures").pictures()))
def test_the_picture_of_a_joint_is_the_one_that_the_script_draws(name):
    made = script("joint_pictures")
    assert (made.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == made.pictures()[name]


def test_every_constraint_contact_and_force_has_the_picture_that_the_script_draws():
    made = script("element_pictures")
    drawn = made.pictures()
    for name, content in drawn.items():
        assert (made.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == content, name
    shown = set(re.findall(r"\(elements/(\w+)\.svg\)", script("element_reference").page()))
    assert shown == set(drawn) == {p.stem for p in made.FOLDER.glob("*.svg")}


def test_the_drawings_of_frames_and_signs_are_those_of_their_script():
    script("element_pictures")  # whose shapes it uses
    made = script("frames_pictures")
    for name, content in made.pictures().items():
        assert (made.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == content, name


def test_the_bibliography_is_written_from_the_list_of_references():
    made = script("bibliography")
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run: python docs/bibliography.py"
    assert len(made.entries()) >= 9
