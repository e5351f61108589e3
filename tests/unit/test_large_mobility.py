"""Mobility of large systems: no dense matrices, the answers of singular values, and what cannot be judged is said."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse.linalg
from tests.unit.test_mobility import CHANGE, TWO_BARS, beside, flat_windows

import loopdyn as ld
from loopdyn.analysis import finite_motion, large_poses
from loopdyn.analysis import mobility as mobility_module
from loopdyn.loops import rank, sparse_steps
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.free_bodies import free_terms

# Singular values of the library's rows in natural units are above 1e-3, those of dependent rows below 1e-12.
ZERO = 1e-7


@pytest.fixture
def as_large(monkeypatch):
    """Every system counts as a large one."""
    monkeypatch.setattr(sparse_steps, "LARGEST_DENSE_STEP", -1)
    monkeypatch.setattr(rank, "LARGEST_DENSE", -1)


def by_singular_values(J, rows, columns):
    """Rank of J in natural units, and a basis of its left null space."""
    if 0 in J.shape:
        return 0, np.eye(len(J))
    U, s, _ = np.linalg.svd(J * columns / rows[:, None])
    count = int((s > ZERO * max(1.0, s[0])).sum())
    return count, U[:, count:]


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("name", sorted(ld.library.ALL))
def test_rank_margin_and_determinate_reactions_are_those_of_singular_values(name):
    system = ld.library.ALL[name]().compile()
    state = ld.assemble(system)
    found = ld.mobility(system, state)
    count, _ = by_singular_values(ld.terms(system, state).J, system.row_units, system.speed_units)
    assert (found.dof_here, found.redundant_here) == (system.nv - count, system.nc - count)
    free, _, now = free_terms(system, state)
    count, U0 = by_singular_values(now.J, free.row_units, free.speed_units)
    assert (found.rank, found.rows) == (count, len(now.J))
    part = dict(zip(free.constraint_rows, np.linalg.norm(U0, axis=1), strict=True))
    assert {f"{j}.{row}" if row else j: not sure for j, rows in found.unique.items() for row, sure in rows.items()} == {
        label: bool(x > ZERO) for label, x in part.items()
    }
    assert found.not_judged == ()
    assert found.margin > 1e-3  # none of the library is near a loss of rank where it is drawn


def test_a_row_of_windows_and_a_ladder_have_their_known_redundancies():
    """A window is a plane four-bar: three of its rows repeat; forces in the plane are determined, nothing else is."""
    system = ld.library.n_four_bar(100).compile()
    assert system.nc > rank.LARGEST_DENSE
    found = ld.mobility(system, system.state())
    assert (found.dof, found.dof_here, found.redundant, found.redundant_here) == (1, 1, 300, 300)
    assert (found.verdict, found.idle, found.not_judged) == ("overconstrained", (), ())
    assert found.rank == 6 * system.nb - 1
    plane = {"mx": False, "my": False, "fx": True, "fy": True, "fz": False}
    assert all(rows == plane for rows in found.unique.values())


@pytest.mark.parametrize(
    ("build", "dof", "dof_here", "redundant", "redundant_here", "verdict"),
    [
        # each part counted alone: ladder of n cells 2 (2 n rows repeat), bars in line 0 (1 here; 4), windows 1 (3 n),
        # change point 1 (2 here; 3, and 4 here), tower of n 2 n (0)
        (lambda: beside(ld.library.ladder(90), TWO_BARS), 2, 3, 184, 184, "shaky"),
        (lambda: beside(ld.library.n_four_bar(90), CHANGE), 2, 3, 273, 274, "singular here"),
        (lambda: beside(ld.library.tower(90), CHANGE), 181, 182, 3, 4, "singular here"),
    ],
)
def test_singular_and_shaky_parts_of_a_large_system_are_found(build, dof, dof_here, redundant, redundant_here, verdict):
    system = build().compile()
    found = ld.mobility(system, system.state())
    assert (found.dof, found.dof_here) == (dof, dof_here)
    assert (found.redundant, found.redundant_here) == (redundant, redundant_here)
    assert (found.verdict, found.not_judged) == (verdict, ())


def test_what_cannot_be_judged_is_said():
    """Bars in line beside more freedoms than steps are made along: shaky, but that takes a step along each."""
    system = beside(ld.library.tower(90), TWO_BARS).compile()
    found = ld.mobility(system, system.state())
    assert (found.dof_here, found.redundant_here, found.verdict) == (181, 4, "undecided")
    assert f"181 are more than {large_poses.MOST_FREEDOMS}" in found.not_judged[0]
    assert "  not judged: finite motion: 1 rows are lost" in str(found)


def test_many_windows_in_one_line_are_not_called_shaky():
    """Cranks can turn one by one: every velocity leads to a motion. The walk finds branches that keep more freedoms."""
    found = ld.mobility(system := flat_windows(12).compile(), system.state())
    assert (found.dof_here, found.redundant_here) == (13, 48)
    assert found.verdict == "undecided"
    assert "many branches may meet" in found.not_judged[0]


def test_forms_forbid_velocities_only_if_a_combination_is_semidefinite():
    """x^2 + y^2 = 0 forbids x and y, x y = 0 alone forbids neither."""
    both, cross = np.diag([1.0, 1.0, 0.0]), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert finite_motion._forbids(both[None])
    assert finite_motion._forbids(np.array([both, cross]))
    assert not finite_motion._forbids(cross[None])


def test_work_on_redundant_rows_grows_with_the_number_of_bodies_alone(monkeypatch):
    """Evaluations are counted for twice as many windows: as many, of twice the length; nothing dense but a few rows."""
    counts, widest = [], []
    for n in (90, 180):
        system, count, wide = ld.library.n_four_bar(n).compile(), Counter(), [0]
        with monkeypatch.context() as patch:
            for module, name in (
                (large_poses, "sparse_rows"),
                (large_poses, "minimum_energy_motion"),
                (scipy.sparse.linalg, "splu"),
            ):
                made = getattr(module, name)
                patch.setattr(module, name, lambda *a, n=name, f=made, c=count, **k: (c.update([n]), f(*a, **k))[1])
            run, svd = Elimination.run, np.linalg.svd
            patch.setattr(Elimination, "run", lambda self, k, f=run, c=count: (c.update(["run"]), f(self, k))[1])
            patch.setattr(
                np.linalg, "svd", lambda a, *x, f=svd, w=wide, **k: (w.append(min(a.shape)), f(a, *x, **k))[1]
            )
            patch.setattr(mobility_module, "terms", None)
            patch.setattr(finite_motion, "terms", None)
            ld.mobility(system, system.state())
        counts.append(count)
        widest.append(max(wide))
    assert counts[0]["run"] > 0
    for what, count in counts[1].items():
        assert count <= counts[0][what] + 3, what  # a Newton step more on the way to a neighbour
    assert widest[1] == widest[0] <= 20  # equations of one body and the joints next to it
