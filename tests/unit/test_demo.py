"""`loopdyn demo`: what it prints, and the page it writes."""

import re

from tests import chromium
from typer.testing import CliRunner

from loopdyn.analysis.comparing import every_formulation
from loopdyn.app.cli import app


def test_the_demonstration_shows_both_mechanisms_by_every_formulation(tmp_path):
    page = tmp_path / "demo.html"
    result = CliRunner().invoke(app, ["demo", "--html", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    for name in ("four_bar", "stewart_6ups", *every_formulation()):
        assert name in result.output
        assert f"{name}</" in text
    assert str(page) in result.output
    # one file: nothing is fetched
    assert not re.search(r'\s(src|href)="', text)
    assert text.count("<iframe") == 2
    assert len(text) < 12e6


def test_the_page_of_the_demonstration_opens_in_a_browser(tmp_path):
    page = tmp_path / "demo.html"
    said = []
    with chromium.launched() as browser:
        assert CliRunner().invoke(app, ["demo", "--html", str(page)]).exit_code == 0
        tab = browser.new_page(viewport={"width": 1200, "height": 1600})
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto(page.as_uri())
        tab.wait_for_timeout(2000)
        assert [frame.locator("canvas").count() > 0 for frame in tab.frames[1:]] == [True, True]
    assert said == []
