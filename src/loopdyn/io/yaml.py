"""Model files in YAML: load, save, and their JSON Schema."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from loopdyn.errors import ModelError, Problem
from loopdyn.io.reading import KINDS, Document, Node, gather, parse_document, read_document
from loopdyn.io.writing import document, merged, plain, write_atomically
from loopdyn.model import GROUND, Mechanism, name_problem
from loopdyn.quantities import Finding, Path, findings

ENDINGS = (".yaml", ".yml")


# ------------------------------------------------------------------------------------------------------ loading


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a model file.

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.yaml`` or ``.yml``.

    Raises
    ------
    ModelError
        With every problem of the file and of the files it includes, each with its line.

    Examples
    --------
    >>> import tempfile
    >>> file = FilePath(tempfile.mkdtemp()) / "slider.yaml"
    >>> _ = file.write_text("loopdyn: 1\\nbodies: {block: {mass: 2}}")
    >>> load(file).bodies["block"].mass
    2.0
    """
    shown = os.fspath(path)
    file = FilePath(shown)
    _check_ending(file, "read")
    return _mechanism(read_document(file, shown), file, shown)


def _check_ending(file: FilePath, verb: str) -> None:
    if file.suffix.lower() not in ENDINGS:
        message = f"files ending in '{file.suffix}' cannot be {verb} yet" if file.suffix else "the name has no ending"
        raise ModelError([Problem("model file", message, "Use a file that ends in .yaml.", file=str(file))])


def _mechanism(main: Document, file: FilePath, shown: str) -> Mechanism:
    root, problems = gather(main, file, shown)
    data = root.plain()
    problems += _check_names(data)
    try:
        mechanism: Mechanism = Mechanism.model_validate(data)
    except ValidationError as error:
        problems += [_problem(f) for f in findings(error, Mechanism, data)]
    if problems:
        problems += _further_problems(data, problems)
        raise ModelError(_in_order(_placed(root, p) for p in problems))
    snapshot = mechanism.model_copy(update={k: dict(v) for k, v in mechanism if isinstance(v, dict)})
    mechanism._source = Source(file, main, root, snapshot)
    return mechanism


def _problem(f: Finding) -> Problem:
    """A finding under the name of its element, as a user of the file calls it."""
    section = str(f.subject[0]) if f.subject else "model file"
    element, rest = section, f.subject[1:]
    if section in KINDS and rest:
        element, rest = f"{KINDS[section]} '{rest[0]}'", rest[1:]
    if rest:
        element += ", " + ".".join(str(p + 1) if isinstance(p, int) else p for p in rest)
    return Problem(element, f.message, f.hint, path=f.path)


def _check_names(data: dict[str, Any]) -> Iterable[Problem]:
    """Problems with names; keys that only the builder knows are taken out of `data`."""
    for section in ("bodies", "joints", "forces"):
        for name in data.get(section, {}):
            problem = name_problem(KINDS[section], name)
            if name == GROUND and section == "bodies":
                problem = Problem("body 'ground'", "this name is reserved", "Leave it out: the ground is always there.")
            if problem is not None:
                yield replace(problem, path=(section, name))
    for name, force in data.get("forces", {}).items():
        if isinstance(force, dict) and force.pop("name", None) is not None:
            hint = f"The name of a force is its key: '{name}: {{...}}'."
            yield Problem(f"force '{name}'", "unknown key 'name'", hint, path=("forces", name, "name"))
    if "user_forces" in data:
        del data["user_forces"]
        hint = "Functions cannot stand in a file; add them with 'add_force' in Python."
        yield Problem("model file", "unknown key 'user_forces'", hint, path=("user_forces",))


def _further_problems(data: dict[str, Any], problems: Sequence[Problem]) -> list[Problem]:
    """What compiling would find in the rest of a model, so that all is reported at once.

    Elements that cannot be read are left out, and nothing is said about what refers to them.
    """
    missing = set()
    for p in problems:
        container = _container(data, p.path)
        if p.message.startswith("unknown key") and container is not None:
            container.pop(p.path[-1], None)
        elif p.path[:1] and p.path[0] in KINDS and len(p.path) > 1:
            data[p.path[0]].pop(p.path[1], None)
            missing.add(str(p.path[1]))
        elif p.path:
            data.pop(str(p.path[0]), None)
    try:
        Mechanism.model_validate(data).compile()
    except ValidationError:
        return []
    except ModelError as error:
        return [p for p in error.problems if not missing & _names_in(p)]
    return []


def _container(data: Any, path: Path) -> dict[str, Any] | None:
    """The mapping that holds the last key of `path`."""
    for step in path[:-1]:
        try:
            data = data[step]
        except (LookupError, TypeError):
            return None
    return data if path and isinstance(data, dict) else None


