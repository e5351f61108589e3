"""Model files in YAML: load, save, and their JSON Schema."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from loopdyn.errors import LoopdynWarning, ModelError, Problem
from loopdyn.files import write
from loopdyn.io.including import gather
from loopdyn.io.reading import KINDS, Document, Node, element_name, parse_document, read_document
from loopdyn.io.writing import KINDS_OF_PARTS, document, merged, plain
from loopdyn.model.mechanism import Mechanism, unrelated
from loopdyn.quantities.wording import findings

ENDINGS = (".yaml", ".yml")


# ------------------------------------------------------------------------------------------------------ loading


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a model file in YAML; :func:`loopdyn.load` reads those of every format."""
    shown = os.fspath(path)
    file = FilePath(shown)
    _check_ending(file, "read")
    return mechanism_of(read_document(file, shown), file, shown)


def load_text(text: str, path: str | os.PathLike[str], within: str | os.PathLike[str] | None = None) -> Mechanism:
    r"""Read a model from text, as if it were in a file.

    Parameters
    ----------
    text : str
        Content of the file.
    path : str or Path
        The file, which need not exist: included files and meshes are searched in its folder.
    within : str or Path, optional
        Folder in which meshes with absolute paths must be.

    Raises
    ------
    ModelError
        Lists every problem with its line.

    Examples
    --------
    >>> load_text("loopdyn: 1\nbodies: {block: {mass: 2}}", "block.yaml").bodies["block"].mass
    2.0
    """
    file = FilePath(path)
    _check_ending(file, "read")
    shown = file.name
    return mechanism_of(parse_document(text, shown), file, shown, None if within is None else FilePath(within))


def _check_ending(file: FilePath, verb: str) -> None:
    if file.suffix.lower() not in ENDINGS:
        message = f"files ending in '{file.suffix}' cannot be {verb} here" if file.suffix else "the name has no ending"
        raise ModelError([Problem("model file", message, "Use a file that ends in .yaml.", file=str(file))])


def mechanism_of(main: Document, file: FilePath, shown: str, within: FilePath | None = None) -> Mechanism:
    """Model of a document; `shown` is the name of its file in messages, meshes must be below `within`."""
    root, problems = gather(main, file, shown, within)
    data = root.plain()
    problems += _builder_keys(data)
    try:
        mechanism: Mechanism = Mechanism.model_validate(data)
    except ValidationError as error:
        found = findings(error, Mechanism, data)
        problems += [Problem(element_name(f.subject), f.message, f.hint, path=f.path) for f in found]
    if problems:
        problems += _further_problems(data, problems)
        raise ModelError(_in_order(_placed(root, p) for p in problems))
    mechanism._source = Source(file, main, root)
    return mechanism


def _builder_keys(data: dict[str, Any]) -> Iterable[Problem]:
    """Problems with keys that only the builder knows; these keys are removed from `data`."""
    for name, force in data.get("forces", {}).items():
        if isinstance(force, dict) and "name" in force:
            del force["name"]
            hint = f"The name of a force is its key: '{name}: {{...}}'."
            yield Problem(f"force '{name}'", "unknown key 'name'", hint, path=("forces", name, "name"))
    for key, add in (("user_forces", "add_force"), ("user_constraints", "add_constraint")):
        if key in data:
            del data[key]
            hint = f"Functions cannot be in a file; add them with '{add}' in Python."
            yield Problem("model file", f"unknown key '{key}'", hint, path=(key,))


def _further_problems(data: dict[str, Any], problems: Sequence[Problem]) -> list[Problem]:
    """Problems that compile() finds in the readable rest of a model, so that all are reported at once."""
    keys_first = sorted(problems, key=lambda p: not _is_unknown_key(p))  # before the elements that contain them
    missing = {name for p in keys_first for name in _remove(data, p)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LoopdynWarning)  # the model is wrong: only that is reported
            Mechanism.model_validate(data).compile()
    except ValidationError:
        return []
    except ModelError as error:
        return unrelated(error.problems, missing)
    return []


