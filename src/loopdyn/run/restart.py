"""Checkpoints of a simulation: append-only segments, each put in place by an atomic rename.

A folder holds ``run.json``, which describes the simulation, and ``segment_000001.npz`` and so on: the outputs since
the previous segment, and everything that is needed to resume. A process that is killed at any moment leaves complete
segments behind, and perhaps a file with ``.part`` in its name, which is ignored.

A segment ends in a checksum of its content, of the previous checksum and, for the first one, of the description. A
segment whose checksum is wrong is damaged or from another run: it and all later ones are set aside (``.damaged``) with
a warning, and the run resumes from the segment before.
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


# ------------------------------------------------------------------------------------------------ description


def description(
    system: System,
    first: State,
    times: NDArray[np.float64],
    end: float,
    events: Sequence[Any],
    methods: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Description of a simulation as plain data: two simulations that could differ have different descriptions.

    Parameters
    ----------
    system : System
    first : State
        Start of the run.
    times : array
        Output times.
    end : float
    events : list
        As they were given: with their functions, actions and names.
    methods : mapping
        Formulation, integrator and others that may have options.
    settings : mapping
        Text and numbers.
    """
    mechanism = system.mechanism
    found: dict[str, Any] = {
        "format": FORMAT,
        "loopdyn": installed_version(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",  # functions are identified by their bytecode
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
            found[name] = content_digest(value, {System: content_of_system})
        except LoopdynError as error:
            raise LoopdynError(
                f"{name}: {error}. A checkpoint must be able to tell whether it belongs to the same simulation: leave "
                "that object out of the function, or simulate without a checkpoint."
            ) from None
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def installed_version() -> str:
    """Version of loopdyn; "unknown" if it is not installed."""
    try:
        return version("loopdyn")
    except PackageNotFoundError:  # not installed, but on the path
        return "unknown"


def _name(event: Any) -> str:
    return str(getattr(event, "name", None) or getattr(event, "__name__", None) or type(event).__name__)


def _numbers(system: System) -> list[Any]:
    """Arrays and names of a system."""
    labels = [system.coordinates, system.speeds, system.constraint_rows, system.bodies, system.forces, system.limits]
    measures = [(x.name, x.formula, x.unit, x.program.constants) for x in system.measures.values()]
    return [system.ints, system.floats, labels, *([measures, _points(system)] if measures else [])]


def _points(system: System) -> dict[str, Any]:
    return dict(system.mechanism.resolver().points)


def content_of_system(system: System) -> list[Any]:
    """Arrays, names and user functions of a system, without its caches."""
    users = system.mechanism.user_forces, system.mechanism.user_constraints
    return [_numbers(system), [{name: vars(x) for name, x in some.items()} for some in users]]


# ----------------------------------------------------------------------------------------------- the segments


class Checkpoint:
    """Segments in a folder.

    Parameters
    ----------
    folder : str or Path
    wanted : mapping
        Simulation, by :func:`description`; a folder of another simulation is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], wanted: Mapping[str, Any]):
        self.folder = Path(folder)
        text = json.dumps(dict(wanted), indent=1, sort_keys=True)
        with in_words(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            is_new = not (self.folder / DESCRIPTION).exists()
        if is_new and self._file(1).exists():
            raise self._refusal(f"has segments, but no {DESCRIPTION} that describes their simulation")
        if is_new:
            write(self.folder / DESCRIPTION, text)
        else:
            self._compare(wanted)
        self.checksum = hashlib.sha256(text.encode()).digest()  # of the last segment
        self.count = 0  # number of segments read or written

    def _compare(self, wanted: Mapping[str, Any]) -> None:
        """Refuse a folder of another simulation."""
        try:
            there = json.loads((self.folder / DESCRIPTION).read_text(encoding="utf-8"))
            differ = sorted(key for key in {*there, *wanted} if there.get(key) != wanted.get(key))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            raise self._refusal(f"has a damaged {DESCRIPTION}, which describes its simulation") from None
        if differ:
            raise self._refusal(f"belongs to another simulation: {', '.join(differ)} differ")

    def _refusal(self, what: str) -> LoopdynError:
        return LoopdynError(f"checkpoint '{self.folder}' {what}. Give another folder, or remove this one.")

    def _file(self, k: int) -> Path:
        return self.folder / f"segment_{k:06d}.npz"

    def read(self) -> Iterator[dict[str, NDArray[Any]]]:
        """All complete segments, oldest first; others are set aside, with a warning."""
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
        """Rename the next segment and all after it, whatever their content."""
        files = sorted(file for file in self.folder.glob("segment_*.npz") if file.name > self._file(self.count).name)
        with in_words(self.folder):
            for file in files:
                os.replace(file, file.with_suffix(".npz.damaged"))
        goes_on = f"resumes from segment {self.count}" if self.count else "starts again"
        others = f" and the {len(files) - 1} after it" if len(files) > 1 else ""
        warn(
            f"checkpoint '{self.folder}': {files[0].name} is damaged ({why}). It{others} was renamed to end in "
            f".damaged; the run {goes_on}."
        )

    def add(self, data: Mapping[str, Any]) -> None:
        """Add a segment."""
        buffer = io.BytesIO()
        np.savez(buffer, **data)
        content = buffer.getvalue()
        checksum = self._checksum(content)
        write(self._file(self.count + 1), content + checksum)
        self.count, self.checksum = self.count + 1, checksum

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self.checksum + content).digest()

    def misfit(self, what: str) -> LoopdynError:
        """Error for a last segment that is undamaged but cannot be used."""
        return LoopdynError(
            f"checkpoint '{self.folder}', {self._file(self.count).name}: {what}, so it is not of this simulation. "
            "Give another folder, or remove this one."
        )

    @contextlib.contextmanager
    def understood(self) -> Iterator[None]:
        """Turn any error in restoring a segment into one that names its file."""
        try:
            yield
        except Misfit as error:
            raise self.misfit(str(error)) from None
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise self.misfit(f"its content cannot be used ({type(error).__name__}: {error})") from error


__all__ = ["Checkpoint", "content_of_system", "description", "installed_version"]
