"""Studies: designs, measures, results, executors that agree bit for bit."""

from __future__ import annotations

import concurrent.futures
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import loopdyn as ld
from loopdyn.loops import rank, reactions_along, reactions_balance
from loopdyn.loops.elimination import plan, solver
from loopdyn.run import breakpoints
from loopdyn.studies.designs import designs_of
from loopdyn.tree import functions

L = 0.5  # m
OVER = (0, 0.2)


def rod(**tolerances):
    """A rod of length `length` and mass 1 kg that falls from the horizontal about a pin at its end."""
    m = ld.Mechanism("rod", gravity=(0, -10, 0), parameters={"length": L, "mass": 1.0}, tolerances=tolerances)
    body = m.add_body("rod", ld.Inertia.rod(mass="mass", start=(0, 0, 0), end=("length", 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, body, at=(0, 0, 0))
    m.add_point("E", ("length", 0, 0), on="rod")
    return m


def triangle():
    """A bar of length `b` on a slider on the x axis and a crank of length `a` at the angle A: a slider-crank in mm."""
    parameters = {"a": 40.0, "b": 100.0}
    m = ld.Mechanism("slider", units={"length": "mm", "angle": "deg"}, parameters=parameters)
    m.add_point("B", ("a", 0, 0))
    m.add_point("C", ("a + b", 0, 0), on="slide")
    crank = m.add_body("crank", ld.Inertia.point(mass=1.0, at=("a", 0, 0)))
    bar = m.add_body("bar", ld.Inertia.rod(mass=1.0, start="B", end="C"))
    slide = m.add_body("slide", ld.Inertia.point(mass=1.0, at="C"))
    pin = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", pin, m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", pin, crank, bar, at="B")
    m.add_joint("C", pin, bar, slide, at="C")
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, slide, at="C")
    return m


def stroke(a, b, angle):
    """Place of the slide, by Pythagoras."""
    return a * np.cos(angle) + np.sqrt(b**2 - (a * np.sin(angle)) ** 2)


# ------------------------------------------------------------------------------------------------ designs


def test_a_grid_has_all_combinations_and_a_table_keeps_what_it_leaves_empty(tmp_path):
    m = rod()
    found = designs_of(m, {"length": [1, 2], "mass": [3, 4, 5]}, None, None, None)
    assert found.values.tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]
    file = tmp_path / "table.csv"
    file.write_text("name,length,mass\nlong,2,\nheavy,,7\n")
    table = designs_of(m, file, None, None, None)
    assert table.labels == ("long", "heavy")
    assert table.values.tolist() == [[2.0, 1.0], [L, 7.0]]
    frame = designs_of(m, pd.DataFrame({"length": [2.0, np.nan], "mass": [np.nan, 7.0]}), None, None, None)
    assert frame.values.tolist() == table.values.tolist()


@pytest.mark.parametrize("method", ["random", "latin hypercube", "sobol"])
@pytest.mark.parametrize("kind", ["uniform", "normal", "truncated"])
def test_samples_have_the_mean_and_deviation_of_their_distribution(method, kind):
    n, t = 4096, 0.06
    x = ld.designs.samples({"a": f"40 ± {t} {kind}", "b": "5 +0.2 -0"}, n, method=method, seed=1).values
    # uniform: t / sqrt(3); normal: t is three deviations; truncated there: variance 1 - 6 pdf(3) / (1 - 2 tail)
    pdf = math.exp(-4.5) / math.sqrt(2 * math.pi)
    part = 1 - 6 * pdf / math.erf(3 / math.sqrt(2))
    deviation = {"uniform": t / math.sqrt(3), "normal": t / 3, "truncated": t / 3 * math.sqrt(part)}[kind]
    assert x[:, 0].mean() == pytest.approx(40, abs=4 * deviation / math.sqrt(n))
    assert x[:, 0].std() == pytest.approx(deviation, rel=4 / math.sqrt(2 * n))  # four standard errors
    assert x[:, 1].min() >= 5
    assert x[:, 1].max() <= 5.2
    if kind != "normal":
        assert abs(x[:, 0] - 40).max() <= t
    again = ld.designs.samples({"a": f"40 ± {t} {kind}", "b": "5 +0.2 -0"}, n, method=method, seed=1).values
    assert np.array_equal(x, again)


