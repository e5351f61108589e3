"""Error messages for data: pydantic's errors without its jargon, with a hint what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from loopdyn.errors import Path, Problem, UnknownLabelError

# Features that loopdyn does not have, or has elsewhere, by their usual names: reported where a user asks for them.
NOT_OFFERED = {
    word: what
    for what, words in {
        "Contacts of profiles are ld.contacts, the section 'contacts' of a file. Read docs/contact.md.": (
            "contact",
            "collision",
            "ground_contact",
            "impact",
        ),
        "A stop is ld.contacts.Stop, in the section 'contacts' of a file. Read docs/contact.md.": ("stop", "end_stop"),
        "Friction that depends on the bearing load is not offered; joint_friction has a given Coulomb load. "
        "Read docs/howto/not_offered.md.": (
            "friction",
            "coulomb_friction",
            "load_dependent_friction",
            "bearing_friction",
        ),
    }.items()
    for word in words
}


def element_of(label: str) -> str:
    """Name of the joint or constraint that a label belongs to: no name has a dot.

    Examples
    --------
    >>> element_of("C.slide"), element_of("A")
    ('C', 'A')
    """
    return label.partition(".")[0]


def unknown(element: str, kind: str, names: Iterable[str], known: Iterable[str]) -> UnknownLabelError:
    """Error for names that nothing has, each with the nearest known one; `element`: who asked for them.

    Examples
    --------
    >>> print(unknown("assemble", "coordinate", ["crnk"], ["crank", "rocker"]))
    assemble: there is no coordinate 'crnk'. Did you mean 'crank'?
    """
    listed = list(known)
    return UnknownLabelError(Problem(element, f"there is no {kind} '{n}'", nearest(n, listed)) for n in names)


def short(text: str, most: int = 60) -> str:
    """Text cut to a length that fits into a message."""
    return text if len(text) <= most else text[: most - 3] + "..."


def describe(value: Any) -> str:
    """Description of a value that a user gave instead of the expected one."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return short(repr(value))


def nearest(word: str, known: Iterable[str]) -> str:
    """Hint with the known word nearest to `word`, or all of them if none is near.

    Examples
    --------
    >>> nearest("ground_", ["ground", "crank"])
    "Did you mean 'ground'?"
    """
    words = list(known)
    close = difflib.get_close_matches(str(word), words, n=1, cutoff=0.6)
    if close:
        return _did_you_mean((close[0],))
    if not words:
        return "There are none."
    shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
    return f"Known: {shown}."


@dataclass(frozen=True)
class Finding:
    """Error of pydantic in words: the element, the path of the value, what is wrong and what to do."""

    subject: Path
    path: Path
    message: str
    hint: str = ""


def explain(error: ValidationError, model: type[BaseModel], element: str, data: Any) -> list[Problem]:
    """Turn pydantic's errors on `data` into problems in words, each with its path."""
    problems = []
    for f in findings(error, model, data):
        where = element if not f.subject else f"{element}, {'.'.join(str(p) for p in f.subject)}"
        problems.append(Problem(where, f.message, f.hint, path=f.path))
    return problems


def findings(error: ValidationError, model: type[BaseModel], data: Any) -> list[Finding]:
    """Pydantic's errors on `data`, without its jargon.

    If a value may have several forms, pydantic reports the errors of each form; only those of the form that the
    user evidently intended are kept.
    """
    raw: dict[Path, list[Any]] = {}
    for item in error.errors():
        raw.setdefault(_path_in(data, item), []).append(item)
    found = []
    for path, items in raw.items():
        if any(len(other) > len(path) and other[: len(path)] == path for other in raw):
            continue  # the intended form has its own errors further inside
        other_forms = ("model_type", "model_attributes_type", "dict_type", "string_type")
        meant = [item for item in items if item["type"] not in other_forms]
        if meant or len(items) == 1:
            found.append(_in_words(meant[0] if meant else items[0], path, model))
        else:
            message = f"expected a name or a mapping, found {describe(items[0]['input'])}"
            found.append(Finding(path, path, message, "Give the name, or 'key: value' pairs."))
    meant_keys = {(f.subject, f.hint) for f in found if f.message.startswith("unknown key")}
    return [f for f in found if (f.subject, _did_you_mean(f.path)) not in meant_keys]  # one mistake, reported once


def _did_you_mean(path: Path) -> str:
    return f"Did you mean '{path[-1] if path else ''}'?"


