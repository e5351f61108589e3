"""Mass properties of shapes against hand formulas and against sums over points (Gauss quadrature, exact here).

They are read back from the mass matrix of the floating body: with speeds at the world origin its blocks are the inertia
about the origin, m c~ and m. Tolerances of 1e-12 leave room for the way back by the parallel-axis theorem.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from tests.independent import quaternion, random_rotation, turn

import loopdyn as ld

pytestmark = pytest.mark.jit_off

AT = np.array([0.3, -0.2, 0.5])
AXIS = np.array([1.0, 2.0, -2.0]) / 3.0


def properties(inertia: ld.Inertia, **options) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it, from the compiled system."""
    m = ld.Mechanism("body", **{k: v for k, v in options.items() if k in ("units", "parameters")})
    m.add_body("b", inertia, **{k: v for k, v in options.items() if k in ("pose", "axes")})
    # a weld under the free joint keeps its frame at the world origin, whatever the pose of the body
    m.add_body("frame", ld.Inertia.massless())
    m.add_joint("F", ld.Free(), m.ground, "frame", at=(0, 0, 0))
    m.add_joint("W", ld.joints.Weld(), "frame", "b", at=(0, 0, 0))
    system = m.compile()
    M = ld.tree.open_tree_mass_matrix(system, system.state())
    mass = M[5, 5]
    np.testing.assert_allclose(M[3:, 3:], mass * np.eye(3), atol=1e-14)
    if mass == 0.0:
        return 0.0, np.zeros(3), M[:3, :3]
    x, y, z = (M[2, 4] - M[1, 5]) / 2, (M[0, 5] - M[2, 3]) / 2, (M[1, 3] - M[0, 4]) / 2
    c = np.array([x, y, z]) / mass
    return mass, c, M[:3, :3] - mass * (c @ c * np.eye(3) - np.outer(c, c))


def moments(points: np.ndarray, weights: np.ndarray, mass: float) -> tuple[float, np.ndarray, np.ndarray]:
    """The same for a cloud of points whose weights are brought to `mass`."""
    w = weights * (mass / weights.sum())
    c = w @ points
    r = points - c / mass
    second = np.einsum("n,ni,nj->ij", w, r, r)
    return mass, c / mass, np.trace(second) * np.eye(3) - second


def gauss(low: float, high: float, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(n)
    return low + (high - low) * (x + 1) / 2, w * (high - low) / 2


def cylinder_points(inner: float, outer: float, length: float, axis: np.ndarray, at: np.ndarray):
    (r, wr), (z, wz) = gauss(inner, outer), gauss(-length / 2, length / 2)
    angle = np.arange(8) * np.pi / 4  # equally spaced: exact for the harmonics that occur
    R, Z, A = np.meshgrid(r, z, angle, indexing="ij")
    weights = np.einsum("i,j,k->ijk", wr * r, wz, np.ones(8))
    local = np.stack([R * np.cos(A), R * np.sin(A), Z], axis=-1).reshape(-1, 3)
    x = np.cross(axis, [0.3, 0.4, 0.9])
    x /= np.linalg.norm(x)
    return at + local @ np.array([x, np.cross(axis, x), axis]), weights.ravel()


def same(found, expected, tolerance: float = 1e-12) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)


# ------------------------------------------------------------------------------------------------- shapes


def test_given_directly():
    matrix = np.array([[2.0, 0.1, -0.2], [0.1, 2.5, 0.3], [-0.2, 0.3, 3.0]])
    for form in (matrix, matrix.tolist(), {"xx": 2, "yy": 2.5, "zz": 3, "xy": 0.1, "xz": -0.2, "yz": 0.3}):
        same(properties(ld.Inertia(4.0, AT, form)), (4.0, AT, matrix))


def test_thin_rod_has_a_twelfth_m_l_squared_across_and_nothing_along():
    start, end = AT, AT + 0.9 * AXIS
    expected = 2.0 * 0.81 / 12 * (np.eye(3) - np.outer(AXIS, AXIS))
    same(properties(ld.Inertia.rod(mass=2.0, start=start, end=end)), (2.0, (start + end) / 2, expected))
    x, w = gauss(0.0, 0.9)
    same(properties(ld.Inertia.rod(mass=2.0, start=start, end=end)), moments(start + x[:, None] * AXIS, w, 2.0))


def test_thick_rod_is_a_cylinder():
    start, end = AT - 0.45 * AXIS, AT + 0.45 * AXIS
    points = cylinder_points(0.0, 0.2, 0.9, AXIS, AT)
    same(properties(ld.Inertia.rod(mass=2.0, start=start, end=end, radius=0.2)), moments(*points, 2.0))


