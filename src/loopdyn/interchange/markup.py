"""Reading XML of robot descriptions safely, with the line of every element.

Nothing outside the text is looked up: document types and entities, which could read other files or grow without
bound, are refused, and so are sheer size and depth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.report import listed
from loopdyn.io.reading import read_text
from loopdyn.quantities.units import LARGEST
from loopdyn.quantities.wording import short

MAX_DEPTH = 200  # elements inside one another; a chain of bodies in MJCF nests once per body

Array = NDArray[np.float64]


@dataclass(slots=True)
class Element:
    """One element of an XML file and its line; it remembers what was asked for, so that the rest can be reported."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)
    seen: bool = False  # asked for by its parent
    asked: set[str] = field(default_factory=set)  # names of attributes
    reported: bool = False  # in words of its own, so that nothing inside is reported

    def get(self, name: str, default: str = "") -> str:
        """An attribute, without blanks around it."""
        self.asked.add(name)
        return self.attributes.get(name, default).strip()

    def first(self, tag: str) -> Element | None:
        """First child of this tag."""
        return next((c.see() for c in self.children if c.tag == tag), None)

    def all(self, tag: str) -> list[Element]:
        """Children of this tag."""
        return [c.see() for c in self.children if c.tag == tag]

    def see(self) -> Element:
        """Count the element as read, as far as its attributes and children are asked for."""
        self.seen = True
        return self

    def walk(self) -> Iterator[Element]:
        """The element and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def child_text(self, tag: str, default: str = "") -> str:
        """Text of the first child of this tag, without blanks around it."""
        child = self.first(tag)
        return default if child is None else child.text.strip()


def not_asked_for(root: Element, kinds: Mapping[str, str]) -> list[str]:
    """Parts that a reader left unread, one line per kind.

    Parameters
    ----------
    root : Element
        Outermost element, after reading.
    kinds : mapping of str to str
        Names of well-known elements that are never read, by their tags.

    Examples
    --------
    >>> root = parse("<r><link name='a' x='1'><look/><look/></link></r>", "text")
    >>> _ = root.all("link")[0].get("name")
    >>> not_asked_for(root, {"look": "looks"})
    ['2 looks', "1 attribute 'x' of <link>: a"]
    """
    plainly: dict[str, int] = {}
    named: dict[tuple[str, str], list[str]] = {}
    for e, owner in _owned(root, ""):
        owner = "" if e is root else owner
        read = {c.tag for c in e.children if c.seen}
        for c in (c for c in e.children if not c.reported):
            if not c.seen and c.tag in kinds:
                plainly[kinds[c.tag]] = plainly.get(kinds[c.tag], 0) + 1
            elif not c.seen:
                further = "further " if c.tag in read else ""
                named.setdefault((f"{further}<{short(c.tag)}>", e.tag), []).append(owner)
        for name in e.attributes:
            if name not in e.asked and name != "name" and not name.startswith("xmlns"):
                named.setdefault((f"attribute '{short(name)}'", e.tag), []).append(owner)
    found = [f"{number} {what}" for what, number in plainly.items()]
    for (what, tag), owners in named.items():
        where = listed(list(dict.fromkeys(filter(None, owners))))
        found.append(f"{len(owners)} {what} of <{tag}>" + (f": {where}" if where else ""))
    return found


def _owned(e: Element, owner: str) -> Iterator[tuple[Element, str]]:
    """Elements that were read, each with the name of the nearest one around it that has a name."""
    owner = short(e.attributes.get("name", "")) or owner
    yield e, owner
    for child in e.children:
        if child.seen and not child.reported:
            yield from _owned(child, owner)


def parse(text: str, shown: str) -> Element:
    """Elements of an XML text; `shown` is the name of its file in messages.

    Raises
    ------
    ModelError
        If it is not well-formed or has unsupported constructs, with the line.

    Examples
    --------
    >>> parse("<a><b x='1'/></a>", "text").children[0].get("x")
    '1'
    """
    root = Element("", {}, 0)
    open_elements = [root]
    parser = expat.ParserCreate()

    def refuse(message: str, hint: str) -> None:
        raise ModelError([Problem("XML", message, hint, shown, parser.CurrentLineNumber)])

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > MAX_DEPTH:
            refuse(f"more than {MAX_DEPTH} elements inside one another", "Split the model.")
        element = Element(tag, attributes, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def characters(data: str) -> None:
        open_elements[-1].text += data

    def document_type(*_: Any) -> None:
        refuse("document types (<!DOCTYPE ...>) and entities are not read", "Remove the line.")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: open_elements.pop()
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = document_type
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        message = f"this is not well-formed XML ({expat.ErrorString(error.code)})"
        hint = "Check that every tag is closed and every attribute is in quotes."
        raise ModelError([Problem("XML", message, hint, shown, error.lineno)]) from None
    except ValueError as error:  # a surrogate, which no encoding has
        raise ModelError([Problem("XML", f"cannot be read: {error}", "Save it as UTF-8.", shown)]) from None
    return root.children[0]


class MarkupSource:
    """An XML file that is being read: its root, and everything that is wrong with it."""

    def __init__(self, file: FilePath | None, text: str | None, root_tag: str, ending: str, other_tag: str = ""):
        self.shown = "text" if file is None else str(file)
        self.text = read_text(file, self.shown, ending) if text is None and file is not None else text or ""
        self.problems: list[Problem] = []
        self.root = parse(self.text, self.shown)
        if self.root.tag not in (root_tag, other_tag):
            message = f"the outermost element is <{short(self.root.tag)}>, not <{root_tag}>"
            hint = "Read it with the function for its format: read_mjcf, read_urdf or read_sdf."
            raise ModelError([Problem("XML", message, hint, self.shown, self.root.line)])

    def problem(self, what: str, message: str, hint: str, element: Element) -> None:
        """Record a problem; reading continues, so that all are reported at once."""
        self.problems.append(Problem(what, message, hint, self.shown, element.line))

    def check(self) -> None:
        """Raise if anything is wrong."""
        if self.problems:
            raise ModelError(self.problems)

    def numbers(self, text: str, count: int, what: str, element: Element, finite: bool = True) -> Array:
        """So many numbers; infinite ones, and those of 1e308 that mean the same, only if not `finite`.

        Zeros, with the problem noted, if there are others.
        """
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.array([math.nan])
        sound = np.abs(values) <= (LARGEST if finite else math.inf)
        if len(values) != count or not sound.all():
            expected = "a number" if count == 1 else f"{count} numbers"
            self.problem(what, f"<{element.tag}> has {short(text)!r} in place of {expected}", "Correct it.", element)
            return np.zeros(count)
        return values

    def number(self, text: str, what: str, element: Element) -> float:
        """One number."""
        return float(self.numbers(text, 1, what, element)[0])


def is_text(source: Any) -> bool:
    """Whether a model was given as text rather than as the name of its file."""
    return isinstance(source, str) and source.lstrip().startswith("<")
