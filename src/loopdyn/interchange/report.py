"""Report of a conversion between formats, for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from loopdyn.errors import ModelError, Problem
from loopdyn.model.mechanism import Mechanism


@dataclass
class Report:
    """Report of what was converted, changed and left out; can be printed.

    Attributes
    ----------
    title : str
        Which file, from which format to which.
    carried, changed, left_out : list of str
        One line for each thing, or for each kind of thing.
    notes : list of str
        Suspicious parts that should be checked.

    Examples
    --------
    >>> print(Report("arm.urdf", carried=["2 bodies"], left_out=["3 collision shapes"]))
    arm.urdf
      carried over: 2 bodies
      left out:     3 collision shapes
    """

    title: str
    carried: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {'carried over:':<13} {line}" for line in self.carried), *self.losses()])

    def losses(self) -> list[str]:
        """Lines about parts that differ from the source, or are suspicious."""
        kinds = (("changed", self.changed), ("left out", self.left_out), ("note", self.notes))
        return [f"  {kind + ':':<13} {line}" for kind, lines in kinds for line in lines]

    def count(self, what: str, names: Sequence[str]) -> None:
        """Note how many things of a kind were carried over, and their names."""
        if names:
            self.carried.append(f"{len(names)} {what}: {listed(names)}")

    def leave_out(self, what: str, names: Sequence[str] | int) -> None:
        """Note things of a kind that were left out, by name or by number."""
        if names:
            number, shown = (names, "") if isinstance(names, int) else (len(names), f": {listed(names)}")
            self.left_out.append(f"{number} {what}{shown}")


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names in one line; of many, the first ones.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


@dataclass(frozen=True)
class Imported:
    """Model that was read from another format.

    Attributes
    ----------
    mechanism : Mechanism
        Ready to be compiled or saved.
    report : Report
        Report of what was converted, changed and left out.
    loops : tuple of str
        Joints that close loops over the tree of the source: ``mechanism.compile(cuts=loops)`` keeps that tree.
    """

    mechanism: Mechanism
    report: Report
    loops: tuple[str, ...] = ()


def refuse_loss(problems: Sequence[Problem], report: Report, leave_out: bool) -> None:
    """Raise for what a format cannot hold, or note it in the report if leaving it out was asked for.

    Raises
    ------
    ModelError
        With every element that would be lost, unless `leave_out`.
    """
    if problems and not leave_out:
        raise ModelError(problems)
    report.left_out += [f"{p.element}: {p.message}" for p in problems]
