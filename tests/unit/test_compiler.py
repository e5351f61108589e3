"""What `engine.compiler` makes of kernels, and what it relies on of Numba, each of which some test here would miss."""

from __future__ import annotations

import gc
import json
import signal
import time
from threading import Thread

import numba
import numpy as np
import pytest
from numba.core import event, typing
from tests.unit.test_jit import Workshop

from loopdyn.engine import cache, compiler, libraries
from loopdyn.engine.jit import inline, kernel, specialise, window

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


class Compilations(event.Listener):
    """Names of the functions that are compiled while it listens."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


@pytest.fixture
def compilations():
    made = Compilations()
    with event.install_listener("numba:compile", made):
        yield made.names


@inline
def scaled(x, factor):
    return x * factor


@inline
def shifted(x, by):
    return scaled(x, 1) + by


@kernel
def inner(x):
    return shifted(x, 1) * 2.0


@kernel
def outer(x):
    return inner(x) + inner(2.0 * x) + shifted(x, 2)


@inline
def through_helper(x):
    return inner(x)


@kernel
def outermost(x):
    return outer(x) + through_helper(x)


def fresh(dispatcher, **bound):
    """The same kernel, not taken from the cache."""
    made = specialise(dispatcher, **bound)
    made._cache.disable()
    return made


def test_kernels_that_call_kernels_and_helpers_compute_what_python_computes():
    assert fresh(outer)(3.0) == 8 + 14 + 5
    assert fresh(outermost)(3.0) == 27 + 8


def test_a_literal_argument_compiles_no_second_version(compilations):
    @inline
    def add(x, by):
        return x + by

    @kernel
    def several(x):
        return add(x, 1) + add(x, 2) + add(x, 3)

    for function in (add, several):
        function._cache.disable()
    assert several(1.0) == 9.0
    assert compilations.count("add") == 1


def test_a_helper_has_no_machine_code_and_its_kernel_has_it_inside():
    made = fresh(inner)
    made(1.0)
    (compiled,) = made.overloads.values()
    assert isinstance(compiled.library, libraries.KernelLibrary)
    (helper,) = shifted.overloads.values()
    assert isinstance(helper.library, libraries.HelperLibrary)
    assert helper.library.get_pointer_to_function(helper.fndesc.llvm_func_name) == 0
    assert "shifted" not in {name.split("$")[0] for name in _called(compiled)}


def test_a_kernel_called_by_a_kernel_is_not_compiled_into_it():
    made = fresh(outer)
    made(1.0)
    (compiled,) = made.overloads.values()
    (called,) = compiled.library.kernels
    assert called == (inner, (numba.float64,))
    symbol = inner.overloads[(numba.float64,)].fndesc.mangled_name
    assert compiled.library._final_module.get_function(symbol).is_declaration


def _called(compiled):
    module = compiled.library._final_module
    return [function.name for function in module.functions if function.is_declaration]


def test_a_compiled_function_of_somebody_else_can_call_helpers_and_kernels():
    @numba.njit
    def theirs(x):
        return shifted(x, 1.0) + outermost(x)

    assert theirs(3.0) == 4.0 + 35.0


def test_a_helper_that_raises_reports_it_from_the_kernel():
    @inline
    def checked(x):
        if x < 0.0:
            raise ValueError("below zero")
        return x

    @kernel
    def root(x):
        return np.sqrt(checked(x))

    assert root(4.0) == 2.0
    with pytest.raises(ValueError, match="below zero"):
        root(-1.0)


FOREIGN = """
def foreign(x):
    s = 0.0
    for k in range(x.size):
        s += x[k] * x[k]
    return s
"""


def test_functions_that_users_compile_are_compiled_as_without_us():
    """Instruction by instruction, but for the number that Numba gives each function of a process."""

    def code():
        scope = {}
        exec(FOREIGN, scope)
        made = numba.njit(scope["foreign"])
        made(np.ones(3))
        (text,) = made.inspect_asm().values()
        return [line.split()[0] for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]

    before = code()
    fresh(outermost)(1.0)
    assert code() == before
    assert type(numba.njit(lambda x: x)) is numba.core.registry.CPUDispatcher


PROBE = """
from probe.engine.jit import inline, kernel

@inline
def by(x):
    return x + {shift}

@kernel
def first(x):
    return by(x)

@kernel
def second(x):
    return 10.0 * first(x)

@kernel
def third(x):
    return second(x) + first(x)
"""

RUN = """
import json
from probe.chain import first, second, third
value = third(1.0)
def counts(f):
    return [sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values())]
