"""Disk cache of compiled kernels: addressed by content, shared between checkouts and users, checked before use.

An entry is one file. Its name is its key: a digest of the kernel's code and of all code it reaches (`fingerprint`), of
the types of its arguments, of the versions of Numba and Python and of the processor that it was compiled for
(`compiler.kernel_key`). Paths are not part of it: a second checkout, environment or user with the same sources finds
the same entries, and an edit recompiles only the kernels that it affects. There is no index: processes that write at
the same time write different files, or the same content.

An entry begins with the digest of its content. A truncated or damaged entry, or one that does not match its name, is
set aside and compiled again, with one warning per process. If entries cannot be written, there is one warning as well,
and the process continues with kernels in memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

import numba
from numba.core.serialize import dumps

FORMAT = b"loopdyn kernel 1\n"
DAYS_KEPT = 30  # entries that have not been used for so long are removed
DAMAGED = ".damaged"  # suffix of an entry that was set aside
LOCK = ".lock"  # suffix of the file that a process locks while it compiles an entry

_READ_ONLY = False  # in workers of studies

_SAID: set[str] = set()  # kinds of messages that have been given, once per process


def root() -> Path:
    """Folder of the compiled kernels: ``LOOPDYN_CACHE_DIR``, or one below the user's cache folder."""
    chosen = os.environ.get("LOOPDYN_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "loopdyn"
    parent = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(parent or Path.home() / ".cache") / "loopdyn"
    except RuntimeError:  # there is no home directory
        return _folder_of_this_user(Path(tempfile.gettempdir()))


@functools.cache
def _folder_of_this_user(parent: Path) -> Path:
    """Return a folder that only this user can write to: its content is executed."""
    folder = parent / f"loopdyn-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="loopdyn-"))


def versions() -> str:
    """Name of the folder that holds the entries of this Numba and Python."""
    return f"numba{numba.__version__}-py{sys.version_info[0]}{sys.version_info[1]}"


def say_once(kind: str, message: str) -> None:
    """Warn once per process for each kind of message."""
    if kind not in _SAID:
        _SAID.add(kind)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def entry_path(name: str, key: str) -> Path:
    """Path of the entry of a kernel."""
    return root() / versions() / file_name(name, key)


def file_name(name: str, key: str) -> str:
    """Name of the file of an entry, below the folder of all entries."""
    return f"{name}/{key[:40]}.kernel"


def entries() -> list[Path]:
    """All entries for this version of Numba and Python, of present and earlier sources."""
    return sorted((root() / versions()).glob("*/*.kernel"))


def use_read_only() -> None:
    """Use entries in this process without writing, locking or removing any."""
    global _READ_ONLY
    _READ_ONLY = True


class DamagedEntry(Exception):
    """A truncated or damaged entry, or one that does not match its name."""


def read_entry(path: Path, key: str) -> Any:
    """Content of an entry; None if there is none or it is damaged."""
    try:
        reduced = content_of(path, key)
    except FileNotFoundError:
        return None
    except OSError as error:
        say_once("read", f"cannot read compiled kernels in {path.parent.parent} ({error.strerror}); they are compiled.")
        return None
    except DamagedEntry:
        _set_aside(path)
        return None
    if not _READ_ONLY:
        _mark_as_used(path)
    return reduced


def content_of(path: Path, key: str) -> Any:
    """Checked content of the file of an entry; None if it refers to a module or class of other sources."""
    content = path.read_bytes()
    payload = content[len(FORMAT) + 32 :]
    if content[: len(FORMAT)] != FORMAT or content[len(FORMAT) :][:32] != hashlib.sha256(payload).digest():
        raise DamagedEntry(path)
    try:
        stored, reduced = pickle.loads(payload)
    except (ImportError, AttributeError):
        return None
    if stored != key:
        raise DamagedEntry(path)
    return reduced


def write_entry(path: Path, key: str, reduced: Any) -> None:
    """Write an entry to a temporary file and rename it."""
    if _READ_ONLY:
        return
    payload = dumps((key, reduced))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_unused(path.parent)
        with _written_beside(path) as file:
            file.write(FORMAT + hashlib.sha256(payload).digest() + payload)
    except OSError as error:
        say_once(
            "write",
            f"cannot write compiled kernels to {root()} ({error.strerror}); they are compiled again in every process. "
            "Set LOOPDYN_CACHE_DIR to a folder that can be written.",
        )


@contextlib.contextmanager
def by_one_process(path: Path, meanwhile: Callable[[], object]) -> Iterator[None]:
    """Wait while another process compiles this entry, after calling `meanwhile` to help it.

    The lock is released when the process that holds it ends, in whatever way.
    """
    if _READ_ONLY:
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # no folder to write to, no locks: each process compiles for itself
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(open(path.with_suffix(LOCK), "ab"))
            if fcntl is not None and not _locked(file):
                meanwhile()
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _locked(file: IO[bytes]) -> bool:
    """Whether the lock was free and is now held by this process."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_entries(folder: Path) -> None:
    """Remove all entries of the kernels of one name."""
    for path in folder.glob("*.kernel"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _written_beside(path: Path) -> Iterator[Any]:
    """Temporary file that is renamed when it is complete."""
    handle, name = tempfile.mkstemp(prefix=path.stem[:8], suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mark_as_used(path: Path) -> None:
    """Record the last use, by which old entries are removed; failure to record it is harmless."""
    with contextlib.suppress(OSError):
        if path.stat().st_mtime < time.time() - 86400:
            os.utime(path)


def _set_aside(path: Path) -> None:
    if _READ_ONLY:
        say_once("damaged", f"damaged kernels in {path.parent.parent} are not used, but compiled.")
        return
    with contextlib.suppress(OSError):  # another process may have set it aside, or the folder is read-only
        path.replace(path.with_suffix(DAMAGED))
    say_once("damaged", f"damaged kernels in {path.parent.parent} are set aside and compiled again.")


def _remove_unused(folder: Path) -> None:
    """Remove files unused for `DAYS_KEPT` days, including those of killed processes and damaged entries."""
    limit = time.time() - 86400 * DAYS_KEPT
    for path in folder.iterdir():
        if path.suffix in {".kernel", ".part", DAMAGED, LOCK}:
            with contextlib.suppress(OSError):  # another process has removed it
                if path.stat().st_mtime < limit:
                    path.unlink()
