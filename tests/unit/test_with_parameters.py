"""Other numbers, same structure: what a system becomes with other parameters is what a full compilation gives."""

import copy
import cProfile
import pickle
import pstats
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.unit.test_model_files import everything

import loopdyn as ld
from loopdyn.loops.elimination import solver
from loopdyn.system import builder, variation
from loopdyn.system.builder import build
from loopdyn.system.system import System

WITH_PARAMETERS = [name for name, make in ld.library.ALL.items() if make().parameters]
Z = (0, 0, 1)


def numbers_of(system):
    """Everything that a system consists of, with numbers as bytes."""
    joints = {
        name: (j.parent, j.child, j.body, j.q0, j.v0, j.cut, j.par, j.q_reference.tobytes())
        + tuple(x.tobytes() for x in (*j.F, *j.M))
        for name, j in system.joints.items()
    }
    tables = [
        (t.element, t.of, t.force, t.lookup.knots.tobytes(), t.lookup.corners.tobytes(), t.lookup.scale)
        for t in system.tables
    ]
    plain = ("bodies", "coordinates", "counted", "speeds", "constraint_rows", "row_dimensions", "forces", "topology")
    values = ("limits", "at_limit", "start", "warnings", "unsupported")
    return {
        **{key: getattr(system, key) for key in (*plain, *values)},
        "ints": system.ints.tobytes(),
        "floats": system.floats.tobytes(),
        "holonomic": system.holonomic.tobytes(),
        "poses": [x.tobytes() for pose in system.reference_poses for x in pose],
        "joints": joints,
        "tables": tables,
    }


def answer(compiled):
    """Numbers of a system, or the words in which it is refused."""
    try:
        return numbers_of(compiled())
    except ld.errors.ModelError as error:
        return sorted(p.message for p in error.problems)


def in_full(m, parameters, cuts=None):
    return answer(lambda: build(m.with_(**parameters), cuts))


def again(system, parameters):
    return answer(lambda: system.with_parameters(**parameters))


def random_parameters(m, rng, share=0.1):
    """Some of the parameters that are numbers, each changed by some percent."""
    plain = [name for name, x in m.parameters.items() if not isinstance(x, str)]
    chosen = rng.choice(plain, size=rng.integers(1, len(plain) + 1), replace=False)
    return {str(name): m.parameters[str(name)] * (1.0 + share * rng.uniform(-1.0, 1.0)) for name in chosen}


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_library_mechanisms_with_other_parameters_are_those_of_a_full_compilation(name):
    m, rng = ld.library.ALL[name](), np.random.default_rng(sum(map(ord, name)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = m.compile()
        for _ in range(4):
            parameters = random_parameters(m, rng)
            expected = in_full(m, parameters)
            assert again(system, parameters) == expected
            assert answer(lambda p=parameters: m.with_(**p).compile()) == expected


@pytest.mark.parametrize("cuts", [None, ["weld"]])
def test_a_model_of_everything_in_mm_degrees_and_g(cuts):
    m, rng = everything(), np.random.default_rng(1)
    m.parameters = {**m.parameters, "top": 100.0, "share": 0.3, "still": 0.0}
    pulse = ld.forces.Table(of="t", points=[(0, 0), ("share", "top"), (1, 0)])
    m.forces["push"] = ld.forces.AppliedForce(body="rod", at=(0, 0, 0), force=(0, "share*sin(t)", pulse), axes="body")
    for name, x in (("knee", "top"), ("foot", "top/2")):
        m.add_body(name, ld.Inertia.rod(mass="share", start=(0, 0, 0), end=(0, x, "still"), radius=4))
    m.add_joint("K", ld.Revolute(axis=(0, "share", 1)), m.ground, "knee", at=(0, 0, "-still"), armature="50*share")
    m.add_joint("F", ld.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), "knee", "foot", at=(0, "top", 0))
    m.add_constraint(
        "rod", ld.constraints.Distance(body1="foot", point1=(0, 10, 0), body2="ground", point2=("2*top", 1, 0))
    )
    m.add_driver("turn", "K", ld.profiles.Cycloidal(distance="10*share", time="share"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = m.compile(cuts)
        for _ in range(20):
            parameters = random_parameters(m, rng, share=0.3)
            assert again(system, parameters) == in_full(m, parameters, cuts)
        special = ({"still": -0.0}, {"still": 1.0}, {"share": 0.0}, {"crank": 0.0}, {"double": 7.0}, {"g": "top/10"})
        for parameters in special:
            assert again(system, parameters) == in_full(m, parameters, cuts)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"shared": 0.0}, "a body that loses its inertia"),
        ({"rotor": 0.0}, "a rotor that vanishes"),
        ({"range": 4.0}, "limits of more than half a turn"),
        ({"power": 0.5}, "another program of a formula"),
        ({"tilt": 0.3}, "an axis that is no longer parallel"),
    ],
)
def test_numbers_that_change_the_structure_are_noticed(change, names):
    m = ld.Mechanism("m", parameters={"shared": 1.0, "rotor": 0.1, "range": 1.0, "power": 2.0, "tilt": 0.0})
    points = [(0, 0, 0), (0, 1, 0), (2, 1.5, 0), (1.5, 0, 0)]
    bodies = [m.ground]
    for k in range(3):
        bodies.append(m.add_body(f"b{k}", ld.Inertia.point("shared", points[k + 1])))
    for k, (name, at) in enumerate(zip("ABCD", points, strict=True)):
        axis = (0, "tilt", 1) if name == "C" else Z
        more = {"armature": "rotor"} if name == "D" else {"limits": (-1, "range")} if name == "A" else {}
        m.add_joint(name, ld.Revolute(axis=axis), bodies[k], bodies[(k + 1) % 4], at=at, **more)
    m.add_motor("motor", "C", torque="sin(t)*position**power")
    m.add_motor("other", "B", torque="-position")
    m.add_force("s4", ld.forces.JointSpring(joint="D", stiffness=1.0))
    system = m.compile()
    found = system.with_parameters(**change)
    assert numbers_of(found) == in_full(m, change)
    before, after = ((s.ints.tobytes(), s.unsupported, s.topology) for s in (system, found))
    assert before != after, names


