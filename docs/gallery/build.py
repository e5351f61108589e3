"""Files, pictures and animations of the gallery.

`mkdocs build` calls the hooks at the end of this file: model files and animations go into the site and are not kept.
The pictures are kept beside the pages; ``python docs/gallery/build.py [NAME ...]`` makes them anew, with chromium and
playwright.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import loopdyn as ld

HERE = Path(__file__).parent
MECHANISMS = HERE.parents[1] / "examples" / "mechanisms"
FRAMES = 240  # of an animation; 8 s at 30 frames a second
TURN = 2 * np.pi
THERE_AND_BACK = np.concatenate([np.linspace(0, 1, 91), np.linspace(1, 0, 91)[1:]])


@dataclass(frozen=True)
class Exhibit:
    """How a mechanism of the gallery is shown."""

    motion: Callable[[ld.Mechanism], ld.results.Run | ld.results.Drive]
    traces: tuple[Any, ...] = ()  # joints, or points of bodies at the reference pose by formulas
    file: str = ""  # in examples/mechanisms, where it is not named like the page


def turn(joint: str, angle: float = TURN) -> Callable[[ld.Mechanism], ld.results.Drive]:
    """The input is turned."""
    return lambda m: ld.drive(m.compile(), joint, (0.0, angle, FRAMES))


def sweep(**ranges: tuple[float, float]) -> Callable[[ld.Mechanism], ld.results.Drive]:
    """Inputs go there and back."""
    inputs = {joint: first + (last - first) * THERE_AND_BACK for joint, (first, last) in ranges.items()}
    return lambda m: ld.drive(m.compile(), inputs)


def fall(
    seconds: float, prepare: Callable[[ld.Mechanism], None] = lambda m: None
) -> Callable[[ld.Mechanism], ld.results.Run]:
    """The mechanism moves by itself from its start."""

    def run(m: ld.Mechanism) -> ld.results.Run:
        prepare(m)
        system = m.compile()
        times = np.linspace(0.0, seconds, FRAMES)
        return ld.simulate(system, ld.assemble(system), (0.0, seconds), t_eval=times, progress=False).raise_if_failed()

    return run


def guide(m: ld.Mechanism) -> None:
    """The platform of the delta robot follows a path; its motors give what that needs."""
    m.forces = {}
    path = {"x": "0.15*sin(pi*t)", "y": "0.15*(1 - cos(pi*t))", "z": "z + 0.05*(1 - cos(2*pi*t))"}
    m.add_constraint("path", ld.constraints.PointMotion(on="ground", body="platform", point=(0, 0, "z"), **path))


def wave(m: ld.Mechanism) -> None:
    """The legs of the 6-UPS platform follow a wave, each a sixth of a period behind the one before."""
    for k in range(6):
        law = f"-stiffness*(position - 0.05*(sin(3*t + {k}*pi/3) - sin({k}*pi/3))) - damping*speed"
        m.forces[f"leg{k + 1}"] = m.forces[f"leg{k + 1}"].model_copy(update={"force": law})


EXHIBITS = {
    "four_bar": Exhibit(turn("A"), (("coupler", ("bx + 0.45*cos(tilt)", "by + 0.45*sin(tilt)", 0)), "C")),
    "slider_crank": Exhibit(turn("A"), ("B", ("rod", ("(bx + cx)/2", "(by + offset)/2", 0)))),
    "quick_return": Exhibit(turn("A"), ("B", "E")),
    "five_bar": Exhibit(fall(6.0), ("C",)),
    "watt": Exhibit(turn("A"), ("G", "E")),
    "stephenson": Exhibit(turn("A"), ("G", "E")),
    "theo_jansen": Exhibit(turn("O", -TURN), (("lower", ("yx", "yy", 0)),)),
    "scissor_lift": Exhibit(sweep(A=(0.0, 0.8)), file="scissor_lift_20"),
    "peaucellier": Exhibit(sweep(Q=(-1.3, 0.3)), ("C", "P1")),
    "double_wishbone": Exhibit(sweep(lower=(-0.2, 0.2), rack=(0.0, -0.03), hub=(0.0, 12.0))),
    "delta_robot": Exhibit(fall(4.0, guide), (("platform", (0, 0, "z")),)),
    "stewart_3rrs": Exhibit(fall(1.0)),
    "stewart_6ups": Exhibit(fall(4.0, wave)),
    "bricard": Exhibit(fall(6.0), ("P4",)),
    "bennett": Exhibit(turn("P1"), ("P2", "P3")),
    "cardan_shaft": Exhibit(turn("in")),
    "flyball": Exhibit(fall(5.0)),
    "ladder": Exhibit(fall(5.0), ("A1",)),
}


def file_of(name: str) -> Path:
    """Model file of a page."""
    return MECHANISMS / f"{EXHIBITS[name].file or name}.yaml"


def animation(name: str, page: Path) -> Path:
    """Write the page that shows a mechanism move."""
    exhibit = EXHIBITS[name]
    m = ld.load(file_of(name))
    values = m.resolver()
    traces = [t if isinstance(t, str) else (t[0], values.vector(t[1], "length", "", ())) for t in exhibit.traces]
    return exhibit.motion(m).animate(page, frames=FRAMES, traces=traces, forces=False, plots=["q"], title=name)


# ------------------------------------------------------------------------------------------------------ hooks


def on_files(files: Any, config: Any) -> Any:
    """Model files are part of the site."""
    from mkdocs.structure.files import File

    for name in EXHIBITS:
        path = file_of(name)
        files.append(File.generated(config, f"gallery/files/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """In the repository a page links to the file in examples/, in the site to the copy."""
    return markdown.replace("](../../examples/mechanisms/", "](files/")


def on_post_build(config: Any) -> None:
    """Make the animations."""
    folder = Path(config["site_dir"]) / "gallery" / "animations"
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXHIBITS:
        animation(name, folder / f"{name}.html")


# --------------------------------------------------------------------------------------------------- pictures

WIDTH, HEIGHT, SHARE = 900, 560, 0.3  # pixels of the page, and share of the motion at which the picture is taken


def picture(name: str, browser: Any, folder: Path) -> None:
    """A picture of the page of a mechanism, kept beside its text."""
    from PIL import Image

    tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    tab.goto(animation(name, folder / f"{name}.html").as_uri())
    tab.wait_for_function("window.page !== undefined")
    tab.evaluate("document.getElementById('labels').style.visibility = 'hidden'")
    tab.evaluate(f"page.pause(); page.seek({SHARE}*page.arrays.time[page.arrays.time.length - 1])")
    tab.wait_for_timeout(500)  # milliseconds, until it is drawn
    image = Image.open(io.BytesIO(tab.locator("#stage").screenshot())).convert("RGB")
    tab.close()
    image.thumbnail((480, 480))
    image.quantize(128, Image.Quantize.MAXCOVERAGE).save(HERE / f"{name}.png", optimize=True)
    print(f"{name}.png")


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as p:
        arguments = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
        chromium = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for chosen in sys.argv[1:] or EXHIBITS:
            picture(chosen, chromium, Path(scratch))
        chromium.close()
