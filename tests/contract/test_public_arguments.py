"""Whatever a public function is given, it answers or says in words what is wrong: no raw tracebacks."""

import inspect
import pickle
import re
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn import public_names
from loopdyn.app.bench import _amplitude
from loopdyn.app.cli import app
from loopdyn.arguments import ANYTHING, CHECKED, kind_of
from loopdyn.quantities.units import Spec

# Arguments that are known by what they can do; they are judged where they are used.
FREE = [["user"], ["solver"], ["motion"]]
# Given anywhere, this is wrong.
WRONG = object()
NO_NAME = "no such name"
NAMESPACES = [getattr(ld, name) for name in public_names.NAMESPACES]


def public_functions() -> dict[str, Callable[..., Any]]:
    """Functions of the public modules and methods of the public classes, by name; the same one once."""
    found: dict[str, Callable[..., Any]] = {}
    for module in (ld, ld.tree, ld.library, *NAMESPACES):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                found[f"{module.__name__}.{name}"] = thing
            elif inspect.isclass(thing) and not issubclass(thing, Spec | Exception):
                bases = [base for base in thing.__mro__ if base.__module__.startswith("loopdyn")]
                for method in [v for base in bases for k, v in vars(base).items() if k[0] != "_"]:
                    inner = getattr(method, "__func__", method)
                    if inspect.isfunction(inner) and inner.__module__.startswith("loopdyn"):
                        found[inner.__qualname__] = inner
    return dict(sorted(found.items()))


FUNCTIONS = public_functions()
MADE = ["State", "At", "Crossing", "Limits", "Lock", "Release", "Baumgarte", "RK4", "ABM", "DOP853", "DP5", "Stiff"]
MADE += ["Extrapolation", "GeneralizedAlpha", "Moreau", "Steps", "Absolute", "Closure", "Momentum", "Partition", "Rcr"]


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [p for p in found if p.name not in ("self", "cls")]


def wrong_calls(function: Callable[..., Any], first: tuple[Any, ...] = ()) -> list[str]:
    """Arguments that are not refused, each given a wrong kind of value by its name; what may be anything left out."""
    accepted = []
    for p in parameters(function):
        annotation = p.annotation
        if annotation in ("Any", inspect.Parameter.empty) or p.kind is p.VAR_POSITIONAL:
            continue
        name = NO_NAME if p.kind is p.VAR_KEYWORD else p.name
        try:
            function(*first, **{name: WRONG})
        except ld.LoopdynError:
            continue
        except TypeError:  # it was not refused, and others are missing
            pass
        accepted.append(p.name)
    return accepted


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_of_the_wrong_kind_is_told_in_words(name):
    function = FUNCTIONS[name]
    assert hasattr(function, CHECKED)
    of_object = next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
    assert wrong_calls(function, (SimpleNamespace(),) if of_object else ()) in ([], *FREE)


@pytest.mark.parametrize("name", MADE)
def test_what_users_make_is_checked_as_it_is_made(name):
    assert wrong_calls(next(getattr(m, name) for m in (ld, *NAMESPACES) if name in m.__all__)) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_of_an_unknown_name_is_told_in_words(name):
    function = FUNCTIONS[name]
    if any(p.kind is p.VAR_KEYWORD for p in parameters(function)):
        pytest.skip("its options are judged by what they are handed to; tests below")
    with pytest.raises(ld.LoopdynError, match="there is no argument 'no_such_argument'"):
        function(no_such_argument=1)


def test_a_missing_argument_is_told_by_python_itself():
    with pytest.raises(TypeError, match="missing"):
        ld.simulate()


