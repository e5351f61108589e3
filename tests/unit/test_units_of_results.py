"""One mechanism declared in SI and the same one in mm, deg, g, N*mm: the same physics in the declared units everywhere.

Every number of the second model is written by hand from the first by the definition of the units (1 m = 1000 mm,
1 rad = 180/pi deg, 1 kg = 1000 g, 1 N*m = 1000 N*mm). Expected values are those of the SI model times these factors:
two models whose arrays are SI inside, so that what is tested is the border, not the dynamics, which other tests prove
against closed forms.
"""

from __future__ import annotations

import copy
import pickle

import numba
import numpy as np
import pytest

import loopdyn as ld

DEG = 180.0 / np.pi
# Both models are the same after conversion up to rounding of the numbers of the model (1e-16); a run amplifies it to
# the tolerance of its steps, 1e-8 relative: 1e-6 is safe, and a wrong factor is at least 57.
CLOSE = {"rtol": 1e-6, "atol": 1e-9}


def arm(small: bool) -> ld.System:
    """A crank with a slide on it, a spring, a bushing, a torsion spring and a motor: spatial.

    `small`: written in mm, deg, g and N*mm.
    """
    L, A, M, T = (1e3, DEG, 1e3, 1e3) if small else (1.0, 1.0, 1.0, 1.0)
    units = {"length": "mm", "angle": "deg", "mass": "g", "torque": "N*mm"} if small else {}
    m = ld.Mechanism("arm", gravity=(0, 0, -9.81), units=ld.Units(**units))

    def at(x: float, y: float, z: float) -> tuple[float, float, float]:
        return (x * L, y * L, z * L)

    m.add_body("crank", ld.Inertia.rod(mass=1.5 * M, start=at(0, 0, 0), end=at(0.5, 0, 0.1)))
    m.add_body("slider", ld.Inertia.rod(mass=0.4 * M, start=at(0.3, 0, 0), end=at(0.3, 0.1, 0.2)))
    m.add_body("plate", ld.Inertia.rod(mass=0.7 * M, start=at(0, 0.6, 0), end=at(0.2, 0.6, 0.1)))
    m.add_joint("A", ld.Revolute(axis=(0, 1, 0.2)), m.ground, "crank", at=at(0, 0, 0))
    m.add_joint("C", ld.Cylindrical(axis=(1, 0, 0.2)), "crank", "slider", at=at(0.3, 0, 0.06))
    m.add_joint("P", ld.Prismatic(axis=(0, 0, 1)), m.ground, "plate", at=at(0, 0.6, 0))
    ends = {"body1": "slider", "point1": at(0.3, 0.1, 0.2), "body2": "plate", "point2": at(0.2, 0.6, 0.1)}
    m.add_force("spring", ld.forces.SpringDamper(**ends, stiffness=40.0 / L, damping=1.0 / L, length=0.3 * L))
    soft = {"stiffness": (0, 0, 25.0 / L), "angular_stiffness": (0.2 * T / A, 0, 0)}
    m.add_force("bushing", ld.forces.Bushing(body1=m.ground, body2="plate", at=at(0, 0.6, 0), **soft))
    m.add_motor("motor", "A", torque=3.0 * T)
    m.add_force("torsion", ld.forces.JointSpring(joint="C.angle", stiffness=0.8 * T / A, rest=0.1 * A))
    return m.compile()


@pytest.fixture(scope="module")
def pair() -> tuple[ld.System, ld.System]:
    return arm(False), arm(True)


def bar(small: bool) -> ld.System:
    """A planar four-bar with a cut joint, of the library's dimensions."""
    L, M = (1e3, 1e3) if small else (1.0, 1.0)
    units = {"length": "mm", "angle": "deg", "mass": "g", "torque": "N*mm"} if small else {}
    m = ld.Mechanism("bar", gravity=(0, -9.81, 0), units=ld.Units(**units))
    A, B, C, D = ((x * L, y * L, 0) for x, y in ((0, 0), (0.1, 0.2), (0.6, 0.45), (0.5, 0)))
    for name, start, end in (("crank", A, B), ("coupler", B, C), ("rocker", C, D)):
        m.add_body(name, ld.Inertia.rod(mass=0.8 * M, start=start, end=end))
    for name, one, other, at in (("A", m.ground, "crank", A), ("B", "crank", "coupler", B),
                                 ("C", "coupler", "rocker", C), ("D", m.ground, "rocker", D)):  # fmt: skip
        m.add_joint(name, ld.Revolute(axis=(0, 0, 1)), one, other, at=at)
    return m.compile(cuts=["C"])