@pytest.mark.parametrize(
    ("designs", "options", "message"),
    [
        ({"lenth": [1.0]}, {}, "Did you mean 'length'"),
        ({"length": "0.5 ± x"}, {"samples": 3}, "no tolerance"),
        ({"length": "0.5 ± 0.1 gaussian"}, {"samples": 3}, "no tolerance"),
        ({"length": "± 0.1"}, {}, "samples=1000"),
        ({"length": "± 0.1"}, {"samples": 3, "method": "sobol"}, "power of two: 4"),
        ({"length": [1.0]}, {"samples": 3}, "Leave them out"),
        ([{"length": "2*mass"}], {}, "no number"),
        ({"length": []}, {}, "at least one"),
        (None, {"samples": 3}, "has no tolerances"),
        (ld.designs.array(["length"], [[1.0], [2.0]]), {"seed": 1}, "Leave them out"),
    ],
)
def test_designs_that_are_not_clear_are_refused(designs, options, message):
    with pytest.raises(ld.LoopdynError, match=message):
        ld.study(rod(), designs, "x(E)", progress=False, **options)


def test_tolerances_of_a_file_are_kept_and_used(tmp_path):
    m = rod(length="± 0.01 normal", mass={"plus": 0.1, "minus": 0.0})
    file = tmp_path / "rod.yaml"
    m.save(file)
    again = ld.load(file)
    assert again.tolerances == m.tolerances
    x = ld.study(again, None, "x(E)", samples=50, progress=False)
    assert x["x(E)"].values == pytest.approx(x["length"].values)
    assert x["mass"].min() >= 1
    wrong = rod(lenth="± 0.01")
    with pytest.raises(ld.errors.ModelError, match=r"tolerance 'lenth'.*Did you mean 'length'"):
        wrong.compile()


# ------------------------------------------------------------------------------------------------ measures


def test_positions_at_an_input_are_those_of_the_triangle():
    a, b = np.array([38.0, 40.0, 42.0]), 100.0
    found = ld.study(triangle(), {"a": a}, {"C": "slide C at A=60", "S": "S at A=60"}, progress=False)
    exact = stroke(a, b, np.radians(60))
    assert found["C.x"].values == pytest.approx(exact, rel=1e-10)  # assembly closes to 1e-12
    assert abs(found["C.y"].values).max() < 1e-9
    assert found["S"].values == pytest.approx(exact - (a + b), rel=1e-9)
    assert found.units == {"C.x": "mm", "C.y": "mm", "C.z": "mm", "S": "mm"}


def test_a_drive_reaches_as_far_as_the_triangle_closes():
    a = np.array([40.0, 125.0])  # the second turns until a sin(A) = b
    found = ld.study(
        triangle(), {"a": a}, {"low": "smallest(x(C))", "reach": "reach", "at": "x(C) at A=100"},
        over={"A": (0, 180, 37)}, progress=False,
    )  # fmt: skip
    assert found.data["status"].values.tolist() == ["finished", "stopped"]
    assert found["low"].values[0] == pytest.approx(60.0)
    assert found["at"].values[0] == pytest.approx(stroke(40.0, 100.0, np.radians(100)))
    assert found["reach"].values[0] == pytest.approx(180.0)
    last = np.degrees(np.arcsin(0.8))  # the last of the 5 degree steps before it
    assert last - 5.0 < found["reach"].values[1] <= last
    assert np.isnan(found["low"].values[1])
    assert "dead point" in found.data["reason"].values[1]


