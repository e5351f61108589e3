"""From one format to another, chosen by the endings of the files: what `loopdyn convert` does."""

from __future__ import annotations

from pathlib import Path as FilePath

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.mjcf_reading import read_mjcf
from loopdyn.interchange.mjcf_writing import write_mjcf
from loopdyn.interchange.report import Report
from loopdyn.interchange.sdf import read_sdf
from loopdyn.interchange.urdf_reading import read_urdf
from loopdyn.interchange.urdf_writing import write_urdf
from loopdyn.io.yaml import load
from loopdyn.model import Mechanism

READ = (".yaml", ".yml", ".xml", ".mjcf", ".urdf", ".sdf")
WRITTEN = (".yaml", ".yml", ".xml", ".mjcf", ".urdf")
SIDECAR = ".loops.yaml"


def convert(
    source: FilePath,
    target: FilePath,
    *,
    loops: FilePath | None = None,
    keyframe: str | None = None,
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
    mechanism, report = _read(source, loops, keyframe, mend)
    reports = [] if report is None else [report]
    if target.suffix.lower() == ".urdf":
        reports.append(write_urdf(mechanism, target, leave_out=leave_out))
    elif target.suffix.lower() in (".xml", ".mjcf"):
        reports.append(write_mjcf(mechanism, target, leave_out=leave_out))
    else:
        mechanism.save(target)
    return reports


def _read(
    source: FilePath, loops: FilePath | None, keyframe: str | None, mend: bool
) -> tuple[Mechanism, Report | None]:
    ending = source.suffix.lower()
    if loops is not None and ending != ".urdf":
        raise ModelError([Problem("convert", "only a URDF has a sidecar file", "Leave out --loops.", str(source))])
    if keyframe is not None and ending not in (".xml", ".mjcf"):
        raise ModelError([Problem("convert", "only MJCF has keyframes", "Leave out --keyframe.", str(source))])
    if ending == ".urdf":
        beside = source.with_suffix(SIDECAR)
        urdf = read_urdf(source, loops=loops or (beside if beside.is_file() else None), mend=mend)
        return urdf.mechanism, urdf.report
    if ending in (".xml", ".mjcf"):
        mjcf = read_mjcf(source, keyframe=keyframe)
        return mjcf.mechanism, mjcf.report
    if ending == ".sdf":
        sdf = read_sdf(source, mend=mend)
        return sdf.mechanism, sdf.report
    if ending in (".yaml", ".yml"):
        return load(source), None
    hint = f"Use one of: {', '.join(READ)}."
    raise ModelError([Problem("convert", f"files ending in '{ending}' cannot be read", hint, str(source))])
