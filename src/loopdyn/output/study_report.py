"""Report of a study: one self-contained page with yield, histograms, contributions and designs that failed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.output.report import _Page as Page

if TYPE_CHECKING:
    from loopdyn.results.study import Study, ToleranceStudy, Yield

MOST_FAILED = 50  # rows of designs without numbers that are listed


def write_study(found: Study, path: str | os.PathLike[str], reached: Yield | None) -> None:
    """Write the page of a study."""
    page = Page(f"{found.name}: study")
    _overview(page, found, reached)
    _histograms(page, found)
    if found.finished.any():
        page.head("Contributions")
        for name in found.units:
            try:
                page.frame(found.sensitivity(name), name)
                page.picture(found.plot.contributions(name), f"contributions to the variance of {name}")
            except LoopdynError as error:
                page.say(f"{name}: {error}", "why")
    _failed(page, found)
    write(path, str(page))


def write_tolerance(found: ToleranceStudy, path: str | os.PathLike[str]) -> None:
    """Write the page of a tolerance study."""
    page = Page(f"{found.study.name}: tolerances")
    _overview(page, found.study, found.yields)
    page.head("Worst case, linear deviation, samples")
    page.frame(found.summary, "measure")
    page.head("Contributions")
    page.frame(found.contributions, "measure")
    _histograms(page, found.study)
    _failed(page, found.study)
    write(path, str(page))


def _overview(page: Page, found: Study, reached: Yield | None) -> None:
    page.text(str(found))
    if reached is not None:
        page.head("Yield")
        page.text(str(reached))


def _histograms(page: Page, found: Study) -> None:
    page.head("Histograms")
    if not found.finished.any():
        page.say("No design is finished.", "why")
        return
    for name in found.units:
        page.picture(found.plot.histogram(name), f"histogram of {name}")


def _failed(page: Page, found: Study) -> None:
    failed = found.failed
    page.head("Designs without numbers")
    page.say(f"{len(failed)} of {len(found)}" + (f", the first {MOST_FAILED}:" if len(failed) > MOST_FAILED else ""))
    if len(failed):
        page.frame(failed[[*found.designs.names, "status", "reason"]].head(MOST_FAILED), "design")
