"""Named points: constructed from lengths and angles as on a drawing, usable wherever a point is given."""

import numpy as np
import pytest
from tests.unit.test_with_parameters import again, in_full

import loopdyn as ld
from loopdyn.system import builder

Z = (0, 0, 1)
DIGITS = 1e-15  # m: lengths below 1 m by a few operations, each rounded to 1.1e-16


def drawing():
    """Four-bar by the lengths of its links, in mm and degrees."""
    m = ld.Mechanism(
        "drawing",
        units={"length": "mm", "angle": "deg"},
        parameters={"crank": 300, "coupler": 900, "rocker": 700, "frame": 1000, "start": 60},
    )
    m.add_point("A", (0, 0, 0))
    m.add_point("D", ("frame", 0, 0))
    m.add_point("B", from_="A", length="crank", angle="start")
    m.add_point("C", from_=("B", "D"), lengths=("coupler", "rocker"), side="left")
    for body, start, end in (("crank", "A", "B"), ("coupler", "B", "C"), ("rocker", "D", "C")):
        m.add_body(body, ld.Inertia.rod(mass=1.0, start=start, end=end, radius=5))
    for name, parent, child in (("A", "ground", "crank"), ("B", "crank", "coupler"), ("C", "coupler", "rocker")):
        m.add_joint(name, ld.Revolute(axis=Z), parent, child, at=name)
    m.add_joint("D", ld.Revolute(axis=Z), "ground", "rocker", at="D")
    return m


def points_of(m):
    r = m.resolver()
    assert not r.problems, r.problems
    return r.points


def joint_points(system):
    """Origin of each joint at the reference pose, m."""
    return {name: system.reference_poses[j.child][0] + j.M[0] for name, j in system.joints.items()}


def constructed(units=None, **construction):
    m = ld.Mechanism("m", units=units or {})
    m.add_point("O", (0, 0, 0))
    m.add_point("E", (5, 0, 0))
    m.add_point("N", (3, 4, 0))
    m.add_point("P", **construction)
    return points_of(m)["P"]


# expected by hand: 3-4-5 triangles
@pytest.mark.parametrize(
    ("construction", "expected"),
    [
        ({"at": "N"}, (3, 4, 0)),
        ({"from_": "N", "offset": (1, -4, 2)}, (4, 0, 2)),
        ({"from_": "E", "length": 2, "angle": np.pi / 2}, (5, 2, 0)),
        ({"from_": "E", "length": 2, "angle": np.pi / 2, "normal": (0, 0, -1)}, (5, -2, 0)),
        ({"from_": "E", "length": 2, "angle": np.pi / 2, "normal": (0, -1, 0)}, (5, 0, 2)),
        ({"from_": "O", "to": "N", "length": 10}, (6, 8, 0)),
        ({"from_": "O", "to": "N", "length": -5}, (-3, -4, 0)),
        ({"from_": "O", "to": "N", "length": 5, "angle": np.pi / 2}, (-4, 3, 0)),
        ({"from_": "O", "to": "N", "share": 0.5}, (1.5, 2, 0)),
        ({"from_": "O", "to": (6, 0, 3), "share": "1/3"}, (2, 0, 1)),
        ({"from_": ("O", "E"), "lengths": (3, 4), "side": "left"}, (1.8, 2.4, 0)),
        ({"from_": ("O", "E"), "lengths": (3, 4), "side": "right"}, (1.8, -2.4, 0)),
        ({"from_": ("O", "E"), "lengths": (3, 4), "side": "left", "normal": (0, -1, 0)}, (1.8, 0, 2.4)),
        ({"from_": ("O", "E"), "lengths": (2, 3), "side": "left"}, (2, 0, 0)),  # stretched: the circles touch
    ],
)
def test_constructed_points_are_those_of_hand_geometry(construction, expected):
    assert np.abs(constructed(**construction) - expected).max() < 10 * DIGITS


def test_lengths_and_angles_are_in_the_units_of_the_model():
    p = constructed({"length": "mm", "angle": "deg"}, from_="E", length=2, angle=90)
    assert np.abs(p - (0.005, 0.002, 0)).max() < DIGITS