def test_peak_and_rms_loads_are_those_of_a_falling_rod():
    m = rod()
    found = ld.study(
        m, {"length": [0.4, 0.5]}, {"peak": "peak(A radial force)", "fy": "first(A.fy)", "t": "rms(t)",
                                    "x": "x(E) at t=0.1"}, over=OVER, progress=False,
    )  # fmt: skip
    # at the start a quarter of the weight; as the rod turns by w: w'' = 1.5 g / l cos(w)
    assert found["fy"].values == pytest.approx([2.5, 2.5], rel=1e-9)
    for k, length in enumerate((0.4, 0.5)):
        system = m.with_(length=length).compile()
        run = ld.simulate(system, t_span=OVER, progress=False)
        turned = np.abs(run.data["q"].values[:, 0])
        # along the rod m g sin + m l/2 w'^2 = 5/2 m g sin; across it m g cos / 4
        force = 10.0 * np.hypot(2.5 * np.sin(turned), 0.25 * np.cos(turned))
        assert found["peak"].values[k] == pytest.approx(force.max(), rel=1e-6)
        here = ld.simulate(system, t_span=OVER, t_eval=[0.1], progress=False).data["q"].values[0, 0]
        assert found["x"].values[k] == pytest.approx(length * np.cos(here), rel=1e-9)
    assert found["t"].values == pytest.approx(0.2 / math.sqrt(3), rel=1e-4)  # by trapezoids over 201 times


def test_functions_measures_and_equilibria():
    m = rod()
    m.add_measure("height", "y(E)")
    at_rest = ld.study(
        m, {"length": [0.4, 0.6]}, {"h": ld.results.Measure("height"), "k": lambda e: e.stiffness[0, 0]},
        over="equilibrium", progress=False,
    )  # fmt: skip
    assert at_rest["h"].values == pytest.approx([-0.4, -0.6])
    assert at_rest["k"].values == pytest.approx([0.5 * 10 * x for x in (0.4, 0.6)])  # m g l / 2

    poles = ld.study(m, {"length": [0.4, 0.6]}, ["poles", "A"], over="equilibrium", progress=False)
    swing = [math.sqrt(1.5 * 10 / x) for x in (0.4, 0.6)]  # a rod about its end: w^2 = m g l/2 / (m l^2/3)
    for k, sign in ((1, -1.0), (2, 1.0)):
        assert poles[f"pole {k}.im"].values == pytest.approx([sign * w for w in swing], rel=1e-9)
        assert poles[f"pole {k}.re"].values == pytest.approx([0.0, 0.0], abs=1e-9)
    assert poles.units["pole 1.im"] == "rad/s"

    def half(state):
        return 1 / 0

    failed = ld.study(m, {"length": [0.4]}, half, progress=False)
    assert "ZeroDivisionError" in failed.failed["reason"].iloc[0]


@pytest.mark.parametrize(
    ("measure", "over", "message"),
    [
        ("x(E)", OVER, r"varies along the run. Write e.g. peak\(x\(E\)\)"),
        ("peak(x(E))", None, "one value at a pose"),
        ("peak(x(E)) at t=0.1", OVER, "Give one of both"),
        ("x(E) at t=3", OVER, "runs go from 0 to 0.2"),
        ("x(E) at B=3", OVER, "here only at t="),
        ("x(F)", None, "there is no point 'F'"),
        ("ground E", None, "is on 'rod'"),
        ("peak loads", None, "along a run"),
        ("reach", OVER, "over a drive only"),
        ("poles", OVER, "Give over='equilibrium'"),
        ({"status": "x(E)"}, None, "Choose another name"),
        (7, None, "Give a ld.results.Measure"),
        ({}, None, "nothing to measure"),
        ("x(E)", "dynamics", "over is 'dynamics'"),
        ("x(E)", {"A": (0, 1), "B": (0, 1)}, "Drive one"),
        ("peak(A)", {"B": (0, 1)}, "joint coordinate 'B'"),
    ],
)
def test_measures_that_are_not_clear_are_refused(measure, over, message):
    with pytest.raises(ld.LoopdynError, match=message):
        ld.study(rod(), {"length": [0.5]}, measure, over=over, progress=False)


# ------------------------------------------------------------------------------------------------ results


def test_a_region_that_cannot_be_assembled_is_reported_and_never_dropped():
    # a four-bar's triangle inequality in the slider: at A = 90 the crank must be shorter than the bar
    a = np.linspace(90.0, 110.0, 11)
    found = ld.study(triangle(), {"a": a}, {"x": "x(C) at A=90"}, progress=False)
    open_ = a > 100.0
    assert (found.data["status"].values == "not assembled").tolist() == open_.tolist()
    assert len(found.failed) == open_.sum()
    assert found.failed["reason"].str.contains("A").all()
    assert np.isnan(found["x"].values[open_]).all()
    assert found["x"].values[a < 100] == pytest.approx(np.sqrt(100.0**2 - a[a < 100] ** 2), abs=1e-5)
    result = found.yield_({"x": (0, None)})
    assert result.designs == 11
    assert result.unfinished == {"not assembled": 5}
    assert result.within <= 6
    assert "not assembled: 5" in str(found)


