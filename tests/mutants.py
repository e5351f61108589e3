"""Seeded mutations of model files, as typing errors, wrong exports or malice produce them."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Iterator
from typing import Any

ODD_NUMBERS = [0.0, -1.0, 1.0, 5e-324, 1e-300, 1e-12, 1e12, 1e154, 1e300, 1.7e308, -1.7e308, math.inf, math.nan]
ODD_TEXTS = [
    "", " ", "x", "nan", "inf", "-inf", "1e999", "1e308", "1e-320", "²", "١", "1_0", "0x10", "1,5", "None", "true",
    "world", "ground", "0 0", "0 0 0", "1 2 3 4", "0 0 0 0", "a" * 3000, "&lt;b&gt;", "a::b", "::", ".",
    "9" * 400, "1e308 1e308 1e308",
]  # fmt: skip
ODD_VALUES: list[Any] = [None, True, [], {}, [1, 2, 3], {"a": 1}, [[1]], "", "x", "1/0", "sin(t)", "1e308*10", 10**400]


def mutant_of_xml(rng: random.Random, text: str) -> str:
    """An XML text with one to three changes: values, names, whole elements, single characters."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        change = rng.choice([_attribute, _attribute, _attribute, _content, _element, _element, _character])
        text = change(rng, text)
    return text


def _attribute(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r'([\w:]+)="([^"]*)"', text))
    if not found:
        return text
    one, other = rng.choice(found), rng.choice(found)
    group, new = rng.choice([(2, rng.choice(ODD_TEXTS)), (2, other.group(2)), (0, ""), (1, other.group(1))])
    return text[: one.start(group)] + new + text[one.end(group) :]


def _content(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r">([^<>]+)<", text))
    if not found:
        return _attribute(rng, text)
    one = rng.choice(found)
    new = rng.choice([rng.choice(ODD_TEXTS), rng.choice(found).group(1)])
    return text[: one.start(1)] + new + text[one.end(1) :]


def _element(rng: random.Random, text: str) -> str:
    """Remove, repeat or move an element without children, or change a tag."""
    found = list(re.finditer(r"<([\w:]+)[^<>]*(/>|>[^<>]*</\1>)", text))
    if not found:
        return text
    one, other = rng.choice(found), rng.choice(found)
    action = rng.choice(["remove", "repeat", "replace", "rename"])
    if action == "remove":
        return text[: one.start()] + text[one.end() :]
    if action == "repeat":
        return text[: other.start()] + one.group() + text[other.start() :]
    if action == "replace":
        return text[: one.start()] + other.group() + text[one.end() :]
    renamed = one.group().replace(one.group(1), other.group(1))
    return text[: one.start()] + renamed + text[one.end() :]


def _character(rng: random.Random, text: str) -> str:
    k = rng.randrange(len(text))
    return (
        text[:k] + rng.choice(["<", ">", "&", '"', "", "\0", "é", " ", "</link>"]) + text[k + rng.choice([0, 1, 4]) :]
    )


# ------------------------------------------------------------------------------------------------------- YAML


def mutant_of_data(rng: random.Random, data: Any) -> Any:
    """Plain data of a model file with one to five changes of values, keys and references."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        places = list(_places(data))
        if not places:
            return data
        holder, key = rng.choice(places)
        action = rng.choice(["number", "number", "value", "text", "remove", "swap", "repeat"])
        value = holder[key]
        if action == "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
            scaled = [value * 10.0 ** rng.choice([-12, -6, -3, 3, 6, 12]), -value] if is_number else []
            holder[key] = rng.choice([*ODD_NUMBERS, *scaled, *scaled, *scaled])
        elif action == "value":
            holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        elif action == "text":
            holder[key] = rng.choice(ODD_TEXTS)
        elif action == "remove":
            del holder[key]
        elif action == "swap":
            other, there = rng.choice(places)
            holder[key], other[there] = copy.deepcopy(other[there]), copy.deepcopy(value)
        elif isinstance(holder, dict):
            holder[rng.choice(["new", "", "ground", "a.b", str(key) + "2"])] = copy.deepcopy(value)
        else:
            holder.append(copy.deepcopy(value))
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or mapping inside, with each of its keys."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


def written(data: Any) -> str:
    """Plain data as YAML in one line for each section."""
    if not isinstance(data, dict):
        return _flow(data)
    return "".join(f"{json.dumps(str(k))}: {_flow(v)}\n" for k, v in data.items())


def _flow(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value)


def mutant_of_text(rng: random.Random, text: str) -> str:
    """A text with some characters removed, inserted or repeated."""
    for _ in range(rng.choice([1, 2, 5])):
        k = rng.randrange(max(1, len(text)))
        signs = [
            "\t",
            "{",
            "}",
            "[",
            "]",
            ":",
            "&a ",
            "*a",
            "!!x ",
            "<<: ",
            "---\n",
            "\0",
            "\ufeff",
            "\\",
            "'",
            '"',
            "- ",
            "|",
        ]
        new = rng.choice(
            [*signs, "", text[k : k + rng.choice([5, 80])], chr(rng.choice([0x85, 0x2028, 0xFFFF, 0x1F4A5]))]
        )
        text = text[:k] + new + text[k + rng.choice([0, 0, 1, 5, 50]) :]
    return text
