"""`coordinates`: the best independent coordinates of a mechanism, and the best joints to cut.

The projective criterion of Blajer, Schiehlen and Schirm (1994) ranks coordinates and sets of them at a state; along the
motion of a mechanism with one degree of freedom it gives their Fig. 3. Cuts are ranked by the same criterion, and a cut
that leaves a body without inertia at the end of the tree is refused: recursive methods divide by that inertia.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.assembly_closure import beyond_limits
from loopdyn.analysis.pose_curve import PoseCurve
from loopdyn.analysis.reconnect import reconnect
from loopdyn.errors import LoopdynError
from loopdyn.formulations.partition import criteria
from loopdyn.formulations.partition.formulation import Partition, PartitionSolver
from loopdyn.loops.continuation import follow
from loopdyn.loops.rank import decide, require_inertia, require_regular, scaled
from loopdyn.quantities.wording import unknown
from loopdyn.system.builder import build
from loopdyn.system.spanning_tree import forest_of_cuts
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE
from loopdyn.tree.functions import apart, bodies_without_inertia, constraint_equations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MANY_SETS = 5000  # sets that are all examined; of more, the best one found and those that differ from it by one
MANY_CUTS = 200  # ... and of cut joints
SHOWN = 8  # sets and cuts that are printed
STEP = 0.02  # natural units: motion of the fastest coordinate between two poses of a sweep
MOST_STEPS = 5000  # most poses of a sweep; an unlimited motion, as of a slide without limits, ends there
FEW = 10  # poses before which the motion cannot have returned to its start


@dataclass(frozen=True)
class Cut:
    """Set of joints that cuts all loops.

    Attributes
    ----------
    joints : tuple of str
        Joints that are cut.
    best : tuple of str
        Best independent speeds of the tree that remains.
    measure : float
        Their measure: for one degree of freedom cos^2 alpha.
    refused : str
        Reason why recursive methods cannot use this cut, or empty.
    """

    joints: tuple[str, ...]
    best: tuple[str, ...]
    measure: float
    refused: str = ""


@dataclass(frozen=True)
class Sweep:
    """Criterion along the motion of a mechanism with one degree of freedom.

    Attributes
    ----------
    label : str
        Coordinate over which the motion is shown.
    value : (n,) array
        Its values.
    cosine, svd : (n, nv) arrays
        Projective criterion, and criterion of the singular value decomposition, of each speed.
    q : (n, nq) array
        The poses.
    """

    system: System
    label: str
    value: Array
    cosine: Array
    svd: Array
    q: Array

    def plot(self) -> Figure:
        """Plot the projective criterion of every coordinate over the swept one, as in Fig. 3 of the paper."""
        from loopdyn.output.plot.criterion import plot_criterion

        return plot_criterion(self)


@dataclass(frozen=True)
class Coordinates:
    """Ranking of coordinates at a state; can be printed.

    Attributes
    ----------
    freedoms : int
        Number of independent speeds.
    cosine : dict
        cos^2 alpha of eq. (23a) for each speed: its mobility with the constraints divided by that without.
    svd : dict
        Criterion of each speed by the singular value decomposition, which ignores inertia.
    sets : tuple
        Sets of speeds with their measures, best first.
    complete : bool
        Whether `sets` has all sets.
    singular : tuple of str
        Speeds that are in no admissible set here.
    """

    system: System
    state: State
    freedoms: int
    cosine: dict[str, float]
    svd: dict[str, float]
    sets: tuple[tuple[tuple[str, ...], float], ...]
    complete: bool
    singular: tuple[str, ...]

    @property
    def best(self) -> tuple[str, ...]:
        """The best set."""
        return self.sets[0][0]

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """Sets of joints that cut all loops, the best first, refused ones last; computed on first access."""
        found = [_judge(self.system, self.state, joints) for joints in _possible_cuts(self.system)]
        return tuple(sorted(found, key=lambda c: (bool(c.refused), -c.measure)))

    def sweep(self, label: str) -> Sweep:
        """Criterion along the whole motion, for a mechanism with one degree of freedom.

        Parameters
        ----------
        label : str
            Coordinate over which it is shown. The motion ends when it has made a full turn, when the mechanism is back
            at the start, or at a limit of a joint.

        Examples
        --------
        >>> import loopdyn as ld
        >>> system = ld.library.four_bar().compile()
        >>> sweep = ld.analyses.coordinates(system, ld.assemble(system)).sweep("A")
        >>> bool(abs(sweep.value[-1] - sweep.value[0]) > 6.2)
        True
        """
        return _sweep(self, label)

    def __str__(self) -> str:
        s = self.system
        title = f"{s.name}: {self.freedoms} of {s.nv} speeds independent at t = {self.state.t:g} s"
        lines = [title, f"  {'speed':<16}{'cos² α':>10}{'by SVD':>10}"]
        ranked = sorted(self.cosine, key=lambda label: -self.cosine[label])
        for label in ranked:
            mark = "  singular here" if label in self.singular else ""
            lines.append(f"  {label:<16}{self.cosine[label]:>10.4f}{self.svd[label]:>10.4f}{mark}")
        kind = "all sets" if self.complete else "the best set found and its neighbours"
        lines.append(f"  {kind}, best first (0 is singular):")
        for labels, value in self.sets[:SHOWN]:
            lines.append(f"    {', '.join(labels) or 'none':<30}{value:>10.4g}")
        if len(self.sets) > SHOWN:
            lines.append(f"    ... {len(self.sets) - SHOWN} more")
        if s.topology.cuts:
            lines.append("  sets of joints to cut, best first:")
            for cut in self.cuts[:SHOWN]:
                said = f"refused: {cut.refused}" if cut.refused else f"{cut.measure:.4g} with {', '.join(cut.best)}"
                lines.append(f"    {', '.join(cut.joints):<30}{said}")
        return "\n".join(lines)


def coordinates(system: System, state: State | None = None) -> Coordinates:
    """Rank coordinates and sets of coordinates by their suitability as independent ones at a closed state.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state; by default the start of the model, assembled.

    Returns
    -------
    Coordinates

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> found = ld.analyses.coordinates(system, ld.assemble(system))
    >>> found.best, found.singular
    (('A',), ())
    """
    state = assemble(system) if state is None else state
    system = system.for_state(state)
    rank = decide(system, state)
    require_regular(system, rank)
    require_inertia(system, state, rank)
    closed = replace(rank.state or state, tolerated=system.tolerated)
    W, Z = _criteria(system, closed)
    labels, k = system.speeds, len(W)
    svd = (Z**2).sum(axis=0)
    sets, complete = _all_sets(W, Z)
    return Coordinates(
        system,
        closed,
        k,
        dict(zip(labels, (W**2).sum(axis=0).tolist(), strict=True)),
        dict(zip(labels, svd.tolist(), strict=True)),
        tuple((tuple(labels[i] for i in chosen), value) for chosen, value in sets),
        complete,
        tuple(label for label, value in zip(labels, svd, strict=True) if value < CANDIDATE**2),
    )


def _criteria(system: System, state: State) -> tuple[Array, Array]:
    """Matrices W (k, nv) of the projective criterion and of the singular value decomposition."""
    solver = PartitionSolver(system, decide(system, state), Partition())
    J = scaled(system, constraint_equations(system, state)[1])
    return solver.projections(), criteria.null_space(J, solver.rank.count).T


def _all_sets(W: Array, Z: Array) -> tuple[list[tuple[tuple[int, ...], float]], bool]:
    """Sets with their measures, best first; sets that are singular by geometry are left out."""
    k, n = W.shape
    complete = comb(n, k) <= MANY_SETS
    chosen: list[tuple[int, ...]]
    if complete:
        chosen = list(combinations(range(n), k))
    else:
        best = criteria.best_set(W)
        others = [i for i in range(n) if i not in best]
        near: list[tuple[int, ...]] = [tuple(sorted(j if x == i else x for x in best)) for i in best for j in others]
        chosen = [tuple(best), *near[:MANY_SETS]]
    found = []
    for c in chosen:
        is_singular = criteria.measure(Z, list(c)) < CANDIDATE**2
        found.append((c, 0.0 if is_singular else criteria.measure(W, list(c))))
    return sorted(found, key=lambda x: -x[1]), complete


# ---------------------------------------------------------------------------------------------------- cuts


def _possible_cuts(system: System) -> list[tuple[str, ...]]:
    """Minimal sets of joints that open all loops; of many, those that differ from the current one by a joint."""
    edges, names = system.topology.edges, system.topology.names
    now = {k for k, e in enumerate(edges) if e.name in system.topology.cuts}

    def opens(cut: set[int]) -> bool:
        return not isinstance(forest_of_cuts(names, edges, system.n_bases, cut), list)

    if comb(len(edges), len(now)) <= MANY_CUTS:
        trials = [set(c) for c in combinations(range(len(edges)), len(now))]
    else:
        others = [k for k in range(len(edges)) if k not in now]
        trials = [now, *(now - {i} | {j} for i in sorted(now) for j in others)][:MANY_CUTS]
    return [tuple(edges[k].name for k in sorted(cut)) for cut in trials if opens(cut)]


def _judge(system: System, state: State, joints: tuple[str, ...]) -> Cut:
    """Evaluate a cut at a state."""
    other = build(system.mechanism, cuts=list(joints))
    there = reconnect(system, other, state).state
    other = other.for_state(there)
    (chosen, value), *_ = _all_sets(*_criteria(other, there))[0]
    idle = bodies_without_inertia(other, there)
    refused = f"body '{idle[0][0]}' has no inertia in the open tree" if idle else ""
    return Cut(joints, tuple(other.speeds[i] for i in chosen), value, refused)


# --------------------------------------------------------------------------------------------------- sweep


def _sweep(found: Coordinates, label: str) -> Sweep:
    system = found.system
    if found.freedoms != 1:
        raise LoopdynError(
            f"'{system.name}' has {found.freedoms} degrees of freedom here, but a sweep needs one. Add drivers, or "
            "examine single states with ld.analyses.coordinates(system, state)."
        )
    if label not in system.coordinates:
        raise unknown("sweep", "coordinate", [label], system.coordinates)
    k = system.coordinates.index(label)
    poses = _poses(system, found.state, k)
    both = [_criteria(here, State(found.state.t, q, np.zeros(system.nv))) for here, q in poses]
    path = np.array([q for _, q in poses])
    cosine, svd = (np.array([(c[n] ** 2).sum(axis=0) for c in both]) for n in range(2))
    return Sweep(system, label, path[:, k], cosine, svd, path)


def _poses(system: System, state: State, k: int) -> list[tuple[System, Array]]:
    """Closed poses along the only motion, in steps of STEP, starting in the direction of growing coordinate k.

    Each comes with the system that is closed there: redundant rows that are left open may change along the motion.
    """
    curve = PoseCurve(system, state.t, decide(system, state).count, mass_metric=True, norm=np.inf)
    z = curve.tangent(state.q)
    z = z if curve.moved(state.q, 1e-6 * z)[k] >= state.q[k] else -z
    path = [(system, state.q)]
    for _, q, _ in follow(curve, state.q, z, STEP, MOST_STEPS):
        if beyond_limits(curve.system, curve.state(q)):
            break
        path.append((curve.system, q))
        full_turn = abs(q[k] - state.q[k]) >= 2 * np.pi
        if full_turn or (len(path) > FEW and apart(curve.system, q, state.q) < 0.75 * STEP):
            break
    return path
