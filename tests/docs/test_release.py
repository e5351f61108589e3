"""Version and date of the release are the same wherever they are stated."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_version_and_date_of_the_release_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    version, date = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[0]
    assert project["version"] == version
    assert re.findall(r"^version: (.*)$", citation, re.M) == [version]
    assert re.findall(r"^date-released: (.*)$", citation, re.M) == [date]


def test_the_page_of_installation_names_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = set(re.findall(r"\.\[(\w+)\]", (ROOT / "docs" / "install.md").read_text("utf-8")))
    assert set(project["optional-dependencies"]) == named
