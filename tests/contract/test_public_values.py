"""Every argument of the functions that users call most, given strange values: a result, or an error in words."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import loopdyn as ld

# What people and programs hand over by mistake. Nothing here asks for hours of work.
STRANGE = [
    *(None, True, -1, 0, 1e-300, 1e308, -np.inf, np.nan, 10**400, 1j),
    *("", " ", "A", "A.angle", "0/0", "\0", b"A"),
    *((), [], {}, set(), (0, 0), (1, 0), [[1]], ["A", "A"], {"A": None}, {"A": np.nan}, {"A": "t"}, {1: 2}),
    *(np.zeros((2, 2)), np.array("A"), np.array([None]), np.float32(1), np.int8(1), np.datetime64("2020")),
    *(range(3), iter([1]), lambda *x: None, object, ld, ld.Revolute((0, 0, 1)), ld.Units(), slice(None), Ellipsis),
]


@pytest.fixture(scope="module")
def known():
    m = ld.library.four_bar()
    m.add_motor("motor", "A", torque=1.0)
    system = m.compile()
    state = ld.assemble(system, v={"A": 2.0})
    steps = ld.integrators.RK4(step=0.01)
    run = ld.simulate(system, state, (0, 0.02), t_eval=[0, 0.02], integrator=steps, progress=False)
    drive = ld.drive(system, "A", (0, 0.2, 3))
    return SimpleNamespace(m=m, system=system, state=state, steps=steps, run=run, drive=drive, bearings=run.bearings())


def built(k, method, **arguments):
    m = k.m.model_copy(deep=True)
    getattr(m, method)(**arguments)
    return m.compile()


CALLS = {
    "assemble": lambda k, **x: ld.assemble(k.system, **{"q": {"A": 0.1}, "v": {"A": 1.0}, "tries": 2, **x}),
    "mobility": lambda k, **x: ld.mobility(**{"system": k.system, "state": k.state, **x}),
    "accelerations": lambda k, **x: ld.accelerations(**{"system": k.system, "state": k.state, **x}),
    "reactions": lambda k, **x: ld.reactions(k.system, **{"state": k.state, "a": np.zeros(3), **x}),
    "terms": lambda k, **x: ld.terms(k.system, **{"state": k.state, **x}),
    "simulate": lambda k, **x: ld.simulate(
        k.system, **{"state": k.state, "t_span": (0, 0.01), "integrator": k.steps, "progress": False, **x}
    ),
    "drive": lambda k, **x: ld.drive(k.system, **{"inputs": "A", "motion": (0, 0.1, 3), **x}),
    "inverse_dynamics": lambda k, **x: ld.inverse_dynamics(k.system, **{"motion": {"A": "t"}, "t_eval": [0, 0.1], **x}),
    "state": lambda k, **x: k.system.state(**x),
    "compile": lambda k, **x: k.m.compile(**x),
    "with_": lambda k, **x: k.m.with_(**x),
    "add_body": lambda k, **x: built(k, "add_body", **{"name": "X", "inertia": ld.Inertia.point(1.0), **x}),
    "add_joint": lambda k, **x: built(
        k,
        "add_joint",
        **{"name": "X", "joint": ld.Revolute((0, 0, 1)), "parent": "crank", "child": "rocker", "at": (0, 0, 0), **x},
    ),
    "add_motor": lambda k, **x: built(k, "add_motor", **{"name": "X", "joint": "A", "torque": 1.0, **x}),
    "add_driver": lambda k, **x: built(k, "add_driver", **{"name": "X", "joint": "A", "motion": "t", **x}),
    "point": lambda k, **x: k.run.point(**{"body": "crank", "at": (0, 0, 0), **x}),
    "at": lambda k, **x: k.run.at(**x),
    "load of a bearing": lambda k, **x: k.bearings.load(**{"joint": "A", **x}),
    "ratio": lambda k, **x: k.drive.ratio(**{"output": "D", **x}),
    "inertia": lambda k, **x: ld.Inertia.rod(**{"mass": 1.0, "start": (0, 0, 0), "end": (1, 0, 0), **x}),
    "mechanism": lambda k, **x: ld.Mechanism(**{"name": "m", **x}).compile(),
}
ARGUMENTS = {
    "assemble": ("q", "v", "fix", "near", "t", "limits", "search"),
    "mobility": ("system", "state"),
    "accelerations": ("system", "state", "formulation", "full"),
    "reactions": ("state", "a", "formulation", "length", "compliance", "loads"),
    "terms": ("state", "angles"),
    "simulate": ("state", "t_span", "t_eval", "formulation", "rtol", "atol", "drift", "events", "progress"),
    "drive": ("inputs", "motion", "t_span", "t_eval", "near", "limits"),
    "inverse_dynamics": (
        *("motion", "t_eval", "t_span", "motors", "rule", "weights", "preload", "near", "impossible", "tolerance"),
    ),
    "state": ("q", "v", "t"),
    "compile": ("cuts", "free"),
    "with_": ("crank", "gravity"),
    "add_body": ("name", "inertia", "pose", "axes", "frames"),
    "add_joint": ("name", "joint", "parent", "child", "at", "limits"),
    "add_motor": ("name", "joint", "torque", "force"),
    "add_driver": ("name", "joint", "motion"),
    "point": ("body", "at"),
    "at": ("t",),
    "load of a bearing": ("joint", "axes"),
    "ratio": ("output", "by"),
    "inertia": ("mass", "start", "end", "radius"),
    "mechanism": ("name", "gravity", "units", "parameters", "bodies", "joints", "start"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("call", "name"), [(call, name) for call, names in ARGUMENTS.items() for name in names])
def test_a_strange_value_is_used_or_told_in_words(call, name, known):
    for value in STRANGE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                CALLS[call](known, **{name: value})
            except ld.LoopdynError as error:
                if "there is no argument" in str(error):
                    pytest.fail(f"{call} has no argument {name}")
            except Exception as error:
                pytest.fail(f"{call}({name}={value!r}): {type(error).__name__}: {error}")
