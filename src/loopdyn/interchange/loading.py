"""Models of every format, chosen by the ending of the file."""

from __future__ import annotations

import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from loopdyn.errors import ModelError, Problem, warn

if TYPE_CHECKING:
    from loopdyn.interchange.report import Report
    from loopdyn.model.mechanism import Mechanism

MJCF = (".xml", ".mjcf")
YAML = (".yaml", ".yml")
READ = (*YAML, *MJCF, ".urdf", ".sdf")
SIDECAR = ".loops.yaml"


def load(
    path: str | os.PathLike[str],
    *,
    loops: str | os.PathLike[str] | None = None,
    keyframe: str | int | None = None,
    model: str | None = None,
    mend: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> Mechanism:
    r"""Read a model: a loopdyn model file, MJCF, URDF or SDF.

    Losses in the conversion of another tool's file are a :class:`LoopdynWarning`; :func:`read_mjcf`, :func:`read_urdf`
    and :func:`read_sdf` return the whole report.

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.yaml``, ``.xml`` (MJCF), ``.urdf`` or ``.sdf``.
    loops : str or Path, optional
        Sidecar of a URDF; by default the file ``NAME.loops.yaml`` next to ``NAME.urdf``, if there is one.
    keyframe : str or int, optional
        Keyframe of MJCF to start from.
    model : str, optional
        Which model of an SDF with several.
    mend : bool
        Replace inertias of URDF and SDF that no body can have by the nearest possible ones.
    folder : str or Path, optional
        Folder that files included by MJCF, and its meshes, must be in; by default that of the file.

    Raises
    ------
    ModelError
        With every problem of the file and of the files it includes, each with its line, or with an option that does
        not fit the format.

    Examples
    --------
    >>> import tempfile
    >>> file = FilePath(tempfile.mkdtemp()) / "slider.yaml"
    >>> _ = file.write_text("loopdyn: 1\nbodies: {block: {mass: 2}}")
    >>> load(file).bodies["block"].mass
    2.0
    """
    mechanism, report = read_model(path, loops=loops, keyframe=keyframe, model=model, mend=mend, folder=folder)
    lost = [] if report is None else report.losses()
    if report is not None and lost:
        warn("\n".join([report.title, *lost]))
    return mechanism


def read_model(
    source: str | os.PathLike[str],
    *,
    loops: str | os.PathLike[str] | None = None,
    keyframe: str | int | None = None,
    model: str | None = None,
    mend: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> tuple[Mechanism, Report | None]:
    """Mechanism of a file, and what became of it if it is of another tool; arguments as for :func:`load`."""
    file = FilePath(source)
    ending = file.suffix.lower()
    options = (
        (loops, (".urdf",), "only a URDF has a sidecar file", "loops"),
        (keyframe, MJCF, "only MJCF has keyframes", "keyframe"),
        (model, (".sdf",), "only an SDF has several models", "model"),
        (mend or None, (".urdf", ".sdf"), "only inertias of URDF and SDF are mended", "mend"),
        (folder, MJCF, "only MJCF includes files and reads meshes of a folder", "folder"),
    )
    for given, endings, message, option in options:
        if given is not None and ending in READ and ending not in endings:
            raise ModelError([Problem("model file", message, f"Leave out '{option}' (--{option}).", str(file))])
    if ending in YAML:
        from loopdyn.io.reading import read_document

        document = read_document(file, os.fspath(source))  # a file that is no YAML ends here: the rest takes a while

        from loopdyn.io.yaml import mechanism_of

        return mechanism_of(document, file, os.fspath(source)), None
    if ending == ".urdf":
        from loopdyn.interchange.urdf_reading import read_urdf

        beside = file.with_suffix(SIDECAR)
        urdf = read_urdf(file, loops=loops or (beside if beside.is_file() else None), mend=mend)
        return urdf.mechanism, urdf.report
    if ending in MJCF:
        from loopdyn.interchange.mjcf.reading import read_mjcf

        mjcf = read_mjcf(file, keyframe=keyframe, folder=folder)
        return mjcf.mechanism, mjcf.report
    if ending == ".sdf":
        from loopdyn.interchange.sdf.reading import read_sdf

        sdf = read_sdf(file, model=model, mend=mend)
        return sdf.mechanism, sdf.report
    message = f"files ending in '{file.suffix}' cannot be read" if ending else "the name has no ending"
    raise ModelError([Problem("model file", message, f"Use one of: {', '.join(READ)}.", str(file))])