def test_a_four_bar_of_a_drawing_has_the_lengths_of_the_drawing():
    at = joint_points(drawing().compile())
    lengths = [np.linalg.norm(at[b] - at[a]) for a, b in ("AB", "BC", "CD", "DA")]
    assert np.abs(np.array(lengths) - (0.3, 0.9, 0.7, 1.0)).max() < DIGITS
    # law of cosines in the triangles A B D and B C D
    diagonal = np.sqrt(0.3**2 + 1 - 2 * 0.3 * np.cos(np.pi / 3))
    down = np.arcsin(0.3 * np.sin(np.pi / 3) / diagonal)
    up = np.arccos((0.9**2 + diagonal**2 - 0.7**2) / (2 * 0.9 * diagonal))
    B = 0.3 * np.array([np.cos(np.pi / 3), np.sin(np.pi / 3), 0])
    assert np.abs(at["C"] - (B + 0.9 * np.array([np.cos(up - down), np.sin(up - down), 0]))).max() < DIGITS


def test_another_crank_changes_no_other_length():
    system = drawing().compile()
    for crank in (200.0, 350.0):
        at = joint_points(system.with_parameters(crank=crank))
        lengths = [np.linalg.norm(at[b] - at[a]) for a, b in ("AB", "BC", "CD", "DA")]
        assert np.abs(np.array(lengths) - (crank / 1000, 0.9, 0.7, 1.0)).max() < DIGITS


def test_other_parameters_give_the_bits_of_a_full_compilation():
    m = drawing()
    system = m.compile()
    for change in ({"crank": 310.0}, {"coupler": 850.0, "start": 45.0}, {"frame": 990.0}, {"crank": 3000.0}):
        assert again(system, change) == in_full(m, change)


def test_only_parts_at_points_that_moved_are_resolved_again(monkeypatch):
    system = drawing().compile()
    system.with_parameters(crank=310.0)
    calls = []
    for name in ("_mass", "_joint"):
        whole = getattr(builder.Builder, name)
        monkeypatch.setattr(builder.Builder, name, lambda *a, n=name, w=whole: (calls.append((n, a[1])), w(*a))[1])
    system.with_parameters(coupler=850.0)  # moves C alone
    assert sorted(calls) == [("_joint", "C"), ("_mass", "coupler"), ("_mass", "rocker")]


def test_a_name_stands_for_its_coordinates_wherever_a_point_is_given():
    def everywhere(P, Q):
        m = ld.Mechanism("m")
        m.add_point("P", (0.1, 0.2, 0.3))
        m.add_point("Q", (0.5, -0.2, 0.1))
        shapes = [
            ld.Inertia(1.0, P, np.eye(3)),
            ld.Inertia.rod(1.0, P, Q),
            ld.Inertia.box(1.0, (1, 1, 1), at=P) + ld.Inertia.cylinder(1.0, 0.1, 0.2, Z, at=Q),
            ld.Inertia.sphere(1.0, 0.1, at=P) + ld.Inertia.point(1.0, at=Q),
            ld.Inertia.planar(1.0, P, 0.1) + ld.Inertia.from_principal(1.0, Q, (1, 1, 1)),
        ]
        bodies = [m.add_body(f"b{k}", shape) for k, shape in enumerate(shapes)]
        for k, body in enumerate(bodies):
            m.add_joint(f"J{k}", ld.Spherical(), m.ground, body, at=P if k % 2 else Q)
        a, b, c = bodies[:3]
        m.add_force(None, ld.forces.SpringDamper(a, b, P, Q, stiffness=1.0))
        m.add_force(None, ld.forces.Actuator(body1=a, body2=b, point1=P, point2=Q, force=1.0))
        m.add_force(None, ld.forces.Bushing(body1=a, body2=b, at=P, stiffness=(1, 1, 1)))
        m.add_force(None, ld.forces.AppliedForce(body=a, at=Q, force=(1, 0, 0)))
        m.add_constraint("d", ld.constraints.Distance(body1=a, point1=P, body2=c, point2=Q))
        m.add_constraint("l", ld.constraints.PointOnLine(on="ground", body=b, point=P, direction=Z, through=Q))
        m.add_constraint("p", ld.constraints.PointOnPlane(on="ground", body=b, point=P, normal=Z, through=Q))
        m.add_constraint("s", ld.constraints.Slot(on=b, body=c, point=P, direction=(1, 0, 0), axis=Z, through=Q))
        m.add_constraint("m", ld.constraints.PointMotion(on="ground", body=c, point=P, x="t"))
        m.add_constraint("r", ld.constraints.Rolling(on="ground", body=c, normal=Z, through=P, centre=Q, radius=0.1))
        m.add_constraint(
            "c", ld.constraints.PointOnCurve(on="ground", body=c, point=P, points=[P, Q, (1, 1, 1), (2, 1, 1)])
        )
        return m.compile()

    named, plain = everywhere("P", "Q"), everywhere((0.1, 0.2, 0.3), (0.5, -0.2, 0.1))
    assert named.floats.tobytes() == plain.floats.tobytes()
    assert named.ints.tobytes() == plain.ints.tobytes()


