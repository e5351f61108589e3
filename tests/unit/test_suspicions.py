"""What is legal but suspicious is a warning; nothing else is."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import loopdyn as ld


def arm(at=(1, 0, 0), mass=1.0, **settings):
    """Three links in a row, a metre each (in whatever unit the model has)."""
    m = ld.Mechanism("arm", **settings)
    parent = m.ground
    for k in range(3):
        start, end = (float(k), 0, 0), (k + 1.0, 0, 0)
        name = m.add_body(f"link{k}", ld.Inertia.rod(mass=mass, start=start, end=end))
        m.add_joint(f"J{k}", ld.Revolute(axis=(0, 0, 1)), parent, name, at=at if k == 1 else start)
        parent = name
    return m


def test_library_models_are_not_suspicious():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in dir(ld.library):
            make = getattr(ld.library, name)
            if name in ("random_mechanism", "turned") or not getattr(make, "__module__", "").startswith(
                "loopdyn.library"
            ):
                continue
            made = make()
            if isinstance(made, ld.Mechanism):
                made.compile()


def test_an_ordinary_model_is_not_suspicious():
    assert arm().compile().warnings == ()


@pytest.mark.parametrize(
    ("gravity", "units", "words"),
    [
        ((0, -9810, 0), {"length": "mm"}, r"gravity is 9810 m/s\^2, 1000 times that of the earth"),
        ((0, -9.81, 0), {"acceleration": "mm/s^2"}, r"gravity is 0.00981 m/s\^2, 0.001 times that of the earth"),
    ],
)
def test_gravity_in_the_wrong_unit_is_a_python_warning(gravity, units, words):
    with pytest.warns(ld.LoopdynWarning, match=words):
        ld.Mechanism("m", gravity=gravity, units=units).compile()


def test_gravity_as_the_units_say_is_no_warning():
    for gravity, units in (
        ((0, -9810, 0), {"acceleration": "mm/s^2"}),
        ((0, -1.62, 0), {"length": "mm"}),
        ((0, 0, 0), {}),
    ):
        assert ld.Mechanism("m", gravity=gravity, units=units).compile().warnings == ()


def test_the_warnings_of_a_system_are_shown_once_where_it_is_compiled():
    m = ld.Mechanism("m", gravity=(0, -9810, 0))
    m.add_body("b", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "b", at=(0, 0, 0))
    with pytest.warns(ld.LoopdynWarning) as caught:
        system = m.compile()
    assert [str(w.message) for w in caught] == [f"m: {text}" for text in system.warnings]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    ld.reactions(
        system, system.state(), np.zeros(1)
    )  # which compiles the model with every body free: nothing more is said


def test_lengths_that_are_likely_mm_are_noted_unless_the_unit_is_declared():
    def model(**settings):
        m = ld.Mechanism("m", **settings)
        m.add_body("crank", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(120, 0, 0)))
        m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(120, 0, 0), end=(200, 0, 0)))
        m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "crank", at=(0, 0, 0))
        m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "crank", "rod", at=(120, 0, 0))
        return m

    with pytest.warns(
        ld.LoopdynWarning, match="body 'crank' is 120 m from joint to joint, and no unit of length is declared"
    ):
        model().compile()
    for unit in ("m", "mm"):
        assert model(units={"length": unit}).compile().warnings == ()


def test_a_joint_far_off_its_bodies_is_noted():
    # usual distance of a joint from a mass centre: half a metre
    with pytest.warns(
        ld.LoopdynWarning, match=r"joint 'J1' is 98.5 m from the mass centre of 'link0' and 'link1', 197 times"
    ):
        arm(at=(100, 0, 0), units={"length": "m"}).compile()


@pytest.mark.parametrize("mass", [2e7, 1e-13])
def test_masses_of_no_machine_are_noted(mass):
    with pytest.warns(ld.LoopdynWarning, match=r"body 'link\d' has a mass of .* kg, which no machine has"):
        arm(mass=mass).compile()


def test_a_density_of_no_material_is_noted(tmp_path):
    # a tetrahedron of steel in a model in mm and kg: 7.85e-6 kg/mm^3; 7.85e-3 is g/mm^3
    corners = np.array([(0, 0, 0), (10, 0, 0), (0, 10, 0), (0, 0, 10)])
    faces = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*corners[k]) for k in face)
        + "endloop\nendfacet\n"
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
    (tmp_path / "t.stl").write_text(f"solid t\n{faces}endsolid t\n")

    def model(density):
        m = ld.Mechanism("m", units={"length": "mm"})
        m.add_body("part", ld.Inertia.from_mesh(tmp_path / "t.stl", density=density))
        return m

    assert model(7.85e-6).compile().warnings == ()
    with pytest.warns(ld.LoopdynWarning, match=r"density is 0.00785 kg/mm\^3, .* Steel has 7.85e-06 kg/mm\^3"):
        model(7.85e-3).compile()


def test_bodies_that_hang_on_nothing_are_noted_together():
    m = arm()
    for name in ("a", "b"):
        m.add_body(name, ld.Inertia.sphere(mass=1, radius=0.1))
    m.add_joint("AB", ld.Revolute(axis=(0, 0, 1)), "a", "b", at=(0, 5, 0))
    with pytest.warns(ld.LoopdynWarning, match="bodies 'a', 'b' are not connected to 'ground'"):
        m.compile()
    m.add_constraint("rod", ld.constraints.Distance(body1="link2", body2="a", point1=(3, 0, 0), point2=(0, 5, 0)))
    assert m.compile().warnings == ()


def test_a_body_held_by_a_bushing_or_pushed_by_a_force_is_meant():
    m = arm()
    m.add_body("engine", ld.Inertia.sphere(mass=1, radius=0.1))
    m.add_force(None, ld.forces.Bushing(body1="ground", body2="engine", at=(0, 0, 0), stiffness=(1e5, 1e5, 1e5)))
    assert m.compile().warnings == ()


def test_a_mechanism_that_stands_on_nothing_is_meant():
    m = ld.Mechanism("satellite")
    for name in ("a", "b"):
        m.add_body(name, ld.Inertia.sphere(mass=1, radius=0.1))
    m.add_joint("AB", ld.Revolute(axis=(0, 0, 1)), "a", "b", at=(0, 5, 0))
    assert m.compile().warnings == ()


def test_a_range_of_many_turns_is_likely_in_degrees():
    system = ld.library.pendulum().compile()
    with pytest.warns(ld.LoopdynWarning, match=r"'A' is driven over 360 rad, 57.3 turns. If degrees are meant"):
        ld.drive(system, "A", (0, 360, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.drive(system, "A", (0, 2 * np.pi, 3))


def test_on_the_command_line_warnings_are_notes_and_masses_are_listed(tmp_path):
    file = tmp_path / "m.yaml"
    file.write_text(
        "loopdyn: 1\nname: m\ngravity: [0, -9810, 0]\nbodies: {a: {mass: 2.5, inertia: {xx: 1, yy: 1, zz: 1}}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "loopdyn", "inspect", str(file)], capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith("note: m: gravity is 9810 m/s^2, 1000 times that of the earth.")
    assert "2.5 in all: a 2.5" in done.stdout


# -------------------------------------------------------------------------------------- numbers of NumPy


def test_a_number_of_numpy_in_a_formula_is_a_number():
    x = np.float64(0.5)
    m = ld.Mechanism("m", parameters={"a": f"2*{x!r}", "b": "-np.float32(3.0) + numpy.int64(1)"})
    assert m.resolver().parameters == {"a": 1.0, "b": -2.0}
    with pytest.raises(ld.errors.ModelError, match="a dot after a name"):
        ld.Mechanism("m", parameters={"a": "np.sin(1.0)"}).resolver()
