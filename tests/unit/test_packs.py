"""Kernels of an installed pack: used where all agrees, else never, and it is said why.

Kernels are those of the small package `probe` of `test_jit`; their values are worked out by hand there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numba
import pytest
from tests.unit.test_jit import INNER, OUTER, RUN, Workshop

from loopdyn.engine import packs

PLATFORM = "x86_64-unknown-linux-gnu"
V4 = packs.Level("x86-64-v4", ("avx2", "fma", "avx512f"))
V3 = packs.Level("x86-64-v3", ("avx2", "fma"))
TARGETS = {level: (PLATFORM, level.cpu, "") for level in (V4, V3)}

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a pack that consists of a manifest, with some facts changed, and search it."""

    def install(text=None, **changed):
        folder = tmp_path / packs.PACKAGE
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        facts = packs.manifest("0.2.0", "engine", TARGETS) | changed
        (folder / packs.MANIFEST).write_text(json.dumps(facts) if text is None else text)
        packs.search.cache_clear()
        return packs.search("engine", PLATFORM)

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(packs, "host_features", lambda: {"avx2", "fma", "sse2"})
    yield install
    packs.search.cache_clear()


def test_a_pack_whose_facts_agree_is_used(installed):
    found = installed()
    assert found.refusal == ""
    assert found.pack.target == (PLATFORM, "x86-64-v3", "")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"numba": "0.67.0"}, "made for numba 0.67.0"),
        ({"python": "cpython-310"}, "made for python cpython-310"),
        ({"engine": "another"}, "other sources of loopdyn"),
        ({"levels": [{"target": ["arm64-apple-darwin", "generic", ""], "needs": []}]}, "made for arm64-apple-darwin"),
        ({"levels": []}, "cannot be read"),
        ({"format": 99}, "another format"),
        ({"text": "{"}, "cannot be read"),
        ({"text": "{}"}, "cannot be read"),
        ({"text": "[]"}, "cannot be read"),
    ],
)
def test_a_pack_that_does_not_agree_is_refused_with_the_reason(installed, changed, words):
    found = installed(**changed)
    assert found.pack is None
    assert words in found.refusal


@pytest.mark.parametrize(
    ("features", "level"),
    [
        ({"sse2", "fma", "avx2"}, "x86-64-v3"),
        ({"sse2", "fma", "avx2", "avx512f"}, "x86-64-v4"),
        ({"sse2", "fma", "avx512f"}, None),  # no real processor: every feature of a level is asked for
    ],
)
def test_the_highest_level_that_the_processor_has_is_used(installed, monkeypatch, features, level):
    monkeypatch.setattr(packs, "host_features", lambda: features)
    found = installed().pack
    assert (found and (found.target[1], found.folder.name)) == (level and (level, level))


def test_a_processor_without_avx2_does_not_use_the_pack(installed, monkeypatch):
    monkeypatch.setattr(packs, "host_features", lambda: {"sse2", "fma"})
    assert installed() == (None, "this processor lacks avx2")


def test_kernels_compiled_beside_one_level_are_not_those_compiled_beside_another(installed, monkeypatch):
    here = installed().pack
    monkeypatch.setattr(packs, "host_features", lambda: set(V4.needs))
    assert installed().pack.identity != here.identity