def test_best_and_yield_count_what_they_say():
    found = ld.study(rod(), {"length": [0.1, 0.2, 0.3, 0.4]}, {"x": "x(E)"}, progress=False)
    assert found.best()["length"] == 0.1
    assert found.best(largest=True)["length"] == 0.4
    assert found.best("x", limits={"x": (0.15, None)})["length"] == 0.2
    result = found.yield_({"x": (0.15, 0.35)})
    assert (result.value, result.within, result.designs) == (0.5, 2, 4)
    assert result.error == pytest.approx(0.25)  # sqrt(p (1 - p) / n)
    with pytest.raises(ld.LoopdynError, match="no finished design"):
        found.best(limits={"x": (5, None)})


def test_sobol_indices_are_those_of_the_closed_form():
    m = rod()
    m.add_measure("product", "x(E)*mass")
    designs = ld.designs.samples({"length": (0.5, 1.5), "mass": (1.0, 3.0)}, 128, method="saltelli", seed=2)
    found = ld.study(m, designs, {"y": "product"}, progress=False)
    table = found.sensitivity()
    # y = u v: V = E(u2)E(v2) - (EuEv)2; S_u = Ev2 Var u / V
    eu, ev, vu, vv = 1.0, 2.0, 1 / 12, 4 / 12
    V = (vu + eu**2) * (vv + ev**2) - (eu * ev) ** 2
    exact = {"first": [ev**2 * vu / V, eu**2 * vv / V], "total": [1 - eu**2 * vv / V, 1 - ev**2 * vu / V]}
    for name in ("first", "total"):
        assert abs(table[name].values - exact[name]).max() < 4 * table[f"{name}_error"].max()  # four standard errors
        assert table[f"{name}_error"].max() < 0.15


def test_tables_and_files(tmp_path):
    import xarray as xr

    found = ld.study(
        rod(), [{"name": "short", "length": 0.1}, {"name": "bad", "length": 0.0}], {"x": "x(E)"}, progress=False
    )
    assert found.data["status"].values.tolist() == ["finished", "invalid"]
    table = found.table()
    assert list(table.index) == ["short", "bad"]
    assert list(table.columns) == ["length", "x", "status", "reason", "seconds"]
    found.to_csv(tmp_path / "t.csv")
    assert pd.read_csv(tmp_path / "t.csv")["x"][0] == pytest.approx(0.1)
    found.save(tmp_path / "t.nc")
    with xr.open_dataset(tmp_path / "t.nc", engine="h5netcdf") as data:
        assert data["x"].attrs["units"] == "m"
        assert data["status"].values.tolist() == ["finished", "invalid"]
    for draw in (found.plot.scatter("length", "x"), found.plot.histogram("x"), found.plot.pareto("x", "x")):
        assert "1 of 2 designs not finished" in draw.get_suptitle() + "".join(ax.get_title() for ax in draw.axes)
    plan = ld.study(rod(), {"length": [0.1, 0.2]}, {"x": "x(E)"}, explain=True)
    assert plan.designs == 2
    assert "2 designs of length" in str(plan)


# ----------------------------------------------------------------------------------------------- executors

MEASURE = {"p": "peak(C radial force)", "e": "energy error", "x": "D at t=0.1"}
GRID = {"crank": [0.28, 0.3], "g": [9.0, 9.81, 10.0], "rocker": [0.6, 0.01]}  # the last does not close


def numbers(found):
    return [found[name].values.tobytes() for name in found.units] + found.data["reason"].values.tolist()


@pytest.fixture(scope="module")
def serial():
    return ld.study(ld.library.four_bar(), GRID, MEASURE, over=OVER, workers=1, progress=False)


class OneByOne(concurrent.futures.Executor):
    """An executor that computes at once, in this thread."""

    def submit(self, function, /, *args):
        future = concurrent.futures.Future()
        future.set_result(function(*args))
        return future


