"""What loopdyn does not have is said where people look for it."""

import re
from pathlib import Path

import pytest

import loopdyn as ld
from loopdyn.io.yaml import load_text

ROOT = Path(__file__).parents[2]
WORDS = ("contact", "stop", "friction")


def test_the_first_page_says_what_is_not_offered():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"## What it does not do\n(.*?)\n## ", text, re.S)[1].lower()
    assert text.index("## What it does not do") < text.index("## Install")
    assert all(word in section for word in WORDS)
    assert "docs/howto/not_offered.md" in section


@pytest.mark.parametrize("page", ["index.md", "howto/index.md", "model_files.md", "import.md", "howto/motor.md"])
def test_pages_where_it_is_looked_for_lead_to_what_to_do_instead(page):
    assert "not_offered.md" in (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "where"),
    [("contact", r"docs/contact\.md"), ("stop", r"docs/contact\.md"), ("friction", r"not offered.*not_offered\.md")],
)
def test_a_file_that_asks_for_it_is_told(kind, where, tmp_path):
    text = f"loopdyn: 1\nname: m\nforces:\n  x: {{type: {kind}}}\n"
    with pytest.raises(ld.errors.ModelError, match=where):
        load_text(text, tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("name", "where"), [("Contact", r"ld\.contacts"), ("Stop", r"ld\.contacts\.Stop"), ("Friction", "not offered")]
)
def test_a_name_that_is_looked_for_is_told(name, where):
    with pytest.raises(AttributeError, match=where):
        getattr(ld, name)
