"""Many motions of one structure: each sample is what `simulate` gives, whatever the others are."""

import signal
import threading
import warnings

import numba
import numpy as np
import pytest
from numba.core import event as numba_event

import loopdyn as ld
from loopdyn.loops import rank
from loopdyn.studies import rollout as module
from loopdyn.studies import rollout_runner

TIMES = np.linspace(0.0, 0.4, 9)
SPAN = (0.0, 0.4)


@pytest.fixture(scope="module")
def four_bar():
    return ld.library.four_bar().compile()


@pytest.fixture(scope="module")
def states(four_bar):
    return [ld.assemble(four_bar, q={"A": 0.2 * k}, v={"A": 8.0 - k}) for k in range(6)]


def simulated(system, state, **options):
    return ld.simulate(system, state, SPAN, t_eval=TIMES, progress=False, **options)


def rolled(system, states, **options):
    return ld.rollout(system, states, SPAN, TIMES, progress=False, **options)


def bits(found):
    return [found[name].values.tobytes() for name in ("q", "v", "a")]


def counted(monkeypatch):
    """Calls of `simulate` inside a rollout: of samples that need more than one compiled call."""
    calls, whole = [], rollout_runner.simulate
    monkeypatch.setattr(rollout_runner, "simulate", lambda *a, **k: calls.append(a) or whole(*a, **k))
    return calls


def test_samples_are_those_of_simulate(four_bar, states, monkeypatch):
    calls = counted(monkeypatch)
    found = rolled(four_bar, states)
    assert calls == []
    assert found["q"].dims == ("sample", "time", "coordinate")
    assert found["status"].values.tolist() == ["finished"] * 6
    assert found["q"].attrs["units"] == "coordinate_units"
    assert found["coordinate_units"].values.tolist() == ["rad"] * 3
    for k, state in enumerate(states):
        run = simulated(four_bar, state)
        # the same rows are kept from the reference pose on: the same bits
        np.testing.assert_array_equal(found["q"][k], run.path.q)
        np.testing.assert_array_equal(found["a"][k], run.path.a)
        assert found["reason"].values[k] == run.message


@pytest.mark.parametrize("name", ["stewart_6ups", "slider_crank", "bennett", "rssr", "flyball", "double_pendulum"])
def test_library_mechanisms_equal_simulate_to_rounding(name):
    system = ld.library.ALL[name]().compile()
    state = ld.assemble(system)
    found, run = rolled(system, state), simulated(system, state)
    assert found["status"].values.tolist() == [run.status]
    np.testing.assert_allclose(found["q"][0], run.path.q, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["v"][0], run.path.v, rtol=1e-7, atol=1e-7)


