"""Kernels compiled in advance: the package ``loopdyn-kernels``, read-only, checked before use.

A pack has the entries of the cache (`engine.cache`), compiled for a processor level that most machines have, and a
manifest. It is used if it was made for this Python, this version of Numba, this platform and by the same
`engine.compiler`, and if the processor of this machine has every feature of the level. An entry of the pack is found by
its key, which covers the code of the kernel and all that it refers to: a kernel of other sources is never found. A
kernel that the pack does not have is compiled for this machine. Its key covers the manifest: it may call kernels of the
pack.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numba
from numba.core.registry import cpu_target

from loopdyn.engine import cache

PACKAGE = "loopdyn_kernels"  # its module
DISTRIBUTION = "loopdyn-kernels"  # its name for pip
MANIFEST = "manifest.json"
FORMAT = 1


class Level(NamedTuple):
    """A processor level that kernels of packs are compiled for."""

    cpu: str  # LLVM's name
    needs: tuple[str, ...]  # LLVM's names of the features that code for it may use


# By machine. x86-64-v3: Intel since 2013, AMD since 2015; the features are those of the x86-64 psABI, chapter 3.1.
LEVELS = {
    "x86_64": Level(
        "x86-64-v3",
        ("cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")
        + ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    ),
    "aarch64": Level("generic", ("fp-armv8", "neon")),
}


class Pack(NamedTuple):
    """A pack that can be used on this machine."""

    folder: Path
    version: str  # of loopdyn
    target: tuple[str, str, str]  # platform, processor, features: what the code generator says about itself
    identity: str  # digest of the manifest

    def path(self, name: str, key: str) -> Path:
        """Path of the entry of a kernel."""
        return self.folder / cache.file_name(name, key)


class Search(NamedTuple):
    """Result of the search for a pack."""

    pack: Pack | None
    refusal: str  # why the installed pack is not used; empty if there is none


def manifest(version: str, engine: str, target: tuple[str, str, str], level: Level) -> dict[str, Any]:
    """Facts that decide where a pack can be used.

    Parameters
    ----------
    version : str
        Of loopdyn.
    engine : str
        Digest of the sources that decide how kernels are compiled.
    target : tuple of str
        Platform, processor and features of the code generator.
    level : Level

    Examples
    --------
    >>> manifest("1.0", "", ("", "", ""), LEVELS["aarch64"])["needs"]
    ['fp-armv8', 'neon']
    """
    return {
        "format": FORMAT,
        "loopdyn": version,
        "numba": numba.__version__,
        "python": sys.implementation.cache_tag,
        "engine": engine,
        "target": list(target),
        "needs": list(level.needs),
    }


def found() -> Search:
    """The installed pack, if it can be used, or why not.

    Examples
    --------
    >>> found().pack is None or found().refusal == ""
    True
    """
    from loopdyn.engine import compiler  # which uses this module

    return search(compiler.ENGINE, cpu_target.target_context.codegen().magic_tuple()[0])


@functools.cache
def search(engine: str, platform: str) -> Search:
    """The installed pack, if it can be used, or why not.

    Parameters
    ----------
    engine : str
        Digest of the sources that decide how kernels are compiled.
    platform : str
        Platform of the code generator.
    """
    module = importlib.util.find_spec(PACKAGE)
    if module is None or module.origin is None:
        return Search(None, "")
    folder = Path(module.origin).parent
    try:
        content = (folder / MANIFEST).read_bytes()
        facts = json.loads(content)
        refusal = _refusal(facts, engine, platform)
        pack = Pack(folder, facts["loopdyn"], tuple(facts["target"]), hashlib.sha256(content).hexdigest())
    except (OSError, ValueError, KeyError, TypeError):
        return Search(None, f"its {MANIFEST} cannot be read")
    return Search(None, refusal) if refusal else Search(pack, "")


def _refusal(facts: dict[str, Any], engine: str, platform: str) -> str:
    """Reason why a pack cannot be used; empty if it can."""
    if facts["format"] != FORMAT:
        return "it has another format"
    for name, here in (("numba", numba.__version__), ("python", sys.implementation.cache_tag)):
        if facts[name] != here:
            return f"it was made for {name} {facts[name]}, this is {here}"
    if facts["engine"] != engine:
        return f"it was made from other sources of loopdyn (version {facts['loopdyn']})"
    if facts["target"][0] != platform:
        return f"it was made for {facts['target'][0]}, this is {platform}"
    if numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None:
        return "NUMBA_CPU_NAME or NUMBA_CPU_FEATURES asks for a certain processor"
    lacking = [name for name in facts["needs"] if name not in host_features()]
    if lacking:
        return f"this processor lacks {', '.join(lacking)}"
    return ""


def host_features() -> set[str]:
    """Features of this processor, by the names of LLVM; none where LLVM cannot tell."""
    try:
        return {name for name, there in llvmlite.binding.get_host_cpu_features().items() if there}
    except RuntimeError:
        return set()


def read_entry(path: Path, key: str) -> Any:
    """Content of an entry of a pack; None if it is damaged, which is said once."""
    try:
        return cache.content_of(path, key)
    except (OSError, cache.DamagedEntry):
        cache.say_once(
            "pack",
            f"damaged kernels in {path.parent.parent} are not used, but compiled. "
            f"Install the package again: pip install --force-reinstall --no-deps {DISTRIBUTION}",
        )
        return None
