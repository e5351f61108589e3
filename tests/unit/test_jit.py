"""The door to Numba: compiled code is never stale, a second process compiles nothing, users' caches stay theirs.

What concerns several processes is shown on a small package of its own (`probe`) that holds a copy of `jit.py`:
its sources can be edited between two runs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

from loopdyn.engine import cache, jit
from loopdyn.engine.fingerprint import fingerprint
from loopdyn.engine.jit import kernel, prefetch, specialise, whole, window


class Workshop:
    """A folder with the package `probe`, a cache folder, and processes that run a script on it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.cache = folder / "cache"
        self.runs = 0
        (folder / "probe").mkdir(parents=True)
        (folder / "probe" / "__init__.py").touch()
        (folder / "probe" / "engine").mkdir()
        for source in Path(jit.__file__).parent.glob("*.py"):
            text = source.read_text(encoding="utf-8").replace("loopdyn.engine", "probe.engine")
            self.write(f"probe/engine/{source.name}", text)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def moved(self, folder: Path) -> Workshop:
        """The same sources in another folder, with the same cache."""
        made = Workshop(folder)
        shutil.copytree(self.folder / "probe", folder / "probe", dirs_exist_ok=True)
        made.cache = self.cache
        return made

    def start(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.runs += 1
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
        own = {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",  # a .pyc knows its source by size and second only: too coarse for our edits
            "PYTHONHASHSEED": str(self.runs),  # another order of sets in each process
            "LOOPDYN_CACHE_DIR": str(self.cache),
        }
        command = [sys.executable, "-c", script]
        return subprocess.run(
            command, env=inherited | own | environment, cwd=self.folder, capture_output=True, text=True, check=False
        )

    def run(self, script: str, **environment: str) -> dict[str, object]:
        """What the script prints as JSON in its last line."""
        done = self.start(script, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def compiled_files(self, folder: Path) -> list[Path]:
        return sorted(path for ending in ("*.nb[ic]", "*.kernel") for path in folder.rglob(ending))


@pytest.fixture
def workshop(tmp_path):
    made = Workshop(tmp_path / "workshop")
    made.write("probe/inner.py", INNER.format(shift="1.0"))
    made.write("probe/outer.py", OUTER)
    return made


INNER = """
from probe.engine.jit import kernel

@kernel
def step(x):
    return x + {shift}
"""

OUTER = """
from probe.engine.jit import kernel
from probe.inner import step

@kernel
def run(x):
    return 10.0 * step(x)

@kernel
def twice(x):
    return chosen(chosen(x))
"""

COUNT = """
def count(*functions):
    return {
        "hits": sum(sum(f.stats.cache_hits.values()) for f in functions),
        "misses": sum(sum(f.stats.cache_misses.values()) for f in functions),
    }
"""

RUN = (
    COUNT
    + """
import json
from probe.outer import run
from probe.inner import step
print(json.dumps({"value": run(1.0), **count(run, step)}))
"""
)

# ------------------------------------------------------------------------------------------- kernels


def test_an_edited_callee_in_another_file_is_never_run_stale(workshop):
    assert workshop.run(RUN)["value"] == 20.0
    workshop.write("probe/inner.py", INNER.format(shift="2.0"))
    assert workshop.run(RUN)["value"] == 30.0


def test_a_second_process_loads_from_the_cache_and_compiles_nothing(workshop):
    first, second = workshop.run(RUN), workshop.run(RUN)
    assert (first["hits"], first["misses"] > 0) == (0, True)
    assert (second["hits"], second["misses"]) == (2, 0)  # the outer kernel and the one that it calls


def test_going_back_to_earlier_sources_finds_their_cache_again(workshop):
    workshop.run(RUN)
    workshop.write("probe/inner.py", INNER.format(shift="2.0"))
    workshop.run(RUN)
    workshop.write("probe/inner.py", INNER.format(shift="1.0"))
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_an_edit_of_a_file_that_no_kernel_imports_compiles_nothing(workshop):
    workshop.run(RUN)
    workshop.write("probe/elsewhere.py", "from probe.outer import run\n")
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_an_edited_constant_two_imports_away_is_never_run_stale(workshop):
    imports = "from probe.middle import (\n    SHIFT,\n)\n"
    workshop.write("probe/inner.py", imports + INNER.format(shift="SHIFT"))
    workshop.write("probe/middle.py", "from probe import constants\n\nSHIFT = constants.SHIFT\n")
    workshop.write("probe/constants.py", "SHIFT = 1.0\n")
    assert workshop.run(RUN)["value"] == 20.0
    workshop.write("probe/constants.py", "SHIFT = 2.0\n")
    assert workshop.run(RUN)["value"] == 30.0


def test_a_second_checkout_of_the_same_sources_compiles_nothing(workshop, tmp_path):
    assert workshop.run(RUN)["misses"] > 0
    assert workshop.moved(tmp_path / "elsewhere").run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_comments_docstrings_and_other_functions_of_a_file_compile_nothing(workshop):
    workshop.run(RUN)
    edited = INNER.format(shift="1.0").replace("    return", '    """One more."""\n    # by one\n    return')
    workshop.write("probe/inner.py", "\n\nUNUSED = 7\n" + edited + "\n@kernel\ndef unused(x):\n    return x\n")
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_another_cpu_level_compiles_its_own_kernels_and_both_are_kept(workshop):
    workshop.run(RUN)
    portable = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
    assert workshop.run(RUN, **portable)["misses"] > 0
    assert workshop.run(RUN, **portable) == {"value": 20.0, "hits": 2, "misses": 0}
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_a_function_without_a_file_is_compiled_and_not_cached():
    scope: dict[str, types.FunctionType] = {}
    exec("def f(x):\n    return x + 1.0\n", scope)
    assert kernel(scope["f"])(1.0) == 2.0


# ---------------------------------------------------------------------------------------- specialise

# Each class is one way in which a bound function can depend on something that is edited; the first value of the
# pair is written before the edit and the second after it. `twice(1.5)` is worked out by hand.
USER = """
import numba
import numpy as np
import helpers
from helpers import add

@numba.njit
def constant(x):
    return x + {constant}

@numba.njit
def numpy_function(x):
    return np.{numpy_function}(x) + 0.5

@numba.njit
def callee_by_name(x):
    return add(x)

@numba.njit
def callee_by_module(x):
    return helpers.subtract(x)

@numba.njit
def callee_in_comprehension(x):
    return sum([add(y) for y in (x, x)])

@numba.njit
def default(x, by={default}):
    return x + by

NUMBER = {number}

@numba.njit
def number(x):
    return x + NUMBER

TABLE = np.zeros(3000)
TABLE[1500] = {table_entry}

@numba.njit
def table_entry(x):
    return x + TABLE[1500]

def adder(by):
    @numba.njit
    def add_by(x):
        return x + by
    return add_by

closure = adder({closure})

@numba.vectorize
def ufunc(x):
    return x + {ufunc}
"""

HELPERS = """
import numba

@numba.njit
def add(x):
    return x + {add}

@numba.njit
def subtract(x):
    return x - {subtract}
"""

BEFORE = {
    "constant": "3.0",
    "numpy_function": "floor",
    "add": "1.0",
    "subtract": "1.0",
    "default": "1.0",
    "number": "1.0",
    "table_entry": "1.0",
    "closure": "1.0",
    "ufunc": "1.0",
}
AFTER = {
    "constant": "4.0",
    "numpy_function": "ceil",
    "add": "2.0",
    "subtract": "2.0",
    "default": "2.0",
    "number": "2.0",
    "table_entry": "1.0000000001",  # beyond the digits that an array prints
    "closure": "2.0",
    "ufunc": "2.0",
}
VALUES = {  # twice(1.5) before and after
    "constant": (7.5, 9.5),
    "numpy_function": (1.5, 3.5),  # floor: 1.5 -> 1.5 -> 1.5; ceil: 1.5 -> 2.5 -> 3.5
    "callee_by_name": (3.5, 5.5),
    "callee_by_module": (-0.5, -2.5),
    "callee_in_comprehension": (12.0, 18.0),  # 2 (x + s): 5 -> 12 and 7 -> 18
    "default": (3.5, 5.5),
    "number": (3.5, 5.5),
    "table_entry": (3.5, 3.5000000002),
    "closure": (3.5, 5.5),
    "ufunc": (3.5, 5.5),
}

SPECIALISE = (
    COUNT
    + """
import json
import user
from probe.engine.jit import specialise
from probe.outer import twice
made = {name: specialise(twice, chosen=getattr(user, name)) for name in CASES}
print(json.dumps({name: {"value": f(1.5), **count(f)} for name, f in made.items()}))
"""
).replace("CASES", repr(list(VALUES)))


@pytest.fixture(scope="module")
def user_runs(tmp_path_factory):
    """The same user functions bound in three processes: new, unchanged, and edited."""
    workshop = Workshop(tmp_path_factory.mktemp("user") / "workshop")
    workshop.write("probe/inner.py", INNER.format(shift="1.0"))
    workshop.write("probe/outer.py", OUTER)
    workshop.write("user.py", USER.format(**BEFORE))
    workshop.write("helpers.py", HELPERS.format(**BEFORE))
    new, unchanged = workshop.run(SPECIALISE), workshop.run(SPECIALISE)
    workshop.write("user.py", USER.format(**AFTER))
    workshop.write("helpers.py", HELPERS.format(**AFTER))
    return new, unchanged, workshop.run(SPECIALISE)


@pytest.mark.parametrize("case", VALUES)
def test_specialise_hits_the_cache_in_a_second_process(user_runs, case):
    new, unchanged, _ = user_runs
    before, _ = VALUES[case]
    assert new[case] == {"value": before, "hits": 0, "misses": 1}
    assert unchanged[case] == {"value": before, "hits": 1, "misses": 0}


@pytest.mark.parametrize("case", VALUES)
def test_an_edit_that_a_bound_function_depends_on_is_never_run_stale(user_runs, case):
    _, _, edited = user_runs
    _, after = VALUES[case]
    # Sums of a few numbers near 1: exact, but for the one entry that is not a binary fraction (two roundings).
    assert edited[case]["value"] == pytest.approx(after, rel=0, abs=4 * np.spacing(4.0))


def test_functions_that_share_a_name_and_differ_in_body_do_not_collide(workshop):
    same_place = "import numba\n\n@numba.njit\ndef step(x):\n    return x + {}\n"
    workshop.write("one.py", same_place.format("3.0"))
    workshop.write("other.py", same_place.format("4.0"))
    script = (
        COUNT
        + """
import json
import one, other
from probe.engine.jit import specialise
from probe.outer import twice
first = specialise(twice, chosen=one.step)
second = specialise(twice, chosen=other.step)
print(json.dumps({"values": [first(1.0), second(1.0)], **count(first, second)}))
"""
    )
    assert workshop.run(script) == {"values": [7.0, 9.0], "hits": 0, "misses": 2}
    assert workshop.run(script) == {"values": [7.0, 9.0], "hits": 2, "misses": 0}


def test_a_change_of_compiler_options_changes_the_fingerprint():
    def ratio(x):
        return 1.0 / x

    numpy_rules = numba.njit(error_model="numpy")(ratio)
    python_rules = numba.njit(error_model="python")(ratio)
    assert fingerprint(numpy_rules) != fingerprint(python_rules)


@pytest.mark.jit_off
def test_codes_of_a_module_that_exchange_their_values_change_the_fingerprint():
    """Small integers are one object wherever they stand: a code must not be taken for another one of its value."""

    def digest(one: int, other: int) -> str:
        codes = types.ModuleType("codes")
        codes.ONE, codes.OTHER = one, other
        function = types.FunctionType(choose.__code__, {"codes": codes, "FIRST": 1, "SECOND": 2})
        return fingerprint(function)

    assert digest(1, 2) != digest(2, 1)


def choose(kind):
    return (FIRST, SECOND, kind == codes.ONE, kind == codes.OTHER)  # noqa: F821


def test_functions_that_call_each_other_have_a_fingerprint():
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    assert fingerprint(even) != fingerprint(odd)


@kernel
def add_three(x):
    return x + 3.0


@kernel
def apply_twice(x):
    return chosen(chosen(x))  # noqa: F821 (bound by specialise)


@pytest.mark.jit_off
def test_a_bound_function_is_called_in_place_of_the_global_name():
    assert specialise(apply_twice, chosen=add_three)(1.0) == 7.0


@pytest.mark.jit_off
def test_a_specialised_kernel_can_be_bound_in_turn():
    plus_six = specialise(apply_twice, chosen=add_three)
    assert specialise(apply_twice, chosen=plus_six)(1.0) == 13.0


# ------------------------------------------------------------------------------------ plain Python


def test_with_the_jit_off_kernels_are_plain_functions_and_leave_no_files(workshop):
    script = """
import json, types
from probe.engine.jit import kernel, specialise
from probe.outer import run, twice
from probe.inner import step
made = specialise(twice, chosen=step)
plain = all(type(f) is types.FunctionType for f in (run, twice, step, made))
print(json.dumps({"plain": plain, "values": [run(1.0), made(1.0)]}))
"""
    assert workshop.run(script, NUMBA_DISABLE_JIT="1") == {"plain": True, "values": [20.0, 3.0]}
    assert workshop.compiled_files(workshop.folder) == []


# -------------------------------------------------------------------------------- the cache folder


def test_an_unwritable_cache_folder_is_said_in_words_and_results_stay_right(workshop):
    file = workshop.folder / "a_file"
    file.touch()
    done = workshop.start(RUN, LOOPDYN_CACHE_DIR=str(file / "cache"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == 20.0
    message = " ".join(done.stderr.split())
    assert f"cannot write compiled kernels to {file / 'cache'}" in message
    assert "Set LOOPDYN_CACHE_DIR to a folder that can be written." in message
    assert message.count("cannot write") == 1
    assert workshop.compiled_files(workshop.folder) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_said_in_words_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(handle, mode):
        os.close(handle)
        return open("/dev/full", mode, buffering=0)

    monkeypatch.setattr(cache, "_SAID", set())
    monkeypatch.setattr(cache.os, "fdopen", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        cache.write_entry(tmp_path / "a.kernel", "key", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_can_only_be_read_is_used(workshop, monkeypatch, tmp_path):
    """Where entries cannot be marked as used or set aside, as in a folder of another user."""
    workshop.run(RUN)
    refuse = """
import os, pathlib
def refuse(*args, **kwargs):
    raise PermissionError(13, "Permission denied")
os.utime = os.replace = pathlib.Path.replace = pathlib.Path.mkdir = refuse
"""
    old = time.time() - 5 * 86400
    for path in workshop.compiled_files(workshop.cache):
        os.utime(path, (old, old))
    assert workshop.run(refuse + RUN) == {"value": 20.0, "hits": 2, "misses": 0}


@pytest.mark.skipif(sys.platform == "win32", reason="HOME is a matter of other systems")
def test_without_a_home_kernels_are_kept_in_a_temporary_folder_of_the_user(workshop, tmp_path):
    nobody = "import os, pwd\ndef unknown(uid):\n    raise KeyError\npwd.getpwuid = unknown\nos.environ.pop('HOME')\n"
    environment = {
        "LOOPDYN_CACHE_DIR": "",
        "XDG_CACHE_HOME": "",
        "TMPDIR": str(tmp_path),
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    assert workshop.run(nobody + RUN, **environment)["value"] == 20.0
    assert workshop.run(nobody + RUN, **environment)["misses"] == 0


def _truncated(content):
    return content[: len(content) // 2]


def _empty(content):
    return b""


def _one_bit(place):
    def flipped(content):
        k = int(place * (len(content) - 1))
        return content[:k] + bytes([content[k] ^ 4]) + content[k + 1 :]

    return flipped


DAMAGES = {"truncated": _truncated, "empty": _empty, "foreign": lambda content: b"not a kernel" * 100}
DAMAGES |= {f"one bit at {place}": _one_bit(place) for place in (0.0, 0.004, 0.2, 0.5, 0.8, 1.0)}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_never_opened_and_is_set_aside(tmp_path, damage, monkeypatch):
    path = tmp_path / "a.kernel"
    cache.write_entry(path, "key", list(range(1000)))
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    monkeypatch.setattr(cache, "_SAID", set())
    monkeypatch.setattr(cache.pickle, "loads", None)  # it would be opened with this
    with pytest.warns(RuntimeWarning, match="are set aside and compiled again"):
        assert cache.read_entry(path, "key") is None
    assert cache.read_entry(path, "key") is None
    assert [p.name for p in tmp_path.iterdir()] == ["a.damaged"]


def test_a_process_that_meets_damaged_kernels_says_it_once_and_compiles_them_again(workshop):
    workshop.run(RUN)
    truncated, swapped = workshop.compiled_files(workshop.cache)
    swapped.write_bytes(truncated.read_bytes())  # sound by its checksum, but another kernel's
    truncated.write_bytes(_truncated(truncated.read_bytes()))
    done = workshop.start(RUN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == 20.0
    assert done.stderr.count("RuntimeWarning: damaged kernels") == 1
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_of_processes_that_start_together_with_an_empty_cache_one_compiles_each_kernel(workshop):
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: workshop.run(RUN), range(3)))
    assert [run["value"] for run in runs] == [20.0] * 3
    assert sum(run["misses"] for run in runs) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_process_killed_while_it_compiles_leaves_a_cache_that_works(workshop):
    kill = "import os, signal\nfrom probe.engine import cache\n"
    kill += "cache.write_entry = lambda *args: os.kill(os.getpid(), signal.SIGKILL)\n"
    assert workshop.start(kill + RUN).returncode == -signal.SIGKILL
    assert workshop.run(RUN)["value"] == 20.0
    assert workshop.run(RUN) == {"value": 20.0, "hits": 2, "misses": 0}


def test_the_users_own_numba_cache_is_left_alone(workshop):
    workshop.write("theirs.py", "import numba\n\n@numba.njit(cache=True)\ndef theirs(x):\n    return x + 1.0\n")
    script = """
import json, numba
before = numba.config.CACHE_DIR
from probe.outer import run
from theirs import theirs
run(1.0), theirs(1.0)
print(json.dumps({"before": before, "after": numba.config.CACHE_DIR}))
"""
    users = workshop.folder / "users"
    assert workshop.run(script, NUMBA_CACHE_DIR=str(users)) == {"before": str(users), "after": str(users)}
    assert {p.name.split(".")[0] for p in workshop.compiled_files(users)} == {"theirs"}
    assert {p.parent.name for p in workshop.compiled_files(workshop.cache)} == {"probe.outer.run", "probe.inner.step"}


def test_what_nobody_has_used_for_a_month_is_removed_and_nothing_else(tmp_path):
    old, recent = time.time() - 86400 * (cache.DAYS_KEPT + 1), time.time() - 86400 * (cache.DAYS_KEPT - 1)
    names = ("used.kernel", "unused.kernel", "killed.part", "broken.damaged", "thesis.txt")
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (old, old))
    os.utime(tmp_path / "used.kernel", (recent, recent))
    cache.write_entry(tmp_path / "new.kernel", "key", 1)
    assert {p.name for p in tmp_path.iterdir()} == {"new.kernel", "used.kernel", "thesis.txt"}


def test_an_entry_in_use_counts_as_recent(tmp_path):
    path = tmp_path / "a.kernel"
    cache.write_entry(path, "key", 1)
    os.utime(path, (0, 0))
    assert cache.read_entry(path, "key") == 1
    assert path.stat().st_mtime > time.time() - 3600


# ------------------------------------------------------------------------------------------------------- windows


@kernel
def _through_windows(integers, floats):
    """Numbers and parts of windows read and written; integers are read again behind floats that were written."""
    table, line, places = window(floats, 1, 2, 3), window(floats, 7, 3), window(integers, 1, 2)
    for k in range(2):
        table[places[k], 2] = line[places[k]] + table[k, 0]
        line[places[k]] += 1.0
    table[0, :2] = line[1:]
    table[1] *= 2.0
    places[0] = places[1] + 4
    return table[1, places[1]], table.shape[0], line[:2].sum()


@pytest.mark.parametrize("kind", [float, complex])
def test_windows_of_compiled_code_are_those_of_plain_python(kind):
    found = []
    for function in (_through_windows, getattr(_through_windows, "py_func", _through_windows)):
        integers, floats = np.array([9, 0, 1]), np.arange(10).astype(kind)
        found.append((function(integers, floats), integers, floats))
    (a, m, x), (b, n, y) = found
    assert a == b
    assert np.array_equal(m, n)
    assert np.array_equal(x, y)


@kernel
def _through_whole(integers, floats):
    line, places = whole(floats), whole(integers)
    line[places[0]] = line[places[1]] + line.size
    return line.sum()


def test_a_whole_array_as_a_window_is_the_array_itself():
    integers, floats = np.array([2, 0]), np.array([1.0, 2.0, 3.0])
    assert _through_whole(integers, floats) == 1.0 + 2.0 + 4.0
    assert floats[2] == 4.0


# -------------------------------------------------------------------------------------------------- loops


DOUBLED = """
def doubled(x, y):
    for k in range(x.size):
        y[k] = 2.0 * x[k]
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="there is no compiled code to look at")
def test_short_loops_are_compiled_without_vectors_and_the_setting_of_numba_stays():
    x, before = np.arange(9.0), numba.config.LOOP_VECTORIZE
    code, typed = {}, {}
    exec(DOUBLED, typed)  # of no file, so it is not taken from the cache, where there is no code to look at
    for short in (True, False):
        compiled, y = kernel(typed["doubled"], short_loops=short), np.zeros(9)
        compiled(x, y)
        assert np.array_equal(y, 2.0 * x)
        (code[short],) = compiled.inspect_llvm().values()
        assert before == numba.config.LOOP_VECTORIZE
    assert "x double>" not in code[True]
    assert "x double>" in code[False]


REFUSING = """
import math, sys
import numpy as np
import loopdyn as ld
from loopdyn.formulations.registry import formulation_class

class Refusing(np.ndarray):
    def __getitem__(self, index):
        return super().__getitem__(check(index))
    def __setitem__(self, index, value):
        super().__setitem__(check(index), value)

def check(index):
    for i in index if isinstance(index, tuple) else (index,):
        if isinstance(i, (int, np.integer)) and i < 0:
            raise IndexError(f"a kernel uses the index {index}")
    return index

def window(array, start, *shape):
    made[0] += 1
    return array[start : start + math.prod(shape)].reshape(shape).view(Refusing)

made = [0]
for module in list(sys.modules.values()):
    if module.__name__.startswith("loopdyn") and "window" in vars(module):
        module.window = window
for name in sys.argv[1:]:
    system = getattr(ld.library, name)().compile()
    state = ld.assemble(system)
    for formulation in ("graph", "rcr", "relative", "partition", "closure"):
        if formulation_class(formulation)().supports(system) is None:
            ld.prepare(system, formulation, state)(state.t, state.q, state.v)
    ld.simulate(system, state, (0, 0.01), progress=False)
assert made[0] > 1000
"""


def test_no_kernel_counts_from_the_end_of_a_window():
    models = ["four_bar", "tower", "bennett", "slider_crank", "cardan_shaft"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = [sys.executable, "-c", REFUSING, *models]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_prefetch_asks_for_memory_and_does_nothing_else():
    """Also behind the end, where a loop looks ahead."""

    @kernel
    def look(a):
        table = window(a, 0, 3, 2)
        prefetch(table, 2, 0)
        prefetch(table, 1000, 1)
        prefetch(whole(a), 5)
        return table[1, 1]

    if hasattr(look, "_cache"):
        look._cache.disable()  # there is no code to look at in the cache
    a = np.arange(6.0)
    assert look(a) == 3.0
    np.testing.assert_array_equal(a, np.arange(6.0))
    if hasattr(look, "inspect_llvm"):
        (code,) = look.inspect_llvm().values()
        assert code.count("call void @llvm.prefetch") >= 3


def test_an_entry_that_names_a_module_of_other_sources_is_made_anew(tmp_path):
    path = tmp_path / "kernels" / "one.kernel"
    gone = types.ModuleType("loopdyn_of_before")
    gone.Memory = type("Memory", (), {"__module__": "loopdyn_of_before"})
    sys.modules["loopdyn_of_before"] = gone
    try:
        cache.write_entry(path, "key", gone.Memory)
        assert cache.read_entry(path, "key") is gone.Memory
    finally:
        del sys.modules["loopdyn_of_before"]
    assert cache.read_entry(path, "key") is None
    cache.write_entry(path, "key", 2)
    assert cache.read_entry(path, "key") == 2