@pytest.fixture(scope="module")
def bars() -> tuple[ld.System, ld.System]:
    return bar(False), bar(True)


FACTORS = {"rad": DEG, "m": 1e3, "1": 1.0, "N*m": 1e3, "N": 1.0, "J": 1.0, "W": 1.0, "s": 1.0,
           "kg*m/s": 1.0, "kg*m^2/s": 1.0}  # fmt: skip
SYMBOLS = {"rad": "deg", "m": "mm", "1": "1", "N*m": "N*mm", "N": "N", "J": "J", "W": "W", "s": "s",
           "kg*m/s": "kg*m/s", "kg*m^2/s": "kg*m^2/s"}  # fmt: skip


def factor(unit: str) -> float:
    """Number of small units in an SI unit, which may be per s or s^2."""
    return FACTORS[unit.removesuffix("^2").removesuffix("/s") if "kg" not in unit else unit]


def small(unit: str) -> str:
    head = unit.removesuffix("^2").removesuffix("/s") if "kg" not in unit else unit
    return SYMBOLS[head] + unit[len(head) :]


def same(one, other) -> None:
    """An array or Dataset of the SI model and one of the small model are the same physics, by their own units."""
    for name in one.data_vars if hasattr(one, "data_vars") else [None]:
        a, b = (x if name is None else x[name] for x in (one, other))
        unit = a.attrs.get("units")
        if unit is None or name == "seconds":  # computing time
            continue
        if unit in a.coords:
            units, others = a[unit], b[unit]
            assert [small(str(u)) for u in units.values.ravel()] == [str(u) for u in others.values.ravel()]
            scale = np.array([factor(str(u)) for u in units.values.ravel()]).reshape(units.shape)
            scale = scale if units.dims[-1] == a.dims[-1] else scale[(...,) + (None,)]
        else:
            assert b.attrs["units"] == small(unit), name
            scale = factor(unit)
        size = float(np.nanmax(np.abs(a.values * scale), initial=1.0))
        np.testing.assert_allclose(b.values, a.values * scale, rtol=1e-5, atol=1e-6 * size, err_msg=str(name))


def test_a_state_is_given_and_read_by_label_in_the_declared_units(pair, bars):
    si, mm = pair
    one = si.state({"A": 0.3, "C.slide": 0.02}, {"A": 2.0, "P": 0.4})
    other = mm.state({"A": 0.3 * DEG, "C.slide": 20.0}, {"A": 2.0 * DEG, "P": 400.0})
    np.testing.assert_allclose(one.q, other.q, **CLOSE)  # raw arrays are SI
    np.testing.assert_allclose(one.v, other.v, **CLOSE)
    assert other["A"] == pytest.approx(0.3 * DEG)
    assert other["C.slide"] == pytest.approx(20.0)
    assert other["A.speed"] == pytest.approx(2.0 * DEG)
    assert other["P.speed"] == pytest.approx(400.0)
    si, mm = bars
    closed = ld.assemble(mm, {"A": 20.0}, {"A": 100.0})
    same_pose = ld.assemble(si, {"A": 20.0 / DEG}, {"A": 100.0 / DEG})
    np.testing.assert_allclose(closed.q, same_pose.q, atol=1e-9)
    np.testing.assert_allclose(closed.v, same_pose.v, atol=1e-9)
    for label in ("A", "B", "C", "D"):  # C is cut and measured
        assert closed[label] == pytest.approx(same_pose[label] * DEG, abs=1e-6)
        assert closed[label + ".speed"] == pytest.approx(same_pose[label + ".speed"] * DEG, abs=1e-6)
    # closed chain: the angles at the corners of a quadrangle, A + B - C - D with the signs of these axes, stay constant
    assert closed["A"] + closed["B"] + closed["C"] - closed["D"] == pytest.approx(0.0, abs=1e-9)
    assert sum(s * closed[x + ".speed"] for s, x in ((1, "A"), (1, "B"), (1, "C"), (-1, "D"))) == pytest.approx(
        0, abs=1e-9
    )


