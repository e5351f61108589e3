"""Safe reading of model files: YAML text becomes plain values, each with its position.

Nothing in a file is ever executed or looked up: only mappings, lists, texts, numbers, true/false and null exist
here. Features that could make a small file expensive (aliases, tags, deep nesting, sheer size) are refused before
they cost anything.
"""

from __future__ import annotations

import difflib
import math
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError

from loopdyn.errors import ModelError, Path, Problem
from loopdyn.quantities.wording import short

MAX_BYTES = 50_000_000  # of one file; a chain of 100,000 bodies takes 20 million
MAX_DEPTH = 30  # levels inside one another; a model needs eight

KINDS = {  # sections of a model file, and what their entries are called
    "parameters": "parameter",
    "points": "point",
    "bodies": "body",
    "joints": "joint",
    "constraints": "constraint",
    "drivers": "driver",
    "contacts": "contact",
    "forces": "force",
    "base": "base",
    "measures": "measure",
    "tolerances": "tolerance",
}

Scalar = str | int | float | bool | None


@dataclass(slots=True)
class Node:
    """Value of a file and its position.

    `value` is a scalar, a list of nodes or a mapping of texts to nodes. `line` counts from 1 and is that of the
    key, if the value has one. `key`, `start` and `end` are positions in the text: where the entry (with its
    key), the value itself and both end. `flow` tells ``{a: 1}`` from the form with one line per key.
    """

    value: Scalar | list[Node] | dict[str, Node]
    file: str
    line: int
    key: int
    start: int
    end: int
    flow: bool = False

    @property
    def entries(self) -> dict[str, Node]:
        """Entries of a mapping; none of anything else."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Any:
        """Value as ordinary Python data."""
        if isinstance(self.value, dict):
            return {k: v.plain() for k, v in self.value.items()}
        if isinstance(self.value, list):
            return [v.plain() for v in self.value]
        return self.value

    def follow(self, path: Path) -> Node:
        """Node at the end of `path`, or the last existing one along it.

        A number in the path that leads nowhere is skipped: a single shape may be given without the list that several
        would need.
        """
        node = self
        for step in path:
            inside = node.value
            if isinstance(step, int):
                node = inside[step] if isinstance(inside, list) and step < len(inside) else node
            elif isinstance(inside, dict) and step in inside:
                node = inside[step]
            else:
                break
        return node


def element_name(path: Path) -> str:
    """Name of the element at a path of keys, as the user calls it.

    Examples
    --------
    >>> element_name(("joints", "A", "limits"))
    "joint 'A', limits"
    """
    if not path:
        return "model file"
    names = [str(step + 1) if isinstance(step, int) else step for step in path]
    if names[0] in KINDS and len(names) > 1:
        names[:2] = [f"{KINDS[names[0]]} '{names[1]}'"]
    return names[0] + (", " + ".".join(names[1:]) if names[1:] else "")


@dataclass(frozen=True)
class Document:
    """File that was read: its text, its values, and problems of single keys."""

    text: str
    root: Node
    problems: tuple[Problem, ...]


# ---------------------------------------------------------------------------------------------- the bytes


def read_document(path: FilePath, shown: str) -> Document:
    """Read a YAML file; `shown` is its name in messages.

    Raises
    ------
    ModelError
        If the file cannot be read at all, with the line where reading stopped.
    """
    return parse_document(read_text(path, shown), shown)


MODEL_ENDINGS = (".yaml", ".yml", ".xml", ".mjcf", ".urdf", ".sdf")  # of files that are suggested for a missing one


def _nearest_files(path: FilePath) -> str:
    """Hint with the names of the nearest files in the same folder, or with the folder that does not exist."""
    if not path.parent.is_dir():
        return f"There is no folder '{path.parent}' either. Check the path."
    names = [file.name for file in path.parent.iterdir() if file.suffix.lower() in MODEL_ENDINGS]
    close = difflib.get_close_matches(path.name, names, n=3)
    close += [name for name in sorted(names) if FilePath(name).stem == path.stem and name not in close]
    return f"Did you mean {' or '.join(repr(name) for name in close)}?" if close else "Check the path."


def read_text(path: FilePath, shown: str, ending: str = ".yaml") -> str:
    """Text of a file that should end in `ending`; `shown` is its name in messages."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _refusal(shown, "this is a folder, not a model file", f"Name a file that ends in {ending}.")
        if not stat.S_ISREG(status.st_mode):  # a pipe or device may never end
            raise _refusal(shown, "this is not an ordinary file", f"Name a file that ends in {ending}.")
        if status.st_size > MAX_BYTES:
            size = f"{status.st_size / 1e6:.0f} MB, the limit is {MAX_BYTES / 1e6:.0f} MB"
            raise _refusal(shown, f"the file is too large ({size})", "Split it with 'include', or build it in Python.")
        data = path.read_bytes()
    except FileNotFoundError:
        raise _refusal(shown, "there is no such file", _nearest_files(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise _refusal(shown, f"the file cannot be read: {reason}", "Check the path and its permissions.") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refusal(shown, "the file is not UTF-8 text", "Save it with the encoding UTF-8.", line) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refusal(file: str, message: str, hint: str, line: int | None = None) -> ModelError:
    return ModelError([Problem("model file", message, hint, file=file, line=line)])


# ----------------------------------------------------------------------------------------------- the YAML


def parse_document(text: str, shown: str) -> Document:
    """Read YAML text.

    Examples
    --------
    >>> parse_document("a: [1, x]", "example.yaml").root.plain()
    {'a': [1, 'x']}
    """
    reader = _Reader(text, shown)
    try:
        root = reader.document()
    except MarkedYAMLError as error:
        raise _syntax_error(error, shown) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"the invisible character U+{ord(text[error.position]):04X} cannot stand in a model file"
        raise _refusal(shown, message, "Remove it, or write it as an escape in double quotes.", line) from None
    except (ValueError, OverflowError):
        message = "a text in double quotes has an escape (\\x, \\u or \\U) of a character that does not exist"
        raise _refusal(shown, message, "Write a backslash as \\\\, or use single quotes.") from None
    except YAMLError as error:
        raise _refusal(shown, f"the file is not valid YAML: {error}", "Compare it with an example.") from None
    return Document(text, root, tuple(reader.problems))


class _Reader:
    """Builds nodes from the events of the YAML parser, which does not recurse itself."""

    def __init__(self, text: str, file: str):
        self.text = text
        self.file = file
        self.events: Iterator[Event] = YAML(typ="safe", pure=True).parse(text)
        self.problems: list[Problem] = []
        self.path: list[str | int] = []  # keys that lead to the mapping or list that is being read

    def document(self) -> Node:
        next(self.events)  # start of the stream
        if isinstance(next(self.events), StreamEndEvent):
            raise self._refusal(1, "the file is empty", "Begin with 'loopdyn: 1', then bodies and joints.")
        root = self._node(next(self.events), 0)
        next(self.events)  # end of the document
        following = next(self.events)
        if isinstance(following, DocumentStartEvent):
            line = following.start_mark.line + 1
            raise self._refusal(line, "a second document begins here", "Remove '---', or put it into its own file.")
        return root

    def _refusal(self, line: int, message: str, hint: str) -> ModelError:
        return _refusal(self.file, message, hint, line)

    def _node(self, event: Event, depth: int) -> Node:
        line = event.start_mark.line + 1
        self._refuse_costly(event, depth, line)
        start = event.start_mark.index
        node = Node(None, self.file, line, start, start, event.end_mark.index)
        if isinstance(event, ScalarEvent):
            # implicit[0]: written plainly, so that it may be something else than text
            node.value = plain_scalar(event.value) if event.implicit[0] else event.value
            node.end = start + len(self.text[start : node.end].rstrip())
        elif isinstance(event, CollectionStartEvent):
            node.flow = bool(event.flow_style)
            is_list = isinstance(event, SequenceStartEvent)
            node.value = self._list(node, depth) if is_list else self._mapping(node, depth)
        return node

    def _refuse_costly(self, event: Event, depth: int, line: int) -> None:
        if isinstance(event, AliasEvent):
            hint = "Write the value out, or use 'parameters' for numbers that occur several times."
            raise self._refusal(line, f"references such as *{short(event.anchor)} are not read", hint)
        assert isinstance(event, NodeEvent)
        if getattr(event, "tag", None) is not None:
            raise self._refusal(line, f"the tag '{_short_tag(event)}' is not read", "Remove it: write a plain value.")
        if event.anchor is not None:
            raise self._refusal(
                line, f"the anchor &{short(event.anchor)} is not read", "Remove it, or use 'parameters'."
            )
        if depth > MAX_DEPTH:
            raise self._refusal(line, f"more than {MAX_DEPTH} levels of nesting", "Check brackets and indentation.")

    def _list(self, node: Node, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            self.path.append(len(items))
            items.append(self._node(event, depth + 1))
            self.path.pop()
        node.end = event.end_mark.index if event.end_mark.index > event.start_mark.index else items[-1].end
        return items

    def _mapping(self, node: Node, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self._node(event, depth + 1)
            self.path.append(str(key.value))
            value = self._node(next(self.events), depth + 1)
            self.path.pop()
            value.line, value.key = key.line, key.key
            if value.value is None and value.start == value.end:
                # the parser reports an empty value where the next entry begins: it belongs after its colon
                value.start = value.end = self.text.find(":", key.end) + 1
            node.end = value.end
            if self._is_new(key, entries):
                entries[str(key.value)] = value
        if event.end_mark.index > event.start_mark.index:  # a closing bracket, not the end of an indentation
            node.end = event.end_mark.index
        return entries

    def _is_new(self, key: Node, entries: dict[str, Node]) -> bool:
        name = key.value
        if not isinstance(name, str):
            shown = short(self.text[key.start : key.end])
            hint = "Write a name." if isinstance(name, list | dict) or not shown else f"Put it in quotes: '{shown}'."
            self._key_problem(key, f"the key {shown!r} is not a text", hint)
            return False
        if name == "<<":
            self._key_problem(key, "the merge key '<<' is not read", "Write the values out.")
            return False
        if name in entries:
            message = f"'{short(name)}' occurs twice, first on line {entries[name].line}"
            self._key_problem(key, message, "Rename or remove one of them.")
            return False
        return True

    def _key_problem(self, key: Node, message: str, hint: str) -> None:
        self.problems.append(Problem(element_name(tuple(self.path)), message, hint, self.file, key.line))


def _short_tag(event: Any) -> str:
    return short(str(event.tag).replace("tag:yaml.org,2002:", "!!"))


_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}


def plain_scalar(text: str) -> Scalar:
    """Value of an unquoted word by the core rules of YAML 1.2.

    Examples
    --------
    >>> plain_scalar("1e-3"), plain_scalar("crank"), plain_scalar("true")
    (0.001, 'crank', True)
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        if len(text) < 20:
            return int(text, base)
        return float(text) if base == 10 else int(text, base) * 1.0 if len(text) < 250 else math.inf
    return float(text) if _FLOAT.fullmatch(text) else text


# -------------------------------------------------------------------------------------- errors of syntax

# What the parser says, and what it means to somebody who writes a model. The first that fits is taken.
_MEANINGS = (
    ("character '\\t'", "a tab stands where only blanks can", "Indent with blanks."),
    ("mapping values are not allowed", "a ':' stands where no key can be", "Check the indentation, or use quotes."),
    ("expected ',' or ']'", "a list [...] is not finished", "Add a comma or ']'."),
    ("expected ',' or '}'", "a mapping {...} is not finished", "Add a comma or '}'."),
    ("quoted scalar", "a text in quotes is not finished", "Add the closing quote."),
    ("did not find expected ',' or", "a bracket is not closed", "Add the missing comma or bracket."),
    ("expected <block end>", "the indentation does not fit the lines above", "Align keys of the same level."),
    ("could not find expected ':'", "a key has no ':' behind it", "Write 'key: value', with a blank after the colon."),
    ("expected the node content", "a value is missing here", "Check commas and brackets."),
    ("cannot start any token", "a text cannot begin with this character", "Put the text in quotes."),
)


def _syntax_error(error: MarkedYAMLError, shown: str) -> ModelError:
    told = f"{error.context or ''} {error.problem or ''}"
    otherwise = (f"this is not valid YAML ({error.problem})", "Compare the line with an example.")
    message, hint = next(((message, hint) for sign, message, hint in _MEANINGS if sign in told), otherwise)
    marks = [error.problem_mark, error.context_mark]
    if "not finished" in message:
        marks.reverse()  # where it begins says more than where the end was missed
    mark = marks[0] or marks[1]
    return _refusal(shown, message, hint, None if mark is None else mark.line + 1)
