"""Files the studio may read and write: those in the folder it was started in, and below."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from loopdyn.errors import LoopdynError
from loopdyn.files import WritingError, write
from loopdyn.io.reading import read_text
from loopdyn.quantities.wording import short

MODELS = (".yaml", ".yml")
RUNS = (".nc",)
MAX_NAME = 240  # bytes; file systems take 255, and a file is written under a longer name first
MAX_TEXT = 500_000  # characters in the editor; a chain of 2,500 bodies. Larger models need the command line
MAX_LISTED, MAX_LOOKED, MAX_DEPTH = 500, 20_000, 4  # most names listed: the folder may be a home directory


class Folder:
    """Folder and the names in it; every name is checked before it is used.

    Examples
    --------
    >>> import tempfile
    >>> folder = Folder(tempfile.mkdtemp())
    >>> folder.write("a.yaml", "loopdyn: 1")
    >>> folder.models(), folder.read("a.yaml")
    (['a.yaml'], 'loopdyn: 1')
    >>> folder.place("../b.yaml", MODELS)
    Traceback (most recent call last):
    ...
    loopdyn.errors.LoopdynError: '../b.yaml' leads out of the folder. Give the name of a file in it.
    """

    def __init__(self, root: str | os.PathLike[str]):
        self.root = Path(root).resolve()

    def place(self, name: str, endings: tuple[str, ...]) -> Path:
        """Path of a name, with links resolved.

        Raises
        ------
        LoopdynError
            If it is not a name, or the file is not in the folder.
        """
        shown = short(name)
        if not name.strip() or not name.isprintable():
            raise LoopdynError(f"'{shown}' is not the name of a file. Give one that ends in {endings[0]}.")
        if not name.lower().endswith(endings):
            raise LoopdynError(f"'{shown}' does not end in {' or '.join(endings)}. Name it so.")
        if any(len(os.fsencode(part)) > MAX_NAME for part in name.split("/")):
            raise LoopdynError(f"'{shown}' is too long for the name of a file. Give a shorter one.")
        windows = PureWindowsPath(name)  # recognises both kinds of slashes, and drives, on every machine
        if windows.anchor or name.startswith("~") or ".." in windows.parts:
            raise LoopdynError(f"'{shown}' leads out of the folder. Give the name of a file in it.")
        try:
            file = (self.root / name).resolve()
        except (OSError, ValueError, RuntimeError) as error:  # links in a circle
            raise LoopdynError(f"'{shown}' cannot be reached ({error}). Give another name.") from None
        if not file.is_relative_to(self.root):
            raise LoopdynError(f"'{shown}' is a link that leads out of the folder. Copy the file into it.")
        return file

    def read(self, name: str) -> str:
        """Text of a model file."""
        file = self.place(name, MODELS)
        try:
            size = file.stat().st_size
        except OSError:
            size = 0  # reading reports the error
        if size > 4 * MAX_TEXT:  # a character takes up to four bytes
            raise self._too_long(name)
        text = read_text(file, name)
        if len(text) > MAX_TEXT:
            raise self._too_long(name)
        return text

    def _too_long(self, name: str) -> LoopdynError:
        return LoopdynError(
            f"'{short(name)}' has more than {MAX_TEXT:,} characters, which is too much for the editor. "
            f"Use the command line: loopdyn run {short(name)}."
        )

    def write(self, name: str, text: str) -> None:
        """Write a model file atomically: at every moment the old or the new one exists, complete."""
        if len(text) > MAX_TEXT:
            raise LoopdynError(f"the text has more than {MAX_TEXT:,} characters. Split it with 'include'.")
        file = self.writable(name, MODELS)
        try:
            write(file, text)
        except WritingError as error:
            raise LoopdynError(str(error).replace(str(file), short(name))) from None

    def writable(self, name: str, endings: tuple[str, ...]) -> Path:
        """Path of a name for writing."""
        file = self.place(name, endings)
        if not file.parent.is_dir():
            raise LoopdynError(f"'{short(name)}': there is no folder '{file.parent.name}'. Create it first.")
        if file.exists() and not file.is_file():
            raise LoopdynError(f"'{short(name)}' is not an ordinary file. Give another name.")
        return file

    def models(self) -> list[str]:
        """Names of the model files, those of the folder itself first."""
        found = []
        for name in self._names():
            if name.lower().endswith(MODELS) and name.isprintable():
                found.append(name)
                if len(found) == MAX_LISTED:
                    break
        return sorted(found, key=lambda name: (name.count("/"), name))

    def _names(self) -> Iterator[str]:
        looked = 0
        for here, folders, files in os.walk(self.root):  # follows no links
            relative = Path(here).relative_to(self.root)
            deep = len(relative.parts) + 1 >= MAX_DEPTH
            folders[:] = [] if deep else sorted(f for f in folders if not f.startswith((".", "__")))
            for file in sorted(files):
                looked += 1
                if looked > MAX_LOOKED:
                    return
                yield (relative / file).as_posix()
