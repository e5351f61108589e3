"""The plan of `closure`: groups, blocks, and the order in which they are solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.layout import Ints, fill, opened, with_block
from loopdyn.engine.records import H_CLOSING
from loopdyn.formulations.closure import layout
from loopdyn.formulations.closure.joint_geometry import JointGeometry, Line
from loopdyn.system.system import JointData, State, System

Array = NDArray[np.float64]

WORDS = {
    layout.PINS: "three pins (RRR)",
    layout.SLIDE: "two pins and a slide (RRP)",
    layout.SLIDES: "a pin and two slides (RPP)",
    layout.SPHERE: "three hinges whose axes meet (spherical RRR)",
    layout.HOOKED: "a hinge and a universal joint on its axis (spherical RU)",
    layout.LEVEL: "a hinge that brings a ball into the plane of two joints (R before RRS, RPS, PRS)",
    layout.TORUS: "a hinge that brings a ball to where two skew hinges can have it (R before RRS)",
    layout.SKEW: "two skew hinges and a ball whose place is known (RRS)",
    layout.HINGES: "two hinges whose axes meet, between parts that are placed",
    layout.ROD_PIN: "a pin between two points at a known distance (RSS, RUS)",
    layout.ROD_SLIDE: "a slide between two points at a known distance (PSS, PUS)",
    layout.POINTED: "a universal joint and a ball (US)",
}
# Signs that distinguish the branches of a group, if there are not two; 2 is the farther one of two with one sign.
CLOSURES = {layout.SLIDES: (1,), layout.SKEW: (1,), layout.HINGES: (1,), layout.TORUS: (1, -1, 2, -2)}
FEW_TOGETHER, MANY_TRIALS = 4, 2000  # most constraints combined in a search for a small block, and most such sets


@dataclass(frozen=True)
class ClosedFormGroup:
    """Joints in a ring, solved in closed form.

    Attributes
    ----------
    kind : int
        What is solved: PINS, SLIDE, SLIDES, SPHERE, HOOKED, LEVEL, TORUS, SKEW, HINGES, ROD_PIN, ROD_SLIDE, POINTED
        of :mod:`loopdyn.formulations.closure.layout`.
    joints : tuple of str
        From the fixed part to the first one that moves, on to the second, and back.
    ends : tuple of int
        End (0 parent, 1 child) of each joint on the part that comes first.
    places : tuple of str
        Bodies that are placed by it.
    """

    kind: int
    joints: tuple[str, ...]
    ends: tuple[int, ...]
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        """Names of its joints."""
        return "-".join(self.joints)

    @property
    def closures(self) -> tuple[int, ...]:
        """Signs of the possible branches."""
        return CLOSURES.get(self.kind, (1, -1))

    def __str__(self) -> str:
        return f"{self.name}: {WORDS[self.kind]}, places {', '.join(self.places)}"


@dataclass(frozen=True)
class IteratedBlock:
    """Coordinates that are found together by Newton's method.

    Attributes
    ----------
    coordinates : tuple of str
    closes : tuple of str
        Cut joints and constraints whose rows are closed by it.
    speeds, rows : tuple of int
    """

    coordinates: tuple[str, ...]
    closes: tuple[str, ...]
    speeds: tuple[int, ...] = field(repr=False)
    rows: tuple[int, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"iterated: {', '.join(self.coordinates)}, which close {', '.join(self.closes)}"


@dataclass(frozen=True)
class ClosurePlan:
    """Order of steps by which dependent coordinates follow from independent ones.

    Attributes
    ----------
    independent : tuple of str
        Speeds that are given, with their coordinates.
    sequence : tuple of ClosedFormGroup or IteratedBlock
        Groups and blocks in the order of solution.
    follow : int
        Number of dependent coordinates.
    joints : tuple of JointData
        Joints of the system, then equivalent joints: a ball for three hinges, a hinge for two balls.
    lines : tuple
        Pairs of balls that are equivalent to hinges.
    """

    system: System
    independent: tuple[str, ...]
    sequence: tuple[ClosedFormGroup | IteratedBlock, ...]
    follow: int
    joints: tuple[JointData, ...] = field(repr=False)
    steps: tuple[tuple[int, ...], ...] = field(repr=False)
    lists: tuple[int, ...] = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)

    @property
    def groups(self) -> tuple[ClosedFormGroup, ...]:
        """Groups, which are solved explicitly."""
        return tuple(x for x in self.sequence if isinstance(x, ClosedFormGroup))

    @property
    def blocks(self) -> tuple[IteratedBlock, ...]:
        """Blocks, which are solved by Newton's method."""
        return tuple(x for x in self.sequence if isinstance(x, IteratedBlock))

    @property
    def iterated(self) -> tuple[str, ...]:
        """Coordinates that are found by Newton's method."""
        return tuple(x for block in self.blocks for x in block.coordinates)

    @property
    def explicit(self) -> bool:
        """Whether nothing is iterated."""
        return not self.blocks

    def __str__(self) -> str:
        title = f"closure: {', '.join(self.independent) or 'nothing'} independent, {self.follow} coordinates follow"
        lines = [f"{title}, {'all in closed form' if self.explicit else f'{len(self.iterated)} of them iterated'}"]
        return "\n".join([*lines, *(f"  {k}. {x}" for k, x in enumerate(self.sequence, 1))])

    def add_to(self, ints: Ints, floats: Array, work: int) -> tuple[Ints, Array, int]:
        """Arrays of the kernels with a block for the plan behind them; of the work array, the length."""
        s, block = self.system, max((len(b.speeds) for b in self.blocks), default=0)
        header = {
            layout.C_STEPS: len(self.steps), layout.C_POSES: len(s.bodies) + 2 * len(self.lines),
            layout.C_JOINTS: len(self.joints), layout.C_GROUPS: len(self.groups), layout.C_LISTS: len(self.lists),
            layout.C_BLOCK: block, layout.C_ROWS: s.nc if block else 0,
        }  # fmt: skip
        ints, floats, work = with_block(ints, floats, work, H_CLOSING, header, layout.closing_sizes)
        fill(
            opened(layout.open_closing, ints, floats, np.zeros(work)),
            step=self.steps,
            joint=[[j.spec.kind, j.parent, j.child, j.q0] for j in self.joints],
            lists=self.lists,
            frame=[np.concatenate([j.F[0], j.F[1].ravel(), j.M[0], j.M[1].ravel(), j.par]) for j in self.joints],
            sign=np.ones(len(self.groups)),
            row_unit=s.row_units,
            unit=s.speed_units,
        )
        return ints, floats, work

    def signs(self, state: State) -> Array:
        """Branch of each group at the pose of a state: the sign of the group's determinant there."""
        at, named = JointGeometry(self.system, state), {j.name: j for j in self.joints}
        for line in self.lines:
            at.add_line(line)
        return np.array([at.sign(g, [named[name] for name in g.joints]) for g in self.groups])


def together(depends: dict[str, frozenset[int]]) -> Iterator[list[str]]:
    """Sets of constraints connected by common speeds, small ones first, then whole components."""
    found: list[list[str]] = [[name] for name in depends]
    seen = {frozenset(x) for x in found}
    trials = 0
    for _ in range(FEW_TOGETHER):
        larger: list[list[str]] = []
        for names in found:
            trials += 1
            yield names
            around = {k for name in names for k in depends[name]}
            for name in depends:
                grown = frozenset((*names, name))
                if depends[name] & around and grown not in seen and trials + len(larger) < MANY_TRIALS:
                    seen.add(grown)
                    larger.append([*names, name])
        found = larger
    left = dict(depends)
    while left:
        names = [next(iter(left))]
        around = set(left.pop(names[0]))
        while more := [name for name in left if left[name] & around]:
            names += more
            around.update(*(left.pop(name) for name in more))
        yield names