def test_states_are_compared_by_value_and_pickled_with_a_reference_to_their_system(bars):
    mm = bars[1]
    state = ld.assemble(mm, {"A": 20.0})
    again, system = pickle.loads(pickle.dumps((state, mm)))
    assert again == state
    assert again.system is system
    assert again["A"] == state["A"]
    assert copy.deepcopy(state) == state
    assert copy.deepcopy(state).system is mm
    assert state != ld.assemble(mm, {"A": 21.0})
    with pytest.raises(ld.LoopdynError, match="made without a system"):
        ld.State(0.0, state.q, state.v)["A"]
    other = mm.mechanism.compile(cuts=["B"])
    with pytest.raises(ld.errors.ModelError, match="other coordinates"):
        ld.mobility(other, state)


def test_one_error_names_the_nearest_label_everywhere(bars):
    mm = bars[1]
    state, run = ld.assemble(mm), ld.simulate(mm, t_span=(0, 0.05), progress=False)
    for ask in (lambda: state["coupler.sped"], lambda: run["C.fq"], lambda: run.body("couplr"), lambda: mm.labels["Q"],
                lambda: mm.state({"Q": 1.0}), lambda: ld.assemble(mm, {"Q": 1.0}), lambda: ld.drive(mm, "Q", (0, 1)),
                lambda: ld.equilibrium(mm, search={"Q": (0, 1)}), lambda: run.point("couplr", (0, 0, 0)),
                lambda: ld.reactions(mm)["Q"], lambda: run.data["wrench"].sel(joint="Q"),
                lambda: run.bearings().load("Q"), lambda: ld.analyses.preload(mm, "Q"),
                lambda: run.plot.coordinates("Q"),
                lambda: ld.analyses.zero_force(mm, "Q", {"A": (0, 1)}), lambda: ld.analyses.equations(mm, ["Q"]),
                lambda: ld.analyses.coordinates(mm).sweep("Q"), lambda: ld.report(mm.mechanism, "no.html", turn="Q"),
                lambda: ld.kinematics(mm).ratios("Q"), lambda: ld.inverse_kinematics(mm, {"Q": 1.0}),
                lambda: ld.workspace(mm, "Q", inputs="A", over=(0, 1)),
                lambda: ld.Simulation(mm)["Q"], lambda: ld.reactions(mm, compliance={"Q": 1.0}),
                lambda: ld.reactions(mm, a=[0, 0, 0], loads={"Q": 1.0}), lambda: ld.drive(mm, "A", (0, 1)).plot("Q"),
                lambda: ld.inverse_dynamics(mm, {"A": "t"}, [0, 1], motors=["Q"]), lambda: ld.assemble(mm, fix=["Q"]),
                lambda: run.animate("no.html", traces=["Q"]), lambda: ld.tree.open_tree_body_jacobian(mm, "Q"),
                lambda: ld.analyses.branches(mm, {"Q": 1.0})):  # fmt: skip
        with pytest.raises(ld.errors.UnknownLabelError, match="there is no"):
            ask()
    with pytest.raises(ld.LoopdynError, match="is a body"):
        run["coupler"]


def test_the_table_of_labels_has_kinds_and_declared_units(pair):
    labels = pair[1].labels
    expected = {"A": ("coordinate", "deg"), "C.slide": ("coordinate", "mm"), "C.slide.speed": ("speed", "mm/s"),
                "A.acceleration": ("acceleration", "deg/s^2"), "C.fx": ("reaction", "N"), "C.mz": ("reaction", "N*mm"),
                "motor.load": ("load", "N*mm"), "spring.load": ("load", "N"), "motor.power": ("power", "W"),
                "plate": ("body", "")}  # fmt: skip
    assert {name: (labels[name].kind, labels[name].unit) for name in expected} == expected


