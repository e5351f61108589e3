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

    def lengths(self, expressions: list[str], addresses: bool = False) -> list[str]:
        """Statements that read what the expressions need from the headers."""
        b: Block = self.block
        names = dict.fromkeys(n for e in expressions for n in _names(e) if not n.isupper())
        lines = []
        for name in names:
            own, system = f"{b.header}{name.upper()}", f"H_{name.upper()}"
            if b.address is not None and hasattr(self.module, own):
                lines.append(f"    {name} = ints[o + {own}]")
                addresses = True
            elif hasattr(records, system):
                lines.append(f"    {name} = ints[{system}]")
            else:
                raise LookupError(f"{self.module.__name__}: no header has a length '{name}'")
        if b.address is not None and addresses:
            lines.insert(0, f"    o = ints[{b.address}]")
        return lines

    def opener(self, o: Opener) -> str:
        """One opener."""
        hints = get_type_hints(o.views, include_extras=True)
        names = [o.part] if isinstance(o.part, str) else list((o.part or o.views).__annotations__)
        values, places, expressions = [], [], []
        used = {s.array for s in segments(o.views) if s.name in names}
        for array in (a for a in ARRAYS if a in used):
            last = max(k for k, s in enumerate(self.segments[array]) if s.name in names)
            before = self.begin(array)
            for s in self.segments[array][: last + 1]:
                places.append(f"    at_{s.name} = {before}")
                before = f"at_{s.name} + {_product(s.shape)}"
                expressions += s.shape
        for name in names:
            meta = hints[name].__metadata__
            expressions += [meta[0]] if len(meta) == 1 else []
            values.append(f"window({meta[0]}, at_{name}, {meta[1]})" if len(meta) == 2 else meta[0])
        result = values if isinstance(o.part, str) else [f"{(o.part or o.views).__name__}(", *values]
        doc = f"The segment `{o.part}` alone." if isinstance(o.part, str) else (o.part or o.views).__doc__
        arguments = ", ".join(a for a in ARRAYS if a == "ints" or a in used)
        return "\n".join(
            [
                "@inline(always=True)",
                f"def {o.name}({arguments}):",
                f'    """{doc}"""',
                *self.lengths(expressions, addresses=True),
                *places,
                *_returned(result),
            ]
        )

    def begin(self, array: str) -> str:
        """Where the segments of an array begin."""
        b: Block = self.block
        if b.address is None:
            return f"{b.header}SIZE" if array == "ints" else "0"
        return f"o + {b.header}SIZE" if array == "ints" else f"ints[o + {array.upper()}]"


def _names(expression: str) -> list[str]:
    return [node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)]


def _product(shape: tuple[str, ...]) -> str:
    factors = [f"({x})" if " + " in x or " - " in x else x for x in shape if x != "1" or len(shape) == 1]
    return " * ".join(factors) if len(factors) > 1 else shape[0]


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


def _returned(result: list[str]) -> list[str]:
    if len(result) == 1:
        return [f"    return {result[0]}"]
    return [f"    return {result[0]}", *(f"        {value}," for value in result[1:]), "    )"]


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