print(json.dumps({"value": value, "counts": [counts(f) for f in (first, second, third)]}))
"""


@pytest.fixture
def workshop(tmp_path):
    made = Workshop(tmp_path / "workshop")
    made.write("probe/chain.py", PROBE.format(shift="1.0"))
    return made


def test_kernels_from_the_cache_bring_the_kernels_that_they_call(workshop):
    assert workshop.run(RUN) == {"value": 22.0, "counts": [[0, 1]] * 3}
    assert workshop.run(RUN) == {"value": 22.0, "counts": [[1, 0]] * 3}


def test_a_called_kernel_that_is_missing_in_the_cache_is_compiled_under_the_same_symbol(workshop):
    workshop.run(RUN)
    for path in workshop.compiled_files(workshop.cache):
        if path.parent.name.endswith("first"):
            path.unlink()
    assert workshop.run(RUN) == {"value": 22.0, "counts": [[0, 1], [1, 0], [1, 0]]}


SHARED = """
from probe.engine.jit import inline, kernel

@inline
def root(x):
    if x < 0.0:
        raise ValueError("below zero")
    return np.sqrt(x)

@inline
def by(x):
    return root(x) + np.arange(3.0).sum()

@kernel
def one(x):
    return by(x)

@kernel
def other(x):
    return 2.0 * by(x)
