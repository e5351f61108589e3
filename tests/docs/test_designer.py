"""The page docs/designer.md, followed word for word, and the loads of its compressor against a closed form."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "designer.md").read_text()
COMMANDS = re.findall(r"^```sh(?: expect=(\d))?\n(.*?)\n```", PAGE, re.M | re.S)


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "compressor.yaml").write_text(block("yaml"))
    (tmp_path / "variants.csv").write_text(block("csv"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("code", "command"), COMMANDS, ids=[" ".join(c.split()[1:2]) for _, c in COMMANDS])
def test_the_commands_of_the_page_do_what_it_says(code, command, folder):
    words = shlex.split(command)
    assert words[0] == "loopdyn"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == int(code or 0), result.output
    for option, name in pairwise(words):
        if option in ("--csv", "--plot", "--xlsx", "-o"):
            assert (folder / name).stat().st_size > 500
    if "--variants" in words:
        assert "body 'crank': mass is negative (-900 g)" in result.output
        assert "5 variants, 1 of them failed" in result.output
    if words[1] == "report":
        page = (folder / "report.html").read_text()
        parts = ("Mobility and redundancy", "Drive", "Loads of bearings", "Energy balance", "Settings and versions")
        for part in parts:
            assert f"<h2>{part}</h2>" in page
        assert not re.search(r'(src|href)="(?!data:)', page)  # no other file


def test_the_pin_of_the_piston_carries_gas_and_inertia(folder):
    """Driven at a constant speed: x = r cos + sqrt(l^2 - r^2 sin^2), and m x'' = force of the pin + gas."""
    m = ld.load(folder / "compressor.yaml")
    del m.forces["motor"]
    m.start.v.clear()
    m.start.q.clear()
    m.add_driver("speed", "A", "6000*t")
    system = m.compile()
    run = ld.simulate(
        system, ld.assemble(system), (0, 0.06), t_eval=np.linspace(0, 0.06, 121), rtol=1e-10, progress=False
    )
    w, r, rod, mass = np.radians(6000.0), 0.04, 0.12, 0.5
    c, s = np.cos(w * run.path.t), np.sin(w * run.path.t)
    root = np.sqrt(rod**2 - (r * s) ** 2)
    # second derivative of the root: (f f'' - f'^2) / f^3 of its square over 2
    first, second = -(r**2) * s * c, -(r**2) * (c**2 - s**2)
    acceleration = w**2 * (-r * c + second / root - first**2 / root**3)
    gas = run.data["load"].sel(force="gas").values
    force = run.bearings().load("C", "world")[0]
    assert np.abs(force[:, 0] - (mass * acceleration - gas)).max() < 1e-6 * np.abs(force).max()


def test_the_gas_is_a_load_and_not_a_motor_where_the_crank_is_moved(folder):
    system = ld.load(folder / "compressor.yaml").compile()
    times = np.linspace(0.0, 0.06, 13)
    found, named = (ld.inverse_dynamics(system, {"A": "6000*t"}, times, motors=x) for x in (None, ["A"]))
    assert found.motors == ("A",)
    assert np.array_equal(found.load, named.load)


def test_variants_and_reports_say_what_is_wrong(folder):
    m = ld.load(folder / "compressor.yaml")
    with pytest.raises(ld.LoopdynError, match=r"column 'rodd' of the variants .* Did you mean 'rod'"):
        ld.analyses.variants(m, [{"rodd": 1.0}], (0, 0.1))
    with pytest.raises(ld.LoopdynError, match="two variants are called 'a'"):
        ld.analyses.variants(m, [{"name": "a"}, {"name": "a"}], (0, 0.1))
    with pytest.raises(ld.LoopdynError, match="no such file"):
        ld.analyses.variants(m, "nothing.csv", (0, 0.1))
    with pytest.raises(ld.LoopdynError, match="empty"):
        ld.analyses.variants(m, [], (0, 0.1))
    with pytest.raises(ld.LoopdynError, match=r"the name 'page.txt' must end in \.html"):
        ld.report(m, folder / "page.txt")
    found = ld.analyses.variants(
        m, [{"name": "text", "rod": "3*crank"}, {"name": "bad", "rod": "3*"}], (0, 0.01), progress=False
    )
    assert found["text"].why == ""
    assert "3*" in found["bad"].why
    result = CliRunner().invoke(app, ["run", "compressor.yaml", "--set", "crnak=3"])
    assert result.exit_code == 1
    assert "Did you mean 'crank'" in result.output
    result = CliRunner().invoke(app, ["run", "compressor.yaml", "--variants", "variants.csv", "-o", "x.nc"])
    assert result.exit_code == 2


def test_names_in_a_report_are_text(tmp_path):
    m = ld.library.pendulum()
    m.name = "<script>alert(1)</script>"
    page = ld.report(m, tmp_path / "report.html", t_span=(0, 0.1), progress=False).read_text()
    assert "<script>" not in page
