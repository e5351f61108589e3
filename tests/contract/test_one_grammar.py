"""One grammar: the same names of arguments in all public functions, the same names of dimensions in all results."""

import inspect
import types

import pytest

import loopdyn as ld

# Names that other packages, or this one before, use for what is `t_span`, `t_eval`, `near` and `state` here.
OTHER_NAMES = {"times", "guess", "x0", "q0", "state0", "initial", "initial_state", "pose0", "tspan", "teval", "pose"}
# `start` is a point or a value here, never a state; a pose is that of a body.
POINTS = {"Inertia.rod", "results.Passage", "Mechanism.add_body", "Body", "Mechanism"}
# Functions in which something without a default follows the state.
NEED_A_STATE = {
    "reconnect",
    "System.for_state",
    "tree.open_tree_body_jacobian",
    "tree.open_tree_inverse_dynamics",
    "tree.readings",
    "results.ImportedMJCF.to_mujoco",
    "results.ImportedMJCF.qacc",
    "formulations.ClosurePlan.signs",
}
DIMENSIONS = {"time", "coordinate", "speed", "joint", "component", "body", "xyz", "sample"}
# What else results have: rows of constraints, names of elements, inputs of a Jacobian, axes of a frame, and the second
# axis of a square matrix. A workspace has a dimension for each of its inputs, with their names.
OTHERS = {"row", "constraint", "force", "source", "motor", "measure", "input", "input2", "axes", "axis", "speed2"}


def public_functions():
    """All public functions and methods, and the constructors of what users make, by name."""
    seen, found = set(), {}

    def add(name, thing):
        if callable(thing) and id(thing) not in seen:
            seen.add(id(thing))
            try:
                found[name] = inspect.signature(thing).parameters
            except (TypeError, ValueError):
                return

    for name in ld.__all__:
        top = getattr(ld, name)
        module = isinstance(top, types.ModuleType)
        inside = {f"{name}.{n}": getattr(top, n) for n in getattr(top, "__all__", ())} if module else {name: top}
        for label, thing in inside.items():
            add(label, thing)
            if isinstance(thing, type) and thing.__module__.startswith("loopdyn"):
                for key, method in vars(thing).items():
                    if not key.startswith("_"):
                        add(f"{label}.{key}", getattr(thing, key) if isinstance(method, classmethod) else method)
    return found


FUNCTIONS = public_functions()


def test_all_public_functions_are_looked_at():
    assert {"simulate", "drive", "Mechanism.add_force", "tree.energy", "Units.factor"} <= {*FUNCTIONS}
    assert len(FUNCTIONS) > 300


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_arguments_have_the_names_of_the_grammar(name):
    parameters = FUNCTIONS[name]
    wrong = OTHER_NAMES & {*parameters} - ({"pose"} if name in POINTS else set())
    assert not wrong
    for key, p in parameters.items():
        words = str(p.annotation)
        if words.startswith("State") and key not in ("state", "states", "near", "after", "self"):
            pytest.fail(f"{name}: the state '{key}' is named neither state nor near")
        if key == "near":
            assert "State" in words
            assert p.default is None
        if key == "state" and "results." not in name and "events.Event" not in name and name not in NEED_A_STATE:
            assert p.default is None, f"{name} needs a state"
        if key == "t_eval":
            assert "t_span" in parameters or name in (
                "inverse_dynamics",
                "study",
            )  # whose span is that of the values, or one of over=


def test_what_is_added_to_a_mechanism_is_named_first():
    adders = {name: [*p][1] for name, p in FUNCTIONS.items() if name.startswith("Mechanism.add_")}
    assert len(adders) >= 8
    assert set(adders.values()) == {"name"}


def test_old_names_of_arguments_say_the_new_ones():
    m = ld.library.four_bar()
    system = m.compile()
    spring = ld.forces.JointSpring(joint="A", stiffness=1)
    for call, words in (
        (
            lambda: ld.drive(system, "A", "t", times=(0, 1)),
            r"no argument 'times'. It is t_span=\(start, stop\) and t_eval",
        ),
        (lambda: ld.inverse_dynamics(system, {"A": "t"}, times=[0, 1]), "no argument 'times'. It is t_eval now"),
        (lambda: ld.inverse_dynamics(system, {"A": "t"}, [0, 1], start=None), "no argument 'start'. It is near now"),
        (lambda: ld.equilibrium(system, start=None), "no argument 'start'. It is near now"),
        (lambda: ld.zero_force(system, "f", {"A": (0, 1)}, start=None), "no argument 'start'. It is near now"),
        (lambda: ld.preload(system, system.state(), "f"), r"The order is preload\(system, force, state\)"),
        (
            lambda: m.add_force(*(spring, "spring")),
            r"The order is add_force\(name, force\)",
        ),
    ):
        with pytest.raises(ld.errors.ModelError, match=words):
            call()


def results():
    """Datasets of all results of a mechanism that has everything they may have."""
    m = ld.library.four_bar()
    m.add_point("P", (0, 0.5, 0), on="crank")
    m.add_measure("high", "y(P)")
    m.add_motor("motor", "A", torque=1.0)
    system = m.compile()
    run = ld.simulate(system, t_span=(0, 0.02), progress=False)
    drive = ld.drive(system, "A", (0.0, 0.1, 3))
    moved = ld.drive(system, "A", "t", t_eval=[0.0, 0.05, 0.1])
    loads = ld.inverse_dynamics(system, {"A": "t"}, [0.0, 0.1], motors=["A"])
    there = ld.kinematics(system)
    rolled = ld.rollout(system, [system.state(), system.state()], (0, 0.01), threads=1)
    return {
        "run": run.data, "run.point": run.point("crank", (0, 0.5, 0)), "run.body": run.body("coupler"),
        "run.bearings": run.bearings().data, "drive": drive.data, "drive in time": moved.data,
        "drive.point": drive.point("crank", (0, 0.5, 0)), "inverse_dynamics": loads.data,
        "kinematics.body": there.body("coupler"), "kinematics.jacobian": there.jacobian("coupler", wrt="A"),
        "kinematics.ratios": there.ratios("A"), "reactions": ld.reactions(system).dataset(),
        "terms": ld.terms(system).dataset(), "rollout": rolled,
        "inverse_kinematics": ld.inverse_kinematics(system, {"A": 0.1}).data,
        "workspace": ld.workspace(system, ("coupler", (0, 0.5, 0)), inputs="A", over=(0.0, 0.1, 3)).data,
    }  # fmt: skip


def test_dimensions_have_the_same_names_in_all_results():
    used = {name: {str(d) for d in data.dims} for name, data in results().items()}
    used["workspace"] -= {"A"}
    assert {name: dims - DIMENSIONS - OTHERS for name, dims in used.items() if dims - DIMENSIONS - OTHERS} == {}
    assert set.union(*used.values()) >= DIMENSIONS - {"body"}
