"""Copies of mechanisms, which share the parts that nobody can change."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from loopdyn.model.mechanism import Mechanism

# Sections of parts that are data.
ELEMENTS = (
    "points",
    "bodies",
    "joints",
    "constraints",
    "drivers",
    "contacts",
    "forces",
    "base",
    "measures",
    "tolerances",
)


def with_own_sections(m: Mechanism) -> Mechanism:
    """Copy that parts added to `m`, or exchanged, do not reach; the parts, which are data, are shared."""
    other = m.model_copy()
    for section in (*ELEMENTS, "user_forces", "user_constraints", "parameters"):
        other.__dict__[section] = dict(getattr(m, section))
    other.__dict__["start"] = own_copy(m.start)
    return other


def sharing_parts(
    m: Mechanism,
    fields: Mapping[str, Mapping[str, list[str]]],
    before: Mapping[str, float | str],
    parameters: Mapping[str, Any],
) -> Mechanism:
    """Copy with the parameters `before`, some of them overridden.

    The `fields` are those of :func:`fields_to_copy`; all others are shared.
    """
    other = with_own_sections(m)
    for section in ELEMENTS:
        parts = other.__dict__[section]
        for name, some in fields.get(section, {}).items():
            own = {key: own_copy(parts[name].__dict__[key]) for key in some}
            parts[name] = _with_fields(parts[name], own)
    other.__dict__["parameters"] = dict(before)
    other._override(parameters)
    return other


def fields_to_copy(m: Mechanism) -> dict[str, dict[str, list[str]]]:
    """Fields by section and part that have dicts or lists, which two mechanisms must not share."""
    found: dict[str, dict[str, list[str]]] = {}
    for section in ELEMENTS:
        parts = {name: part.__dict__.items() for name, part in getattr(m, section).items()}
        fields = {name: [key for key, x in inner if own_copy(x) is not x] for name, inner in parts.items()}
        found[section] = {name: some for name, some in fields.items() if some}
    return found


def own_copy(part: Any) -> Any:
    """Copy of a part of a model whose inner dicts and lists are its own; the part itself if it has none.

    Examples
    --------
    >>> from loopdyn.model.mechanism import Start
    >>> part = Start()
    >>> own_copy(part) == part, own_copy(part).q is part.q
    (True, False)
    """
    if isinstance(part, BaseModel):
        copies = {name: own_copy(value) for name, value in part.__dict__.items() if not isinstance(value, _FIXED)}
        changed = {name: value for name, value in copies.items() if value is not part.__dict__[name]}
        return _with_fields(part, changed) if changed else part
    if isinstance(part, tuple):
        inside = [own_copy(x) for x in part if not isinstance(x, _FIXED)]
        same = all(a is b for a, b in zip(inside, (x for x in part if not isinstance(x, _FIXED)), strict=True))
        return part if same else tuple(own_copy(x) for x in part)
    if type(part) is dict:
        return {key: own_copy(x) for key, x in part.items()}
    return part if isinstance(part, _FIXED) else copy.deepcopy(part)


def _with_fields(part: BaseModel, fields: Mapping[str, Any]) -> Any:
    """Copy of an immutable part with other values of some fields; `model_copy` copies more and takes longer."""
    other = object.__new__(type(part))
    other.__setstate__({**part.__getstate__(), "__dict__": {**part.__dict__, **fields}})
    return other


_FIXED = (float, str, int, type(None))