def test_only_parts_that_refer_to_a_changed_parameter_are_resolved_again(monkeypatch):
    m = ld.library.four_bar()
    system = m.compile()
    system.with_parameters(crank=0.31)
    calls = []
    for name in ("_mass", "_joint", "_topology"):
        whole = getattr(builder.Builder, name)
        monkeypatch.setattr(builder.Builder, name, lambda *a, n=name, w=whole: (calls.append((n, a[1])), w(*a))[1])
    system.with_parameters(g=1.6)
    assert calls == []
    system.with_parameters(frame=1.1)  # all but the crank and its bearing
    assert [what for what in calls if what[1] in ("crank", "A", "B")] == []
    calls.clear()
    system.with_parameters(crank=0.32)
    assert [n for n, _ in calls] == ["_mass"] * 3 + ["_joint"] * 2  # of pins B and C
    calls.clear()
    m.with_(crank=0.33).compile()
    assert ("_topology", None) in calls
    calls.clear()
    m.with_(crank=0.34).compile()
    assert [n for n, _ in calls] == ["_mass"] * 3 + ["_joint"] * 2


def test_calls_for_other_parameters_are_bounded():
    """Calls of functions, counted; nothing is timed."""
    system = ld.library.four_bar().compile()
    system.with_parameters(crank=0.31)
    profile = cProfile.Profile()
    profile.runcall(system.with_parameters, crank=0.32)
    assert pstats.Stats(profile).total_calls < 950  # 907 when this was written


def test_structure_labels_and_plans_are_shared(monkeypatch):
    system = ld.library.four_bar().compile()
    ld.accelerations(system, ld.assemble(system))
    made, whole = [], solver.plan_elimination
    monkeypatch.setattr(solver, "plan_elimination", lambda *a: made.append(a) or whole(*a))
    other = system.with_parameters(crank=0.35, rocker=0.65)
    assert other.ints is system.ints
    assert other.topology is system.topology
    state = ld.assemble(other)
    found = ld.accelerations(other, state)
    assert made == []
    fresh = build(other.mechanism)
    np.testing.assert_array_equal(found, ld.accelerations(fresh, state))
    assert abs(found - ld.accelerations(other, state, "oracle")).max() < 1e-9


