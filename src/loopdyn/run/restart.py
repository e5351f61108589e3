"""Checkpoints of a simulation: segments that are only ever added, each put in place by an atomic rename.

A folder holds ``run.json``, which says what is being simulated, and ``segment_000001.npz`` and so on: the outputs
since the segment before, and everything that is needed to go on. A process that is killed at any moment leaves whole
segments behind, and perhaps a file with ``.part`` in its name, which is ignored.

A segment ends in a checksum of its content, of the checksum before it and, the first one, of what is being simulated.
One that does not fit is damaged, or was never part of this run: it and those behind it are set aside (``.damaged``), a
warning says so, and the run goes on from the one before.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.contents import content_digest
from loopdyn.errors import LoopdynError, warn
from loopdyn.files import Misfit, in_words, write
from loopdyn.system.system import State, System

DESCRIPTION = "run.json"
FORMAT = 3  # of the segments: it changes with their content
CHECKSUM = hashlib.sha256().digest_size


# ----------------------------------------------------------------------------------------- what it belongs to


def description(
    system: System,
    first: State,
    times: NDArray[np.float64],
    end: float,
    events: Sequence[Any],
    methods: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that a run is asked for, as plain data: two runs that could differ have different ones.

    Parameters
    ----------
    system : System
    first : State
        Where it starts.
    times : array
        Of outputs.
    end : float
    events : list
        As they were given: with their functions, actions and names.
    methods : mapping
        Formulation, integrator and others that may carry options.
    settings : mapping
        Words and numbers.
    """
    mechanism = system.mechanism
    found: dict[str, Any] = {
        "format": FORMAT,
        "loopdyn": _version(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",  # functions are known by their bytecode
        "model": content_digest(_numbers(system)),
        "start": content_digest([first.q, first.v]),
        "t_eval": content_digest(times),
        "t_span": [first.t, end],
        **settings,
    }
    given = dict(methods)
    given |= {f"user force '{name}'": force.function for name, force in mechanism.user_forces.items()}
    given |= {f"user constraint '{name}'": c for name, c in mechanism.user_constraints.items()}
    given |= {f"event {k} '{_name(event)}'": event for k, event in enumerate(events, 1)}
    for name, value in given.items():
        try:
            found[name] = content_digest(value, {System: _content})
        except LoopdynError as error:
            raise LoopdynError(
                f"{name}: {error}. A checkpoint must know whether it belongs to the same simulation: leave that "
                "object out of the function, or simulate without a checkpoint."
            ) from None
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _version() -> str:
    try:
        return version("loopdyn")
    except PackageNotFoundError:  # not installed, but on the path
        return "unknown"


def _name(event: Any) -> str:
    return str(getattr(event, "name", None) or getattr(event, "__name__", None) or type(event).__name__)


def _numbers(system: System) -> list[Any]:
    """What a system computes with, and the names by which it is asked."""
    labels = [system.coordinates, system.speeds, system.constraint_rows, system.bodies, system.forces, system.limits]
    return [system.ints, system.floats, labels]


def _content(system: System) -> list[Any]:
    """The same with functions of the user; not what a system keeps for later use."""
    users = system.mechanism.user_forces, system.mechanism.user_constraints
    return [_numbers(system), [{name: vars(x) for name, x in some.items()} for some in users]]


# ----------------------------------------------------------------------------------------------- the segments


class Checkpoint:
    """Segments in a folder.

    Parameters
    ----------
    folder : str or Path
    wanted : mapping
        What is simulated, by :func:`description`; a folder of another simulation is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], wanted: Mapping[str, Any]):
        self.folder = Path(folder)
        text = json.dumps(dict(wanted), indent=1, sort_keys=True)
        with in_words(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            is_new = not (self.folder / DESCRIPTION).exists()
        if is_new and self._file(1).exists():
            raise self._refusal(f"has segments, but no {DESCRIPTION} that says of what")
        if is_new:
            write(self.folder / DESCRIPTION, text)
        else:
            self._compare(wanted)
        self.checksum = hashlib.sha256(text.encode()).digest()  # of the last segment
        self.count = 0  # segments that are read or written

    def _compare(self, wanted: Mapping[str, Any]) -> None:
        """Refuse a folder of another simulation."""
        try:
            there = json.loads((self.folder / DESCRIPTION).read_text(encoding="utf-8"))
            differ = sorted(key for key in {*there, *wanted} if there.get(key) != wanted.get(key))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            raise self._refusal(f"has a damaged {DESCRIPTION}, which says of what it is") from None
        if differ:
            raise self._refusal(f"belongs to another simulation: {', '.join(differ)} differ")

    def _refusal(self, what: str) -> LoopdynError:
        return LoopdynError(f"checkpoint '{self.folder}' {what}. Give another folder, or remove this one.")

    def _file(self, k: int) -> Path:
        return self.folder / f"segment_{k:06d}.npz"

    def read(self) -> Iterator[dict[str, NDArray[Any]]]:
        """All segments that are whole, oldest first; others are set aside, with a warning."""
        while (file := self._file(self.count + 1)).exists():
            try:
                data = file.read_bytes()
                content, checksum = data[:-CHECKSUM], data[-CHECKSUM:]
                if self._checksum(content) != checksum:
                    raise ValueError("its checksum is wrong")
                with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                    found = dict(arrays)
            except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
                self._set_aside(str(error))
                return
            self.count, self.checksum = self.count + 1, checksum
            yield found

    def _set_aside(self, why: str) -> None:
        """Rename the next segment and all behind it, whatever is in them."""
        files = sorted(file for file in self.folder.glob("segment_*.npz") if file.name > self._file(self.count).name)
        with in_words(self.folder):
            for file in files:
                os.replace(file, file.with_suffix(".npz.damaged"))
        goes_on = f"goes on from segment {self.count}" if self.count else "begins anew"
        others = f" and the {len(files) - 1} behind it" if len(files) > 1 else ""
        warn(
            f"checkpoint '{self.folder}': {files[0].name} is damaged ({why}). It{others} was renamed to end in "
            f".damaged; the run {goes_on}."
        )

    def add(self, data: Mapping[str, Any]) -> None:
        """One more segment."""
        buffer = io.BytesIO()
        np.savez(buffer, **data)
        content = buffer.getvalue()
        checksum = self._checksum(content)
        write(self._file(self.count + 1), content + checksum)
        self.count, self.checksum = self.count + 1, checksum

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self.checksum + content).digest()

    def misfit(self, what: str) -> LoopdynError:
        """What is wrong with the last segment, although it is as it was written."""
        return LoopdynError(
            f"checkpoint '{self.folder}', {self._file(self.count).name}: {what}, so it is not of this simulation. "
            "Give another folder, or remove this one."
        )

    @contextlib.contextmanager
    def understood(self) -> Iterator[None]:
        """Say of what the content of a segment is not, whatever part of the run cannot use it."""
        try:
            yield
        except Misfit as error:
            raise self.misfit(str(error)) from None
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise self.misfit(f"its content cannot be used ({type(error).__name__}: {error})") from error


__all__ = ["Checkpoint", "description"]