def test_a_run_has_the_same_physics_in_declared_units(pair):
    si, mm = pair
    runs = [ld.simulate(s, s.state(), (0, 0.3), t_eval=np.linspace(0, 0.3, 16), progress=False) for s in (si, mm)]
    same(runs[0].data, runs[1].data)
    for label in ("A", "C.angle", "C.slide", "C.slide.speed", "A.acceleration", "P.fx", "P.my", "C.mx", "motor.load",
                  "torsion.load", "spring.load", "motor.power"):  # fmt: skip
        same(runs[0][label], runs[1][label])
    same(runs[0].body("slider"), runs[1].body("slider"))
    same(runs[0].point("slider", (0.3, 0.1, 0.2)), runs[1].point("slider", (300, 100, 200)))
    same(runs[0].bearings().data, runs[1].bearings().data)
    for table in ("summary", "bearings"):
        one, other = (r.summary() if table == "summary" else r.bearings().table() for r in runs)
        assert list(one.index) == list(other.index)
        scale = one["unit"].map(factor)
        assert [small(u) for u in one["unit"]] == list(other["unit"])
        np.testing.assert_allclose(other["rms"], one["rms"] * scale, rtol=1e-5, atol=1e-6)
    # the path is SI in both
    np.testing.assert_allclose(runs[0].path.q, runs[1].path.q, atol=1e-7)
    assert runs[1].at(0.1)["C.slide"] == pytest.approx(1e3 * runs[0].at(0.1)["C.slide"], rel=1e-5)


def test_readings_of_a_cut_joint_are_derivatives_of_each_other(bars):
    mm = bars[1]
    run = ld.simulate(mm, t_span=(0, 0.2), t_eval=np.linspace(0, 0.2, 2001), progress=False)
    # central differences over 0.2 ms: the error is h^2/6 of the third derivative, 1e-8 of it
    for low, high in (("C", "C.speed"), ("C.speed", "C.acceleration")):
        slope = np.gradient(run[low].values, run.path.t)[1:-1]
        np.testing.assert_allclose(slope, run[high].values[1:-1], atol=1e-5 * np.abs(slope).max())


def test_drive_has_the_same_physics_in_declared_units(bars):
    si, mm = bars
    one, other = ld.drive(si, "A", (0, 0.6, 13)), ld.drive(mm, "A", (0, 0.6 * DEG, 13))
    assert other.data["v"].dims == ("sample", "speed")
    assert other.data["parameter"].attrs["units"] == "deg"
    np.testing.assert_allclose(other.data["q"], one.data["q"] * DEG, atol=1e-8)
    np.testing.assert_allclose(other.data["v"], one.data["v"], atol=1e-8)  # deg per deg
    np.testing.assert_allclose(other["D.acceleration"], one["D.acceleration"] / DEG, atol=1e-8)  # 1/deg
    assert other["D.acceleration"].attrs["units"] == "1/deg"
    paths = one.point("coupler", (0.3, 0.4, 0)), other.point("coupler", (300, 400, 0))
    np.testing.assert_allclose(paths[1]["position"], paths[0]["position"] * 1e3, atol=1e-6)
    np.testing.assert_allclose(paths[1]["velocity"], paths[0]["velocity"] * 1e3 / DEG, atol=1e-6)
    assert paths[1]["velocity"].attrs["units"] == "mm/deg"
    angle = [d.transmission_angle("D") for d in (one, other)]
    np.testing.assert_allclose(angle[1], angle[0] * DEG, atol=1e-7)
    for a, b in zip(ld.drive(si, "A", (0, 6.0)).events, ld.drive(mm, "A", (0, 6.0 * DEG)).events, strict=True):
        assert b.value == pytest.approx(a.value * DEG)
        assert b.inputs["A"] == pytest.approx(a.inputs["A"] * DEG)
    moved = ld.drive(mm, "A", "20*t", t_eval=np.linspace(0, 1, 5))
    assert moved["A.speed"].dims == ("time",)
    assert moved["A.speed"].attrs["units"] == "deg/s"
    np.testing.assert_allclose(moved["A.speed"], 20.0)
    with pytest.raises(ld.LoopdynError, match="has no bearing loads"):
        moved.bearings()


