"""A model file and the files it includes become one tree of values."""

from __future__ import annotations

import os
from pathlib import Path as FilePath
from typing import Any

from loopdyn.errors import ModelError, Problem
from loopdyn.io.reading import KINDS, Document, Node, read_document
from loopdyn.quantities.units import Path, Units
from loopdyn.quantities.wording import short

MAX_INCLUDES = 20  # files that include one another in a row


def gather(main: Document, path: FilePath, shown: str, within: FilePath | None = None) -> tuple[Node, list[Problem]]:
    """Main file with everything it includes, as one tree, and all problems found.

    Meshes given by absolute paths must be in the folder `within`, if there is one.
    """
    gatherer = _Gatherer(path, shown, within)
    gatherer.add(main, path, shown, ())
    return gatherer.root, gatherer.problems


class _Gatherer:
    """Joins a model file and the files it includes, each once, into one mapping of sections."""

    def __init__(self, main: FilePath, shown: str, within: FilePath | None):
        self.within = within
        self.folder = FilePath(os.path.abspath(main)).parent
        self.shown_folder = os.path.dirname(shown)
        self.root = Node({}, shown, 1, 0, 0, 0)
        self.problems: list[Problem] = []
        self.done: set[FilePath] = set()

    def problem(self, node: Node, element: str, message: str, hint: str, path: Path = ()) -> None:
        self.problems.append(Problem(element, message, hint, node.file, node.line, path))

    def add(self, document: Document, path: FilePath, shown: str, chain: tuple[tuple[FilePath, str], ...]) -> None:
        """Add one file, then the files it includes; `chain` is the path of includes from the main file to it."""
        real = path.resolve()
        self.done.add(real)
        self.problems.extend(document.problems)
        top = document.root.value
        if not isinstance(top, dict):
            hint = "Begin with 'loopdyn: 1', then bodies and joints."
            self.problem(document.root, "model file", "expected keys such as 'bodies:' and 'joints:'", hint)
            return
        self._check_version(document.root, required=not chain)
        folder = FilePath(os.path.abspath(path)).parent
        self._place_meshes(top, folder)
        for key, node in top.items():
            if key in KINDS:
                self._merge_section(self.root, key, node, key, KINDS[key])
            elif key == "start":
                self._merge_start(node)
            elif key not in ("loopdyn", "include"):
                self._merge_setting(key, node, included=bool(chain))
        if "include" in top:
            self._include(top["include"], folder, (*chain, (real, shown)))

    # ---------------------------------------------------------------------------------------- the content

    def _check_version(self, root: Node, required: bool) -> None:
        hint = "Write 'loopdyn: 1', the version of the file format."
        node = root.entries.get("loopdyn")
        if node is None:
            if required:
                self.problem(root, "model file", "'loopdyn' is missing", hint)
        elif type(node.value) is not int or node.value != 1:
            version = short(repr(node.plain()))
            self.problem(node, "model file", f"version {version} of the file format is not known", hint)

    def _merge_section(self, parent: Node, key: str, node: Node, section: str, kind: str) -> None:
        """Merge the entries of a section with those of other files; an empty value means none."""
        if not isinstance(node.value, dict):
            if node.value is not None:
                message = f"expected a mapping of names, found {short(repr(node.plain()))}"
                self.problem(node, section, message, "Write 'name: ...'.")
            return
        known = parent.entries.setdefault(key, Node({}, node.file, node.line, 0, 0, 0)).entries
        for name, entry in node.value.items():
            if name in known:
                place = f"{known[name].file}:{known[name].line}"
                self.problem(entry, f"{kind} '{name}'", f"is already given at {place}", "Rename or remove one of them.")
            else:
                known[name] = entry

    def _merge_start(self, node: Node) -> None:
        if not isinstance(node.value, dict):
            if node.value is not None:
                self._merge_setting("start", node, included=False)
            return
        start = self.root.entries.setdefault("start", Node({}, node.file, node.line, 0, 0, 0))
        for key, values in node.value.items():
            if key in ("q", "v"):
                self._merge_section(start, key, values, f"start, {key}", "start of")
            else:
                start.entries[key] = values

    def _merge_setting(self, key: str, node: Node, included: bool) -> None:
        """Settings of the main file count; an included file may repeat units and gravity, not change them."""
        known = self.root.entries.get(key)
        if key == "units" and included:
            given = known.plain() if known is not None else None
            if _all_units(node.plain()) != _all_units(given):
                main = self.root.file
                message = f"units of this file differ from those of {main}"
                self.problem(node, "units", message, "Convert this file, or declare no units in it.")
        elif known is None:
            if not (included and key == "name"):
                self.root.entries[key] = node
        elif key == "gravity" and known.plain() != node.plain():
            message = f"differs from the gravity at {known.file}:{known.line}"
            self.problem(node, "gravity", message, "Keep one of them.")

    def _place_meshes(self, top: dict[str, Node], folder: FilePath) -> None:
        """Make the paths of mesh files absolute: they are relative to the file that names them."""
        for name, body in top["bodies"].entries.items() if "bodies" in top else ():
            mesh = body.entries.get("mesh")
            shapes = [] if mesh is None else mesh.value if isinstance(mesh.value, list) else [mesh]
            for shape in shapes:
                node = shape.entries.get("file")
                if node is None or not isinstance(node.value, str):
                    continue
                if os.path.isabs(node.value):
                    if self.within is not None and not _is_inside(node.value, self.within):
                        hint = f"Put the mesh into '{self.within}'."
                        message = f"{node.value!r} is outside the folder '{self.within}'"
                        self.problem(node, f"body '{name}', mesh", message, hint, ("bodies", name))
                    continue
                target = os.path.abspath(folder / node.value)
                if not _is_inside(target, self.folder):
                    hint = "Put the mesh next to the model file, or give its absolute path."
                    message = f"{node.value!r} leaves the folder of the model"
                    self.problem(node, f"body '{name}', mesh", message, hint, ("bodies", name))
                node.value = target

    # ---------------------------------------------------------------------------------------- other files

    def _include(self, node: Node, folder: FilePath, chain: tuple[tuple[FilePath, str], ...]) -> None:
        if node.value is None:
            return
        if not isinstance(node.value, list) or not all(isinstance(n.value, str) for n in node.value):
            self.problem(node, "include", "expected a list of file names", "Write 'include: [other.yaml]'.")
            return
        for item in node.value:
            self._include_one(item, folder, chain)

    def _include_one(self, item: Node, folder: FilePath, chain: tuple[tuple[FilePath, str], ...]) -> None:
        name = str(item.value)
        target = FilePath(os.path.abspath(folder / name))
        if os.path.isabs(name) or not _is_inside(str(target), self.folder):
            hint = "Included files must lie in the folder of the model or below it."
            self.problem(item, "include", f"{name!r} leaves the folder of the model", hint)
            return
        real = target.resolve()
        shown = os.path.join(self.shown_folder, os.path.relpath(target, self.folder))
        files = [file for file, _ in chain]
        if real in files:
            circle = " -> ".join([*(name for _, name in chain[files.index(real) :]), shown])
            self.problem(item, "include", f"the files include one another: {circle}", "Remove one of these includes.")
        elif len(chain) > MAX_INCLUDES:
            message = f"more than {MAX_INCLUDES} files include one another in a row"
            self.problem(item, "include", message, "Include them from one file.")
        elif real not in self.done:
            try:
                self.add(read_document(target, shown), target, shown, chain)
            except ModelError as error:
                self._at_include(item, error)

    def _at_include(self, item: Node, error: ModelError) -> None:
        """Report the line of an include that cannot be opened; an error inside the file has its own line."""
        for p in error.problems:
            if p.line is None:
                self.problem(item, "include", f"{item.value!r}: {p.message}", p.hint)
            else:
                self.problems.append(p)


def _is_inside(target: str, folder: FilePath) -> bool:
    try:
        return FilePath(target).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a character no path can have
        return False


def _all_units(given: Any) -> Any:
    return Units().model_dump() | (given if isinstance(given, dict) else {})
