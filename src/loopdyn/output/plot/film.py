"""Films of runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from loopdyn.errors import LoopdynError
from loopdyn.files import in_words, write, write_figure
from loopdyn.output.drawing import Drawing, RunLike
from loopdyn.output.plot.axes import TITLE, Array
from loopdyn.output.plot.mechanism import axes_of_picture, draw, new_axes, set_room


def write_film(run: RunLike, path: str | Path, *, fps: int = 25, speed: float = 1.0, dpi: int = 100) -> Path:
    """Write a run as a film (``.gif``, ``.mp4``) or its first moment as a picture (``.png``).

    Parameters
    ----------
    run : Run
    path : str or Path
        File to write. MP4 needs ffmpeg, on the path or from the package imageio-ffmpeg.
    fps : int
        Frames per second of film.
    speed : float
        Seconds of the run per second of film.
    dpi : int
        Pixels per inch of a picture 7.5 inches wide.

    Returns
    -------
    Path
        The file.
    """
    import matplotlib.pyplot as plt

    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".gif", ".mp4", ".png"):
        raise LoopdynError(f"film '{path}': the kind '{kind}' is unknown. The name must end in .gif, .mp4 or .png.")
    if not (fps > 0 and speed > 0 and np.isfinite(speed)):
        raise LoopdynError(f"film '{path}': fps and speed must be positive, they are {fps} and {speed}. Change them.")
    writer = None if kind == ".png" else _writer(kind, fps)
    drawing = Drawing(run.system)
    time = np.asarray(run.data["time"], float)
    poses = run.poses()
    ax = new_axes(drawing)
    figure = ax.figure
    limits = _room_of_motion(drawing, poses)

    def draw_at(t: float) -> None:
        k = int(np.argmin(np.abs(time - t)))
        ax.clear()
        draw(ax, drawing, (poses[0][k], poses[1][k]), names=False)
        _keep_limits(ax, limits)
        ax.set_title(f"{run.system.name}   t = {time[k]:.3f} s", **TITLE)

    try:
        draw_at(time[0])
        if writer is None:
            write_figure(path, figure, dpi=dpi)
            return path
        figure.canvas.draw()
        figure.set_layout_engine("none")  # laid out once, so that the axes do not move
        with in_words(path), tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / f"film{kind}"
            with writer.saving(figure, part, dpi):
                for t in np.arange(time[0], time[-1] + 0.5 * speed / fps, speed / fps):
                    draw_at(t)
                    writer.grab_frame()
            write(path, part.read_bytes())
    finally:
        plt.close(figure)
    return path


def _writer(kind: str, fps: int) -> Any:
    import matplotlib
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if kind == ".gif":
        return PillowWriter(fps=fps)
    if not FFMpegWriter.isAvailable():
        try:
            import imageio_ffmpeg
        except ImportError:
            raise LoopdynError(
                "film: MP4 needs ffmpeg, which is missing. Install it, pip install imageio-ffmpeg, or write a .gif."
            ) from None
        matplotlib.rcParams["animation.ffmpeg_path"] = imageio_ffmpeg.get_ffmpeg_exe()
    # 4:2:0 colours, which every player knows, need even numbers of pixels
    return FFMpegWriter(fps=fps, extra_args=["-pix_fmt", "yuv420p", "-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2"])


def _room_of_motion(drawing: Drawing, poses: tuple[Array, Array]) -> tuple[Array, Array]:
    """Lowest and highest values along the axes of the picture, over all poses, in the declared unit."""
    basis = axes_of_picture(drawing)[: 3 if drawing.normal is None else 2]
    points = []
    for body in drawing.bodies:
        own = [*drawing.joint_points(body.row), *(p for s in body.shapes for p in s.outline())]
        if own:
            all_ = poses[0][:, body.row, None] + np.array(own) @ poses[1][:, body.row].transpose(0, 2, 1)
            points.append((all_ @ basis.T).reshape(-1, len(basis)))
    every = np.concatenate(points) / drawing.system.units.factor("length")
    return every.min(axis=0), every.max(axis=0)


def _keep_limits(ax: Any, limits: tuple[Array, Array]) -> None:
    low, high = limits
    room = 0.09 * float(np.max(high - low))
    if len(low) == 2:
        ax.set(xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))
        return
    set_room(ax, low, high)