def _names_in(problem: Problem) -> set[str]:
    """Names that a problem mentions in quotes; of labels such as 'A.angle' the name of the joint."""
    quoted = re.findall(r"'([^']*)'", f"{problem.element} {problem.message}")
    return {word.split(".")[0] for word in quoted} | {name for word in quoted for name in re.findall(r"\w+", word)}


def _placed(root: Node, problem: Problem) -> Problem:
    if problem.file is not None:
        return problem
    node = root.follow(problem.path)
    return replace(problem, file=node.file, line=node.line)


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By line within each file, files in the order in which they occur, nothing said twice."""
    found = list(dict.fromkeys(problems))
    files = list(dict.fromkeys(p.file for p in found))
    return sorted(found, key=lambda p: (files.index(p.file), p.line or 0))


@dataclass(frozen=True, eq=False)
class Source:
    """The file a mechanism was read from: lines for messages, text and comments for saving."""

    file: FilePath
    main: Document
    root: Node  # of the main file with all it includes
    snapshot: Mechanism  # as it was read

    def __deepcopy__(self, memo: Any) -> Source:
        return self  # never changed

    def locate(self, problems: Sequence[Problem]) -> list[Problem]:
        """Add file and line to problems."""
        return _in_order(_placed(self.root, p) if p.path else replace(p, file=p.file or self.root.file) for p in problems)

    def text_for(self, mechanism: Mechanism, target: FilePath) -> str | None:
        """The text of the file, changed so that at `target` it says `mechanism`; None if that does not work out."""
        old, new = plain(self.snapshot, self.file.parent), plain(mechanism, target.parent)
        assert isinstance(self.main.root.value, dict)
        if "include" in self.main.root.value and self.main.root.value["include"].value:
            old["include"] = []  # what was included becomes part of the file
        text = merged(self.main.text, self.main.root, old, new)
        try:
            again = _mechanism(parse_document(text, str(target)), target, str(target))
        except ModelError:
            return None
        return text if again == mechanism else None


# ------------------------------------------------------------------------------------------------------- saving


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a model file: ``load(path)`` gives an equal mechanism.

    A mechanism that was loaded keeps the comments, order and notation of its file; only what changed is written
    anew. The file is replaced as a whole at the end, so a failure leaves the old one as it was.

    Parameters
    ----------
    mechanism : Mechanism
        What to save.
    path : str or Path
        Name of the file, ending in ``.yaml``.

    Examples
    --------
    >>> import tempfile
    >>> file = FilePath(tempfile.mkdtemp()) / "empty.yaml"
    >>> save(Mechanism("empty", gravity=(0, 0, -9.81)), file)
    >>> print(file.read_text(), end="")
    loopdyn: 1
    name: empty
    gravity: [0, 0, -9.81]
    """
    file = FilePath(os.path.abspath(path))
    _check_ending(file, "written")
    if mechanism.user_forces:
        hint = "Write the force as a formula (motor, actuator, applied), or remove it before saving."
        raise ModelError(
            Problem(f"force '{name}'", "a Python function cannot be saved in a file", hint)
            for name in mechanism.user_forces
        )
    source = mechanism._source
    text = source.text_for(mechanism, file) if isinstance(source, Source) else None
    if text is None:
        text = document(plain(mechanism, file.parent))
    try:
        write_atomically(file, text)
    except OSError as error:
        hint = "Check the folder and its permissions."
        raise ModelError(
            [Problem("model file", f"cannot be written: {error.strerror or error}", hint, file=str(path))]
        ) from None


# ------------------------------------------------------------------------------------------------------- schema


class _FileSchema(GenerateJsonSchema):
    """Leaves out what only the Python builder knows."""

    def field_is_present(self, field: Any) -> bool:
        return not field.get("serialization_exclude", False)


def schema() -> dict[str, Any]:
    """JSON Schema of the model file, for editors and other programs.

    Examples
    --------
    >>> sorted(schema()["properties"])[:3]
    ['base', 'bodies', 'constraints']
    """
    made = Mechanism.model_json_schema(by_alias=True, schema_generator=_FileSchema)
    made["properties"]["include"] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Other model files, in the folder of this one or below it",
    }
    made["required"] = ["loopdyn"]
    for part in (made, *made["$defs"].values()):
        if "const" in part["properties"].get("type", {}):
            part["required"] = ["type", *part.get("required", [])]
        if "description" in part:  # the first paragraph of the docstring
            part["description"] = part["description"].split("\n\n")[0].replace("\n", " ")
    made["title"] = "loopdyn model file"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
