"""Kernels compiled in advance: the package ``loopdyn-kernels``, read-only, checked before use.

A pack has the entries of the cache (`engine.cache`), compiled for one or more processor levels, each in a folder of its
own, and a manifest. It is used if it was made for this Python, this version of Numba, this platform and by the same
`engine.compiler`, and if the processor of this machine has every feature of a level; the highest such level is taken.
An entry of the pack is found by its key, which covers the code of the kernel and all that it refers to: a kernel of
other sources is never found. A kernel that the pack does not have is compiled for this machine. Its key covers the
manifest and the level: it may call kernels of the pack.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numba
from numba.core.registry import cpu_target

from loopdyn.engine import cache

PACKAGE = "loopdyn_kernels"  # its module
DISTRIBUTION = "loopdyn-kernels"  # its name for pip
MANIFEST = "manifest.json"
FORMAT = 2


class Level(NamedTuple):
    """A processor level that kernels of packs are compiled for."""

    cpu: str  # LLVM's name
    needs: tuple[str, ...]  # LLVM's names of the features that code for it may use


_V3 = ("cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2") + (
    "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave",
)  # fmt: skip
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

# By machine, the highest first. x86-64-v3: Intel since 2013, AMD since 2015; x86-64-v4: with AVX-512. Features are
# those of the x86-64 psABI, chapter 3.1.
LEVELS = {
    "x86_64": (Level("x86-64-v4", _V4), Level("x86-64-v3", _V3)),
    "aarch64": (Level("generic", ("fp-armv8", "neon")),),
}


class Pack(NamedTuple):
    """A pack that can be used on this machine, at one of its levels."""

    folder: Path  # of the entries of this level
    version: str  # of loopdyn
    target: tuple[str, str, str]  # platform, processor, features: what the code generator says about itself
    identity: str  # digest of the manifest, and the level

    def path(self, name: str, key: str) -> Path:
        """Path of the entry of a kernel."""
        return self.folder / cache.file_name(name, key)


class Search(NamedTuple):
    """Result of the search for a pack."""

    pack: Pack | None
    refusal: str  # why the installed pack is not used; empty if there is none


def manifest(version: str, engine: str, levels: Mapping[Level, tuple[str, str, str]]) -> dict[str, Any]:
    """Facts that decide where a pack can be used.

    Parameters
    ----------
    version : str
        Of loopdyn.
    engine : str
        Digest of the sources that decide how kernels are compiled.
    levels : mapping
        For each level, the highest first: platform, processor and features of the code generator.

    Examples
    --------
    >>> level = LEVELS["aarch64"][0]
    >>> manifest("1.0", "", {level: ("", level.cpu, "")})["levels"]
    [{'target': ['', 'generic', ''], 'needs': ['fp-armv8', 'neon']}]
    """
    return {
        "format": FORMAT,
        "loopdyn": version,
        "numba": numba.__version__,
        "python": sys.implementation.cache_tag,
        "engine": engine,
        "levels": [{"target": list(target), "needs": list(level.needs)} for level, target in levels.items()],
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
        if refusal:
            return Search(None, refusal)
        target = _highest(facts["levels"])
        if target is None:
            return Search(None, f"this processor lacks {', '.join(lacking(facts['levels'][-1]['needs']))}")
        identity = hashlib.sha256(content).hexdigest() + target[1]
        return Search(Pack(folder / target[1], facts["loopdyn"], target, identity), "")
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return Search(None, f"its {MANIFEST} cannot be read")


def _refusal(facts: dict[str, Any], engine: str, platform: str) -> str:
    """Reason why a pack cannot be used, whatever the processor; empty if it can."""
    if facts["format"] != FORMAT:
        return "it has another format"
    for name, here in (("numba", numba.__version__), ("python", sys.implementation.cache_tag)):
        if facts[name] != here:
            return f"it was made for {name} {facts[name]}, this is {here}"
    if facts["engine"] != engine:
        return f"it was made from other sources of loopdyn (version {facts['loopdyn']})"
    others = sorted({level["target"][0] for level in facts["levels"]} - {platform})
    if others:
        return f"it was made for {', '.join(others)}, this is {platform}"
    if numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None:
        return "NUMBA_CPU_NAME or NUMBA_CPU_FEATURES asks for a certain processor"
    return ""


def _highest(levels: list[dict[str, Any]]) -> tuple[str, str, str] | None:
    """Target of the first level all of whose features this processor has."""
    for level in levels:
        if not lacking(level["needs"]):
            platform, processor, features = level["target"]
            return platform, processor, features
    return None


def lacking(needs: Iterable[str]) -> list[str]:
    """Features of a level that this processor does not have.

    Examples
    --------
    >>> lacking(["no such feature"])
    ['no such feature']
    """
    here = host_features()
    return [name for name in needs if name not in here]


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
