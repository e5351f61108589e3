"""The plan of `rcr` and its arrays as the kernels read them: :mod:`loopdyn.formulations.rcr.layout` written out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.base import FIRST_CONSTRAINT
from loopdyn.engine.layout import fill, opened, with_block
from loopdyn.engine.records import C_KIND, H_SOLVER, NV, PARENT, V0
from loopdyn.formulations.base import Array
from loopdyn.formulations.rcr import layout
from loopdyn.formulations.rcr.plan import CoupledGroup, ReductionPlan


class ReductionArrays:
    """Arrays of the kernels for one plan and one form of the state, with views of them."""

    def __init__(self, plan: ReductionPlan, form: int, candidate: Array, switch: float):
        self.plan, system = plan, plan.system
        self.system = system
        tables = _Tables(plan)
        self.ints, self.floats, size = with_block(
            system.ints, system.floats, len(system.work()), H_SOLVER, tables.header(form), layout.cell_sizes
        )
        self.work = np.zeros(size)
        self.arrays = (self.ints, self.floats, self.work)
        self.state = system.open_work(self.work)
        self.tables: layout.Cells = opened(layout.open_cells, self.ints)
        tables.fill(self.tables)
        self.views: layout.Numbers = opened(layout.open_numbers, *self.arrays)
        scale, unit = 1.0 / system.row_units, system.speed_units
        fill(self.views, row_scale=scale, unit=unit, candidate=candidate, switch=switch)
        self.views.notes[layout.ASKED] = layout.ACCELERATIONS

    def put(self, t: float, q: Array, v: Array) -> None:
        """Write a state."""
        self.state.t[0], self.state.q[:], self.state.v[:] = t, q, v

    def motions(self) -> Array:
        """Motions (k, nv) of all speeds for each independent one, at the last evaluation."""
        place = {k: n for n, k in enumerate(self.plan.independent)}
        D = np.zeros((len(place), self.system.nv))
        D[np.arange(len(place)), list(place)] = 1.0
        tree = self.system.model.tree
        for g in self.plan.groups:
            rows = [place[k] for k in g.tentative[: g.freedoms]]
            for b in g.bodies:
                for k in range(tree[b, V0], tree[b, V0] + tree[b, NV]):
                    e = self.tables.e[k]
                    D[rows, k] = self.views.E[e : e + g.freedoms]
        return D


class _Tables:
    """Tables of a plan, group by group and cell by cell, and how many numbers each needs."""

    def __init__(self, plan: ReductionPlan):
        self.plan, self.tree = plan, plan.system.model.tree
        self.slot, self.start = (np.full(len(self.tree), -1, np.int64) for _ in range(2))
        self.e = np.full(plan.system.nv, -1, np.int64)
        self.group: list[list[int]] = []
        self.cell = [[0] * layout.N_CELL for _ in plan.cells]
        self.step: list[int] = []
        self.tentative: list[int] = []
        self.rows: list[int] = []
        self.dependent: list[int] = []
        self.part: list[list[int]] = []
        self.path: list[list[int]] = []
        self.local: list[int] = []
        self.direct: list[list[int]] = []
        self.n_columns = self.n_e = self.n_x = self.n_m = 0
        self.n_reduced = layout.MOST_ROWS * plan.width  # scratch of all cells that are not closing ones, then theirs
        for g, group in enumerate(plan.groups):
            self._add_group(g, group)

    def _speeds(self, body: int) -> range:
        first = int(self.tree[body, V0])
        return range(first, first + int(self.tree[body, NV]))

    def _add_group(self, g: int, group: CoupledGroup) -> None:
        width, freedoms = len(group.tentative), group.freedoms
        self.start[min(group.bodies)] = g
        for b in (x for x in group.steps if x >= 0):  # in the order of evaluation, whatever that of the file is
            self.slot[b] = self.n_columns
            self.n_columns += width
            for k in self._speeds(b):
                self.e[k] = self.n_e
                self.n_e += width
        steps = len(self.step), len(self.step) + len(group.steps)
        first_closing = min(group.closing, default=0)
        closing = first_closing, first_closing + len(group.closing)
        own = [*steps, *closing, width, freedoms, len(self.tentative), self.n_m, self.n_reduced]
        self.n_m += freedoms * freedoms
        self.step += group.steps
        self.tentative += group.tentative
        for c in [-1 - x for x in group.steps if x < 0] + list(group.closing):
            self._add_cell(c, width, c in group.closing)
        self.group.append([group.base, *own, self.n_x])
        self.n_x += group.followers**2

    def _add_cell(self, c: int, width: int, closing: bool) -> None:
        cell, element = self.plan.cells[c], self.plan.elements[self.plan.cells[c].element]
        place = {k: n for n, k in enumerate(cell.dependent)}
        rows = len(self.rows), len(self.rows) + len(cell.rows)
        parts, direct = len(self.part), len(self.direct)
        for p, (ways, child, parent) in zip(element.parts, cell.sides, strict=True):
            self.part.append([p.cut, p.entry, child, parent, len(self.path), len(self.path) + len(ways)])
            for b, sign in ways:
                self.path.append([b, sign, len(self.local)])
                self.local += [place.get(k, -1) for k in self._speeds(b)]
        self.direct += [[entry, k, place.get(k, -1)] for entry, k in element.direct]
        ranges = *rows, len(self.dependent), parts, len(self.part), direct, len(self.direct)
        self.cell[c] = [*ranges, self.n_x, self.n_reduced if closing else 0, width]
        self.rows += cell.rows
        self.dependent += cell.dependent
        self.n_x += len(cell.rows) ** 2
        self.n_reduced += len(cell.rows) * width if closing else 0

    def header(self, form: int) -> dict[int, int]:
        """Lengths and settings."""
        return {
            layout.N_GROUPS: len(self.group), layout.N_STEPS: len(self.step), layout.N_CELLS: len(self.cell),
            layout.N_ROWS: len(self.rows), layout.N_DEPENDENT: len(self.dependent), layout.N_PARTS: len(self.part),
            layout.N_PATH: len(self.path), layout.N_LOCAL: len(self.local), layout.N_DIRECT: len(self.direct),
            layout.N_TENTATIVE: len(self.tentative), layout.N_COLUMNS: self.n_columns, layout.N_E: self.n_e,
            layout.N_X: self.n_x, layout.N_REDUCED: self.n_reduced, layout.N_M: self.n_m, layout.FORM: form,
            layout.AFFINE: int(self.plan.system.affine), layout.STEADY: int(_steady(self.plan)),
        }  # fmt: skip

    def fill(self, cells: layout.Cells) -> None:
        """Write all tables."""
        fill(
            cells,
            slot=self.slot, start=self.start, carries=_carries(self.plan), e=self.e,
            holonomic=self.plan.system.holonomic, group=self.group, step=self.step, cell=self.cell, row=self.rows,
            dependent=self.dependent, part=self.part, path=self.path, local=self.local, direct=self.direct,
            tentative=self.tentative,
        )  # fmt: skip


def _steady(plan: ReductionPlan) -> bool:
    """Whether speeds follow by E alone: joints between bodies only, bases at rest, no group closed at its end."""
    model = plan.system.model
    given = bool((model.base_programs >= 0).any())
    constraints = len(model.linear) > 0 or bool((model.cut[:, C_KIND] >= FIRST_CONSTRAINT).any())
    return not (given or constraints or any(g.followers for g in plan.groups))


def _carries(plan: ReductionPlan) -> NDArray[np.int64]:
    """1 for bodies on which, in the end, a body outside of all groups or another group stands."""
    tree, n_bases = plan.system.model.tree, plan.system.n_bases
    found, inside = np.zeros(len(tree), np.int64), {b for g in plan.groups for b in g.bodies}
    found[[g.base for g in plan.groups if g.base >= 0]] = 1
    for b in range(len(tree) - 1, n_bases - 1, -1):
        if b not in inside or found[b]:
            found[tree[b, PARENT]] = 1
    return found