def test_box():
    R = turn((1, 2, 3), 0.7)
    a, b, c = 0.2, 0.5, 0.9
    expected = R @ np.diag([b * b + c * c, a * a + c * c, a * a + b * b]) @ R.T * 3.0 / 12
    box = ld.Inertia.box(mass=3.0, size=(a, b, c), at=AT, rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.7))
    same(properties(box), (3.0, AT, expected))
    (x, wx), (y, wy), (z, wz) = gauss(-a / 2, a / 2), gauss(-b / 2, b / 2), gauss(-c / 2, c / 2)
    grid = np.stack(np.meshgrid(x, y, z, indexing="ij"), axis=-1).reshape(-1, 3)
    same(properties(box), moments(AT + grid @ R.T, np.einsum("i,j,k->ijk", wx, wy, wz).ravel(), 3.0))


def test_box_rotation_may_be_a_quaternion():
    R = random_rotation(np.random.default_rng(1))
    one = ld.Inertia.box(mass=3.0, size=(0.2, 0.5, 0.9), rotation=quaternion(R))
    _, _, I = properties(one)
    same([R.T @ I @ R], [np.diag([0.25 + 0.81, 0.04 + 0.81, 0.04 + 0.25]) * 3.0 / 12])


@pytest.mark.parametrize("inner", [0.0, 0.12])
def test_cylinder_full_or_hollow(inner):
    found = properties(ld.Inertia.cylinder(mass=1.5, radius=0.2, length=0.6, axis=3 * AXIS, at=AT, inner_radius=inner))
    same(found, moments(*cylinder_points(inner, 0.2, 0.6, AXIS, AT), 1.5))
    along = 1.5 * (0.04 + inner**2) / 2
    assert AXIS @ found[2] @ AXIS == pytest.approx(along, rel=1e-12)


def test_sphere_has_two_fifths_m_r_squared():
    same(properties(ld.Inertia.sphere(mass=2.0, radius=0.3, at=AT)), (2.0, AT, 0.4 * 2.0 * 0.09 * np.eye(3)))


def test_point_and_massless():
    same(properties(ld.Inertia.point(mass=2.0, at=AT)), (2.0, AT, np.zeros((3, 3))))
    same(properties(ld.Inertia.massless()), (0.0, np.zeros(3), np.zeros((3, 3))))


def test_planar_body_is_a_thin_disc_about_its_normal():
    same(properties(ld.Inertia.planar(mass=2.0, com=AT, izz=0.6)), (2.0, AT, np.diag([0.3, 0.3, 0.6])))
    expected = 0.3 * np.eye(3) + 0.3 * np.outer(AXIS, AXIS)
    same(properties(ld.Inertia.planar(mass=2.0, com=AT, izz=0.6, normal=5 * AXIS)), (2.0, AT, expected))


def test_principal_moments_about_turned_axes():
    R = turn((1, 2, 3), 0.7)
    found = ld.Inertia.from_principal(
        mass=2.0, com=AT, moments=(0.3, 0.4, 0.5), rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.7)
    )
    same(properties(found), (2.0, AT, R @ np.diag([0.3, 0.4, 0.5]) @ R.T))
    same(
        properties(ld.Inertia.from_principal(mass=2.0, com=AT, moments=(0.3, 0.4, 0.5)))[2:], [np.diag([0.3, 0.4, 0.5])]
    )


# ---------------------------------------------------------------------------------------------- sums, axes, units


def test_sum_of_a_rod_and_a_point_by_the_parallel_axis_theorem():
    """Rod of 2 kg and 1.2 m from the origin along x, 1 kg at its end: centre at (2*0.6 + 1.2)/3 = 0.8."""
    both = ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(1.2, 0, 0)) + ld.Inertia.point(mass=1.0, at=(1.2, 0, 0))
    across = 2.0 * 1.44 / 12 + 2.0 * 0.2**2 + 1.0 * 0.4**2
    same(properties(both), (3.0, (0.8, 0, 0), np.diag([0, across, across])))


