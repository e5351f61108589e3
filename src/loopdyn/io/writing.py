"""Writing of model files: formatted like hand-written ones, or merged into the text of the file that was read.

Only values that differ from the defaults are written. If a mechanism came from a file, the text of that file is
edited in place: unchanged entries keep their notation, alignment and comments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from loopdyn.io.reading import Node, plain_scalar
from loopdyn.model.copies import ELEMENTS
from loopdyn.model.inertia import Mesh
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.units import PointName

LINE = 110  # longest line with a mapping in it; longer ones get one line per key
KINDS_OF_PARTS = ("type", "profile")  # always written: they identify a part


class Formula(str):
    """Text of a formula; written in quotes, to distinguish it from a name."""


# ------------------------------------------------------------------------------------ mechanism to plain data


def plain(mechanism: Mechanism, folder: FilePath) -> dict[str, Any]:
    """Content of a model file in `folder` for a mechanism: without defaults, in short forms if there are any.

    Examples
    --------
    >>> plain(Mechanism("m", gravity=(0, -9.81, 0)), FilePath())
    {'loopdyn': 1, 'name': 'm', 'gravity': [0, -9.81, 0]}
    """
    return {"loopdyn": 1, **_part(mechanism, os.path.abspath(folder))}


def _part(part: BaseModel, folder: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if field.exclude or (name not in KINDS_OF_PARTS and value == _default(type(part), name)):
            continue
        if isinstance(part, Mesh) and name == "file":
            value = _relative(value, folder)
        plain_value = _value(value, _holds_numbers(type(part), name), folder)
        # one shape of a body, or one point, needs no list
        single = field.alias is not None and isinstance(plain_value, list) and len(plain_value) == 1
        said[field.alias or name] = plain_value[0] if single else plain_value
    for key in ("limits", "at_limit"):
        if key in said:
            said[key] = said.pop(key)  # last, in the order in which a joint is read
    return said


def _value(value: Any, numbers: bool, folder: str) -> Any:
    if isinstance(value, BaseModel):
        part, short = _part(value, folder), str(getattr(value, "short", ""))
        return part[short] if set(part) == {short} else part
    if isinstance(value, PointName):
        return str(value)
    if isinstance(value, Mapping):
        return {k: _value(v, numbers, folder) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_value(v, numbers, folder) for v in value]
    if isinstance(value, str):
        return Formula(value) if numbers else value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


@lru_cache(maxsize=1024)
def _default(model: type[BaseModel], name: str) -> Any:
    return model.model_fields[name].get_default(call_default_factory=True)


@lru_cache(maxsize=1024)
def _holds_numbers(model: type[BaseModel], name: str) -> bool:
    """Whether texts in this field are formulas."""
    field: FieldInfo = model.model_fields[name]
    return float in _types(field.annotation)


def _types(annotation: Any) -> Iterator[Any]:
    yield annotation
    parts = get_args(annotation)
    for part in parts[:1] if get_origin(annotation) is Annotated else parts:
        yield from _types(part)


def _relative(file: str, folder: str) -> str:
    """Path of a mesh as the model file in `folder` names it: relative if it is inside, else absolute."""
    inside = os.path.commonpath([folder, file]) == folder if _same_drive(folder, file) else False
    return FilePath(os.path.relpath(file, folder)).as_posix() if inside else file


def _same_drive(a: str, b: str) -> bool:
    return os.path.splitdrive(a)[0] == os.path.splitdrive(b)[0]


# ------------------------------------------------------------------------------------------ plain data to text

_SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_./*^-]*( [A-Za-z0-9_./*^-]+)*")  # texts that need no quotes anywhere


def one_line(value: Any) -> str:
    """A value on one line.

    Examples
    --------
    >>> one_line({"type": "revolute", "at": [0, Formula("crank"), 1e-7], "child": "no. 1: arm"})
    '{type: revolute, at: [0, "crank", 1.0e-07], child: "no. 1: arm"}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{one_line(k)}: {one_line(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(one_line(v) for v in value) + "]"
    if isinstance(value, str):
        needs_quotes = isinstance(value, Formula) or not _SAFE.fullmatch(value) or plain_scalar(value) != value
        return _quoted(value) if needs_quotes else value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text  # older readers need the point


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in text) + '"'