def test_inverse_dynamics_has_the_same_physics_in_declared_units(bars):
    si, mm = bars
    times = np.linspace(0, 1, 7)
    one = ld.inverse_dynamics(si, {"A": "0.3*sin(2*t)"}, times, motors=["A"])
    other = ld.inverse_dynamics(mm, {"A": f"{0.3 * DEG}*sin(2*t)"}, times, motors=["A"])
    same(one.data, other.data)
    same(one["C.fx"], other["C.fx"])
    same(one["C"], other["C"])
    np.testing.assert_allclose(other.load, one.load, atol=1e-9)  # raw arrays are SI
    np.testing.assert_allclose(other.table()["rms"], one.table()["rms"] * [1e3, DEG, 1.0], rtol=1e-6)


def test_statics_and_reactions_are_in_declared_units(pair, bars):
    si, mm = bars
    at = [ld.assemble(s, {"A": 0.2 * f}) for s, f in ((si, 1.0), (mm, DEG))]
    one, other = (ld.reactions(s, x) for s, x in zip((si, mm), at, strict=True))
    same(one.dataset(), other.dataset())
    assert other["C"]["fx"] == pytest.approx(one["C"]["fx"], rel=1e-6)
    np.testing.assert_allclose(one.wrench, other.wrench, atol=1e-8)
    rest = [ld.equilibrium(s, search={"A": (-3.0 * f, 3.0 * f)}) for s, f in ((si, 1.0), (mm, DEG))]
    assert [e.stability for e in rest[0]] == [e.stability for e in rest[1]]
    np.testing.assert_allclose([e["A"] for e in rest[1]], [e["A"] * DEG for e in rest[0]], atol=1e-6)
    found = [ld.analyses.branches(s, {"A": 0.2 * f}) for s, f in ((si, 1.0), (mm, DEG))]
    for a, b in zip(*found, strict=True):
        assert b.state["D"] == pytest.approx(a.state["D"] * DEG, abs=1e-8)
    held = [ld.equilibrium(s) for s in pair]
    assert held[1].loads["motor"] == pytest.approx(1e3 * held[0].loads["motor"])
    assert held[1]["P"] == pytest.approx(1e3 * held[0]["P"], rel=1e-5)


def test_rollout_counterweight_events_and_files_are_in_declared_units(bars, tmp_path):
    si, mm = bars
    outs = [ld.rollout(s, None, (0, 0.1), progress=False) for s in (si, mm)]
    same(outs[0], outs[1])
    rms = [ld.rollout(s, None, (0, 0.1), reduce="rms", progress=False) for s in (si, mm)]
    same(rms[0], rms[1])
    event = ld.events.Crossing("a + 2", "minus two degrees", coordinates={"a": "A"})
    run = ld.simulate(mm, t_span=(0, 0.5), events=[event], progress=False)
    assert run.events
    assert run.events[0].state["A"] == pytest.approx(-2.0, abs=1e-6)  # dense output, 1e-8 rad
    runs = [ld.simulate(s, t_span=(0, 0.1), progress=False) for s in (si, mm)]
    tables = [r.counterweight("crank", mass, at, motors=["A"]).table() for r, mass, at in
              ((runs[0], 0.2, (-0.1, 0, 0)), (runs[1], 200.0, (-100.0, 0, 0)))]  # fmt: skip
    np.testing.assert_allclose(
        tables[1]["peak after"], tables[0]["peak after"] * tables[0]["unit"].map(factor), rtol=1e-5
    )
    runs[1].save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    np.testing.assert_allclose(again.path.q, runs[1].path.q, rtol=1e-15)
    np.testing.assert_allclose(again["C.mz"], runs[1]["C.mz"], rtol=1e-14)
    compared = runs[1].compare(again)
    assert compared["largest"].max() < 1e-9


def test_root_mean_squares_are_means_over_time_in_summary_and_bearings(bars):
    run = ld.simulate(bars[1], t_span=(0, 0.3), t_eval=[0.0, 0.01, 0.02, 0.3], progress=False)  # uneven outputs
    fx, fy, t = run["C.fx"].values, run["C.fy"].values, run.path.t
    radial = np.hypot(fx, fy)
    expected = np.sqrt(np.sum((radial[1:] ** 2 + radial[:-1] ** 2) / 2 * np.diff(t)) / 0.3)  # trapezoidal rule by hand
    assert run.bearings().table().loc["C radial force", "rms"] == pytest.approx(expected, rel=1e-12)
    both = run.summary().loc[["C.fx", "C.fy"], "rms"]
    assert np.hypot(*both) == pytest.approx(expected, rel=1e-12)