def test_points_are_saved_and_loaded(tmp_path):
    m = drawing()
    m.save(tmp_path / "drawing.yaml")
    assert ld.load(tmp_path / "drawing.yaml") == m
    text = (tmp_path / "drawing.yaml").read_text()
    assert 'C: {from: [B, D], lengths: ["coupler", "rocker"], side: left}' in text
    assert "at: C" in text
    assert "A: [0, 0, 0]" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coupler": 10.0}, r"point 'C': the lengths 10 and 700 mm do not meet: .* 888.819 mm apart. .*by 178.819 mm"),
        ({"coupler": 2000.0}, r"Make the longer one shorter by 411.181 mm"),
        ({"rocker": -700.0}, r"point 'C': a length is negative"),
    ],
)
def test_lengths_that_do_not_meet_are_refused_with_the_gap(change, words):
    # |BD|^2 = 0.15^2*3 + 0.85^2 = 0.79 m^2, |BD| = 888.819 mm
    with pytest.raises(ld.errors.ModelError, match=words):
        drawing().with_(**change).compile()


@pytest.mark.parametrize(
    ("construction", "words"),
    [
        ({"from_": "X", "offset": (1, 0, 0)}, "there is no point 'X'"),
        ({"from_": "P", "offset": (1, 0, 0)}, "constructed from itself: P -> P"),
        ({"from_": "A", "length": 1}, r"its keys \(from, length\) define no point"),
        ({"from_": ("A", "B"), "length": 1, "angle": 0}, "define no point"),
        ({"from_": "A", "lengths": (1, 1), "side": "left"}, "define no point"),
        ({"from_": "A", "to": (0, 0, 0), "length": 1}, "the two points of its line coincide"),
        ({"from_": ("A", "B"), "lengths": (9, 9), "side": "left", "normal": (1, 0, 0)}, "not in the plane"),
        ({"at": (0, 0, 0), "on": "crnk"}, "there is no body 'crnk'. Did you mean 'crank'"),
        ({"from_": "A", "length": "cranck", "angle": 0}, "unknown name 'cranck'"),
    ],
)
def test_wrong_constructions_are_refused_in_words(construction, words):
    m = drawing()
    m.add_point("P", **construction)
    with pytest.raises(ld.errors.ModelError, match="point 'P'.*" + words):
        m.compile()


def test_points_that_refer_to_each_other_in_a_circle_are_named():
    m = drawing()
    m.add_point("P", from_="Q", offset=(1, 0, 0))
    m.add_point("Q", from_="P", offset=(1, 0, 0))
    with pytest.raises(ld.errors.ModelError, match="P -> Q -> P"):
        m.compile()


def test_an_unknown_point_of_a_joint_is_refused_with_the_nearest():
    m = drawing()
    m.add_body("flag", ld.Inertia.point(1.0, at="B1"))
    m.add_joint("E", ld.Revolute(axis=Z), "ground", "flag", at="Bo")
    with pytest.raises(ld.errors.ModelError) as error:
        m.compile()
    assert "joint 'E': there is no point 'Bo'" in str(error.value)
    assert "body 'flag': there is no point 'B1'" in str(error.value)


def test_points_are_refused_where_mass_properties_are_in_the_axes_of_a_body():
    m = drawing()
    m.add_body("flag", ld.Inertia.point(1.0, at="B"), pose={"position": (1, 0, 0)}, axes="body")
    m.add_joint("E", ld.Revolute(axis=Z), "ground", "flag", at="B")
    with pytest.raises(ld.errors.ModelError, match="body 'flag': the point 'B' is in world axes"):
        m.compile()
