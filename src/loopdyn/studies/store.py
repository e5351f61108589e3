"""Store of a study: a folder with finished designs, from which a study that was killed goes on.

``study.json`` describes the study, ``sessions.json`` lists who worked on it, and ``parts/part_000001.nc`` and so on
hold finished designs, each file put in place by an atomic rename. A process that is killed at any moment leaves
complete parts behind, and perhaps a file with ``.part`` in its name, which is ignored. A part ends in a checksum of its
content and of the description; a damaged one is set aside with a warning, and its designs are computed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, warn
from loopdyn.files import in_words, write

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DESCRIPTION, SESSIONS, PARTS, LOCK = "study.json", "sessions.json", "parts", "study.lock"
PART = re.compile(r"part_\d+\.nc")  # others are incomplete, or set aside
FORMAT = 1
CHECKSUM = hashlib.sha256().digest_size
ONLY_NOTED = ("kernels", "processor", "loopdyn")  # differences of these are warned of, not refused

Array = NDArray[np.float64]


class FinishedDesigns(NamedTuple):
    """Some finished designs."""

    designs: NDArray[np.int64]
    values: Array
    status: NDArray[np.int8]
    seconds: Array
    reasons: list[str]


class Store:
    """Finished designs in a folder.

    Parameters
    ----------
    folder : str or Path
    wanted : mapping
        Description of the study as plain data; a folder of another study is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], wanted: Mapping[str, Any]):
        self.folder = Path(folder)
        text = json.dumps({"format": FORMAT, **wanted})
        with in_words(self.folder):
            (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
        try:
            self.description = self._described(json.loads(text))
        except BaseException:
            self._lock.close()
            raise
        identity = {k: v for k, v in self.description.items() if k not in ONLY_NOTED}
        self._identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
        self.count = 0  # number of the last part

    def _described(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Description in the folder, which is written if there is none; a folder of another study is refused."""
        if (self.folder / DESCRIPTION).exists():
            return self._compared(wanted)
        if any((self.folder / PARTS).iterdir()):
            raise self._refusal(f"has parts, but no {DESCRIPTION} that describes their study")
        write(self.folder / DESCRIPTION, json.dumps(wanted, indent=1, sort_keys=True))
        return wanted

    def _locked(self) -> IO[bytes]:
        """Lock of the folder, which is released when this process ends, in whatever way."""
        file = (self.folder / LOCK).open("ab")
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                raise self._refusal("is in use by another study that is running", "Wait for it.") from None
        return file

    def _compared(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Description that is there; a folder of another study is refused."""
        try:
            there = json.loads((self.folder / DESCRIPTION).read_text(encoding="utf-8"))
            differ = sorted(key for key in {*there, *wanted} if there.get(key) != wanted.get(key))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            raise self._refusal(f"has a damaged {DESCRIPTION}, which describes its study") from None
        other = [key for key in differ if key not in ONLY_NOTED]
        if other:
            raise self._refusal(f"belongs to another study: {', '.join(other)} differ")
        if differ:
            warn(
                f"store '{self.folder}': {', '.join(differ)} differ from those of the designs in it, so that last "
                "digits may differ between designs. Use a new store for equal ones."
            )
        return dict(there)

    def _refusal(self, what: str, hint: str = "Give another folder, or remove this one.") -> LoopdynError:
        return LoopdynError(f"store '{self.folder}' {what}. {hint}")

    def _file(self, k: int) -> Path:
        return self.folder / PARTS / f"part_{k:06d}.nc"

    # ---------------------------------------------------------------------------------------------- parts

    def read(self) -> Iterator[FinishedDesigns]:
        """All complete parts; damaged ones are set aside, with a warning."""
        for file in sorted(f for f in (self.folder / PARTS).iterdir() if PART.fullmatch(f.name)):
            number = int(file.stem.removeprefix("part_"))
            try:
                found: FinishedDesigns | None = self._part(file.read_bytes())
            except Exception as error:  # h5netcdf and HDF5 raise errors of many types
                with in_words(file):
                    os.replace(file, file.with_suffix(".nc.damaged"))
                warn(
                    f"store '{self.folder}': {file.name} is damaged ({error}). It was renamed to end in .damaged; its "
                    "designs are computed again."
                )
                found = None
            self.count = max(self.count, number)
            if found is not None:
                yield found

    def _part(self, data: bytes) -> FinishedDesigns:
        content, checksum = data[:-CHECKSUM], data[-CHECKSUM:]
        if self._checksum(content) != checksum:
            raise ValueError("its checksum is wrong")
        import h5netcdf

        with h5netcdf.File(io.BytesIO(content), "r") as file:
            v = file.variables
            reasons = [x.decode() if isinstance(x, bytes) else str(x) for x in v["reason"][:]]
            numbers = v["design"][:], v["values"][:], v["status"][:], v["seconds"][:]
        return FinishedDesigns(*numbers, reasons)

    def add(self, part: FinishedDesigns) -> None:
        """Write a part."""
        import h5netcdf
        import h5py

        buffer = io.BytesIO()  # made in memory: HDF5 can crash the process if the disk is full
        with h5netcdf.File(buffer, "w") as file:
            file.dimensions = {"design": len(part.designs), "measure": part.values.shape[1]}
            file.create_variable("design", ("design",), data=part.designs)
            file.create_variable("values", ("design", "measure"), data=part.values)
            file.create_variable("status", ("design",), data=part.status)
            file.create_variable("seconds", ("design",), data=part.seconds)
            text = h5py.string_dtype()
            file.create_variable("reason", ("design",), data=np.array(part.reasons, object), dtype=text)
            file.attrs["measures"] = json.dumps([x[0] for x in self.description.get("measure", [])])
        content = buffer.getvalue()
        write(self._file(self.count + 1), content + self._checksum(content))
        self.count += 1

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self._identity + content).digest()

    def begin_session(self, facts: Mapping[str, Any]) -> None:
        """Add to the list of those who worked on the study."""
        file = self.folder / SESSIONS
        try:
            before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        except (OSError, ValueError):
            warn(f"store '{self.folder}': {SESSIONS} is damaged and begins again.")
            before = []
        write(file, json.dumps([*before, dict(facts)], indent=1))

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()


__all__ = ["FinishedDesigns", "Store"]
