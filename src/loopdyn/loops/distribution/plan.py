"""Structure of the distribution of loads: unknowns, the order of their elimination, and all tables of the kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.loops.distribution import layout
from loopdyn.loops.elimination.ordering import minimum_degree
from loopdyn.system.system import System

Ints = NDArray[np.int64]
Key = tuple[int, int]  # of an unknown: row of the balance and -1, or -1 - body and a freedom of it


@dataclass(frozen=True)
class Rows:
    """Rows of the balance, in its order: those of joints, of pair constraints, of relations, of the user."""

    cut: Ints  # (n,) cut, in the extended table, of each row of a joint or pair constraint
    table: Ints  # the extended table of cuts
    joint_cut: dict[int, int]  # cut of the tree joint of each body; that of a floating body has no rows
    user: int  # number of user rows


class DistributionPlanner:
    """Tables of the distribution, made step by step.

    Parameters
    ----------
    system : System
    rows : Rows
    severed : collection of int
        Bodies whose joint is treated like a cut one; their part of the tree is free in space.
    """

    def __init__(self, system: System, rows: Rows, severed: Collection[int]):
        self.system, self.rows, self.severed = system, rows, set(severed)
        model, self.n_bases = system.model, system.n_bases
        self.parent = model.tree[:, rec.PARENT].tolist()
        self.n = len(self.parent)
        inside = {cut for body, cut in rows.joint_cut.items() if body not in self.severed}
        first: dict[int, int] = {}
        for r, cut in enumerate(rows.cut.tolist()):
            first.setdefault(cut, r)
        self.first = first
        # groups of rows that are unknowns: cuts and severed joints, then relations, then user rows
        self.groups: list[list[int]] = []
        self.open: list[dict[int, list[int]]] = [{} for _ in range(self.n)]  # by body: group -> its rows
        self.acting: list[tuple[int, ...]] = []  # with the body in place of the slot
        self.related: list[tuple[int, ...]] = []
        self.inner: list[tuple[int, ...]] = []
        for cut in first:
            if cut not in inside:
                self._add_cut(cut)
        self._add_relations()
        self._add_user_rows()

    def _chain(self, body: int) -> list[int]:
        """Bodies from this one to the root of its tree."""
        found = []
        while body >= self.n_bases:
            found.append(body)
            body = -1 if body in self.severed else self.parent[body]
        return found

    def _path(self, group: int, cut: int) -> list[tuple[int, int]]:
        """Open a group of rows at the bodies between the two of a cut; gives those it acts on, with signs."""
        ends = [(int(self.rows.table[cut, side]), sign) for side, sign in ((rec.C_CHILD, 1), (rec.C_PARENT, -1))]
        chains = [set(self._chain(body)) for body, _ in ends]
        between = chains[0] ^ chains[1]
        for body in between:
            self.open[body][group] = self.groups[group]
        return [(body, sign) for body, sign in ends if body in between]

    def _add_cut(self, cut: int) -> None:
        count, r = int(self.rows.table[cut, rec.C_ROWS]), self.first[cut]
        self.groups.append(list(range(r, r + count)))
        for body, sign in self._path(len(self.groups) - 1, cut):
            self.acting.append((body, cut, r, sign))

    def _add_relations(self) -> None:
        model, first = self.system.model, len(self.rows.cut)
        for m, (_, begin, count, *_) in enumerate(model.linear.tolist()):
            row, group = first + m, len(self.groups)
            self.groups.append([row])
            for e in range(begin, begin + count):
                cut, freedom, _ = model.entry[e].tolist()
                if cut < 0:
                    self._add_inner(group, row, freedom, e, -1)
                else:
                    for body, sign in self._path(group, cut):
                        self.related.append((body, cut, freedom, e, row, sign))

    def _add_user_rows(self) -> None:
        first = len(self.rows.cut) + len(self.system.model.linear)
        for m in range(self.rows.user):
            self.groups.append([first + m])
            for k in range(self.system.nv):
                self._add_inner(len(self.groups) - 1, first + m, k, -1, m)

    def _add_inner(self, group: int, row: int, speed: int, entry: int, user: int) -> None:
        """A row that acts on a speed of the tree: a load across the joint of one body."""
        tree = self.system.model.tree
        body = int(np.searchsorted(tree[:, rec.V0] + tree[:, rec.NV], speed, side="right"))
        body = max(body, self.n_bases)
        self.open[body][group] = self.groups[group]
        cut = self.rows.joint_cut[body]
        self.inner.append((body, body, speed - int(tree[body, rec.V0]), row, entry, user, cut))

    # ------------------------------------------------------------------------------------------ the tables

    def freedoms(self, body: int) -> int:
        """Freedoms of the joint of a body; six motions if it is severed."""
        return 6 if body in self.severed else int(self.system.model.tree[body, rec.NV])

    def order(self) -> tuple[list[list[Key]], list[list[Key]]]:
        """Unknowns by node in the order of their elimination, and those of later nodes each node is coupled with.

        The freedoms of a body follow after all rows open at it: a pivot of theirs that vanishes then belongs to a
        motion that no row prevents, and is dropped.
        """
        nodes: list[list[Key]] = [[(r, -1) for r in group] for group in self.groups]
        cliques, after = [], {}
        for i in range(self.n_bases, self.n):
            groups = sorted(self.open[i])
            if groups and self.freedoms(i):
                after[len(nodes)] = groups
                cliques.append([*groups, len(nodes)])
                nodes.append([(-1 - i, k) for k in range(self.freedoms(i))])
            elif groups:
                cliques.append(groups)
        order, later = minimum_degree([len(node) for node in nodes], cliques, after)
        return [nodes[a] for a in order], [[key for b in found for key in nodes[b]] for found in later]

    def structure(self, varying: Sequence[Sequence[int]], row_joint: Ints) -> layout.DistributionTables:
        """All tables of the kernels."""
        nodes, later = self.order()
        number = {key: u for u, key in enumerate(key for node in nodes for key in node)}
        factor = Factor([[[number[key] for key in node], [number[key] for key in coupled]]
                         for node, coupled in zip(nodes, later, strict=True)])  # fmt: skip
        slots = [(i, u) for i in range(self.n) for u in sorted(number[r, -1] for g in self.open[i].values() for r in g)]
        place = {slot: x for x, slot in enumerate(slots)}
        parents = [-1 if i in self.severed else self.parent[i] for i in range(self.n)]
        at, pair, couple = self._bodies(slots, number, factor)
        unknown = np.zeros((len(number) + 1, layout.N_UNKNOWN), np.int64)
        for (r, _), u in number.items():
            unknown[u, layout.U_ROW] = max(r, -1)
        unknown[:, layout.U_COLUMN], unknown[:, layout.U_TARGET] = factor.begin, factor.first_target

        def at_slots(found: Sequence[tuple[int, ...]], row: int) -> list[tuple[int, ...]]:
            return [(place[item[0], number[item[row], -1]], *item[1:]) for item in found]

        return layout.DistributionTables(
            at=at,
            slot=_table([(u, place.get((parents[i], u), -1)) for i, u in slots], layout.N_SLOT),
            acting=_table(at_slots(self.acting, layout.A_ROW), layout.N_ACTING),
            related=_table(at_slots(self.related, layout.R_ROW), layout.N_RELATED),
            inner=_table(at_slots(self.inner, layout.I_ROW), layout.N_INNER),
            pair=np.array(pair, np.int64),
            couple=np.array(couple, np.int64),
            unknown=unknown,
            below=factor.below,
            target=factor.target,
            varying=_table(varying, layout.N_VARYING),
            row_joint=row_joint,
        )

    def _bodies(
        self, slots: Sequence[tuple[int, int]], number: Mapping[Key, int], factor: Factor
    ) -> tuple[Ints, list[int], list[int]]:
        """Integers of all bodies; entries of their pairs of slots; entries of their slots and freedoms."""
        at = np.zeros((self.n, layout.N_AT), np.int64)
        pair: list[int] = []
        couple: list[int] = []
        bodies, shares = np.array([i for i, _ in slots], np.int64), 0
        for i in range(self.n):
            begin, end = (int(x) for x in np.searchsorted(bodies, [i, i + 1]))
            open_ = [u for _, u in slots[begin:end]]
            loose = i in self.severed
            cut = -1 if loose else self.rows.joint_cut.get(i, -1)
            rows = int(self.rows.table[cut, rec.C_ROWS]) if cut >= 0 else 0
            cut = cut if rows else -1
            freedoms = self.freedoms(i) if i >= self.n_bases else 0
            first = self.first[cut] if rows else -1
            theta = number.get((-1 - i, 0), -1)
            at[i] = [begin, end, cut, first, freedoms, theta, loose, len(pair), len(couple), shares]
            shares += rows * len(open_)
            pair += [factor.entry(b, a) for n, a in enumerate(open_) for b in open_[: n + 1]]
            couple += [factor.entry(u, theta + k) for u in open_ for k in range(freedoms)]
        return at, pair, couple


def scratch(plan: layout.DistributionTables, rows: int, columns: int) -> layout.DistributionScratch:
    """Arrays of the kernels for so many right sides; `rows`: of the balance."""
    bodies, slots, unknowns = len(plan.at), len(plan.slot), len(plan.unknown) - 1
    six = {"load": bodies, "missing": bodies, "column": slots, "inner": slots, "joint": 6}
    six["direction"] = len(plan.row_joint)
    shares = int(plan.at[:, layout.SHARES].max(initial=0)) + 6 * slots
    return layout.DistributionScratch(
        **{name: np.zeros((n, 6)) for name, n in six.items()},
        **{name: np.zeros(unknowns) for name in ("size", "natural", "weakest", "inverse")},
        share=np.zeros(shares),
        matrix=np.zeros(int(plan.unknown[-1, layout.U_COLUMN])),
        x=np.zeros((unknowns, columns)),
        y=np.zeros((rows, columns)),
        first=np.zeros(rows),
        root=np.zeros(rows),
    )


class Factor:
    """Pattern of the factor: unknown by unknown its diagonal entry, and then those below it.

    Parameters
    ----------
    nodes : list of pairs
        For each node in the order of elimination its unknowns, and those of later nodes it is coupled with.
    """

    def __init__(self, nodes: Sequence[Sequence[Sequence[int]]]):
        self.columns = [
            np.array([*own[k:], *sorted(coupled)], np.int64) for own, coupled in nodes for k in range(len(own))
        ]
        sizes = [len(column) for column in self.columns]
        self.begin = np.cumsum([0, *sizes])
        self.below = np.concatenate([np.zeros(0, np.int64), *self.columns])
        targets = [
            self.begin[b] + np.searchsorted(self.columns[b], column[m:])
            for column in self.columns
            for m, b in enumerate(column.tolist())
            if m
        ]
        self.target = np.concatenate([np.zeros(0, np.int64), *targets])
        self.first_target = np.cumsum([0, *(n * (n - 1) // 2 for n in sizes)])

    def entry(self, a: int, b: int) -> int:
        """Number of the entry in column a and row b, b not before a."""
        return int(self.begin[a] + np.searchsorted(self.columns[a], b))


def _table(rows: Sequence[Sequence[int]], columns: int) -> Ints:
    return np.array(rows, np.int64).reshape(-1, columns)