def rods(small):
    """A plate on three parallel rods of which one is 1 um too long: redundant, and cannot close exactly."""
    L, M = (1e3, 1e3) if small else (1.0, 1.0)
    m = ld.Mechanism("plate", units={"length": "mm", "angle": "deg", "mass": "g", "torque": "N*mm"} if small else {})
    m.add_body("plate", ld.Inertia.box(M, (0, 1.0 * L, 0), (L, 0.1 * L, 0.1 * L)))
    for k, x in enumerate((-0.5, 0.0, 0.5)):
        top = (1.0 + (1e-6 if k == 1 else 0.0)) * L
        m.add_body(f"rod{k}", ld.Inertia.rod(M, (x * L, 0, 0), (x * L, top, 0), 0.01 * L))
        m.add_joint(f"A{k}", ld.Revolute(axis=(0, 0, 1)), m.ground, f"rod{k}", at=(x * L, 0, 0))
        frames = [ld.Frame(position=(x * L, y, 0)) for y in (top, L)]
        m.add_joint(
            f"B{k}", ld.Revolute(axis=(0, 0, 1)), f"rod{k}", "plate", parent_frame=frames[0], child_frame=frames[1]
        )
    return m.compile()


def test_tolerances_and_what_they_leave_open_are_in_declared_units():
    si, mm = rods(False), rods(True)
    one, other = ld.assemble(si, tolerance=(1e-5, 1e-5)), ld.assemble(mm, tolerance=(1e-5 * DEG, 1e-2))
    assert one.tolerated is not None
    assert other.tolerated.rows == one.tolerated.rows
    assert (other.tolerated.angle, other.tolerated.length) == pytest.approx((1e-5, 1e-5))  # kept in SI
    with pytest.raises(ld.errors.AssemblyError, match="deg and mm"):
        ld.assemble(mm)
    with pytest.raises(ld.LoopdynError, match="in deg and mm"):
        ld.assemble(mm, tolerance=-1.0)
    unit = {row: 1e3 if d == "length" else DEG for row, d in zip(si.constraint_rows, si.row_dimensions, strict=True)}
    for of in (lambda s, x: ld.drive(s, "A0", (0.0, 0.1 if s is si else 0.1 * DEG, 3), near=x).left_open,
               lambda s, x: ld.simulate(s, x, (0, 0.01), progress=False).left_open,
               lambda s, x: ld.mobility(s, x).tolerated):  # fmt: skip
        a, b = of(si, one), of(mm, other)
        assert b == pytest.approx({row: x * unit[row] for row, x in a.items()}, rel=1e-3, abs=1e-9)
        assert max(b.values()) > 1e-5  # mm: the rod is 1 um too long


def test_the_stiffness_of_an_equilibrium_is_in_declared_units(pair):
    one, other = (ld.equilibrium(s) for s in pair)
    turns = [s.labels.speeds[x].dimension == "angle" for s, x in ((pair[0], x) for x in one.freedoms)]
    load, move = np.where(turns, 1e3, 1.0), np.where(turns, DEG, 1e3)
    assert other.freedoms == one.freedoms
    np.testing.assert_allclose(other.stiffness, one.stiffness * load[:, None] / move, rtol=1e-5, atol=1e-6)
    units = {"torque": {"angle": "N*mm/deg", "length": "N*mm/mm"}, "force": {"angle": "N/deg", "length": "N/mm"}}
    kinds = ["angle" if x else "length" for x in turns]
    assert other.stiffness_units == [[units["torque" if i == "angle" else "force"][j] for j in kinds] for i in kinds]
    assert other.as_data()["stiffness"] == other.stiffness.tolist()


def test_a_reduce_function_of_a_rollout_gets_declared_units(bars):
    @numba.njit
    def last(t, q, v, a):
        return q[-1]

    for s in bars:
        found = ld.rollout(s, None, (0, 0.05), reduce=last, progress=False)
        whole = ld.rollout(s, None, (0, 0.05), progress=False)
        np.testing.assert_allclose(found["value"].values, whole["q"].values[:, -1], rtol=1e-12)
