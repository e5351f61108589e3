"""Writes what opens the packed arrays in kernels, and their lengths, from the classes that list the segments.

    python tools/openers.py

See `loopdyn/engine/layout.py`. Everything in a module of MODULES below the line MARK is written here;
`tests/unit/test_layout.py` writes it again and compares.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from loopdyn.engine import records
from loopdyn.engine.layout import Block, Opener, segments

MODULES = (
    "loopdyn.engine.records",
    "loopdyn.loops.elimination.layout",
    "loopdyn.formulations.partition.layout",
    "loopdyn.formulations.closure.layout",
    "loopdyn.formulations.rcr.layout",
    "loopdyn.formulations.momentum.layout",
    "loopdyn.formulations.auto.layout",
)
MARK = "# Written by tools/openers.py from the classes above; change these and run it."
ARRAYS = ("ints", "floats", "work")
LINE = 120


class Writer:
    """Text of the functions of one module."""

    def __init__(self, module: ModuleType):
        self.module, self.block = module, module.BLOCK
        classes = dict.fromkeys(opener.views for opener in self.block.openers)
        self.segments = {array: [s for c in classes for s in segments(c) if s.array == array] for array in ARRAYS}
        for array, some in self.segments.items():
            if len({s.name for s in some}) < len(some):
                raise LookupError(f"{module.__name__}: two segments of {array} have the same name")

    def text(self) -> str:
        """All functions."""
        return "\n\n\n".join([self.sizes(), *(self.opener(o) for o in self.block.openers)]) + "\n"

    def sizes(self) -> str:
        """The function that tells the lengths."""
        b: Block = self.block
        of = "of the arrays" if b.address is None else "that the block adds to the arrays"
        terms = {array: [_product(s.shape) for s in self.segments[array]] for array in ARRAYS}
        terms["ints"].insert(0, f"{b.header}SIZE")
        lengths = [line for array in ARRAYS for line in _sum(f"n_{array}", terms[array])]
        lines = [
            f"def {b.sizes}(ints: Any) -> tuple[int, int, int]:",
            f'    """Lengths {of}, from the headers in `ints`."""',
            *self.lengths([t for some in terms.values() for t in some]),
            *lengths,
            "    return int(n_ints), int(n_floats), int(n_work)",
        ]
        return "\n".join(lines)

    def lengths(self, expressions: list[str]) -> list[str]:
        """Statements that read what the expressions need from the headers."""
        b: Block = self.block
        names = dict.fromkeys(n for e in expressions for n in _names(e) if not n.isupper())
        lines = [] if b.address is None else [f"    o = ints[{b.address}]"]
        for name in names:
            own, system = f"{b.header}{name.upper()}", f"H_{name.upper()}"
            if b.address is not None and hasattr(self.module, own):
                lines.append(f"    {name} = ints[o + {own}]")
            elif hasattr(records, system):
                lines.append(f"    {name} = ints[{system}]")
            else:
                raise LookupError(f"{self.module.__name__}: no header has a length '{name}'")
        return lines

    def opener(self, o: Opener) -> str:
        """One opener."""
        alone = isinstance(o.part, str)
        returned: Any = o.part or o.views
        names = [returned] if alone else list(returned.__annotations__)
        places, expressions = self.places(o.views, names)
        hints, values = get_type_hints(o.views, include_extras=True), []
        for name in names:
            match hints[name].__metadata__:
                case (array, shape):
                    values.append(f"window({array}, at_{name}, {shape})")
                case (length,):
                    expressions.append(length)
                    values.append(length)
        used = {s.array for s in segments(o.views) if s.name in names}
        views = [f"    return {returned if alone else returned.__name__}(", *(f"        {x}," for x in values), "    )"]
        lines = [
            "@inline(always=True)",
            f"def {o.name}({', '.join(a for a in ARRAYS if a == 'ints' or a in used)}):",
            f'    """{f"The segment `{returned}` alone." if alone else returned.__doc__}"""',
            *self.lengths(expressions),
            *places,
            *([f"    return {values[0]}"] if alone else views),
        ]
        return "\n".join(lines)

    def places(self, views: type, names: list[str]) -> tuple[list[str], list[str]]:
        """Statements that tell where segments begin, up to the last one of these names; expressions used in them."""
        statements, expressions = [], []
        for array in ARRAYS:
            own = {s.name for s in segments(views) if s.array == array and s.name in names}
            last = max((k for k, s in enumerate(self.segments[array], 1) if s.name in own), default=0)
            before = self.begin(array)
            for s in self.segments[array][:last]:
                statements.append(f"    at_{s.name} = {before}")
                before = f"at_{s.name} + {_product(s.shape)}"
                expressions += s.shape
        return statements, expressions

    def begin(self, array: str) -> str:
        """Where the segments of an array begin."""
        b: Block = self.block
        if b.address is None:
            return f"{b.header}SIZE" if array == "ints" else "0"
        return f"o + {b.header}SIZE" if array == "ints" else f"ints[o + {array.upper()}]"


def _names(expression: str) -> list[str]:
    return [node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)]


def _product(shape: tuple[str, ...]) -> str:
    factors = [x for x in shape if x != "1"] or ["1"]
    return " * ".join(f"({x})" if " + " in x or " - " in x else x for x in factors) if factors[1:] else factors[0]


def _sum(name: str, terms: list[str]) -> list[str]:
    """Statements that add up terms, in lines that are not too long."""
    lines = [f"    {name} = {terms[0] if terms else 0}"]
    for term in terms[1:]:
        longer = f"{lines[-1]} + {term}"
        if len(longer) <= LINE:
            lines[-1] = longer
        else:
            lines.append(f"    {name} += {term}")
    return lines


def written(name: str) -> tuple[Path, str]:
    """File of a module, and the text that it must have."""
    module: Any = importlib.import_module(name)
    path = Path(module.__file__)
    by_hand, mark, _ = path.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise LookupError(f"{name} has no line '{MARK}'")
    return path, f"{by_hand}{mark}\n\n\n{Writer(module).text()}"


def main() -> None:
    """Write all modules."""
    for name in MODULES:
        path, text = written(name)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
