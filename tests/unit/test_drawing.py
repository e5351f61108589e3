"""What a picture of a mechanism shows."""

import numpy as np
import pytest
from tests.marks import gallery_slow

import loopdyn as ld
from loopdyn.output.drawing import Drawing
from loopdyn.results.units import coordinate_units, speed_units

PLANAR = (
    "pendulum",
    "double_pendulum",
    "four_bar",
    "watt",
    "stephenson",
    "slider_crank",
    "quick_return",
    "five_bar",
    "n_four_bar",
    "andrews",
    "peaucellier",
    "theo_jansen",
    "scissor_lift",
)  # all in the xy plane


def world(drawing, row, points):
    p, R = drawing.system.reference_poses[row]
    return p + np.atleast_2d(points) @ R.T


@pytest.mark.parametrize("name", gallery_slow(ld.library.ALL))
def test_planar_mechanisms_are_recognised_and_spatial_ones_too(name):
    normal = Drawing(ld.library.ALL[name]().compile()).normal
    if name in PLANAR:
        np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-15)
    else:
        assert normal is None


@pytest.mark.parametrize("name", gallery_slow(ld.library.ALL))
def test_every_joint_of_a_moving_body_is_on_something_that_is_drawn(name):
    drawing = Drawing(ld.library.ALL[name]().compile())
    for body in drawing.bodies[drawing.system.n_bases :]:
        assert body.shapes
        for p in drawing.joint_points(body.row):
            # twice the radius of a bar: the margin within which a joint counts as on a given part
            assert any(s.reaches(p, 2.001 * drawing.bar) for s in body.shapes), (body.name, p)


def test_parts_of_the_mass_properties_are_the_shapes_of_a_body():
    m = ld.Mechanism("parts")
    inertia = (
        ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(2, 0, 0), radius=0.1)
        + ld.Inertia.box(mass=1, size=(0.2, 0.4, 0.6), at=(2, 0, 0))
        + ld.Inertia.sphere(mass=1, radius=0.3, at=(0, 1, 0))
        + ld.Inertia.cylinder(mass=1, radius=0.2, length=0.8, axis=(0, 1, 0), at=(0, 2, 0))
    )
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, m.add_body("b", inertia), at=(0, 0, 0))
    rod, box, cylinder, sphere = Drawing(m.compile()).bodies[1].shapes
    assert (rod.kind, rod.size) == ("rod", (0.1, 2.0))
    np.testing.assert_allclose(rod.position, [1, 0, 0])
    assert (box.kind, box.size) == ("box", (0.2, 0.4, 0.6))
    assert (sphere.kind, sphere.size) == ("sphere", (0.3,))
    assert (cylinder.kind, cylinder.size) == ("cylinder", (0.2, 0.8))
    np.testing.assert_allclose(np.abs(cylinder.axes[:, 2]), [0, 1, 0], atol=1e-15)


def test_a_body_with_a_pose_of_its_own_is_drawn_at_the_same_place():
    def build(pose):
        m = ld.Mechanism("posed")
        b = m.add_body("b", ld.Inertia.rod(mass=1, start=(1, 0, 0), end=(1, 2, 0), radius=0.1), pose=pose)
        m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(1, 0, 0))
        return Drawing(m.compile())

    plain = build(None)
    turned = build(ld.Frame(position=(3, 1, -2), rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.7)))
    for drawing in (plain, turned):
        ends = drawing.bodies[1].shapes[0]
        line = ends.position + np.outer([-1, 1], ends.axes[:, 2]) * ends.size[1] / 2
        found = world(drawing, 1, line)
        np.testing.assert_allclose(found[np.argsort(found[:, 1])], [[1, 0, 0], [1, 2, 0]], atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*its density is:loopdyn.errors.LoopdynWarning")  # only its shape is of interest
def test_a_mesh_is_drawn_in_metres_where_it_was_put(tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    text = "\n".join(
        "facet normal 0 0 0\nouter loop\n"
        + "\n".join("vertex {} {} {}".format(*corners[k]) for k in face)
        + "\nendloop\nendfacet"
        for face in faces
    )
    file = tmp_path / "tetrahedron.stl"
    file.write_text(f"solid t\n{text}\nendsolid t\n")
    m = ld.Mechanism("meshed", units={"length": "mm"})
    b = m.add_body("b", ld.Inertia.from_mesh(file, density=1.0, at=(10, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    (shape,) = Drawing(m.compile()).bodies[1].shapes
    assert shape.kind == "mesh"
    np.testing.assert_allclose(np.unique(shape.outline(), axis=0), np.unique(corners + [10, 0, 0], axis=0) * 1e-3)


def test_bodies_without_parts_get_a_bar_a_plate_or_bars_between_their_joints():
    def kinds(points):
        m = ld.Mechanism("m")
        b = m.add_body("b", ld.Inertia(1.0, (0, 0, 0), np.eye(3)))
        for k, p in enumerate(points):
            m.add_joint(f"J{k}", ld.Spherical(), m.ground, b, at=p)
        return [s.kind for s in Drawing(m.compile()).bodies[1].shapes]

    assert kinds([(1, 0, 0), (0, 1, 0)]) == ["rod"]
    assert kinds([(1, 0, 0), (0, 1, 0), (0, 0, 1)]) == ["plate"]
    assert kinds([(1, 0, 0), (2, 0, 0), (3, 0, 0)]) == ["rod"]
    assert kinds([(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 2, 2)]) == ["rod"] * 4


def test_springs_run_between_their_points():
    drawing = Drawing(ld.library.andrews().compile())
    (spring,) = drawing.spans
    C = [0.014, 0.072, 0.0]  # on the ground, as printed in the benchmark
    ends = [world(drawing, row, p)[0] for row, p in zip(spring.bodies, spring.points, strict=True)]
    np.testing.assert_allclose(ends[spring.bodies.index(0)], C, atol=1e-12)


def test_units_follow_the_kind_of_each_coordinate():
    system = ld.library.stewart_6ups().compile()
    units = dict(zip(system.coordinates, coordinate_units(system), strict=True))
    speeds = dict(zip(system.speeds, speed_units(system), strict=True))
    assert (units["U1.1"], units["P1"], speeds["U1.1"], speeds["P1"]) == ("rad", "m", "rad/s", "m/s")
    free = ld.Mechanism("free")
    free.add_body("b", ld.Inertia.sphere(mass=1, radius=1))
    assert coordinate_units(free.compile()) == ["m"] * 3 + ["1"] * 4
    assert speed_units(free.compile()) == ["rad/s"] * 3 + ["m/s"] * 3