""".replace("from probe", "import numpy as np\nfrom probe", 1)

USE = """
import json
from probe.shared import by, root, one, other
value = {call}
misses = [sum(f.stats.cache_misses.values()) for f in (root, by, one, other)]
print(json.dumps([value, misses]))
"""


def test_helpers_are_found_on_disk_by_kernels_of_other_processes(workshop):
    """With functions of Numba inside, an error that is raised in them, and a helper that calls a helper."""
    workshop.write("probe/shared.py", SHARED)
    assert workshop.run(USE.format(call="one(4.0)")) == [5.0, [1, 1, 1, 0]]
    assert workshop.run(USE.format(call="other(4.0)")) == [10.0, [0, 0, 0, 1]]
    assert workshop.run(USE.format(call="other(4.0)")) == [10.0, [0, 0, 0, 0]]
    done = workshop.start(USE.format(call="one(4.0) + other(-1.0)"))
    assert "ValueError: below zero" in done.stderr


def test_an_edited_helper_of_a_called_kernel_is_never_run_stale(workshop):
    workshop.run(RUN)
    workshop.write("probe/chain.py", PROBE.format(shift="2.0"))
    assert workshop.run(RUN) == {"value": 33.0, "counts": [[0, 1]] * 3}


UNKNOWN = """
import json, numba
numba.__version__ = "99.0.0"
"""


def test_a_version_of_numba_that_is_not_known_is_said_once_and_compiles(workshop):
    done = workshop.start(UNKNOWN + RUN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == 22.0
    assert done.stderr.count("RuntimeWarning: Numba 99.0.0") == 1


def test_signatures_of_numba_are_what_keys_are_made_of():
    assert compiler.normalize_signature((numba.float64,))[0] == (numba.float64,)
    assert compiler.normalize_signature(typing.signature(numba.int64, numba.float64))[0] == (numba.float64,)


@inline
def first_called(x):
    return x + 1.0


@inline
def last_called(x):
    return 3.0 * x


@kernel
def of_two(x):
    return first_called(x) + last_called(2.0 * x)


def compile_called(dispatcher, is_ready):
    compiler._KEYS.append("0" * 24)  # as while it is being compiled
    try:
        dispatcher._compile_called((numba.float64,), is_ready)
    finally:
        compiler._KEYS.pop()


def test_a_process_that_waits_for_a_function_compiles_what_it_calls_from_the_last(compilations):
    kernel_ = fresh(of_two, first_called=fresh(first_called), last_called=fresh(last_called))
    compile_called(kernel_, is_ready=lambda: False)
    called = [name for name in compilations if name.startswith(("first_called", "last_called"))]
    assert [name.split("_called")[0] for name in called] == ["last", "first"]
    assert not kernel_.overloads  # left to the process that it waits for
    assert kernel_(2.0) == 3.0 + 12.0


def test_a_process_that_waits_stops_when_the_function_is_ready(compilations):
    kernel_ = fresh(of_two, first_called=fresh(first_called), last_called=fresh(last_called))
    compile_called(kernel_, is_ready=lambda: True)
    assert not compilations


def test_a_locked_entry_is_waited_for_after_something_useful_was_done(tmp_path):
    done = []
    with cache.by_one_process(tmp_path / "a.kernel", meanwhile=lambda: done.append("first")):
        waiting = Thread(target=wait_for, args=(tmp_path / "a.kernel", done))
        waiting.start()
        while "useful" not in done:
            time.sleep(0.01)
        assert "mine" not in done
    waiting.join()
    assert done == ["useful", "mine"]


def wait_for(path, done):
    with cache.by_one_process(path, meanwhile=lambda: done.append("useful")):
        done.append("mine")


def test_collections_are_as_before_after_a_compilation():
    before = gc.get_threshold()
    fresh(first_called).compile((numba.int64,))
    assert gc.get_threshold() == before


@inline
def middle(x):
    return np.sum(x[1:-1])  # a view, whose owners are counted


@kernel
def of_a_view(x):
    return middle(x) + 1.0


def test_functions_that_count_owners_keep_their_names_in_helpers_on_disk():
    """LLVM drops pairs of their calls, which it knows by name; as copies with names of their own they are all made."""
    assert fresh(of_a_view)(np.arange(4.0)) == 4.0
    (helper,) = middle.overloads.values()
    counting = [f for f in helper.library.with_others().functions if f.name.startswith("NRT_") and not f.is_declaration]
    assert counting
    assert all(f.linkage.name != "internal" for f in counting)


@inline
def moved(place, by):
    """A view, a number and a tuple of numbers, moved."""
    view, x, (y, z) = place
    return view, x + by, (y + by, z + by)


@kernel
def moved_twice(values):
    view, x, (y, z) = moved(moved((window(values, 0, 2), 1.0, (2.0, 3.0)), 1.0), 1.0)
    return view[0] + view[1] + x + y + z


def test_no_owners_are_searched_in_views_and_numbers():
    """Numba writes an instruction for each part of a tuple, wherever it is passed, to count owners that it has not."""
    moved._cache.disable()
    assert fresh(moved_twice)(np.array([10.0, 20.0])) == 30.0 + 3.0 + 4.0 + 5.0
    (compiled,) = moved.overloads.values()
    code = str(compiled.library.own_module())
    assert "NRT_" not in code
    assert "extractvalue" not in code


@kernel
def sum_of_part(part, n):
    found = 0.0
    for k in range(n):
        found += part[k]
    return found


@kernel
def sum_of_middle(values):
    return sum_of_part(window(values, 1, 2), 2)


def test_only_kernels_that_python_can_call_have_code_for_it():
    """Windows exist in compiled code only; a sum by hand."""
    sum_of_part._cache.disable()
    made = fresh(sum_of_middle)
    assert made(np.array([1.0, 10.0, 100.0, 1000.0])) == 110.0
    (inside,), (called,) = sum_of_part.overloads.values(), made.overloads.values()
    assert not _entries_of_python(inside)
    assert len(_entries_of_python(called)) == 2


def _entries_of_python(compiled):
    """Functions that convert Python's objects, and those that C calls."""
    names = [f.name for f in compiled.library._final_module.functions if not f.is_declaration]
    description = compiled.fndesc
    return [n for n in names if n in (description.llvm_cpython_wrapper_name, description.llvm_cfunc_wrapper_name)]


@kernel
def counting(n):
    """Count for long enough to be seen."""
    found = 0.5
    for k in range(n):
        found = 0.999 * found + np.sin(k * found)
    return found


def test_kernels_release_the_gil():
    counting(1)
    thread, turns = Thread(target=counting, args=(30_000_000,)), 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 20  # 2 if the thread holds the lock from its first turn to its end


@kernel
def interrupted(x):
    return 3.0 * x


@pytest.mark.parametrize("hook", ["_object_cache_notify", "_object_cache_getbuffer"])
def test_ctrl_c_while_llvm_calls_python_is_obeyed_afterwards_and_the_kernel_is_whole(hook, monkeypatch, recwarn):
    """It was printed and lost, and the machine code was missing: the next call ended in a crash."""
    engine = interrupted.targetctx.codegen()._engine._ee
    real, pressed = getattr(engine, hook), []

    def press(*args):
        if not pressed:
            pressed.append(1)
            signal.raise_signal(signal.SIGINT)
        return real(*args)

    specialise(interrupted)(1.0)  # in the cache from here on
    made = specialise(interrupted)
    if hook == "_object_cache_notify":
        made._cache.disable()
    monkeypatch.setattr(engine, hook, press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            made(2.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed == [1]
    assert made(2.0) == 6.0