def _remove(data: Any, problem: Problem) -> Iterator[str]:
    """Remove the unreadable part from `data`: a key, an element (whose name is returned) or a whole section."""
    path = problem.path
    if not _is_unknown_key(problem):
        in_section = len(path) > 1 and path[0] in KINDS
        path = path[: 2 if in_section else 1]
        yield from (str(name) for name in path[1:])
    for step in path[:-1]:
        data = data[step]
    if path:
        data.pop(path[-1], None)


def _is_unknown_key(problem: Problem) -> bool:
    return problem.message.startswith("unknown key")


def _placed(root: Node, problem: Problem) -> Problem:
    if problem.file is not None:
        return problem
    node = root.follow(problem.path)
    return replace(problem, file=node.file, line=node.line if problem.path else None)


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems by line within each file, files in the order in which they occur, without duplicates."""
    found = list(dict.fromkeys(problems))
    files = list(dict.fromkeys(p.file for p in found))
    return sorted(found, key=lambda p: (files.index(p.file), p.line or 0))


@dataclass(frozen=True, eq=False)
class Source:
    """File a mechanism was read from: lines for messages, text and comments for saving."""

    file: FilePath
    main: Document
    root: Node  # main file with all it includes

    def __deepcopy__(self, memo: Any) -> Source:
        return self  # never changed

    def locate(self, problems: Sequence[Problem]) -> list[Problem]:
        """Add file and line to problems."""
        return _in_order(_placed(self.root, p) for p in problems)

    def text_for(self, mechanism: Mechanism, target: FilePath) -> str | None:
        """Text of the file, changed so that at `target` it describes `mechanism`; None if that is impossible."""
        own = {k: v for k, v in self.main.root.entries.items() if k != "include"}
        said, _ = gather(replace(self.main, root=replace(self.main.root, value=own)), self.file, "")
        old = plain(Mechanism.model_validate(said.plain()), self.file.parent)  # from the main file alone
        if len(own) < len(self.main.root.entries) and self.main.root.entries["include"].value:
            old["include"] = []  # dropped: included content becomes part of the file
        new = plain(mechanism, target.parent)
        text = merged(self.main.text, self.main.root, old, new)
        try:
            again = mechanism_of(parse_document(text, str(target)), target, str(target))
        except ModelError:
            return None
        return text if again == mechanism else None


# ------------------------------------------------------------------------------------------------------- saving


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a model file: ``load(path)`` gives an equal mechanism.

    A mechanism that was loaded keeps the comments, order and notation of its file; only changed values are
    rewritten. The file is replaced as a whole at the end, so a failure leaves the old one as it was.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to save.
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
    hints = {
        "force": "Write the force as a formula (motor, actuator, applied), or remove it before saving.",
        "constraint": "Write it as a formula (relation, velocity_relation), or remove it before saving.",
    }
    functions = [("force", name) for name in mechanism.user_forces]
    functions += [("constraint", name) for name in mechanism.user_constraints]
    if functions:
        raise ModelError(
            Problem(f"{kind} '{name}'", "a Python function cannot be saved in a file", hints[kind])
            for kind, name in functions
        )
    source = mechanism._source
    text = source.text_for(mechanism, file) if isinstance(source, Source) else None
    if text is None:
        text = document(plain(mechanism, file.parent))
    write(file, text)


# ------------------------------------------------------------------------------------------------------- schema


class _FileSchema(GenerateJsonSchema):
    """Leaves out fields that only the Python builder has."""

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
        kinds = [key for key in KINDS_OF_PARTS if "const" in part["properties"].get(key, {})]
        if kinds:
            part["required"] = [*kinds, *part.get("required", [])]
        if "description" in part:  # the first paragraph of the docstring
            part["description"] = part["description"].split("\n\n")[0].replace("\n", " ")
    made["title"] = "loopdyn model file"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