def test_plans_are_made_anew_where_a_body_without_inertia_must_not_be_severed():
    m = ld.library.star_ladder(4)
    system = m.compile()
    state = ld.assemble(system)
    ld.accelerations(system, state)
    for parameters in ({"rung_mass": 0.0}, {"rung_mass": 2.0}):
        other, fresh = system.with_parameters(**parameters), build(m.with_(**parameters))
        at = ld.assemble(fresh)
        same = [str(ld.Graph().plan(s)) for s in (other, fresh)]
        assert same[0] == same[1]
        np.testing.assert_array_equal(ld.accelerations(other, at), ld.accelerations(fresh, at))


def test_parameters_add_up():
    system = ld.library.four_bar().compile()
    twice = system.with_parameters(crank=0.31).with_parameters(g=1.6)
    assert numbers_of(twice) == in_full(ld.library.four_bar(), {"crank": 0.31, "g": 1.6})
    assert twice.mechanism.parameters["crank"] == 0.31


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"crnak": 1.0}, "Did you mean 'crank'"),
        ({"crank": np.nan}, "not a finite number"),
        ({"crank": 1e99}, "more than any machine has"),
        ({"crank": "1/0"}, "no finite value"),
        ({"crank": 9.0}, "acos"),
        ({"coupler": 0.0}, "/"),
    ],
)
def test_a_wrong_value_is_refused_in_the_words_of_compile(parameters, words):
    m = ld.library.four_bar()
    system = m.compile()
    with pytest.raises(ld.errors.ModelError) as found:
        system.with_parameters(**parameters)
    with pytest.raises(ld.errors.ModelError) as expected:
        build(m.with_(**parameters))
    assert str(found.value) == str(expected.value)
    assert words in str(found.value)


def test_an_axis_of_length_zero_is_refused():
    m = ld.Mechanism("m", parameters={"x": 1.0})
    m.add_body("b", ld.Inertia.sphere(1.0, 0.1))
    m.add_joint("A", ld.Revolute(axis=(0, 0, "x")), m.ground, "b", at=(1, 0, 0))
    with pytest.raises(ld.errors.ModelError, match="length zero"):
        m.compile().with_parameters(x=0.0)


def test_a_mechanism_changed_after_it_was_compiled_is_noticed():
    m = ld.library.four_bar()
    system = m.compile()
    expected = numbers_of(system.with_parameters(crank=0.31))
    m.bodies["crank"] = ld.Body(mass=2.0, com=(0, 0, 0))  # of the user, no longer that of the system
    assert numbers_of(m.with_(crank=0.31).compile()) != expected
    system = ld.library.four_bar().compile()
    system.mechanism.bodies["crank"] = ld.Body(mass=2.0, com=(0, 0, 0))
    with pytest.raises(ld.errors.ModelError, match="changed after it was compiled"):
        system.with_parameters(crank=0.31)
    other = m.with_(crank=0.31)
    assert numbers_of(other.compile()) == numbers_of(build(other))
    m.bodies["crank"] = ld.Body(mass=3.0, com=(0, 0, 0))
    other = m.with_(crank=0.31)
    assert numbers_of(other.compile()) == numbers_of(build(other))


def test_what_is_done_to_the_mechanism_of_one_system_does_not_reach_others():
    m = ld.library.four_bar()
    m.bodies["crank"] = m.bodies["crank"].model_copy(update={"frames": {"tip": ld.Frame(position=(1, 0, 0))}})
    system = m.compile()
    expected = numbers_of(build(m.with_(crank=0.32)))
    mine = system.with_parameters(crank=0.31).mechanism
    mine.bodies["crank"].frames["tip"] = ld.Frame(position=(5, 0, 0))
    mine.bodies["crank"] = ld.Body(mass=100.0, com=(0, 0, 0))
    mine.start.q["A"] = 9.0
    mine.gravity = (0, 0, 0)
    mine.parameters["g"] = 0.0
    mine.add_motor("motor", "A", torque=1.0)
    del mine.joints["B"]
    assert numbers_of(system.with_parameters(crank=0.32)) == expected


def test_two_threads_that_vary_one_system_do_not_disturb_each_other():
    m = ld.library.four_bar()
    m.add_motor("motor", "A", torque="crank*sin(t)")
    system = m.compile()
    values = [{"crank": 0.3 + 0.001 * k, "g": 9.0 + 0.01 * k} for k in range(30)]
    with ThreadPoolExecutor(4) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(pool.map(lambda p: again(system, p), values * 2))
        assert found == [in_full(m, p) for p in values] * 2


