"""Checkpoints of a simulation: segments that are only ever added, each put in place by an atomic rename.

A folder holds ``run.json``, which says what is being simulated, and ``segment_000001.npz`` and so on: the outputs
since the segment before, and everything that is needed to go on. A process that is killed at any moment leaves whole
segments behind, and perhaps a file ending in ``.part``, which is ignored.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from loopdyn.errors import LoopdynError

DESCRIPTION = "run.json"


class Checkpoint:
    """Segments in a folder.

    Parameters
    ----------
    folder : str or Path
    description : mapping
        What is simulated, and how, as plain data; a folder of another simulation is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], description: Mapping[str, Any]):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        file, wanted = self.folder / DESCRIPTION, json.loads(json.dumps(dict(description)))
        if file.exists():
            there = json.loads(file.read_text(encoding="utf-8"))
            differ = sorted(key for key in {*there, *wanted} if there.get(key) != wanted.get(key))
            if differ:
                raise LoopdynError(
                    f"checkpoint '{self.folder}' belongs to another simulation: {', '.join(differ)} differ. Give "
                    "another folder, or remove this one."
                )
        else:
            _put(file, json.dumps(wanted, indent=1).encode())
        self.count = len(list(self._files()))

    def _files(self) -> Iterator[Path]:
        """Segments without a gap."""
        k = 1
        while (file := self.folder / f"segment_{k:06d}.npz").exists():
            yield file
            k += 1

    def read(self) -> Iterator[dict[str, Any]]:
        """All segments, oldest first."""
        for file in self._files():
            with np.load(file, allow_pickle=False) as data:
                yield dict(data)

    def add(self, data: Mapping[str, Any]) -> None:
        """One more segment."""
        self.count += 1
        buffer = io.BytesIO()
        np.savez(buffer, **data)
        _put(self.folder / f"segment_{self.count:06d}.npz", buffer.getvalue())


def _put(file: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all, even if the machine stops."""
    part = file.with_suffix(file.suffix + ".part")
    with part.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, file)