def test_neither_threads_nor_order_nor_other_samples_change_a_bit(four_bar, states):
    every = rolled(four_bar, states, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more threads than cores
        assert bits(rolled(four_bar, states, threads=5)) == bits(every)
    back = rolled(four_bar, states[::-1], threads=2)
    assert bits(back.isel(sample=slice(None, None, -1))) == bits(every)
    for k in (0, 4):
        assert bits(rolled(four_bar, states[k])) == bits(every.isel(sample=slice(k, k + 1)))


def test_a_sample_after_a_singular_passage_is_as_without_it():
    system = ld.library.n_four_bar(2).compile()
    through, beside = ld.assemble(system), ld.assemble(system, v={system.speeds[0]: 0.3})
    span, times = (0.0, 2.0), np.linspace(0.0, 2.0, 5)
    alone = ld.rollout(system, [beside], span, times, progress=False)
    both = ld.rollout(system, [through, beside, through], span, times, threads=1, progress=False)
    for k, state in enumerate([through, beside, through]):
        run = ld.simulate(system, state, span, t_eval=times, progress=False)
        assert both["status"].values[k] == run.status
        np.testing.assert_allclose(both["q"][k, : len(run.path)], run.path.q, atol=1e-6)
    assert bits(both.isel(sample=slice(1, 2))) == bits(alone)


def test_parameters_by_sample_are_those_of_models_with_them(four_bar):
    cranks, speeds = [0.25, 0.3, 0.35], (0.5, 1.6, 9.81)
    found = rolled(four_bar, None, parameters={"crank": cranks, "g": speeds})
    for k, (crank, g) in enumerate(zip(cranks, speeds, strict=True)):
        system = ld.library.four_bar().with_(crank=crank, g=g).compile()
        run = simulated(system, ld.assemble(system))
        np.testing.assert_array_equal(found["q"][k], run.path.q)
    rows = [{"crank": c, "g": g} for c, g in zip(cranks, speeds, strict=True)]
    assert bits(rolled(four_bar, None, parameters=rows, threads=1)) == bits(found)


def loaded_four_bar():
    """Four-bar whose masses, spring, damper, rotor, motor and gravity are parameters."""
    m = ld.library.four_bar()
    m.parameters |= {"heavy": 2.0, "stiff": 3.0, "rest": 0.1, "loss": 0.2, "rotor": 0.05, "torque": 1.5}
    del m.bodies["coupler"]
    m.add_body("coupler", ld.Inertia.rod("heavy", (0, "crank", 0), (1, "crank", 0), radius=0.02))
    m.joints["A"] = m.joints["A"].model_copy(update={"armature": "rotor"})
    m.add_force("spring", ld.forces.JointSpring(joint="D", stiffness="stiff", rest="rest", damping="loss"))
    m.add_motor("motor", "A", torque="torque*sin(3*t)")
    return m


def test_masses_forces_rotors_and_gravity_by_sample_need_one_preparation(monkeypatch):
    m = loaded_four_bar()
    system = m.compile()
    state, calls = ld.assemble(system, v={"A": 5.0}), counted(monkeypatch)
    changes = [{}, {"heavy": 3.0}, {"stiff": 9.0}, {"rest": 0.7}, {"loss": 0.0}, {"rotor": 0.2}, {"torque": 4.0}]
    changes += [{"g": 0.0}, {"heavy": 0.5, "g": 1.6, "stiff": 0.0}]
    found = rolled(system, state, parameters=changes)
    assert calls == []
    assert set(found["status"].values) == {"finished"}
    fresh = [
        ld.simulate(m.with_(**p).compile(cuts=list(system.topology.cuts)), state, SPAN, t_eval=TIMES) for p in changes
    ]
    ends = np.array([run.path.q[-1] for run in fresh])
    assert abs(np.diff(ends, axis=0)).max(axis=1).min() > 1e-4  # each parameter matters
    for k, run in enumerate(fresh):
        np.testing.assert_allclose(found["q"][k], run.path.q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found["a"][k], run.path.a, rtol=1e-8, atol=1e-8)
        assert found["energy_error"].values[k] == pytest.approx(run.energy_error, rel=0.1, abs=1e-12)
    assert bits(rolled(system, state, parameters=changes[::-1], threads=1).isel(sample=slice(None, None, -1))) == bits(
        found
    )


def test_lengths_by_sample_need_one_preparation(monkeypatch):
    m = loaded_four_bar()
    system, calls = m.compile(), counted(monkeypatch)
    lengths = [{}, {"crank": 0.27}, {"crank": 0.31}, {"rocker": 0.85, "frame": 1.05}, {"crank": 0.31, "g": 3.0}]
    found = rolled(system, None, parameters=lengths)
    assert calls == []
    assert set(found["status"].values) == {"finished"}
    for k, change in enumerate(lengths):
        other = m.with_(**change).compile()
        run = simulated(other, ld.assemble(other))
        np.testing.assert_allclose(found["q"][k], run.path.q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found["a"][k], run.path.a, rtol=1e-8, atol=1e-8)
        assert found["energy_error"].values[k] == pytest.approx(run.energy_error, rel=0.1, abs=1e-12)
    turned = rolled(system, None, parameters=lengths[::-1], threads=1)
    assert bits(turned.isel(sample=slice(None, None, -1))) == bits(found)


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_lengths_that_leave_a_motion_of_the_first_order_alone_are_simulated(speed, monkeypatch):
    """A coupler on three upright cranks moves only if they are equally long; the rank at the start does not tell."""
    m = ld.Mechanism("cranks", gravity=(0, -10, 0), parameters={"third": 0.3})
    m.add_body("coupler", ld.Inertia.rod(1.0, (0, 0.3, 0), (2, 0.3, 0), radius=0.02))
    for name, x, foot in (("A", 0, 0), ("B", 1, 0), ("C", 2, "0.3 - third")):
        m.add_body(name, ld.Inertia.rod(1.0, (x, foot, 0), (x, 0.3, 0), radius=0.02))
        m.add_joint(f"{name}0", ld.Revolute(axis=(0, 0, 1)), m.ground, name, at=(x, foot, 0))
        m.add_joint(f"{name}1", ld.Revolute(axis=(0, 0, 1)), name, "coupler", at=(x, 0.3, 0))
    m.start = m.start.model_copy(update={"v": {"A0": speed}})
    system, calls = m.compile(), counted(monkeypatch)
    found = rolled(system, None, parameters={"third": [0.3, 0.4]}, threads=1)
    assert len(calls) == speed
    assert found["status"].values.tolist() == ["finished", "failed" if speed else "finished"]  # at rest nothing moves
    assert ("singular pose" in str(found["reason"].values[1])) == bool(speed)
    if not speed:
        assert np.ptp(found["q"].values[1], axis=0).max() < 1e-12  # rounding


@pytest.mark.parametrize("change", [{"heavy": 0.0}, {"rotor": 0.0}])
def test_parameters_that_change_inertia_or_rotors_to_none_are_decided_again(change, monkeypatch):
    m = loaded_four_bar()
    system, calls = m.compile(), counted(monkeypatch)
    found = rolled(system, None, parameters=[{}, change, {}], threads=1)
    assert len(calls) == 1
    other = m.with_(**change).compile()
    run = simulated(other, ld.assemble(other))
    np.testing.assert_array_equal(found["q"][1], run.path.q)
    assert bits(found.isel(sample=[0])) == bits(found.isel(sample=[2]))


def test_parameters_are_read_out_by_sample(four_bar, states):
    found = rolled(four_bar, states[0], parameters=[{"g": 9.0}, {}, {"g": 3, "crank": 0.3}])
    own = four_bar.mechanism.parameters
    expected = [[9.0, own["crank"]], [own["g"], own["crank"]], [3.0, 0.3]]
    assert found["parameters"].sel(parameter=["g", "crank"]).values.tolist() == expected
    assert "parameters" not in rolled(four_bar, states[0])


def test_warnings_about_parameters_name_a_sample(four_bar, states):
    with pytest.warns(ld.LoopdynWarning, match="sample 1: .*gravity is 9810") as found:
        rolled(four_bar, states[0], parameters={"g": [9.81, 9810.0, 9810.0]})
    assert len(found) == 1


def with_motor(law, units=None):
    m = ld.library.four_bar()
    m.add_motor("motor", "A", torque=law)
    m.add_force("push", ld.forces.AppliedForce(body="rocker", at=(1, 0.3, 0), force=(0, 0, 0)))
    return m


@pytest.mark.parametrize("interpolation", ["monotone", "linear", "cubic"])
def test_inputs_are_tables_of_time(interpolation, monkeypatch):
    calls = counted(monkeypatch)
    system = with_motor(0.0).compile()
    t = np.linspace(0.0, 0.4, 5)
    torques = np.array([[0.0, 1.0, 3.0, 1.0, 0.0], [1.0, 1.0, -2.0, 0.0, 0.5], [2.0] * 5])
    state = ld.assemble(system)
    inputs = {"motor": (t, torques, interpolation), "push.fy": (t, np.sin(9.0 * t))}
    found = rolled(system, state, inputs=inputs)
    assert calls == []
    assert set(found["status"].values) == {"finished"}
    for k, values in enumerate(torques):
        m = with_motor(ld.forces.Table(of="t", points=list(zip(t, values, strict=True)), interpolation=interpolation))
        push = ld.forces.Table(of="t", points=list(zip(t, np.sin(9.0 * t), strict=True)))
        m.forces["push"] = ld.forces.AppliedForce(body="rocker", at=(1, 0.3, 0), force=(0, push, 0))
        other = m.compile()
        run = simulated(other, ld.assemble(other))
        np.testing.assert_allclose(found["q"][k], run.path.q, rtol=0, atol=1e-12)


def test_inputs_are_in_the_units_of_the_model():
    def arm(**units):
        m = ld.Mechanism("arm", units=units)
        length = 1000.0 if units else 1.0
        m.add_body("arm", ld.Inertia.sphere(1000.0 if units else 1.0, 0.1 * length))
        m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "arm", at=(0, 0, 0))
        m.add_motor("motor", "A", torque=0.0)
        return m.compile()

    t = np.linspace(0.0, 0.4, 3)
    found = []
    for system, torque in ((arm(), 2.0), (arm(length="mm", mass="g", torque="N*mm", angle="deg"), 2000.0)):
        found.append(rolled(system, system.state(), inputs={"motor": (t, np.full(3, torque))}))
    inertia = 0.4 * 0.1**2  # of a sphere
    for data, unit in zip(found, (1.0, np.pi / 180.0), strict=True):
        np.testing.assert_allclose(
            data["q"].values[0, :, 0] * unit, 0.5 * 2.0 / inertia * TIMES**2, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("reduce", ["peak", "last", "rms"])
def test_reductions(four_bar, states, reduce):
    every, found = rolled(four_bar, states), rolled(four_bar, states, reduce=reduce)
    assert found["v"].dims == ("sample", "speed")
    assert "time" not in found.dims
    x = every["v"].values
    steps = np.diff(TIMES)[:, None]
    expected = {
        "peak": np.abs(x).max(axis=1),
        "last": x[:, -1],
        "rms": np.sqrt((0.5 * (x[:, 1:] ** 2 + x[:, :-1] ** 2) * steps).sum(axis=1) / 0.4),
    }[reduce]
    np.testing.assert_allclose(found["v"], expected, rtol=1e-12)


@numba.njit
def largest_angle(t, q, v, a):
    return q[:, 0].max()


@numba.njit
def ends(t, q, v, a):
    return q[-1] - q[0]


def test_reduction_by_a_compiled_function(four_bar, states):
    every = rolled(four_bar, states)
    found = rolled(four_bar, states, reduce=largest_angle)
    np.testing.assert_array_equal(found["value"], every["q"].values[:, :, 0].max(axis=1))
    found = rolled(four_bar, states, reduce=ends)
    assert found["value"].dims == ("sample", "item")
    np.testing.assert_array_equal(found["value"], every["q"].values[:, -1] - every["q"].values[:, 0])


@numba.njit
def inverse_of_speed(t, q, v, a):
    if v[0, 0] == 8.0:
        raise ValueError("too fast")
    return 1.0 / v[0, 0]


def test_a_reduction_that_raises_fails_its_sample_alone(four_bar, states):
    found = rolled(four_bar, states, reduce=inverse_of_speed, threads=1)
    assert found["status"].values.tolist() == ["failed"] + ["finished"] * 5
    assert "too fast" in str(found["reason"].values[0])
    np.testing.assert_allclose(found["value"], [np.nan, *(1.0 / (8.0 - k) for k in range(1, 6))])


def test_a_wrong_sample_never_stops_the_others(four_bar, states):
    broken = ld.State(0.0, np.full(3, np.nan), np.zeros(3))
    open_ = ld.State(0.0, states[0].q + 0.1, states[0].v)
    found = rolled(four_bar, [states[0], broken, open_, states[1]])
    assert found["status"].values.tolist() == ["finished", "failed", "failed", "finished"]
    assert "is nan" in str(found["reason"].values[1])
    assert "is open by" in str(found["reason"].values[2])
    assert np.isnan(found["q"].values[1:3]).all()
    assert bits(found.isel(sample=[0, 3])) == bits(rolled(four_bar, states[:2]))
    reduced = rolled(four_bar, [states[0], broken], reduce="peak")
    assert np.isnan(reduced["q"].values[1]).all()


def test_models_that_cannot_be_assembled_or_compiled_are_marked(four_bar):
    found = rolled(four_bar, None, parameters={"crank": [0.3, 5.0, np.nan], "rocker": 0.6})
    assert found["status"].values.tolist() == ["finished", "failed", "failed"]
    assert "acos" in str(found["reason"].values[1])
    assert "not a finite number" in str(found["reason"].values[2])


def test_limits_stop_a_sample_as_they_stop_a_run():
    m = ld.library.double_pendulum()
    m.joints["A"] = m.joints["A"].model_copy(update={"limits": (-0.5, 1.0), "at_limit": "stop"})
    system = m.compile()
    down, up = system.state(), system.state(v={"A": 2.0})
    found = rolled(system, [up, down])
    for k, state in enumerate((up, down)):
        run = simulated(system, state)
        assert (str(found["status"].values[k]), str(found["reason"].values[k])) == (run.status, run.message)
        n = int(np.searchsorted(TIMES, run.path.t[-1], side="right"))
        np.testing.assert_array_equal(found["q"].values[k, :n], run.path.q[:n])
        assert np.isnan(found["q"].values[k, n:]).all()
    assert "stopped" in found["status"].values


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"states": []}, "there are no samples"),
        ({"parameters": []}, "there are no samples"),
        ({"parameters": {"crnak": [1.0]}}, "Did you mean 'crank'"),
        ({"parameters": {"crank": [0.3, 0.3], "g": [1.0, 2.0, 3.0]}}, "Give one for all"),
        ({"parameters": {"crank": [0.3, 0.3, 0.3]}}, "3 samples, but 2 of states"),
        ({"parameters": {"crank": "g/2"}}, "parameter 'crank' is 'g/2'. Give a number"),
        ({"parameters": [{"crank": 0.3}, {"crank": None}]}, "parameter 'crank' is None"),
        ({"threads": 0}, "threads is 0"),
        ({"reduce": "mean"}, "there is no reduction 'mean'"),
        ({"reduce": len}, "Compile it"),
        ({"inputs": {"motr": (0, 1)}}, "there is no force 'motr'"),
        ({"rtol": 0.0}, "rtol is 0"),
        ({"t_span": (1, 0)}, "t_span"),
    ],
)
def test_wrong_arguments(four_bar, states, options, words):
    given = {"states": states[:2], "t_span": SPAN, "progress": False, **options}
    with pytest.raises(ld.LoopdynError, match=words.replace("(", r"\(")):
        ld.rollout(four_bar, **given)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (((0, 0.2), (1, 1)), "Give values for the whole run"),
        (((0, 0.4), (1, np.nan)), "not finite"),
        (((0, 0.4, 0.2), (1, 1, 1)), "must increase"),
        (((0, 0.4), (1, 1, 1)), "shapes"),
        (((0, 0.4), (1, 1), "spline"), "no interpolation 'spline'"),
        ("x", "is no table"),
    ],
)
def test_wrong_inputs(table, words):
    system = with_motor(0.0).compile()
    with pytest.raises(ld.LoopdynError, match=words):
        rolled(system, ld.assemble(system), inputs={"motor": table})