def test_threads_and_any_executor_give_the_numbers_of_one_worker(serial):
    assert set(serial.data["status"].values) == {"finished", "invalid"}
    m = ld.library.four_bar()
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        for executor, workers in (("threads", 2), (threads, None), (OneByOne(), None)):
            found = ld.study(m, GRID, MEASURE, over=OVER, executor=executor, workers=workers, progress=False)
            assert numbers(found) == numbers(serial)


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_chunks_of_any_size_give_the_same_numbers(serial, monkeypatch, size):
    monkeypatch.setattr("loopdyn.studies.scheduling.Scheduler._size", lambda self: size)
    found = ld.study(ld.library.four_bar(), GRID, MEASURE, over=OVER, progress=False)
    assert numbers(found) == numbers(serial)


def test_what_structure_decides_is_found_once_and_not_for_each_design(monkeypatch):
    calls = {}

    def count(module, name):
        function = getattr(module, name)

        def counted(*given, **named):
            calls[name] = calls.get(name, 0) + 1
            return function(*given, **named)

        monkeypatch.setattr(module, name, counted)

    for module, name in (
        (solver, "plan_elimination"), (plan, "_cut_also"), (reactions_balance, "_order"), (breakpoints, "_profiles"),
        (rank, "_decide"), (rank, "_more_nearby"), (reactions_along, "distribute_along"), (functions, "motion_in"),
    ):  # fmt: skip
        count(module, name)
    found = []
    for n in (3, 7):
        calls.clear()
        values = np.linspace(0.28, 0.3, n)
        ld.study(ld.library.four_bar(), {"crank": values}, "peak loads", over=OVER, workers=1, progress=False)
        found.append(dict(calls))
    each = {name: (found[1][name] - found[0].get(name, 0)) / 4 for name in found[1]}
    # structure and rank: nothing; loads: one state, then all outputs; few motions of bodies
    nothing = dict.fromkeys(("plan_elimination", "_cut_also", "_order", "_profiles", "_decide", "_more_nearby"), 0)
    once = {"distribute_along": 2}
    assert {name: each[name] for name in nothing | once} == nothing | once
    assert min(found[0][name] for name in nothing) >= 1  # they are counted
    assert each["motion_in"] <= 4


def dies(run):
    """Length of the rod of a run; for one length it kills its process."""
    length = run.system.mechanism.parameters["length"]
    if length == 0.3:
        os.kill(os.getpid(), signal.SIGKILL)
    return length


def reads_only(run):
    """Whether this process, a worker, writes no compiled kernels."""
    from loopdyn.engine import cache

    return cache._READ_ONLY