def test_a_chosen_processor_does_not_use_the_pack(installed, monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64")
    assert "NUMBA_CPU_NAME" in installed().refusal


def test_features_of_a_level_are_known_to_llvm():
    """A misspelt feature would refuse every machine: the level of this one must consist of names that LLVM knows."""
    import platform

    import llvmlite.binding

    known = set(llvmlite.binding.get_host_cpu_features())
    assert {name for level in packs.LEVELS[platform.machine()] for name in level.needs} <= known


# --------------------------------------------------------------------------------------- in processes

COLLECT = """
import json, shutil
from pathlib import Path
from numba.core.registry import cpu_target
from probe.engine import cache, compiler, packs
folder = Path(packs.PACKAGE)
folder.mkdir()
(folder / "__init__.py").touch()
target = cpu_target.target_context.codegen().magic_tuple()
facts = packs.manifest("0.2.0", compiler.ENGINE, {packs.Level(target[1], NEEDS): target})
(folder / packs.MANIFEST).write_text(json.dumps(facts))
for path in cache.entries():
    (folder / target[1] / path.parent.name).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, folder / target[1] / path.parent.name / path.name)
print("{}")
"""
PORTABLE = {"NUMBA_CPU_NAME": "x86-64" if "64" in os.uname().machine and "arm" not in os.uname().machine else "generic"}
PORTABLE |= {"NUMBA_CPU_FEATURES": ""}


@pytest.fixture
def workshop(tmp_path):
    """Two kernels compiled for the plainest processor, in a pack; an empty cache."""
    made = Workshop(tmp_path / "workshop")
    made.write("probe/inner.py", INNER.format(shift="1.0"))
    made.write("probe/outer.py", OUTER)
    made.run(RUN, **PORTABLE)
    made.run(COLLECT.replace("NEEDS", "()"), **PORTABLE)
    shutil.rmtree(made.cache)
    return made


def entries(workshop: Workshop) -> list[Path]:
    return sorted((workshop.folder / packs.PACKAGE).glob("*/*/*.kernel"))


def test_kernels_of_a_pack_are_run_without_compilation_and_nothing_is_written(workshop):
    before = {path: path.read_bytes() for path in entries(workshop)}
    assert len(before) == 2
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}
    assert not workshop.cache.exists()
    assert {path: path.read_bytes() for path in entries(workshop)} == before


def test_kernels_of_other_sources_are_not_taken_from_the_pack_and_those_compiled_instead_are_kept(workshop):
    workshop.write("probe/inner.py", INNER.format(shift="2.0"))
    assert workshop.run(RUN)["value"] == 30.0
    assert workshop.run(RUN) == {"value": 30.0, "hits": 2, "misses": 0}


def test_a_garbled_kernel_of_a_pack_is_not_run_and_left_as_it_is(workshop):
    for path in entries(workshop):
        content = bytearray(path.read_bytes())
        content[-100] ^= 1
        path.write_bytes(content)
    before = {path: path.read_bytes() for path in entries(workshop)}
    done = workshop.start(RUN)
    assert json.loads(done.stdout.splitlines()[-1])["value"] == 20.0
    assert done.stderr.count("damaged kernels") == 1
    assert {path: path.read_bytes() for path in entries(workshop)} == before
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}  # from the cache


def test_a_kernel_of_a_pack_whose_callee_is_garbled_is_compiled_with_its_callee(workshop):
    (callee,) = (path for path in entries(workshop) if "inner" in path.parent.name)
    callee.write_bytes(callee.read_bytes()[:-7])
    assert workshop.run(RUN)["value"] == 20.0
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_without_the_pack_kernels_that_were_compiled_beside_it_are_not_used(workshop):
    workshop.run(RUN)
    shutil.rmtree(workshop.folder / packs.PACKAGE)
    run = workshop.run(RUN)
    assert (run["value"], run["hits"]) == (20.0, 0)


# -------------------------------------------------------------------------------------- of the whole


@pytest.mark.slow
@pytest.mark.timeout(1800)  # everything is compiled
def test_first_steps_with_the_whole_pack_compile_nothing(tmp_path):
    """README, tutorial, gallery, demonstration, studio; what is compiled is counted through Numba's events."""
    import subprocess

    root = Path(__file__).parents[2]
    source = {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(root / "tools" / "kernels.py")]
    made = tmp_path / "wheels"
    folders = ["--cache", str(tmp_path / "compiled"), "--wheels", str(made)]
    subprocess.run([*command, *folders], env=os.environ | source, check=True)
    (wheel,) = made.glob("loopdyn_kernels-*.whl")
    pack = tmp_path / "pack"
    shutil.unpack_archive(wheel, pack, "zip")
    beside = {
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(pack)]),
        "LOOPDYN_CACHE_DIR": str(tmp_path / "none"),
    }
    steps = [sys.executable, str(root / "tools" / "first_steps.py")]
    done = subprocess.run(steps, env=os.environ | beside, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert not (tmp_path / "none").exists()