def test_sum_of_several_is_that_of_all_their_points():
    parts = [
        ld.Inertia.box(mass=3.0, size=(0.2, 0.5, 0.9), at=AT),
        ld.Inertia(1.0, (0, 1, 0), np.diag([0.1, 0.2, 0.25])),
        ld.Inertia.sphere(mass=2.0, radius=0.3, at=-AT),
        ld.Inertia(0.5, (2, 0, 0), np.diag([0.1, 0.2, 0.25])),
        ld.Inertia.massless(),
    ]
    single = [properties(p) for p in parts]
    mass = sum(p[0] for p in single)
    c = sum(p[0] * p[1] for p in single) / mass
    I = sum(p[2] + p[0] * ((p[1] - c) @ (p[1] - c) * np.eye(3) - np.outer(p[1] - c, p[1] - c)) for p in single)
    forward, backward = parts[0], parts[-1]
    for p in parts[1:]:
        forward = forward + p
    for p in parts[-2::-1]:
        backward = backward + p
    same(properties(forward), (mass, c, I))
    same(properties(backward), (mass, c, I))


def test_sum_far_from_the_origin_keeps_its_digits():
    """Two balls at 1 km: about the origin their inertia would be 1e8 times that about their centre."""
    far = np.array([1000.0, 0, 0])
    two = ld.Inertia.sphere(mass=1.0, radius=0.1, at=far) + ld.Inertia.sphere(
        mass=1.0, radius=0.1, at=far + [0, 0.5, 0]
    )
    m = ld.Mechanism("far")
    m.add_body("b", two)
    m.add_joint("A", ld.Revolute(axis=(1, 0, 0)), m.ground, "b", at=(1000, 0.25, 0))
    system = m.compile()
    expected = 2 * (0.4 * 0.01 + 0.25**2)
    assert ld.tree.open_tree_mass_matrix(system, system.state())[0, 0] == pytest.approx(expected, rel=1e-12)


def test_parts_of_one_kind_may_be_several():
    rods = [{"mass": 1.0, "start": (0, 0, 0), "end": (1, 0, 0)}, {"mass": 1.0, "start": (0, 0, 0), "end": (0, 1, 0)}]
    found = properties(ld.Inertia(rod=rods))
    summed = properties(ld.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)) + ld.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)))
    same(found, summed)
    assert found[0] == 2.0


def test_mass_properties_in_body_axes_move_with_the_pose_of_the_body():
    R = random_rotation(np.random.default_rng(2))
    p, com, I = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]), np.diag([0.3, 0.4, 0.5])
    pose = ld.Frame(position=p, rotation=quaternion(R))
    same(properties(ld.Inertia(2.0, com, I), pose=pose, axes="body"), (2.0, p + R @ com, R @ I @ R.T))
    same(properties(ld.Inertia(2.0, com, I), pose=pose), (2.0, com, I))


def test_units_and_parameters_of_shapes():
    """A steel bar of 20 x 30 x 500 mm in grams, as formulas of parameters."""
    bar = ld.Inertia.box(mass="density*a*b*c", size=("a", "b", "c"), at=(0, 0, "c/2"))
    numbers = {"density": 7.85e-3, "a": 20.0, "b": 30.0, "c": 500.0}  # g/mm^3, mm
    mass = 7850 * 0.02 * 0.03 * 0.5
    a, b, c = 0.02, 0.03, 0.5
    expected = np.diag([b * b + c * c, a * a + c * c, a * a + b * b]) * mass / 12
    found = properties(bar, units={"length": "mm", "mass": "g"}, parameters=numbers)
    same(found, (mass, (0, 0, 0.25), expected))


# ------------------------------------------------------------------------------------------------- meshes


BOX_FACES = [(0, 2, 1), (0, 3, 2), (4, 5, 6), (4, 6, 7), (0, 1, 5), (0, 5, 4), (1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6), (3, 0, 4), (3, 4, 7)]  # fmt: skip  # noqa: E501


def box_triangles(size=(0.25, 0.5, 1.0), at=(0.5, -0.25, 0.125)) -> np.ndarray:
    """Numbers that float32 holds exactly."""
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)])
    return (at + (corners - 0.5) * size)[np.array(BOX_FACES)]


def write_ascii(path: Path, triangles: np.ndarray) -> Path:
    lines = ["solid box"]
    for t in triangles:
        lines += ["  facet normal 0 0 0", "    outer loop"]
        lines += [f"      vertex {x!r} {y!r} {z!r}" for x, y, z in t.tolist()]
        lines += ["    endloop", "  endfacet"]
    path.write_text("\n".join([*lines, "endsolid box", ""]))
    return path


def write_binary(path: Path, triangles: np.ndarray, header: bytes = b"solid but binary") -> Path:
    data = [header.ljust(80), struct.pack("<I", len(triangles))]
    data += [struct.pack("<12fH", 0, 0, 0, *t.ravel(), 0) for t in triangles]
    path.write_bytes(b"".join(data))
    return path


