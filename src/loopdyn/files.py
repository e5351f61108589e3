"""Atomic writing of files: under a temporary name, then renamed, so that the old or the new file is always complete."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError

FilePath = str | os.PathLike[str]

LONGEST_STEM = 40  # letters of a name that the temporary name keeps: longer names could become too long
# Hints for the reasons why a file cannot be written.
HINTS = {
    errno.ENOSPC: "Free some space, or choose another folder.",
    errno.EDQUOT: "Free some space, or choose another folder.",
    errno.EFBIG: "Write fewer outputs, or choose another folder.",
    errno.ENOENT: "Create the folder first.",
    errno.ENOTDIR: "Give a file in a folder.",
    errno.EISDIR: "Give the name of a file, not of a folder.",
    errno.EACCES: "Choose a folder that you may write to, and close programs that have the file open.",
    errno.EPERM: "Choose a folder that you may write to, and close programs that have the file open.",
    errno.EROFS: "Choose a folder that can be written.",
    errno.ENAMETOOLONG: "Give a shorter name.",
}


class WritingError(LoopdynError):
    """A file cannot be written; the old file is unchanged."""


class Misfit(LoopdynError):
    """Saved data does not fit the object that is restored from it."""


def fitting(name: str, given: Any, like: NDArray[Any]) -> NDArray[Any]:
    """Saved array, which must have the type and shape of `like`.

    Raises
    ------
    Misfit
    """
    if not isinstance(given, np.ndarray) or given.shape != like.shape or given.dtype != like.dtype:
        raise Misfit(f"'{name}' is not {like.dtype} of shape {like.shape}")
    return given


@contextlib.contextmanager
def replacing(path: FilePath) -> Iterator[Path]:
    """Yield a temporary file to write to, which replaces `path` when it is complete.

    After an error `path` is left as it was. A pipe or device is written to directly.

    Parameters
    ----------
    path : str or Path

    Yields
    ------
    Path
        New name in the same folder, with the same ending.

    Raises
    ------
    WritingError
        If the file system refuses: no space, no permission, no folder.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with replacing(file) as part:
    ...     _ = part.write_text("1,2")
    >>> file.read_text()
    '1,2'
    """
    with in_words(path):
        target = Path(os.path.realpath(path))  # a link keeps pointing to its file
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            yield target
            return
        part = target.with_name(f"{target.stem[:LONGEST_STEM]}.{secrets.token_hex(4)}.part{target.suffix}")
        try:
            yield part
            with part.open("rb+") as stream:
                os.fsync(stream.fileno())
            with contextlib.suppress(FileNotFoundError):
                part.chmod(target.stat().st_mode & 0o777)
            os.replace(part, target)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise


def write(path: FilePath, content: str | bytes) -> None:
    """Write a file by :func:`replacing` it; text in UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "page.html"
    >>> write(file, "<p>")
    >>> file.read_bytes()
    b'<p>'
    """
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise WritingError(f"'{os.fspath(path)}' cannot be written: {error}. Remove that character.") from None
    with replacing(path) as part, part.open("wb") as stream:
        stream.write(data)


def write_figure(path: FilePath, figure: Any, **options: Any) -> None:
    """Write a matplotlib figure in the format of the file's ending.

    It is rendered in memory first, since drawing libraries report a full disk poorly.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format=Path(path).suffix[1:].lower(), **options)
    write(path, buffer.getvalue())


@contextlib.contextmanager
def in_words(path: FilePath) -> Iterator[None]:
    """Turn an error of the file system into a message why `path` cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        hint = HINTS.get(error.errno or 0, "Choose another file.")
        raise WritingError(f"'{os.fspath(path)}' cannot be written: {reason}. {hint}") from error


__all__ = ["Misfit", "WritingError", "fitting", "in_words", "replacing", "write", "write_figure"]
