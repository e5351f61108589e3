"""One grammar: the same names of arguments in all public functions, the same names of dimensions in all results."""

import inspect
import re
import types

import pytest

import loopdyn as ld

# Names that other packages, or this one before, use for what is `t_span`, `t_eval`, `near` and `state` here.
OTHER_NAMES = {"times", "guess", "x0", "q0", "state0", "initial", "initial_state", "pose0", "tspan", "teval", "pose"}
# `start` is a point or a value here, never a state; a pose is that of a body.
POINTS = {"Inertia.rod", "results.Passage", "Mechanism.add_body", "Body", "Mechanism"}
# Functions that read something off a state that only this state has: what it leaves open, the branch it is on.
NEED_A_STATE = {"System.for_state", "formulations.ClosurePlan.signs"}
# Functions that forward a span and times to others, or whose span has another name: t_eval without t_span.
NO_SPAN = {"study"}  # a study is over=(start, end), the range of an input, or equilibria
# What may be a file, besides the one that is read or written: `path`.
FILES = {"source", "folder", "loops", "sidecar", "table", "rows", "store", "checkpoint"}
DIMENSIONS = {"time", "coordinate", "speed", "joint", "component", "body", "xyz", "sample"}
# What else results have: rows of constraints, names of elements, inputs of a Jacobian, axes of a frame, and the second
# axis of a square matrix. A workspace has a dimension for each of its inputs, with their names.
OTHERS = {"row", "constraint", "force", "source", "motor", "measure", "input", "input2", "axes", "axis", "speed2"}
# ... signals of a linear system, its modes and frequencies; quantities, parameters and designs of studies.
OTHERS |= {"state", "rate", "output", "mode", "omega", "quantity", "parameter", "design"}


def public_functions():
    """All public functions and methods, and the constructors of what users make, by name."""
    seen, found = set(), {}

    def add(name, thing):
        own = getattr(thing, "__func__", thing)  # of a method of a class, which is bound again each time
        if callable(thing) and id(own) not in seen:
            seen.add(id(own))
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
                own = [c for c in thing.__mro__ if c.__module__.startswith("loopdyn")]
                for key, method in {key: x for c in reversed(own) for key, x in vars(c).items()}.items():
                    if not key.startswith("_"):
                        add(f"{label}.{key}", getattr(thing, key) if isinstance(method, classmethod) else method)
    return found


FUNCTIONS = public_functions()


def test_all_public_functions_are_looked_at():
    assert {"simulate", "drive", "Mechanism.add_force", "tree.energy", "Units.factor"} <= {*FUNCTIONS}
    assert {"results.Drive.point", "results.Run.state", "results.Study.to_csv"} <= {*FUNCTIONS}
    assert len(FUNCTIONS) > 500


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
        made = name.rpartition(".")[2][:1].isupper()  # a constructor: its fields
        if key == "state" and not made and name not in NEED_A_STATE:
            assert p.default is None, f"{name} needs a state"
        if key == "t_eval":
            assert "t_span" in parameters or name in NO_SPAN
        if "PathLike" in words and "path" not in key:
            assert key in FILES, f"{name}: the file '{key}' is not named path"


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
        (lambda: ld.analyses.zero_force(system, "f", {"A": (0, 1)}, start=None), "no argument 'start'. It is near now"),
        (lambda: ld.analyses.preload(system, system.state(), "f"), r"The order is preload\(system, force, state\)"),
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
    m.add_constraint("gear", ld.constraints.Coupler(terms={"D": 1.0, "E": -2.0}))
    m.add_body("wheel", ld.Inertia.sphere(1.0, 0.1))
    m.add_joint("E", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    system = m.compile()
    run = ld.simulate(system, t_span=(0, 0.02), progress=False)
    linear = ld.linearize(system, inputs=["motor"], outputs=["A", "C.fx", "high"])
    slope = ld.sensitivity(system, "D", "crank")
    designs = ld.study(m, {"crank": [0.5, 0.51]}, {"high": "peak(high)"}, over=(0, 0.01), progress=False)
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
        **{f"linearize.{name}": getattr(linear, name) for name in "ABCD"}, "residual": linear.residual,
        "linearize.output_values": linear.output_values, "modes": linear.modes().dataset(),
        "frequency_response": linear.frequency_response([1.0]), "sensitivity": slope.data, "study": designs.data,
    }  # fmt: skip


