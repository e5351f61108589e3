"""Tables for spreadsheets, in which no text becomes a formula.

A spreadsheet evaluates a cell of a CSV file that begins with one of ``= + - @``, also one that only shows the name of a
joint, and a cell of a workbook that is marked as a formula. Names come from model files, which come from anywhere.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

FIRST_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
# Characters that XML, and so a workbook, cannot hold.
NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def as_text(value: Any) -> Any:
    """Value with an apostrophe before text that spreadsheets would evaluate; all else unchanged.

    Examples
    --------
    >>> as_text("=1+2"), as_text("-A.fx"), as_text("A.fx"), as_text("-1.5"), as_text(-1.5)
    ("'=1+2", "'-A.fx", 'A.fx', '-1.5', -1.5)
    """
    if not isinstance(value, str) or not value.startswith(FIRST_OF_FORMULAS):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_text(frame: pandas.DataFrame) -> str:
    r"""Text of a CSV file with all digits; names and text are made safe by :func:`as_text`.

    Examples
    --------
    >>> import pandas as pd
    >>> csv_text(pd.DataFrame({"@A.fx": [0.1]}, index=pd.Index([0.5], name="time")))
    "time,'@A.fx\n0.5,0.1\n"
    """
    safe = _words_mapped(frame, as_text)
    return str(safe.to_csv(lineterminator="\n"))


def workbook(sheets: Mapping[str, pandas.DataFrame]) -> bytes:
    """Content of an .xlsx file with these sheets; cells are numbers or text, never formulas."""
    import pandas as pd

    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine="openpyxl") as book:
        for name, frame in sheets.items():
            _words_mapped(frame, _for_xml).to_excel(book, sheet_name=name)
            for row in book.sheets[name].iter_rows():
                for cell in row:
                    if cell.data_type == "f":
                        cell.data_type = "s"
                        cell.quotePrefix = True  # it stays text when edited
    return buffer.getvalue()


def _for_xml(value: Any) -> Any:
    return NOT_IN_XML.sub(lambda found: repr(found[0])[1:-1], value) if isinstance(value, str) else value


def _words_mapped(frame: pandas.DataFrame, change: Any) -> pandas.DataFrame:
    """Table with all names and text changed."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    changed = frame.copy(deep=False)
    for k, kind in enumerate(frame.dtypes):
        if not (is_numeric_dtype(kind) or is_bool_dtype(kind)):
            changed.isetitem(k, [change(x) for x in frame.iloc[:, k]])
    changed.columns = [change(x) for x in frame.columns]
    changed.index = pd.Index([change(x) for x in frame.index], name=change(frame.index.name))
    return changed


__all__ = ["as_text", "csv_text", "workbook"]