def test_a_process_gives_the_same_numbers_and_a_design_that_kills_it_is_marked():
    designs = {"length": [0.2, 0.3, 0.4]}
    load = {"p": "peak(A radial force)", "e": "energy error"}
    found = ld.study(
        rod(), designs, {**load, "l": dies, "r": reads_only}, over=OVER, executor="processes", workers=1, progress=False
    )
    assert found.data["status"].values.tolist() == ["finished", "worker died", "finished"]
    assert "died twice" in found.data["reason"].values[1]
    alone = ld.study(rod(), designs, load, over=OVER, workers=1, progress=False)
    for name in load:
        assert found[name].values[[0, 2]].tobytes() == alone[name].values[[0, 2]].tobytes()
    assert found["r"].values[[0, 2]].tolist() == [1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_processes_give_the_numbers_of_one_worker(serial, workers):
    m = ld.library.four_bar()
    found = ld.study(m, GRID, MEASURE, over=OVER, executor="processes", workers=workers, progress=False)
    assert numbers(found) == numbers(serial)


def test_what_cannot_be_sent_is_refused_in_words(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as if it were not installed
    with pytest.raises(ld.LoopdynError, match="cannot be sent to other processes"):
        ld.study(rod(), {"length": [0.1]}, lambda s: 1.0, executor="processes", progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "thread"}, "Did you mean 'threads'"),
        ({"executor": 3}, "executor is 3"),
        ({"workers": 0}, "workers is 0"),
        ({"executor": OneByOne(), "workers": 2}, "Leave workers out"),
        ({"paths": True}, "there is none"),
        ({"t_eval": [0.1]}, "t_eval is for runs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ld.LoopdynError, match=message):
        ld.study(rod(), {"length": [0.1]}, "x(E)", progress=False, **options)


# ------------------------------------------------------------------------------------------------ the store


def test_a_study_that_was_stopped_continues_where_it_stopped(tmp_path, serial):
    m, calls = ld.library.four_bar(), []

    def stop(done):
        calls.append(done)
        if done >= 3:
            raise KeyboardInterrupt

    options = {"over": OVER, "store": tmp_path / "s", "workers": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loopdyn.studies.scheduling.Scheduler._size", lambda self: 1)
        with pytest.warns(ld.LoopdynWarning, match="stopped by the user"):
            part = ld.study(m, GRID, MEASURE, progress=stop, **options)
    done = part.data["status"].values != "not run"
    assert 3 <= done.sum() < len(part)
    assert set(part.failed["status"]) <= {"not run", "invalid"}
    again = []
    whole = ld.study(m, GRID, MEASURE, progress=again.append, **options)
    assert numbers(whole) == numbers(serial)
    assert np.array_equal(whole.data["seconds"].values[done], part.data["seconds"].values[done])  # repeats nothing
    for change in ({"over": (0, 0.3)}, {"rtol": 1e-9}):
        with pytest.raises(ld.LoopdynError, match=r"belongs to another study: (over|settings)"):
            ld.study(m, GRID, MEASURE, progress=False, **{**options, **change})
    m.forces.clear()
    with pytest.raises(ld.LoopdynError, match="another study: model differ"):
        ld.study(m.with_(g=9.0), GRID, MEASURE, progress=False, **options)
    with pytest.raises(ld.LoopdynError, match=r"another study: .*designs"):
        ld.study(m, {**GRID, "g": [9.0]}, MEASURE, progress=False, **options)


def test_a_damaged_part_is_set_aside_and_a_store_in_use_is_refused(tmp_path):
    from loopdyn.studies.store import Store

    options = {"store": tmp_path / "s", "progress": False}
    first = ld.study(rod(), {"length": [0.1, 0.2, 0.3]}, "x(E)", **options)
    parts = sorted((tmp_path / "s" / "parts").glob("*.nc"))
    content = bytearray(parts[0].read_bytes())
    content[len(content) // 2] ^= 1
    parts[0].write_bytes(bytes(content))
    (tmp_path / "s" / "parts" / "part_000009.ab12.part.nc").write_bytes(b"incomplete")
    with pytest.warns(ld.LoopdynWarning, match="is damaged"):
        again = ld.study(rod(), {"length": [0.1, 0.2, 0.3]}, "x(E)", **options)
    assert np.array_equal(first["x(E)"], again["x(E)"])
    held = Store(tmp_path / "other", {})
    with pytest.raises(ld.LoopdynError, match="in use by another study"):
        ld.study(rod(), {"length": [0.1]}, "x(E)", store=tmp_path / "other", progress=False)
    held.close()


def test_a_full_disk_loses_nothing_that_is_known(tmp_path, monkeypatch):
    from loopdyn.files import WritingError

    def full(self, part):
        raise WritingError("'part' cannot be written: No space left on device. Free some space.")

    monkeypatch.setattr("loopdyn.studies.store.Store.add", full)
    with pytest.warns(ld.LoopdynWarning, match="No space left"):
        found = ld.study(rod(), {"length": [0.1, 0.2, 0.3]}, "x(E)", store=tmp_path / "s", workers=1, progress=False)
    assert found["x(E)"].values[0] == pytest.approx(0.1)
    assert "No space left" in found.data["reason"].values[-1]


def test_runs_are_kept_on_request(tmp_path):
    ld.study(rod(), {"length": [0.1, 0.2]}, "last(A)", over=OVER, store=tmp_path / "s", paths=True, progress=False)
    files = sorted((tmp_path / "s" / "paths").glob("*.nc"))
    assert [f.name for f in files] == ["design_0000000.nc", "design_0000001.nc"]
    assert ld.load_run(files[1]).system.mechanism.parameters["length"] == 0.2


def test_memory_of_the_driver_does_not_grow_with_what_a_design_computes():
    from loopdyn.studies.scheduling import Board
    from loopdyn.studies.store import FinishedDesigns

    n, m = 100_000, 20
    begin = time.perf_counter()
    board = Board(n, m)
    for k in range(0, n, 1000):
        designs = np.arange(k, k + 1000)
        board.put(
            FinishedDesigns(
                designs, np.zeros((1000, m)), np.full(1000, 5, np.int8), np.zeros(1000), ["why " + str(k)] * 1000
            )
        )
    size = board.values.nbytes + board.status.nbytes + board.seconds.nbytes
    assert board.done == n
    assert size < 20e6
    assert time.perf_counter() - begin < 5.0


DRIVER = """
import resource
import numpy as np
import loopdyn as ld
m = ld.Mechanism("rod", gravity=(0, -10, 0), parameters={"length": 1.0})
m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=("length", 0, 0)))
m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
m.add_point("E", ("length", 0, 0), on="rod")
lengths = np.linspace(0.5, 1.5, 100_000)
found = ld.study(m, {"length": lengths}, {"x": "x(E)"}, workers=1, progress=False, store=STORE)
assert found.finished.all() and abs(found["x"].values - lengths).max() < 1e-12
assert len(found.table()) == 100_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_a_hundred_thousand_designs_fit_in_a_gigabyte_of_the_driver(tmp_path):
    text = DRIVER.replace("STORE", repr(str(tmp_path / "store")))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1000.0, done.stdout  # MB, its libraries included


# ---------------------------------------------------------------------------------------------- the command


def test_the_commands_print_what_python_finds(tmp_path):
    import json

    from typer.testing import CliRunner

    from loopdyn.app.cli import app

    file = tmp_path / "slider.yaml"
    m = triangle()
    m.tolerances = {"a": ld.designs.Tolerance("± 0.1"), "b": ld.designs.Tolerance("± 0.2 normal")}
    m.save(file)

    at = "-m", "x: x(C) at A=60"

    def call(*arguments, code=0):
        result = CliRunner().invoke(app, [str(x) for x in arguments])
        assert result.exit_code == code, result.output
        return result.output

    found = json.loads(call("study", file, *at, "--vary", "a=38:42:3", "--limit", "x=:117", "--json"))
    exact = stroke(np.array([38.0, 40.0, 42.0]), 100.0, np.radians(60))
    assert [row["x"] for row in found["designs"]] == pytest.approx(exact, rel=1e-9)
    assert found["yield"]["within"] == int(np.sum(exact <= 117))
    assert "3 designs of a" in call("study", file, "-m", "x(C)", "--vary", "a=38,40,42")
    assert "about" in call("study", file, "-m", "x(C)", "--vary", "a=38,40,42", "--explain")
    csv = tmp_path / "t.csv"
    text = call("study", file, "-m", "smallest(x(C))", "--drive", "A=0:180:19", "--samples", 5, "--csv", csv)
    assert "5 designs of a, b" in text
    assert len(pd.read_csv(csv)) == 5
    found = json.loads(call("tolerance", file, "-m", "x: x(C) at A=60", "--samples", 20, "--json"))
    slope = 0.5 - 40 * 0.75 / np.sqrt(100**2 - 1200)  # of a cos + sqrt(b2 - a2 sin2) by a
    assert found["contributions"][0]["slope"] == pytest.approx(slope, rel=1e-5)
    assert "of the variance" in call("tolerance", file, "-m", "x(C) at A=60", "--samples", 20, "--clearance", "B=0.01")
    assert "Did you mean 'a'" in call("study", file, "-m", "x(C)", "--vary", "aa=1,2", code=1)
    assert "NAME=LOW:HIGH" in call("study", file, "-m", "x(C)", "--limit", "x", code=2)


def test_a_joint_and_a_point_of_one_name_are_told_apart():
    """The label of a joint is its coordinate everywhere; the point is meant where its body is named."""
    m = ld.library.four_bar()
    m.points |= {"D": {"at": (1.0, 0.0, 0.0), "on": "ground"}}
    found = ld.study(m, {"crank": [0.3]}, {"x": "D at A=0.5"}, progress=False)
    state = ld.assemble(m.with_(crank=0.3).compile(), q={"A": 0.5})
    assert float(found["x"][0]) == pytest.approx(state["D"], abs=1e-12)