def test_states_of_another_structure_are_refused(four_bar, states):
    other = ld.library.slider_crank().compile()
    with pytest.raises(ld.LoopdynError, match=r"sample 1: .*All samples have one structure"):
        rolled(four_bar, [states[0], ld.State(0.0, np.zeros(7), np.zeros(7))])
    with pytest.raises(ld.LoopdynError):
        rolled(four_bar, [other])


def test_python_functions_are_refused_in_words():
    m = ld.library.four_bar()
    m.add_force("mine", ld.forces.UserForce(function=lambda t, q, v: np.zeros(3)))
    with pytest.raises(ld.LoopdynError, match="'mine' is a Python function"):
        rolled(m.compile(), None)


def test_more_threads_than_cores_are_used_with_a_warning(four_bar, states):
    with pytest.warns(ld.LoopdynWarning, match="1000 threads"):
        found = rolled(four_bar, states[:2], threads=1000)
    assert set(found["status"].values) == {"finished"}


def test_too_many_outputs_are_refused(four_bar, states):
    with pytest.raises(ld.LoopdynError, match="Use reduce="):
        ld.rollout(four_bar, states[0], SPAN, np.linspace(0, 0.4, 500_000), parameters={"g": np.full(2000, 9.81)})


def test_ctrl_c_returns_the_finished_samples(four_bar, states):
    ready = threading.Event()

    def shown(done):
        if done and not ready.is_set():
            ready.set()
            signal.raise_signal(signal.SIGINT)

    many = [states[0]] * 2000
    found = ld.rollout(four_bar, many, (0.0, 2.0), [0.0, 2.0], threads=1, progress=shown)
    finished = found["status"].values == "finished"
    assert 0 < finished.sum() < len(many)
    assert set(found["status"].values) == {"finished", "interrupted"}
    assert np.isfinite(found["q"].values[finished]).all()
    assert np.isnan(found["q"].values[~finished]).all()


