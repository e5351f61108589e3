"""Tables of designs as people and spreadsheets write them: one row per design, one column per parameter."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from loopdyn.errors import LoopdynError

Value = float | str
NAME = "name"  # column of a table that names its designs


def rows_of(table: Any, what: str) -> dict[str, dict[str, Value]]:
    """Name and overridden parameters of each row of a CSV file, data frame or list of mappings; `what` it lists.

    Examples
    --------
    >>> rows_of([{"name": "short", "crank": 0.2}, {"crank": "1/3"}], "designs")
    {'short': {'crank': 0.2}, '2': {'crank': '1/3'}}
    """
    lines = _read(Path(table), what) if isinstance(table, str | os.PathLike) else _cells(table)
    if not lines:
        raise LoopdynError(f"the table of {what} is empty. Write a line of names, then one per {what[:-1]}.")
    rows: dict[str, dict[str, Value]] = {}
    for k, cells in enumerate(lines, 1):
        name = str(cells.pop(NAME, k)).strip()
        if name in rows:
            raise LoopdynError(f"two {what} are called '{name}'. Give each its own name.")
        rows[name] = {c: _value(x) for c, x in cells.items()}
    return rows


def _value(cell: Any) -> Value:
    """A number, or a formula."""
    try:
        return float(cell)
    except ValueError:
        return str(cell).strip()


def _cells(table: Any) -> list[dict[str, Any]]:
    """Cells by column of each row of a data frame or list of mappings, without the empty ones."""
    import pandas as pd

    frame = pd.DataFrame(table)
    heads = [str(c).strip() for c in frame.columns]
    return [
        {c: x for c, x in zip(heads, row, strict=True) if not pd.isna(x) and str(x).strip()}
        for row in frame.itertuples(index=False, name=None)
    ]


def _read(file: Path, what: str) -> list[dict[str, Any]]:
    """Cells by column of each line of a file, as they are written, without the empty ones."""
    form = f"Write a line of names, then one per {what[:-1]}, with commas between."
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:  # byte-order mark of spreadsheets
            reader = csv.reader(stream, skipinitialspace=True)
            lines = [(reader.line_num, [x.strip() for x in row]) for row in reader]
    except FileNotFoundError:
        raise LoopdynError(f"there is no such file: '{file}'. Give a table of {what}, ending in .csv.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LoopdynError(f"'{file}' is not a table: {error}. {form}") from None
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        return []
    heads = lines[0][1]
    while heads[-1] == "":  # commas at the end of a line, as spreadsheets leave them
        heads.pop()
    if len(heads) == 1 and ";" in heads[0]:
        raise LoopdynError(f"'{file}' has semicolons between its cells. {form}")
    wrong = [c for c in heads if c == "" or heads.count(c) > 1]
    if wrong:
        what_is_wrong = f"has two columns '{wrong[0]}'" if wrong[0] else "has a column without a name"
        raise LoopdynError(f"'{file}' {what_is_wrong}. {form}")
    for number, row in lines[1:]:
        if any(row[len(heads) :]):
            raise LoopdynError(
                f"'{file}', line {number}: more cells than the {len(heads)} names of the first line. {form}"
            )
    return [{c: x for c, x in zip(heads, row, strict=False) if x} for _, row in lines[1:]]


__all__ = ["NAME", "Value", "rows_of"]