def _escape(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def entry(key: str, value: Any, indent: int) -> str:
    """Text of one entry of a mapping, beginning at its key; further lines are indented."""
    head = one_line(key) + ":"
    short = one_line(value)
    many = isinstance(value, Mapping) and value and indent == 0 and key in ELEMENTS
    nested = isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
    if not many and (not nested or indent + len(head) + 1 + len(short) <= LINE):
        return f"{head} {short}"
    pad = "\n" + " " * (indent + 2)
    if isinstance(value, Mapping):
        return head + "".join(pad + entry(k, v, indent + 2) for k, v in value.items())
    return head + "".join(f"{pad}- {one_line(v)}" for v in value)


def document(said: Mapping[str, Any]) -> str:
    """Text of a whole model file.

    Examples
    --------
    >>> print(document({"loopdyn": 1, "bodies": {"arm": {"mass": 2, "com": [0.5, 0, 0]}}}), end="")
    loopdyn: 1
    bodies:
      arm: {mass: 2, com: [0.5, 0, 0]}
    """
    return "".join(entry(key, value, 0) + "\n" for key, value in said.items())


# ------------------------------------------------------------------------------------- editing the text of a file

Edit = tuple[int, int, str]  # from, to, new text


def merged(text: str, root: Node, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Text of a file with the content `old`, changed so that its content is `new`.

    Entries that are equal in both stay as they are written, and so do those that only spell out a default (in
    neither).
    """
    edits = list(_mapping_edits(text, root, old, new))
    # From the end, so that positions stay valid; of two at one position the inner, which comes later, must end up
    # first.
    for start, end, replacement in sorted(edits, key=lambda edit: edit[0], reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _mapping_edits(text: str, node: Node, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Edit]:
    entries = list(node.entries.items())
    gone = [key in old and key not in new for key, _ in entries]
    added = {key: value for key, value in new.items() if key not in node.entries}
    remove_and_add = _flow_edits if node.flow else _block_edits
    yield from remove_and_add(text, [n for _, n in entries], gone, added)
    for key, child in entries:
        if key in new and (key not in old or old[key] != new[key]):
            yield from _change(text, key, child, old.get(key), new[key], node.flow)


def _change(text: str, key: str, node: Node, old: Any, new: Any, in_flow: bool) -> Iterator[Edit]:
    """Edits that change the entry `key` to `new`: inside it if both are mappings, else as a whole."""
    mappings = isinstance(old, Mapping) and isinstance(new, Mapping)
    if mappings and any(k in new or k not in old for k in node.entries):  # some entries stay
        yield from _mapping_edits(text, node, old, new)
        return
    whole = one_line(new) if in_flow else entry(key, new, _column(text, node.key))
    if in_flow or ("\n" not in whole and "\n" not in text[node.key : node.end]):
        blank = "" if text[node.start - 1].isspace() else " "
        yield node.start, node.end, blank + one_line(new)
    else:
        yield node.key, node.end, whole


def _block_edits(text: str, nodes: list[Node], gone: list[bool], added: Mapping[str, Any]) -> Iterator[Edit]:
    """Remove entries with their lines; add others below the last that stays."""
    for node, is_gone in zip(nodes, gone, strict=True):
        if is_gone:
            yield _line_start(text, node.key), _line_end(text, node.end) + 1, ""
    if added:
        last = [n for n, is_gone in zip(nodes, gone, strict=True) if not is_gone][-1]
        column = _column(text, last.key)
        lines = "".join("\n" + " " * column + entry(k, v, column) for k, v in added.items())
        place = _line_end(text, last.end)
        yield place, place, lines


def _flow_edits(text: str, nodes: list[Node], gone: list[bool], added: Mapping[str, Any]) -> Iterator[Edit]:
    """Remove entries with the comma after them; those at the end, with the comma before."""
    last = max(k for k, is_gone in enumerate(gone) if not is_gone)
    for k in range(last):
        if gone[k]:
            yield nodes[k].key, nodes[k + 1].key, ""
    if added or last + 1 < len(nodes):
        more = "".join(f", {one_line(k)}: {one_line(v)}" for k, v in added.items())
        yield nodes[last].end, nodes[-1].end, more


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _column(text: str, place: int) -> int:
    return place - _line_start(text, place)