PARTS = {
    n: getattr(m, n)
    for m in (ld, ld.profiles, ld.joints, ld.forces, ld.constraints)
    for n in m.__all__
    if inspect.isclass(getattr(m, n))
}
PARTS = {
    n: kind
    for n, kind in PARTS.items()
    if issubclass(kind, Spec) and n not in ("Profile", "Joint", "Force", "Constraint")
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_model_refuses_unknown_keys_and_wrong_values(name):
    with pytest.raises(ld.errors.ModelError, match="no_such_key"):
        PARTS[name](no_such_key=1)
    for key, field in PARTS[name].model_fields.items():
        if key not in ("type", "profile") and field.annotation is not Any:
            with pytest.raises(ld.errors.ModelError):
                PARTS[name](**{field.alias or key: WRONG})


# ------------------------------------------------------------------------------------- names, and what may be anything


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    m = ld.library.four_bar()
    m.add_motor("motor", "A", torque=1.0)
    m.add_force("spring", ld.forces.JointSpring(joint="D", stiffness=1.0))
    system = m.compile()
    state = ld.assemble(system, v={"A": 2.0})
    run = ld.simulate(
        system, state, (0, 0.02), t_eval=[0, 0.02], integrator=ld.integrators.RK4(step=0.01), progress=False
    )
    drive = ld.drive(system, "A", (0, 0.2, 3))
    inverse = ld.inverse_dynamics(system, run, motors=["A"])
    folder = tmp_path_factory.mktemp("arguments")
    return SimpleNamespace(m=m, system=system, state=state, run=run, drive=drive, inverse=inverse, folder=folder)


def changed(k: SimpleNamespace, change: Callable[[ld.Mechanism], Any]) -> ld.System:
    m = k.m.model_copy(deep=True)
    change(m)
    return m.compile()


PIN = ld.Revolute(axis=(0, 0, 1))
CALLS: dict[str, Callable[[SimpleNamespace], Any]] = {
    "a formulation": lambda k: ld.accelerations(k.system, k.state, NO_NAME),
    "a formulation beside accelerations": lambda k: ld.reactions(k.system, k.state, np.zeros(3), formulation=NO_NAME),
    "a coordinate to assemble at": lambda k: ld.assemble(k.system, q={NO_NAME: 1.0}),
    "a speed to assemble with": lambda k: ld.assemble(k.system, v={NO_NAME: 1.0}),
    "a coordinate to be kept": lambda k: ld.assemble(k.system, fix=[NO_NAME]),
    "a coordinate of branches": lambda k: ld.analyses.branches(k.system, {NO_NAME: 1.0}),
    "a coordinate of singular poses": lambda k: ld.analyses.singular_poses(k.system, NO_NAME),
    "an input to drive": lambda k: ld.drive(k.system, NO_NAME, (0, 1, 3)),
    "a motion to drive by": lambda k: ld.drive(k.system, "A", WRONG),
    "times to drive over": lambda k: ld.drive(k.system, "A", "t", t_eval=WRONG),
    "an independent coordinate": lambda k: ld.analyses.equations(k.system, [NO_NAME]),
    "an input to search over": lambda k: ld.equilibrium(k.system, search={NO_NAME: (0, 1)}),
    "a motor": lambda k: ld.inverse_dynamics(k.system, {"A": "t"}, [0, 0.1], motors=[NO_NAME]),
    "a motion of inverse dynamics": lambda k: ld.inverse_dynamics(k.system, {NO_NAME: "t"}, [0, 0.1]),
    "a motion of inverse dynamics that is none": lambda k: ld.inverse_dynamics(k.system, WRONG, [0, 0.1]),
    "a spring to preload": lambda k: ld.analyses.preload(k.system, NO_NAME, k.state),
    "a force that vanishes": lambda k: ld.analyses.zero_force(k.system, NO_NAME, {"A": (0, 1)}),
    "a joint with a compliance": lambda k: ld.reactions(k.system, k.state, compliance={NO_NAME: 1.0}),
    "a load": lambda k: ld.reactions(k.system, k.state, np.zeros(3), loads={NO_NAME: 1.0}),
    "an integrator": lambda k: ld.simulate(k.system, k.state, (0, 1), integrator=NO_NAME),
    "drift control": lambda k: ld.simulate(k.system, k.state, (0, 1), drift=NO_NAME),
    "a joint to lock": lambda k: ld.simulate(
        k.system, k.state, (0, 1), events=[ld.events.At(0.1, action=ld.events.Lock(NO_NAME))]
    ),
    "limits of a joint": lambda k: ld.simulate(k.system, k.state, (0, 1), events=[ld.events.Limits(joints=[NO_NAME])]),
    "a name in a formula": lambda k: ld.simulate(k.system, k.state, (0, 1), events=[ld.events.Crossing("nothing - 1")]),
    "a file": lambda k: ld.load(k.folder / "nothing.yaml"),
    "a run": lambda k: ld.load_run(k.folder / "nothing.nc"),
    "a URDF": lambda k: ld.read_urdf(k.folder / "nothing.urdf"),
    "an SDF": lambda k: ld.read_sdf(k.folder / "nothing.sdf"),
    "an MJCF": lambda k: ld.read_mjcf(k.folder / "nothing.xml"),
    "a parameter of variants": lambda k: ld.analyses.variants(k.m, [{NO_NAME: 1.0}], (0, 0.01)),
    "an option of variants": lambda k: ld.analyses.variants(k.m, [{"crank": 0.5}], (0, 0.01), no_such_option=1),
    "an input of a report": lambda k: ld.report(k.m, k.folder / "report.html", t_span=(0, 0.01), turn=NO_NAME),
    "an option of a report": lambda k: ld.report(k.m, k.folder / "report.html", t_span=(0, 0.01), no_such_option=1),
    "a parameter": lambda k: k.m.with_(no_such_name=1.0),
    "a value of a parameter": lambda k: k.m.with_(crank=WRONG),
    "a cut": lambda k: k.m.compile(cuts=[NO_NAME]),
    "a free body": lambda k: k.m.compile(free=[NO_NAME]),
    "a joint as a text": lambda k: changed(k, lambda m: m.add_joint("X", "revolute", m.ground, "crank", at=(0, 0, 0))),
    "a joint as a class": lambda k: k.m.add_joint("X", ld.Revolute, "ground", "crank", at=(0, 0, 0)),
    "a parent": lambda k: changed(k, lambda m: m.add_joint("X", PIN, NO_NAME, "crank", at=(0, 0, 0))),
    "a child": lambda k: changed(k, lambda m: m.add_joint("X", PIN, m.ground, NO_NAME, at=(0, 0, 0))),
    "a frame": lambda k: changed(k, lambda m: m.add_joint("X", PIN, "ground", "crank", child_frame=NO_NAME)),
    "limits": lambda k: changed(k, lambda m: m.add_joint("X", PIN, m.ground, "crank", at=(0, 0, 0), limits=WRONG)),
    "a joint with a motor": lambda k: changed(k, lambda m: m.add_motor("X", NO_NAME, torque=1.0)),
    "a torque": lambda k: changed(k, lambda m: m.add_motor("X", "A", torque=WRONG)),
    "a motor's force": lambda k: changed(k, lambda m: m.add_motor("X", "A", force=WRONG)),
    "a joint with a driver": lambda k: changed(k, lambda m: m.add_driver("X", NO_NAME, "t")),
    "a motion": lambda k: changed(k, lambda m: m.add_driver("X", "A", WRONG)),
    "a base": lambda k: changed(k, lambda m: m.move_base(NO_NAME, x="t")),
    "a direction of a base": lambda k: changed(k, lambda m: m.move_base(no_such_direction="t")),
    "a motion of a base": lambda k: changed(k, lambda m: m.move_base(x=WRONG)),
    "a joint with a spring": lambda k: changed(
        k, lambda m: m.add_force(None, ld.forces.JointSpring(joint=NO_NAME, stiffness=1.0))
    ),
    "a body that is none": lambda k: changed(k, lambda m: m.bodies.update(X=WRONG)),
    "gravity": lambda k: setattr(k.m, "gravity", NO_NAME),
    "an attribute": lambda k: setattr(k.m, "gravty", (0, 0, -9.81)),
    "a coordinate of a state": lambda k: k.system.state(q={NO_NAME: 1.0}),
    "a body of a run": lambda k: k.run.point(NO_NAME, at=(0, 0, 0)),
    "a point": lambda k: k.run.point("crank", at=5),
    "a body with a counterweight": lambda k: k.run.counterweight(NO_NAME, 1.0, at=(0, 0, 0)),
    "a place of a counterweight": lambda k: k.run.counterweight("crank", 1.0, at=5),
    "a motor of a counterweight": lambda k: k.run.counterweight("crank", 1.0, at=(0, 0, 0), motors=[NO_NAME]).loads,
    "a time of a run": lambda k: k.run.at(1.0),
    "an option of an animation": lambda k: k.run.animate(k.folder / "run.html", no_such_option=1),
    "an option of a film": lambda k: k.run.animate(k.folder / "run.gif", no_such_option=1),
    "a kind of file": lambda k: k.run.animate(k.folder / "run.nothing"),
    "a variable": lambda k: k.run.data[NO_NAME],
    "a coordinate of a run": lambda k: k.run.data["q"].sel(coordinate=NO_NAME),
    "coordinates of a run": lambda k: k.run.data["q"].sel(coordinate=["A", NO_NAME]),
    "a joint of a run": lambda k: k.run.data["wrench"].sel(joint=NO_NAME),
    "a joint of a run, by loc": lambda k: k.run.data["wrench"].loc[{"joint": NO_NAME}],
    "a body's pose": lambda k: k.run.body(NO_NAME),
    "a joint's reactions": lambda k: ld.reactions(k.system, k.state)[NO_NAME],
    "a joint's reactions, labelled": lambda k: ld.reactions(k.system, k.state).dataset().sel(joint=NO_NAME),
    "a row of the terms": lambda k: ld.terms(k.system, k.state).dataset().sel(row=NO_NAME),
    "a bearing": lambda k: k.run.bearings().load(NO_NAME),
    "axes of a bearing": lambda k: k.run.bearings().load("A", axes=NO_NAME),
    "parts of a bearing": lambda k: k.run.bearings().parts(NO_NAME),
    "a bearing, labelled": lambda k: k.run.bearings().data.sel(joint=NO_NAME),
    "a plot of reactions": lambda k: k.run.plot.reactions(NO_NAME),
    "an output of a drive": lambda k: k.drive.ratio(NO_NAME),
    "an input of a drive": lambda k: k.drive.ratio("D", by=NO_NAME),
    "a transmission angle": lambda k: k.drive.transmission_angle(NO_NAME),
    "a place of a transmission angle": lambda k: k.drive.transmission_angle("D", at=NO_NAME),
    "a plot of a drive": lambda k: k.drive.plot(NO_NAME),
    "a body of a drive": lambda k: k.drive.point(NO_NAME, at=(0, 0, 0)),
    "a unit of a drive": lambda k: k.drive.unit(NO_NAME),
    "a value of a drive": lambda k: k.drive[WRONG],
    "a step of a drive": lambda k: k.drive.state(3),
    "a state of a motion": lambda k: k.inverse.state(2),
    "a motor's load": lambda k: k.inverse.data["load"].sel(motor=NO_NAME),
    "a body of a graph": lambda k: k.system.topology.inboard(NO_NAME),
    "axes to draw the mechanism in": lambda k: k.system.plot(ax=WRONG),
    "axes to draw the graph in": lambda k: k.system.topology.plot(ax=WRONG),
    "a coordinate to sweep": lambda k: ld.analyses.coordinates(k.system, k.state).sweep(NO_NAME),
    "a body's Jacobian": lambda k: ld.tree.open_tree_body_jacobian(k.system, NO_NAME, k.state),
    "too few accelerations": lambda k: ld.reactions(k.system, k.state, np.zeros(1)),
    "too few accelerations of bodies": lambda k: ld.tree.body_motion(k.system, k.state, np.zeros(1)),
    "too many generalised forces": lambda k: ld.tree.open_tree_forward_dynamics(k.system, k.state, np.zeros(4)),
    "too few coordinates": lambda k: ld.tree.increment(k.system, np.zeros(1), k.state.v),
    "a state of another system": lambda k: ld.simulate(k.system, ld.library.pendulum().compile().state(), (0, 1)),
    "a coordinate that is no number": lambda k: ld.mobility(k.system, ld.State(0.0, np.full(3, np.nan), np.zeros(3))),
    "a speed that is no number": lambda k: ld.accelerations(k.system, ld.State(0.0, k.state.q, np.full(3, np.inf))),
    "a time that is no number": lambda k: ld.simulate(k.system, k.state, (0, float("nan"))),
    "a dimension": lambda k: k.m.units.factor(NO_NAME),
    "an angle of 1e300": lambda k: ld.assemble(k.system, q={"A": 1e300}),
    "a span shorter than the digits of time": lambda k: ld.simulate(k.system, k.state, (1e15, 1e15 + 1)),
    "a span shorter than any number": lambda k: ld.simulate(k.system, k.state, (0, 5e-324)),
    "a million million points": lambda k: ld.drive(k.system, "A", (0, 1, 10**12)),
    "a centre of mass without a mass": lambda k: ld.Inertia(com=(0, 0, 1)),
    "one argument too many": lambda k: ld.simulate(k.system, k.state, (0, 1), [0, 1]),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_name_or_value_is_told_in_words(what, known):
    with pytest.raises(ld.LoopdynError) as told:
        CALLS[what](known)
    assert len(str(told.value).split()) > 4  # words


# ------------------------------------------------------------------------------------------------- in particular


def test_a_mechanism_in_place_of_a_system_is_told_to_be_compiled():
    with pytest.raises(ld.LoopdynError, match=r"assemble: system is a Mechanism\..*mechanism\.compile\(\)"):
        ld.assemble(ld.library.four_bar())


def test_an_unknown_label_of_a_result_comes_with_the_nearest_known_one(known):
    with pytest.raises(ld.LoopdynError, match="there is no joint 'a'"):
        known.run.data["wrench"].sel(joint="a")
    with pytest.raises(ld.LoopdynError, match="Did you mean 'wrench'"):
        known.run.data["wrnch"]


def test_labelled_results_remain_what_xarray_makes_of_them(known):
    """Arithmetic between runs, between a run and what was read from a file, tables, and copies."""
    import xarray as xr

    data = known.run.data
    known.run.save(known.folder / "run.nc")
    read = ld.load_run(known.folder / "run.nc").data
    plain = xr.load_dataset(known.folder / "run.nc", engine="h5netcdf")
    for other in (data, read, plain, pickle.loads(pickle.dumps(data))):
        assert float(abs(data["q"] - other["q"]).max()) == 0.0
    assert "no such variable" not in data
    assert data.get("no such variable") is None
    assert data["q"].sel(coordinate=["A"]).to_pandas().shape == (2, 1)


@pytest.mark.parametrize("level", ["position", "velocity"])
def test_a_run_with_a_user_constraint_is_saved_and_read_with_its_system(level, tmp_path):
    m = ld.library.double_pendulum()
    function = (lambda t, q: [q[1] - 0.1]) if level == "position" else (lambda t, q, v: [v[1]])
    m.add_constraint(
        "bent", ld.constraints.UserConstraint(function=function, rows=("angle",), level=level, dimension="angle")
    )
    system = m.compile()
    state = ld.assemble(system)
    run = ld.simulate(system, state, (0, 0.02), t_eval=[0, 0.02], progress=False, formulation="relative")
    run.save(tmp_path / "run.nc")
    assert np.array_equal(ld.load_run(tmp_path / "run.nc", system).path.q, run.path.q)
    with pytest.raises(ld.LoopdynError, match="Give the system"):
        ld.load_run(tmp_path / "run.nc")


def test_known_solutions_of_benchmarks_need_nothing_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpmath", None)  # as if it were missing
    result = CliRunner().invoke(app, ["bench", "A01", "--json"])
    assert result.exit_code == 0, result.output


def test_the_amplitude_of_a_pendulum_that_turns_is_that_of_mpmath():
    import mpmath

    m, t = -45.78, np.linspace(0, 20, 41)
    both = [[mpmath.re(mpmath.ellipfun(f, mpmath.mpf(float(x)) / 2, m=mpmath.mpf(m))) for f in ("sn", "cn")] for x in t]
    expected = np.array([2.0 * float(mpmath.atan2(*x)) for x in both])
    # SciPy's functions are good to some 1e-15 times the argument, here 70; errors of runs are 1e-12 at best
    assert np.abs(np.exp(1j * _amplitude(t, m)) - np.exp(1j * expected)).max() < 5e-13


def test_help_texts_show_what_stands_in_brackets():
    """Markup of the terminal would take [studio] for a style and show nothing."""
    shown = CliRunner().invoke(app, ["studio", "--help"]).output
    assert "loopdyn[studio]" in shown
    for command in app.registered_commands:
        text = inspect.getdoc(command.callback) or ""
        assert not re.search(r"(?<!\\)\[[a-z]", text), command.callback.__name__


def test_public_functions_can_be_pickled_for_other_processes():
    assert pickle.loads(pickle.dumps(ld.simulate)) is ld.simulate
    assert pickle.loads(pickle.dumps(partial(ld.assemble, tries=3))).func is ld.assemble


def test_kinds_of_annotations_are_understood():
    assert kind_of(float | None).fits(np.float32(1.5))
    assert not kind_of(float).fits(True)
    assert kind_of(tuple[float, float]).fits(np.array([0.0, 1.0]))
    assert not kind_of(tuple[float, float]).fits((0.0, 1.0, 2.0))
    assert kind_of(dict[str, tuple[float, float]]).fits({"A": [0, 1]})
    assert kind_of(Any) is ANYTHING
