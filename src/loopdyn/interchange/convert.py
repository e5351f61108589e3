"""From one format to another, chosen by the endings of the files: what `loopdyn convert` does."""

from __future__ import annotations

from pathlib import Path as FilePath

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.loading import MJCF, READ, read_model
from loopdyn.interchange.mjcf.writing import write_mjcf
from loopdyn.interchange.report import Report
from loopdyn.interchange.urdf_writing import write_urdf

WRITTEN = tuple(ending for ending in READ if ending != ".sdf")


def convert(
    source: FilePath,
    target: FilePath,
    *,
    loops: FilePath | None = None,
    keyframe: str | None = None,
    model: str | None = None,
    leave_out: bool = False,
    mend: bool = False,
) -> list[Report]:
    """Read `source`, write `target`; what became of the model on both ways.

    Parameters
    ----------
    source, target : Path
        Files ending in .yaml (loopdyn), .xml (MJCF), .urdf, or .sdf (read only).
    loops : Path, optional
        Sidecar of a URDF; by default the file of the same name ending in .loops.yaml, if there is one.
    keyframe : str, optional
        Keyframe of MJCF to start from.
    model : str, optional
        Which model of an SDF with several.
    leave_out : bool
        Leave out what the target cannot hold instead of refusing it.
    mend : bool
        Replace inertias of URDF and SDF that no body can have by the nearest possible ones.

    Examples
    --------
    >>> import tempfile
    >>> import loopdyn as ld
    >>> folder = FilePath(tempfile.mkdtemp())
    >>> ld.library.four_bar().save(folder / "four_bar.yaml")
    >>> print(convert(folder / "four_bar.yaml", folder / "four_bar.urdf")[0].carried[1])
    3 joints in the URDF: A, B, D
    """
    if target.suffix.lower() not in WRITTEN:
        hint = f"Use one of: {', '.join(WRITTEN)}."
        raise ModelError(
            [Problem("convert", f"files ending in '{target.suffix}' cannot be written", hint, str(target))]
        )
    mechanism, report = read_model(source, loops=loops, keyframe=keyframe, model=model, mend=mend)
    reports = [] if report is None else [report]
    if target.suffix.lower() == ".urdf":
        reports.append(write_urdf(mechanism, target, leave_out=leave_out))
    elif target.suffix.lower() in MJCF:
        reports.append(write_mjcf(mechanism, target, leave_out=leave_out))
    else:
        mechanism.save(target)
    return reports