def test_ctrl_c_ends_a_long_sample(four_bar, states):
    def shown(done):
        signal.raise_signal(signal.SIGINT)

    found = ld.rollout(four_bar, states[0], (0.0, 1e5), [1e5], threads=1, progress=shown)
    assert found["status"].values.tolist() == ["interrupted"]


def test_an_error_of_the_program_itself_is_raised(four_bar, states, monkeypatch):
    monkeypatch.setattr(rollout_runner.Runner, "run", lambda self, k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rolled(four_bar, states)


def test_one_preparation_for_all_samples_of_a_thread(four_bar, states, monkeypatch):
    calls, whole = [], rollout_runner.prepared
    monkeypatch.setattr(rollout_runner, "prepared", lambda *a: calls.append(a) or whole(*a))
    decisions, decide = [], rank._decide
    monkeypatch.setattr(rank, "_decide", lambda *a: decisions.append(a) or decide(*a))
    system = ld.library.four_bar().compile()
    rolled(system, states * 3, threads=1)
    assert (len(calls), len(decisions)) == (1, 1)
    g = np.linspace(1.0, 20.0, 18)
    rolled(system, states * 3, parameters={"g": g}, threads=1)
    assert (len(calls), len(decisions)) == (2, 1)  # the rank is kept with the system


def test_nothing_is_compiled_after_the_first_sample(four_bar, states):
    rolled(four_bar, states[:1], parameters={"g": 9.0, "crank": 0.3})
    rolled(four_bar, None, parameters={"crank": [0.29]})
    with numba_event.install_recorder("numba:compile") as recorder:
        rolled(four_bar, states, parameters={"g": np.linspace(1.0, 20.0, 6)})
        rolled(four_bar, None, parameters={"crank": [0.28, 0.31]})
    assert recorder.buffer == []


def test_no_gap_between_reductions_and_their_names():
    t, x = np.array([2.0]), np.array([[-3.0, 2.0]])
    for how in module.REDUCTIONS:
        np.testing.assert_array_equal(np.abs(module.reduced(how, t, x)), [3.0, 2.0])
