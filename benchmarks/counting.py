"""Operation counts of the ladder of Fig. 11: the kernels run as plain Python on numbers that count operations.

    NUMBA_DISABLE_JIT=1 python -c "import counting; counting.report([10, 20])"

Every addition, subtraction, multiplication, division, root and trigonometric function of two numbers that depend on the
state or the model counts as one; those with a zero or one that a general loop happens to contain count too, as they are
carried out. Indices, comparisons and copies do not count. The dense matrix of the traditional method, which is not a
kernel, is counted by formula.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

import loopdyn as ld
from loopdyn.engine.records import open_model, open_work
from loopdyn.formulations.rcr import kernels, layout
from loopdyn.formulations.rcr.formulation import RcrSolver
from loopdyn.loops.elimination.passes import accelerate as graph_accelerate
from loopdyn.loops.rank import decide
from loopdyn.tree.aba import aba
from loopdyn.tree.kinematics import rigid_bodies
from loopdyn.tree.response import tree_terms

EIGENVECTORS = 9  # times m^3: eigenvalues and -vectors of a symmetric matrix, as usually stated for LAPACK


class Counted:
    """A number; all operations on any of them are counted in `total`."""

    total = 0

    def __init__(self, value: float):
        self.real = float(value)  # a plain number: what is only compared does not count

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any) -> Any:
        value = ufunc(*(x.real if isinstance(x, Counted) else x for x in inputs))
        if isinstance(value, (bool, np.bool_)):
            return value
        Counted.total += ufunc is not np.negative
        return Counted(value)

    def __add__(self, other: Any) -> Any:
        return np.add(self, other)

    def __sub__(self, other: Any) -> Any:
        return np.subtract(self, other)

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __truediv__(self, other: Any) -> Any:
        return np.divide(self, other)

    def __rsub__(self, other: Any) -> Any:
        return np.subtract(other, self)

    def __rtruediv__(self, other: Any) -> Any:
        return np.divide(other, self)

    def __neg__(self) -> Any:
        return np.negative(self)

    def __abs__(self) -> float:  # only compared
        return abs(self.real)

    def __lt__(self, other: Any) -> bool:
        return bool(self.real < getattr(other, "real", other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.real > getattr(other, "real", other))

    def __ne__(self, other: object) -> bool:
        return bool(self.real != getattr(other, "real", other))

    def __eq__(self, other: object) -> bool:
        return not self != other

    __radd__, __rmul__, __hash__ = __add__, __mul__, object.__hash__


def counted(array: np.ndarray) -> np.ndarray:
    """The array with counting numbers."""
    out = np.empty(array.shape, object)
    out[...] = [Counted(x) for x in array]
    return out


def during(call: Callable[[], object]) -> int:
    before = Counted.total
    call()
    return Counted.total - before


def count(system: ld.System, state: ld.State) -> dict[str, int]:
    """Operations of one evaluation by each method, and of the kinematics, velocity terms and rows that all need."""
    rank = decide(system, state)
    solver = ld.Rcr().prepare(system, rank)
    assert isinstance(solver, RcrSolver)
    graph = ld.Graph().prepare(system, rank)
    graph.elimination.set_state(state.t, state.q, state.v)
    for arrays in (solver.calls, solver.run):
        arrays.put(state.t, state.q, state.v)
        kernels.accelerate(*arrays.arrays)  # notes the pivots at the choice
    work = system.work()
    opened = system.open_work(work)
    opened.t[0], opened.q[:], opened.v[:] = state.t, state.q, state.v

    def arrays_of(ints: np.ndarray, floats: np.ndarray, work: np.ndarray) -> tuple[np.ndarray, ...]:
        return ints, counted(floats), counted(work)

    nv, nc = system.nv, system.nc
    tree = arrays_of(system.ints, system.floats, work)
    dense = [counted(np.zeros(n)).reshape(shape) for n, shape in
             ((nv, nv), (nc * nv, (nc, nv)), (nc * nv, (nc, nv)), (nc, nc))]  # fmt: skip
    scratch = counted(np.zeros(12 * len(system.bodies))).reshape(2, -1, 6)
    given, follows = (arrays_of(*x.arrays) for x in (solver.calls, solver.run))
    found = {
        "tree": during(lambda: aba(*tree)),
        "kinematics of the tree": during(lambda: rigid_bodies(open_model(*tree[:2]), open_work(tree[0], tree[2]))),
        "rcr": during(lambda: kernels.accelerate(*follows)),
        "rcr, speeds given": during(lambda: kernels.accelerate(*given)),
        "kinematics and rows": during(lambda: kernels.weigh(*given, layout.ACCELERATIONS)),
        "graph": during(lambda: graph_accelerate(*arrays_of(*graph.elimination.arrays))),
        "traditional": during(lambda: tree_terms(*tree, *dense, scratch)),
    }
    found["traditional"] += 2 * nc * nc * nv + EIGENVECTORS * nc**3 + 4 * nc * nv + 10 * nc * nc
    return found


def report(sizes: list[int]) -> None:
    """Counts of ladders as JSON, printed (called in a process without the JIT)."""
    from rcr import ladder

    print(json.dumps({L: count(*ladder(L)) for L in sizes}))
