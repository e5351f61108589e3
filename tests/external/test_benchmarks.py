"""The benchmarks run and say the truth about accuracy. Times are measured there and judged by people, not here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import loopdyn

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_tree_benchmark_runs_and_both_engines_agree(tmp_path, monkeypatch):
    pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")
    monkeypatch.setenv("PYTHONPATH", str(Path(loopdyn.__file__).parents[1]))
    report, table = tmp_path / "tree.json", tmp_path / "tree.md"
    command = [sys.executable, ROOT / "benchmarks" / "tree.py", "--quick", "--json", report, "--markdown", table]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    figures = {f["name"]: f for f in json.loads(report.read_text())["figures"]}
    errors = [f["error"] for f in figures.values() if f["error"] is not None]
    assert errors
    assert max(errors) <= 1e-9  # the accuracy the issue asks for; rounding of a chain of 100 is below 1e-12
    assert all(f["value"] > 0 for f in figures.values())
    assert {"import loopdyn (warm)", "growth exponent, 100 to 1000"} <= figures.keys()
    assert table.read_text().startswith("| figure |")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tree.json", "tree.md"]  # nothing else was written


@pytest.mark.slow
def test_the_graph_benchmark_runs_and_loopdyn_is_exact(tmp_path, monkeypatch):
    pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")
    pytest.importorskip("mujoco", reason="MuJoCo belongs to the extra 'bench'")
    monkeypatch.setenv("PYTHONPATH", str(Path(loopdyn.__file__).parents[1]))
    report, table = tmp_path / "graph.json", tmp_path / "graph.md"
    command = [sys.executable, ROOT / "benchmarks" / "graph.py", "--quick", "--json", report, "--markdown", table]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    figures = {f["name"]: f for f in json.loads(report.read_text())["figures"]}
    ours = [f["error"] for name, f in figures.items() if "loopdyn" in name and f["error"] is not None]
    assert ours
    assert max(ours) <= 1e-10  # of sizes of up to 60 bodies, where rounding is below 1e-12
    for engine in ("MuJoCo", "lcaba", "constraintDynamics"):
        errors = [f["error"] for name, f in figures.items() if engine in name and f["error"] is not None]
        assert errors
        assert max(errors) <= 1e-2  # soft constraints, proximal steps: the same mechanism all the same
    assert figures["tower(10): arrays allocated in 1000 evaluations"]["value"] == 0
    assert table.read_text().startswith("| figure |")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.json", "graph.md"]  # nothing else was written


@pytest.mark.slow
def test_the_benchmark_of_simulations_runs_and_all_engines_go_to_the_same_state(tmp_path, monkeypatch):
    pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")
    pytest.importorskip("mujoco", reason="MuJoCo belongs to the extra 'bench'")
    monkeypatch.setenv("PYTHONPATH", str(Path(loopdyn.__file__).parents[1]))
    report, table, picture = (tmp_path / f"simulate.{kind}" for kind in ("json", "md", "png"))
    command = [sys.executable, ROOT / "benchmarks" / "simulate.py", "--quick", "--json", report, "--markdown", table]
    done = subprocess.run([*command, "--plot", picture], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    points = json.loads(report.read_text())["points"]
    smallest = {}
    for p in points:
        smallest[p["engine"]] = min(p["error"], smallest.get(p["engine"], 1.0))
    # steps of 1 ms, rtol 1e-8; MuJoCo's constraints are soft
    assert smallest["loopdyn dop853"] < 1e-6
    assert smallest["Pinocchio RK4"] < 1e-6
    assert smallest["MuJoCo RK4, stiff"] < 1e-3
    assert all(p["gap"] < 1e-11 for p in points if p["engine"].startswith("loopdyn"))
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_the_partition_benchmark_runs_and_all_formulations_agree(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(loopdyn.__file__).parents[1]))
    report, table = tmp_path / "partition.json", tmp_path / "partition.md"
    command = [sys.executable, ROOT / "benchmarks" / "partition.py", "--quick", "--json", report, "--markdown", table]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert report.exists(), done.stderr
    errors = [f["error"] for f in json.loads(report.read_text())["figures"] if f["error"] is not None]
    assert errors
    assert max(errors) <= 1e-10
    assert table.read_text().startswith("| figure |")


@pytest.mark.slow
def test_the_rcr_benchmark_runs_and_agrees_with_graph(tmp_path, monkeypatch):
    pytest.importorskip("pinocchio")
    monkeypatch.setenv("PYTHONPATH", str(Path(loopdyn.__file__).parents[1]))
    report, table, picture = (tmp_path / f"rcr.{x}" for x in ("json", "md", "png"))
    command = [sys.executable, ROOT / "benchmarks" / "rcr.py", "--quick", "--json", report, "--markdown", table]
    done = subprocess.run([*command, "--plot", picture], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert report.exists(), done.stderr
    figures = {f["name"]: f for f in json.loads(report.read_text())["figures"]}
    errors = [f["error"] for f in figures.values() if f["error"] is not None]
    assert errors
    assert max(errors) <= 1e-9
    count = {m: figures[f"ladder, 3 to 5 cells: operations of {m}"]["value"] for m in ("tree", "rcr", "graph")}
    assert count["tree"] < count["graph"] < 4 * count["tree"]  # counts, not times: they are the same on every machine
    assert count["tree"] < count["rcr"] < 4 * count["tree"]
    assert figures["ladder, 3 to 5 cells: operations of traditional, exponent"]["value"] > 2
    assert figures["ladder, 3 to 5 cells: operations of rcr, exponent"]["value"] < 1.05
    assert table.read_text().startswith("| figure |")
    assert picture.stat().st_size > 10_000