def _path_in(data: Any, item: Any) -> Path:
    """Path of an error through the given data, without the names of forms that pydantic adds."""
    path: list[str | int] = []
    last = len(item["loc"]) - 1
    for k, step in enumerate(item["loc"]):
        listed = isinstance(data, list | tuple) and isinstance(step, int) and step < len(data)
        if listed or (isinstance(data, Mapping) and step in data):
            data = data[step]
        elif not (k == last and item["type"].startswith("missing")):
            continue
        path.append(step)
    return tuple(path)


def _in_words(item: Any, path: Path, model: type[BaseModel]) -> Finding:
    kind, context, found = item["type"], item.get("ctx", {}), describe(item["input"])
    key = path[-1] if path else ""
    if kind == "extra_forbidden":
        known = [name for m in _models_at(model, item["loc"][:-1]) for name in _fields(m)]
        return Finding(path[:-1], path, f"unknown key '{short(str(key))}'", nearest(str(key), dict.fromkeys(known)))
    if kind.startswith("missing"):
        if isinstance(key, int):
            return Finding(path[:-1], path[:-1], f"entry {key + 1} of the list is missing", "Add it.")
        return Finding(path[:-1], path, f"'{key}' is missing", f"Add '{key}'.")
    if kind.startswith("union_tag"):
        forms = _models_at(model, item["loc"])
        tag = "type" if any("type" in m.model_fields for m in forms) else "profile"
        types = [str(_type_of(m)) for m in forms if _type_of(m) is not None]
        if kind == "union_tag_not_found":
            return Finding(path, path, f"'{tag}' is missing", f"Add one of: {', '.join(types)}.")
        message = f"unknown {tag} '{short(context['tag'])}'"
        hint = NOT_OFFERED.get(str(context["tag"]).lower()) or nearest(context["tag"], types)
        return Finding(path, (*path, tag), message, hint)
    if kind == "too_long":
        return Finding(path, path, f"expected a list of {context['max_length']}, found {found}", _HINTS["vector"])
    if kind in _EXPECTED:
        expected, hint = _EXPECTED[kind]
        return Finding(path, path, f"expected {expected}, found {found}", hint)
    if kind == "literal_error":
        return Finding(path, path, f"expected {context['expected']}, found {found}", "Choose one of them.")
    message = item["msg"].removeprefix("Value error, ")
    return Finding(path, path, message[:1].lower() + message[1:], _HINTS.get(kind, ""))


_EXPECTED = {
    "string_type": ("a text", "Put it in quotes."),
    "model_type": ("a mapping", "Write 'key: value' pairs."),
    "model_attributes_type": ("a mapping", "Write 'key: value' pairs."),
    "dict_type": ("a mapping", "Write 'name: value' pairs."),
    "tuple_type": ("a list", "Write it in brackets: [a, b, c]."),
    "callable_type": ("a function", "Give a function f(t, q, v, out)."),
}
_HINTS = {
    "number": "Give a number, or a formula of parameters in quotes.",
    "finite": "Give a finite number.",
    "vector": "Write it in brackets, one entry for each.",
    "value_error": "Correct the entries.",
}


def _fields(model: type[BaseModel]) -> list[str]:
    """Keys of a part in files; fields left out when it is saved are not for files."""
    return [f.alias or name for name, f in model.model_fields.items() if not f.exclude]


def _models_at(model: type[BaseModel], loc: Path) -> list[type[BaseModel]]:
    """Classes of parts possible at `loc`, a path as pydantic reports it, with the names of forms in it."""
    here = _forms(model)
    for step in loc:
        inside = [form for outer in here for form in _step_into(outer, step)]
        if inside:
            here = inside
        else:  # the name of one of several forms: a class, or the value of its 'type'
            named = [m for m in here if isinstance(m, type) and step in (m.__name__, _type_of(m))]
            here = named or here
    return [m for m in here if isinstance(m, type) and issubclass(m, BaseModel)]


def _type_of(model: Any) -> Any:
    """Name of a class in files: the value of its 'type', or of its 'profile'."""
    fields = getattr(model, "model_fields", {})
    return next((fields[key].default for key in ("type", "profile") if key in fields), None)


def _forms(annotation: Any) -> list[Any]:
    """All forms a value of this type may have: the members of unions, without annotations."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _forms(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [form for member in get_args(annotation) for form in _forms(member)]
    return [annotation]


def _step_into(form: Any, step: str | int) -> list[Any]:
    origin, arguments = get_origin(form), get_args(form)
    if origin is dict:
        return _forms(arguments[1])
    if origin is tuple and isinstance(step, int):
        return _forms(arguments[0])
    for name, field in getattr(form, "model_fields", {}).items():
        if step == (field.alias or name):
            return _forms(field.annotation)
    return []
