"""`loopdyn doctor`: versions, source of compiled kernels, missing packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator

EXTRAS = {  # what each import is needed for, and the extra that installs it
    "mujoco": ("reading and writing MJCF", "mjcf"),
    "nicegui": ("loopdyn studio", "studio"),
    "networkx": ("graphs of bodies and joints", "graphs"),
    "sympy": ("equations in symbols", "symbols"),
    "imageio_ffmpeg": ("films where there is no ffmpeg", "film"),
}


def report() -> list[tuple[str, str]]:
    """Diagnostics of the installation, as names and values.

    Examples
    --------
    >>> dict(report())["loopdyn"]
    '0.2.0'
    """
    return [*_versions(), *_kernels(), *_extras()]


def _versions() -> Iterator[tuple[str, str]]:
    from loopdyn import __version__

    yield "loopdyn", __version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "machine", f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    for name in ("numba", "llvmlite", "numpy", "scipy", "xarray"):
        yield name, importlib.metadata.version(name)


def _kernels() -> Iterator[tuple[str, str]]:
    import numba
    from numba.core.registry import cpu_target

    from loopdyn.engine import cache, compiler, packs

    if numba.config.DISABLE_JIT:
        yield "kernels", "plain Python: NUMBA_DISABLE_JIT is set"
        return
    if not compiler.numba_is_known():
        yield "kernels", f"compiled in every process: loopdyn knows Numba {', '.join(compiler.KNOWN)}"
        return
    pack, refusal = packs.found()
    if pack is not None:
        yield "kernels", f"{packs.DISTRIBUTION} {pack.version}, compiled for {pack.target[1]}, in {pack.folder}"
    elif refusal:
        yield "problem", f"{packs.DISTRIBUTION} is installed but not used: {refusal}"
    entries = cache.entries()
    size = sum(path.stat().st_size for path in entries)
    why = "LOOPDYN_CACHE_DIR" if os.environ.get("LOOPDYN_CACHE_DIR") else "the user's cache folder"
    yield "kernels", f"{len(entries)} compiled, {size / 1e6:.0f} MB, in {cache.root()} ({why})"
    damaged = sum(1 for _ in cache.root().glob(f"*/*/*{cache.DAMAGED}"))
    if damaged:
        yield "damaged", f"{damaged} set aside; they are compiled again when needed"
    others = sorted(p.name for p in cache.root().glob("numba*") if p.name != cache.versions())
    if others:
        yield "others", f"kernels of {', '.join(others)} are kept, too"
    target = cpu_target.target_context.codegen().magic_tuple()
    yield "compiled for", f"{target[1]} ({target[0]})"
    if not os.access(_existing(cache.root()), os.W_OK):
        yield "problem", f"{cache.root()} cannot be written: set LOOPDYN_CACHE_DIR to a folder that can"
    elif not entries and pack is None:
        yield "next", f"pip install {packs.DISTRIBUTION} brings compiled kernels; loopdyn warm --all compiles them"
    free = shutil.disk_usage(_existing(cache.root())).free
    if free < 200e6:  # bytes: ten times the default kernels
        yield "problem", f"{free / 1e6:.0f} MB are left on the disk of {cache.root()}"


def _existing(path: os.PathLike[str]) -> str:
    """Folder itself, or its nearest existing parent."""
    where = os.fspath(path)
    while not os.path.isdir(where):
        where = os.path.dirname(where) or os.sep
    return where


def _extras() -> Iterator[tuple[str, str]]:
    for module, (what, extra) in EXTRAS.items():
        if importlib.util.find_spec(module) is None:
            yield "not installed", f"{what}: pip install 'loopdyn[{extra}]'"
