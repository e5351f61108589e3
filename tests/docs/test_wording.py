"""The words of docstrings, comments, messages and pages: those of textbooks, in sentences that are read once.

Only what can be checked without understanding is checked: how docstrings begin, and words that this project once used
where the field has a term. A word that is right in one place is written otherwise there, or leaves the list.
"""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "loopdyn"

EVIDENCE = ROOT / "docs" / "evidence.md"  # names tests and commands as they are
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *(
        page
        for folder in (".", "howto", "gallery", "reference", "theory", "decisions")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]

# How no docstring begins, and what to write instead.
OPENINGS = {
    r"What(ever)?\b": "name the thing: 'Result of ...', 'Error message for ...'",
    r"Of\b": "name the thing of which it is: 'Seed of ...'",
    r"The same\b": "say what it is",
    r"Where\b": "'Position of ...', 'Pose at which ...'",
    r"Whether\b.*\bthat\b.*\bthat\b": "a condition with two subordinate clauses is read twice",
    r"(How|Which|Why|Who|When)\b": "a noun: 'Number of ...', 'Flags of ...', 'Reason why ...'",
    r"(And|But|Or)\b": "it is no sentence of its own",
    r"\.\.\.": "say it all",
    r"(Those|That|These)\b": "name the thing",
    r"(All|None|Nothing) but\b": "'All except'",
    r"Everything\.": "say what there is",
    r"(Begins?|Goes|Go) (on|anew)\b": "'Continue', 'Restart'",
}

# Words and phrases that have a term in the field, everywhere in text, and the term.
WORDS = {
    r"\banew\b": "again, restart",
    r"\bbut for\b": "except, up to, modulo",
    r"\bbeside\b": "near, next to, besides",
    r"\blooks? (at|for|closer|closely)\b": "check, search, examine",
    r"\bsizes of the mechanism\b": "natural units (docs/notation.md)",
    r"\blargest energy that moved\b": "relative energy-balance error, energy exchanged",
    r"\bnumbers? that (is|are) none\b": "NaN",
    r"\bwhere it locks\b": "dead point, limit position",
    r"\bstands? still\b": "at rest, fixed",
    r"\bin vain\b": "say what was requested and refused",
    r"\bhands? (on|over)\b": "propagate, switch to, pass",
    r"\bfelt\b": "say what acts on what",
    r"\b(hangs?|hung) (on|together)\b": "connected to, parent",
    r"\bdownhill\b": "along the static force",
    r"\bbegins? once more\b": "restart",
    r"\bundetermined\b": "statically indeterminate, not determined",
    r"\brepeats? others\b": "redundant, dependent",
    r"\bchanges? of what is independent\b": "coordinate switch",
    r"\bmust give\b": "motor loads for a given motion",
    r"\bon the way\b": "during the run, along the path",
    r"\bshare of (the|a|its|time|what)\b": "fraction of",
    r"\bgo(es)? through all\b": "tests all, iterates over",
}

# Phrases that stood where the field has a term, on pages, and the term.
PHRASES = {
    r"\bmomentum alone goes through\b": "singular pose",
    r"\bundetermined in this\b": "statically indeterminate component",
    r"\bof the largest energy\b": "relative energy-balance error",
    r"\bquality \(0 is singular\)": "smallest singular value",
    r"\bturn(s|ing)? the input\b": "kinematic analysis",
    r"\bwhat motors? (must|has to|have to)\b": "inverse dynamics: motor loads for a given motion",
    r"\bwhether it stays there\b": "static equilibria and their stability",
    r"\brows of all joints\b": "constraint equations, rows of the constraint Jacobian",
    r"\banother value of a parameter\b": "override a parameter",
    r"\bclosed from the pose it started at\b": "assembled directly from the start pose",
    r"\basks? in vain\b": "say what was requested and refused",
    r"\bsingularity watch(er)?\b": "singularity monitor",
    r"\bgo(es)? on anew\b": "restart, resume",
}


def _text_files() -> list[Path]:
    return sorted(SOURCES.rglob("*.py"))


@cache
def _parts(file: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Docstrings, and all texts: docstrings, comments and messages, with their lines."""
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstrings = [
        (node.body[0].lineno, ast.get_docstring(node) or "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
    ]
    texts = [
        (node.lineno, re.sub(r"\s+", " ", node.value))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts += [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    return docstrings, texts


def _name(file: Path) -> str:
    return str(file.relative_to(SOURCES if SOURCES in file.parents else ROOT))


@pytest.mark.parametrize("opening", OPENINGS)
def test_docstrings_begin_with_a_verb_or_with_what_they_return(opening):
    wrong = [
        f"{_name(file)}:{line}: {text.splitlines()[0]}"
        for file in _text_files()
        for line, text in _parts(file)[0]
        if re.match(opening, text)
    ]
    assert not wrong, f"better: {OPENINGS[opening]}\n" + "\n".join(wrong)


@cache
def _all_texts() -> str:
    """All texts, one per line, each after its file and line."""
    texts = [f"{_name(file)}:{line}: {text}" for file in _text_files() for line, text in _parts(file)[1]]
    for page in PAGES:
        if page != EVIDENCE:
            lines = page.read_text(encoding="utf-8").split("\n")
            texts += [f"{_name(page)}:{k}: {text}" for k, text in enumerate(lines, 1)]
    return "\n".join(texts)


@pytest.mark.parametrize("word", WORDS)
def test_texts_use_the_terms_of_the_field(word):
    texts = _all_texts()
    wrong = []
    for found in re.finditer(word, texts, re.IGNORECASE):
        start = texts.rfind("\n", 0, found.start()) + 1
        wrong.append(
            f"{texts[start:].split(': ')[0]}: ...{texts[max(start, found.start() - 40) : found.end() + 40]}..."
        )
    assert not wrong, f"better: {WORDS[word]}\n" + "\n".join(wrong)


@pytest.mark.parametrize("phrase", PHRASES)
def test_pages_use_the_terms_of_the_field(phrase):
    wrong = [
        f"{_name(page)}: ...{found[0]}..."
        for page in PAGES
        if page != EVIDENCE
        for found in re.finditer(phrase, re.sub(r"\s+", " ", page.read_text(encoding="utf-8")), re.IGNORECASE)
    ]
    assert not wrong, f"better: {PHRASES[phrase]}\n" + "\n".join(wrong)
