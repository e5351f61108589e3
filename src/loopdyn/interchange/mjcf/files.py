"""Files of a model combined into one text, so that MuJoCo opens no file."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path as FilePath
from xml.sax.saxutils import quoteattr

from loopdyn.interchange.markup import MAX_DEPTH, Element, MarkupSource
from loopdyn.interchange.mjcf.schema import report_unused, whole
from loopdyn.interchange.report import Report
from loopdyn.io.reading import MAX_BYTES
from loopdyn.quantities.wording import short

MAX_COPIES = 10_000  # of a body, by <replicate> and <composite>


@dataclass(frozen=True)
class _NotRead:
    """Reason why a file is not read, as a phrase that follows its name, and a hint."""

    why: str
    hint: str


class Files:
    """Combines a model into one text: includes and meshes inserted, unread parts left out."""

    def __init__(self, source: MarkupSource, file: FilePath | None, folder: FilePath | None, report: Report):
        self.source = source
        self.base = file.parent if file is not None else folder
        self.folder = None if folder is None else folder.resolve()
        self.report = report
        self.assets: dict[str, bytes] = {}
        self.missing: dict[str, tuple[str, _NotRead]] = {}  # files of meshes that are not read, by name of the mesh
        self.included: set[FilePath] = set()

    def standalone(self) -> str:
        """Combined text."""
        root = self.source.root
        self._include(root)
        self._refuse_blanks(root)
        report_unused(root, self.report)
        self._meshes(root)
        self._clean(root)
        lines: list[str] = []
        _write(root, lines)
        return "\n".join(lines)

    def _path(self, name: str) -> FilePath | _NotRead:
        """A file inside the folder, or why it is not read."""
        if self.base is None or self.folder is None:
            return _NotRead("is not read, since the model was given as text", "Give 'folder', or read a file.")
        try:
            path = (self.base / name).resolve()
            path.is_file()
        except (OSError, RuntimeError, ValueError):  # too long, links in a circle, a NUL character
            return _NotRead("has a name that no file can have", "Correct it.")
        if not path.is_relative_to(self.folder):
            return _NotRead("is outside the folder of the model", "Give a 'folder' that holds all files of the model.")
        return path

    def _include(self, element: Element, depth: int = 0) -> None:
        """Put the contents of included files in place; elements and files inside one another count alike."""
        children: list[Element] = []
        if depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} elements and files inside one another"
            self.source.problem("include", message, "Split the model.", element)
            return
        for child in element.children:
            if child.tag != "include":
                self._include(child, depth + 1)
                children.append(child)
                continue
            name = child.get("file")
            path = self._path(name)
            if isinstance(path, _NotRead):
                self.source.problem("include", f"the file '{short(name)}' {path.why}", path.hint, child)
                continue
            if path in self.included:
                self.source.problem("include", f"'{name}' is included twice", "Include every file once.", child)
                continue
            self.included.add(path)
            other = MarkupSource(path, None, "mujocoinclude", ".xml", "mujoco").root  # the latter in older models
            self._include(other, depth + 1)
            for inner in (e for c in other.children for e in c.walk()):
                inner.line = child.line
            children += other.children
        element.children = children

    def _refuse_blanks(self, root: Element) -> None:
        """Raise on empty attributes of equalities: MuJoCo would keep a lock, and reading the next model would hang."""
        for e in (e for equality in root.all("equality") for e in equality.children):
            for name in (n for n, value in e.attributes.items() if not value.strip() and n not in ("name", "class")):
                self.source.problem(f"<{e.tag}>", f"its attribute '{name}' is empty", "Give a value or remove it.", e)

    def _meshes(self, root: Element) -> None:
        compiler = [c for c in root.all("compiler")]
        folders = [c.get("meshdir") or c.get("assetdir") for c in compiler]
        folder = next((f for f in reversed(folders) if f), "")
        strip = any(c.get("strippath") == "true" for c in compiler)
        for c in compiler:
            for key in ("meshdir", "assetdir", "texturedir", "strippath"):
                c.attributes.pop(key, None)
        for mesh in (e for asset in root.all("asset") for e in asset.all("mesh")):
            name = mesh.get("file")
            if not name:
                continue
            mesh.attributes.setdefault("name", FilePath(name).stem)
            path = self._path(os.path.join(folder, FilePath(name).name if strip else name))
            if isinstance(path, FilePath) and not path.is_file():
                path = _NotRead("is missing", "Add the file.")
            elif isinstance(path, FilePath) and path.stat().st_size > MAX_BYTES:
                path = _NotRead(f"is larger than {MAX_BYTES / 1e6:.0f} MB", "Simplify it.")
            if isinstance(path, _NotRead):
                self.missing[mesh.get("name")] = name, path
                continue
            mesh.attributes["file"] = f"mesh{len(self.assets)}{path.suffix}"
            self.assets[mesh.attributes["file"]] = path.read_bytes()
        reasons: dict[str, list[str]] = {}
        for name, reason in self.missing.values():
            reasons.setdefault(reason.why, []).append(short(name))
        for why, names in reasons.items():
            self.report.leave_out(f"meshes, whose file {why}", names)
        self._forget_meshes(root, root, "true" in [c.get("inertiafromgeom") for c in compiler])

    def _forget_meshes(self, element: Element, body: Element, always_from_shapes: bool) -> None:
        """Take out shapes whose mesh is missing; where inertia would follow from them, that is a problem."""
        kept = []
        for child in element.children:
            if child.tag == "geom" and child.get("mesh") in self.missing:
                if body.tag == "body" and (always_from_shapes or body.first("inertial") is None):
                    what = f"body '{body.get('name')}'"
                    name, reason = self.missing[child.get("mesh")]
                    message = f"its inertia follows from the mesh '{short(name)}', whose file {reason.why}"
                    self.source.problem(what, message, f"{reason.hint} Or give the body an <inertial>.", child)
                continue
            if child.tag == "mesh" and child.get("name") in self.missing:
                continue
            self._forget_meshes(child, child if child.tag == "body" else body, always_from_shapes)
            kept.append(child)
        element.children = kept

    def _clean(self, element: Element, copies: int = 1) -> None:
        """Remove elements that are left out as a whole; refuse other files, and copies that could not be computed."""
        kept = []
        for child in element.children:
            words = [n for n in child.get("count").split() if n.isascii() and n.isdigit()]  # MuJoCo refuses others
            count = [int(n) if len(n) < 10 else MAX_COPIES + 1 for n in words]
            many = copies * math.prod(count)
            if many > MAX_COPIES:
                self.source.problem(f"<{child.tag}>", f"it makes {many} copies", f"Make {MAX_COPIES} at most.", child)
                continue
            if whole(element.tag, child.tag) or (child.tag == "geom" and child.get("hfield")):
                continue
            if child.get("file") and child.tag not in ("mesh", "key"):
                hint = "Put its contents into the file."
                self.source.problem(f"<{child.tag}>", f"the file '{child.get('file')}' is not read", hint, child)
                continue
            child.attributes.pop("material", None)
            self._clean(child, many)
            kept.append(child)
        element.children = kept


def _write(element: Element, lines: list[str]) -> None:
    """XML text in which every element begins on its old line, where that is possible: MuJoCo's errors name lines."""
    lines.extend("" for _ in range(element.line - len(lines)))
    attributes = "".join(f" {k}={quoteattr(v)}" for k, v in element.attributes.items())
    lines[-1] += f"<{element.tag}{attributes}>"
    for child in element.children:
        _write(child, lines)
    lines[-1] += f"</{element.tag}>"