@pytest.mark.parametrize("write", [write_ascii, write_binary])
def test_mesh_of_a_box_has_the_mass_properties_of_the_box(write, tmp_path):
    file = write(tmp_path / "box.stl", box_triangles())
    expected = ld.Inertia.box(mass=800.0 * 0.125, size=(0.25, 0.5, 1.0), at=(0.5, -0.25, 0.125))
    same(properties(ld.Inertia.from_mesh(file, density=800.0)), properties(expected))


def test_mesh_may_be_displaced_and_turned(tmp_path):
    file = write_binary(tmp_path / "box.stl", box_triangles(at=(0.0, 0.0, 0.0)))
    R = turn((1, 2, 3), 0.7)
    found = ld.Inertia.from_mesh(file, density=2.0, at=AT, rotation=ld.joints.Rotation(axis=(1, 2, 3), angle=0.7))
    expected = ld.Inertia.box(mass=0.25, size=(0.25, 0.5, 1.0), at=AT, rotation=quaternion(R))
    same(properties(found), properties(expected))


def test_mesh_of_a_tetrahedron_by_quadrature(tmp_path):
    """Corners 0, e1, 2 e2, e3: volume 1/3, centre at a quarter of their sum."""
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 1)], float)
    file = write_ascii(tmp_path / "t.stl", corners[np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])])
    mass, c, I = properties(ld.Inertia.from_mesh(file, density=3.0))
    assert mass == pytest.approx(1.0, rel=1e-13)
    np.testing.assert_allclose(c, corners.sum(axis=0) / 4, rtol=1e-12)
    (u, wu), (v, wv), (w, ww) = gauss(0, 1), gauss(0, 1), gauss(0, 1)  # Duffy's map of the cube
    U, V, W = (g.ravel() for g in np.meshgrid(u, v, w, indexing="ij"))
    weights = np.einsum("i,j,k->ijk", wu, wv, ww).ravel() * (1 - U) ** 2 * (1 - V)
    points = np.stack([U, 2 * (1 - U) * V, (1 - U) * (1 - V) * W], axis=-1)
    same((mass, c, I), moments(points, weights, 1.0))


def test_mesh_is_read_in_the_length_unit_of_the_model(tmp_path):
    """Density in g/mm^3."""
    file = write_binary(tmp_path / "box.stl", box_triangles(size=(250, 500, 1000), at=(500, -250, 125)))
    found = properties(ld.Inertia.from_mesh(file, density=0.0008), units={"length": "mm", "mass": "g"})
    same(found, properties(ld.Inertia.box(mass=100.0, size=(0.25, 0.5, 1.0), at=(0.5, -0.25, 0.125))))


def test_mesh_with_a_cavity_counts_the_material_only(tmp_path):
    """An inner surface turned about takes its volume away."""
    outer, inner = box_triangles(size=(1, 1, 1), at=(0, 0, 0)), box_triangles(size=(0.5, 0.5, 0.5), at=(0, 0, 0))
    file = write_binary(tmp_path / "hollow.stl", np.concatenate([outer, inner[:, ::-1]]))
    mass, c, I = properties(ld.Inertia.from_mesh(file, density=1.0))
    assert mass == pytest.approx(1 - 0.125, rel=1e-13)
    np.testing.assert_allclose(c, 0, atol=1e-14)
    np.testing.assert_allclose(I, (1 / 6 - 0.125 * 0.25 / 6) * np.eye(3), atol=1e-14)


def refused(inertia: ld.Inertia, said: str) -> None:
    m = ld.Mechanism("wrong")
    m.add_body("b", inertia)
    with pytest.raises(ld.errors.ModelError, match=said):
        m.compile()


def test_meshes_that_enclose_nothing_are_refused(tmp_path):
    box = box_triangles()
    refused(ld.Inertia.from_mesh(write_binary(tmp_path / "1.stl", box[1:]), 1.0), "not closed")
    refused(ld.Inertia.from_mesh(write_ascii(tmp_path / "2.stl", box[:, ::-1]), 1.0), "inside out")
    flipped = box.copy()
    flipped[3] = flipped[3, ::-1]
    refused(ld.Inertia.from_mesh(write_binary(tmp_path / "3.stl", flipped), 1.0), "not closed")
    refused(ld.Inertia.from_mesh(tmp_path / "nothing.stl", 1.0), "cannot read mesh")
    (tmp_path / "4.stl").write_text("hello")
    refused(ld.Inertia.from_mesh(tmp_path / "4.stl", 1.0), "not an STL file")
    (tmp_path / "5.stl").write_text("solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0\nendloop\nendsolid")
    refused(ld.Inertia.from_mesh(tmp_path / "5.stl", 1.0), "not a valid STL file")
    refused(ld.Inertia.from_mesh(write_binary(tmp_path / "6.stl", box), -1.0), "negative")