def test_inner_dicts_of_copies_are_their_own():
    m = ld.Mechanism("m", parameters={"x": 1.0})
    m.add_body("b", ld.Inertia.sphere(1.0, 0.1), frames={"tip": ld.Frame(position=("x", 0, 0))})
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "b", parent_frame=ld.Frame(), child_frame="tip")
    m.start = ld.Mechanism("s").start.model_copy(update={"q": {"A": 0.1}})
    other = m.with_(x=2.0)
    before = numbers_of(other.compile())
    m.bodies["b"].frames["tip"] = ld.Frame(position=(5, 0, 0))
    m.start.q["A"] = 9.0
    assert numbers_of(m.with_(x=2.0).compile()) == numbers_of(build(m.with_(x=2.0))) != before
    assert numbers_of(other.compile()) == numbers_of(build(other)) == before
    other.bodies["b"].frames["tip"] = ld.Frame(position=(6, 0, 0))
    assert numbers_of(other.compile()) == numbers_of(build(other)) != before


def test_copies_and_pickles_carry_no_structures():
    m = ld.library.four_bar()
    system = m.with_(crank=0.31).compile()
    assert m._structures
    assert not copy.deepcopy(m)._structures
    assert not pickle.loads(pickle.dumps(m))._structures
    read = pickle.loads(pickle.dumps(system))
    assert isinstance(read, System)
    assert numbers_of(read.with_parameters(g=1.0)) == numbers_of(system.with_parameters(g=1.0))


def test_free_bodies_and_cuts_stay():
    system = ld.library.stewart_6ups().compile(free=["platform"])
    assert system.with_parameters(payload=30.0).topology.free_roots == ("platform",)
    four = ld.library.four_bar().compile(cuts=["B"])
    assert four.with_parameters(crank=0.31).topology.cuts == ("B",)


def test_names_are_found_in_all_formulas_of_a_part():
    table = ld.forces.Table(of="t", points=[(0, "a + b"), ("c", 1)])
    motor = ld.forces.Motor(joint="J", torque=table)
    assert variation.names_in(motor) >= {"a", "b", "c"}
    profile = ld.profiles.Cycloidal(distance="d*f", time=1.0)
    assert variation.names_in(ld.constraints.Driver(joint="J", motion=profile)) >= {"d", "f"}


def test_warnings_are_those_of_the_new_numbers():
    system = ld.library.four_bar().compile()
    with pytest.warns(ld.LoopdynWarning, match="gravity is 9810"):
        system.with_parameters(g=9810.0)


def test_what_is_done_to_a_mechanism_after_compile_does_not_reach_its_system():
    m = ld.library.four_bar()
    m.parameters["gain"] = 1.0
    m.add_point("P", (0, 0.5, 0), on="coupler")
    m.add_measure("high", "gain*y(P)")
    system = m.compile()
    state = ld.assemble(system, {"A": 0.2}, {"A": 3.0})
    fresh = copy.deepcopy(m)  # what the system must go on to answer for
    m.parameters["gain"] = 5.0
    m.add_motor("late", "A", torque=100.0)
    m.add_driver("turn", "A", "t")
    m.add_measure("later", "x(P)")
    m.user_forces["push"] = ld.forces.UserForce(function=lambda t, q, v, out: out.__setitem__(0, 9.0))
    m.points["P"] = m.points["P"].model_copy(update={"at": (9, 9, 9)})
    m.start.q["A"] = 1.0
    expected = fresh.compile()
    assert system.mechanism == fresh
    assert np.array_equal(ld.accelerations(system, state), ld.accelerations(expected, state))
    assert ld.analyses.measures(system, state) == ld.analyses.measures(expected, state)
    for ask in (
        lambda s: ld.simulate(s, state, (0, 0.01), progress=False).data["measures"].values,
        lambda s: ld.simulate(s, state, (0, 0.01), progress=False).path.q,
        lambda s: ld.inverse_dynamics(s, {"A": "0.2 + t"}, [0.0, 0.1], motors=["A"]).load,
        lambda s: ld.drive(s, "A", (0.0, 0.2, 3))["high"].values,
        lambda s: ld.linearize(s, state, outputs=["high"]).matrices.C,
        lambda s: s.with_parameters(gain=2.0).floats,
        lambda s: ld.assemble(s).q,
        lambda s: ld.sensitivity(s, "high", "gain").derivatives,
    ):
        assert np.array_equal(ask(system), ask(expected))
    assert "late.load" not in system.labels