@pytest.fixture(scope="module")
def datasets():
    return results()


def test_dimensions_have_the_same_names_in_all_results(datasets):
    used = {name: {str(d) for d in data.dims} for name, data in datasets.items()}
    used["workspace"] -= {"A"}
    assert {name: dims - DIMENSIONS - OTHERS for name, dims in used.items() if dims - DIMENSIONS - OTHERS} == {}
    assert set.union(*used.values()) >= DIMENSIONS - {"body"}


UNIT = re.compile(r"(rad|deg|mm|m|s|N|J|W|Hz|kg|1)(\*(m|mm|s))?(\^\d)?(/(rad|deg|s)(\^\d)?)?")


def test_units_of_all_results_can_be_read_by_programs(datasets):
    for where, found in datasets.items():
        data = found if hasattr(found, "data_vars") else found.to_dataset(name=where)
        for name, values in {**data.data_vars, **data.coords}.items():
            if values.dtype.kind not in "fc" or "parameter" in {*values.dims, name.partition("_")[0]}:
                continue  # a number of the model means what the formulas make of it
            units = values.attrs.get("units", "no units")
            for unit in units.split(" per "):
                symbols = data[unit].values.ravel().tolist() if unit in data.coords else [unit]
                assert all(UNIT.fullmatch(str(x)) for x in symbols), f"{where}, {name}: {units}"


PATHS = ("results.Run", "results.Drive", "results.InverseDynamics")


def test_results_along_a_path_share_one_face():
    for method, arguments in {
        "point": ["body", "at"], "body": ["name"], "state": ["k"], "bearings": [], "poses": [], "to_dataframe": [],
        "to_csv": ["path"], "save": ["path"], "animate": ["path"],
    }.items():  # fmt: skip
        for result in PATHS:
            given = FUNCTIONS.get(f"{result}.{method}") or inspect.signature(getattr(find(result), method)).parameters
            named = [x for x, p in given.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
            assert named == ["self", *arguments], f"{result}.{method}"
    for result in PATHS:
        assert {"samples", "plot", "__getitem__"} <= {*dir(find(result))}
        assert "data" in {*dir(find(result)), *find(result).__annotations__}


def find(name):
    namespace, _, thing = name.partition(".")
    return getattr(getattr(ld, namespace), thing)


def test_a_label_is_read_alike_from_all_results():
    m = ld.library.four_bar()
    m.add_motor("motor", "A", torque=1.0)
    m.add_constraint("rod", ld.constraints.Distance(body1="ground", point1=(0, -1, 0), body2="wheel", point2=(0, 1, 0)))
    m.add_body("wheel", ld.Inertia.sphere(1.0, 0.1))
    m.add_joint("E", ld.Planar(normal=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    system = m.compile()
    state = ld.assemble(system)
    run = ld.simulate(system, state, (0, 0.01), progress=False)
    forces, drive = (
        ld.reactions(system, state),
        ld.drive(system, {"A": "t", "E.x": "0*t", "E.angle": "0*t"}, t_eval=[0, 1]),
    )
    moved = ld.inverse_dynamics(system, run, motors=["A"])
    sim = ld.Simulation(system, state)
    for label in ("C.fx", "E.mz"):
        # the same state by other ways: reactions of redundant rows are not among them
        assert forces[label] == pytest.approx(float(run[label][0]), rel=1e-9)
        assert forces[label] == pytest.approx(float(moved[label][0]), rel=1e-6, abs=1e-9)
        assert forces[label] == pytest.approx(sim[label], rel=1e-9)
        assert forces[label] == forces[label[0]][label[2:]]
    assert forces["rod.load"] == pytest.approx(float(run["rod.load"][0]), rel=1e-9)
    assert forces["rod.load"] == forces.multipliers["rod"]
    for label in ("A", "C", "A.speed", "C.acceleration"):
        assert {run[label].name, drive[label].name, moved[label].name} == {label}
        assert run[label].attrs["units"] == drive[label].attrs["units"] == moved[label].attrs["units"]
    for found in (forces, run, drive, moved, sim, run.bearings().load):
        read = found if callable(found) else found.__getitem__
        with pytest.raises(ld.errors.UnknownLabelError, match="there is no"):
            read("C.fq")
