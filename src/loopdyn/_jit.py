"""The one door to Numba.

Every compiled function of loopdyn is made by :func:`kernel`, and by :func:`specialise` where a
kernel is to call a function chosen at run time. Three rules live here and nowhere else:

* **The cache is keyed on the content of all sources of the package.** Numba itself looks only at the
  file of the function it compiles and would go on using an old callee from another file. Here the
  cache folder carries a digest of every source file, so an edit or an upgrade starts a new folder.
* **A function bound at run time is bound as a global** of a re-created function with a name of its
  own. Passed as an argument or held in a closure it would be compiled anew in every process.
* **NaN and infinity keep their meaning** (no ``nnan``/``ninf`` in the fast-math flags): bad numbers
  must be seen, not optimised away.

With ``NUMBA_DISABLE_JIT=1`` the same sources run as plain Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

FASTMATH = {"contract", "reassoc", "nsz", "arcp"}
KEPT_CACHES = 4  # folders of earlier versions that are left in place

_PACKAGE = Path(__file__).parent


def source_digest(folder: Path = _PACKAGE) -> str:
    """Digest of the content of all Python sources below `folder`, with the versions that compile them."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def _cache_root() -> Path:
    """Folder that holds the compiled kernels: ``LOOPDYN_CACHE_DIR`` or the user's cache folder."""
    chosen = os.environ.get("LOOPDYN_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "loopdyn"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "loopdyn"


def _open_cache() -> Path:
    root = _cache_root()
    folder = root / source_digest()
    if folder.is_dir():
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        folder = Path(tempfile.mkdtemp(prefix="loopdyn-"))
        warnings.warn(
            f"cannot write compiled kernels to {root} ({error.strerror}); they are compiled again in every "
            "process. Set LOOPDYN_CACHE_DIR to a folder that can be written.",
            stacklevel=2,
        )
        return folder
    old = sorted((p for p in root.iterdir() if p.is_dir() and p != folder), key=lambda p: p.stat().st_mtime)
    for path in old[:-KEPT_CACHES]:
        shutil.rmtree(path, ignore_errors=True)
    return folder


CACHE_DIR = _open_cache()


@contextlib.contextmanager
def _cache_folder() -> Iterator[None]:
    """Let Numba's own cache use our folder while a function is being decorated; users' caches stay theirs."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_DIR)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call, cached on disk."""
    with _cache_folder():
        return numba.njit(cache=True, fastmath=FASTMATH, error_model="numpy")(function)


def inline(function: Callable[..., Any]) -> Any:
    """A small helper that is compiled into its callers: fixed-size algebra over tuples."""
    return numba.njit(inline="always", fastmath=FASTMATH, error_model="numpy")(function)


def specialise(function: Any, /, **bound: Any) -> Any:
    """Return `function` re-created with `bound` as globals: a kernel that calls functions chosen at run time.

    Parameters
    ----------
    function : kernel
        A kernel that calls the functions to be chosen by global name.
    **bound : jitted functions or numbers
        What each of these names is to mean.

    Returns
    -------
    kernel
        A kernel of its own name, found in the cache by later processes that bind the same content.

    Examples
    --------
    >>> @kernel
    ... def twice(x):
    ...     return step(step(x))
    >>> @kernel
    ... def add_three(x):
    ...     return x + 3.0
    >>> specialise(twice, step=add_three)(1.0)
    7.0
    """
    python = getattr(function, "py_func", function)
    marks = ",".join(f"{name}={_fingerprint(value)}" for name, value in sorted(bound.items()))
    name = f"{python.__name__}_{hashlib.sha256(marks.encode()).hexdigest()[:12]}"
    made = types.FunctionType(
        python.__code__, {**python.__globals__, **bound}, name, python.__defaults__, python.__closure__
    )
    made.__qualname__ = name
    made.__module__ = python.__module__
    return kernel(made)


def _fingerprint(value: Any, seen: frozenset[int] = frozenset()) -> str:
    """Text that changes when the code of a bound function, or of anything it refers to, changes."""
    python = getattr(value, "py_func", value)
    if not isinstance(python, types.FunctionType):
        return repr(value)
    if id(python) in seen:
        return python.__qualname__
    seen = seen | {id(python)}
    code = python.__code__
    parts = [python.__qualname__, code.co_code.hex(), repr(code.co_consts)]
    for name in code.co_names:
        if name in python.__globals__:
            parts.append(f"{name}:{_fingerprint(python.__globals__[name], seen)}")
    for cell in python.__closure__ or ():
        parts.append(_fingerprint(cell.cell_contents, seen))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