@pytest.mark.parametrize("write", [write_ascii, write_binary])
def test_an_empty_mesh_is_refused(write, tmp_path):
    refused(ld.Inertia.from_mesh(write(tmp_path / "empty.stl", np.zeros((0, 3, 3))), 1.0), "mesh")


# ------------------------------------------------------------------------------------------ what cannot be


@pytest.mark.parametrize(
    ("inertia", "said"),
    [
        (ld.Inertia(-1.0, (0, 0, 0), np.eye(3)), "mass is negative"),
        (ld.Inertia(1.0, (0, 0, 0), np.diag([1, 1, 2.1])), "triangle inequality"),
        (ld.Inertia(1.0, (0, 0, 0), np.diag([-1, 1, 1])), "negative principal moment"),
        (ld.Inertia(1.0, (0, 0, 0), {"xx": 1, "yy": 1, "zz": 1, "xy": 1.2}), "negative principal moment"),
        (ld.Inertia(inertia={"xx": 1, "yy": 1, "zz": 1}), "'mass' is missing"),
        (ld.Inertia(), "no mass properties"),
        (ld.Inertia.sphere(mass=1.0, radius=-0.1), "'radius' is negative"),
        (ld.Inertia.box(mass=1.0, size=(1, -1, 1)), "'size' is negative"),
        (ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0), radius=-0.1), "'radius' is negative"),
        (ld.Inertia.cylinder(mass=1.0, radius=0.1, length=-1, axis=(0, 0, 1)), "'length' is negative"),
        (ld.Inertia.cylinder(mass=1, radius=0.1, length=1, axis=(0, 0, 1), inner_radius=-0.3), "is negative"),
        (ld.Inertia.rod(mass=1.0, start=(1, 0, 0), end=(1, 0, 0)), "rod has length zero"),
        (ld.Inertia.cylinder(mass=1.0, radius=0.1, length=1, axis=(0, 0, 1), inner_radius=0.2), "inner_radius"),
        (ld.Inertia.cylinder(mass=1.0, radius=0.1, length=1, axis=(0, 0, 0)), "'axis' has length zero"),
        (ld.Inertia.from_principal(mass=1.0, com=(0, 0, 0), moments=(1, 1, 3)), "triangle inequality"),
        (ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)) + ld.Inertia.point(mass=-0.5), "mass is negative"),
    ],
)
def test_impossible_bodies_are_refused(inertia, said):
    refused(inertia, said)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ld.Inertia(1.0, (0, 0, 0), [[1, 0.1, 0], [0.2, 1, 0], [0, 0, 1]]), "not symmetric"),
        (lambda: ld.Inertia(1.0, (0, 0, 0), [[1, 0], [0, 1]]), "3x3"),
        (lambda: ld.Inertia(1.0, (0, 0)), "com"),
        (lambda: ld.Inertia(float("nan")), "finite|nan|number"),
        (lambda: ld.Inertia.sphere(mass=1.0, radius=0.1, color="red"), "color"),
    ],
)
def test_nonsense_is_refused_at_once(make, said):
    with pytest.raises((ld.errors.ModelError, TypeError), match=said):
        make()


@pytest.mark.parametrize(
    "matrix",
    [
        np.diag([1, 1, 2]),  # flat
        np.diag([0, 1, 1]),  # thin rod
        np.zeros((3, 3)),  # point
        np.diag([1, 1, 2 * (1 + 1e-10)]),  # rounded by a printer
    ],
)
def test_bodies_at_the_limit_of_the_possible_are_accepted(matrix):
    same(properties(ld.Inertia(1.0, (0, 0, 0), matrix)), (1.0, np.zeros(3), matrix))


def test_impossibility_is_judged_in_every_orientation():
    R = random_rotation(np.random.default_rng(3))
    for moments_, possible in (((1, 1, 2), True), ((0, 1, 1), True), ((1, 1, 2.01), False)):
        matrix = R @ np.diag(moments_) @ R.T
        inertia = ld.Inertia(1.0, (0, 0, 0), (matrix + matrix.T) / 2)
        if possible:
            properties(inertia)
        else:
            refused(inertia, "triangle inequality")
