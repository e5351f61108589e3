"""Fixtures that several files of tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loopdyn.run import progress

# Mechanisms of the gallery: other mechanisms of the library stand for them in tests that go over all of it.
GALLERY = {"peaucellier", "theo_jansen", "scissor_lift", "double_wishbone", "delta_robot", "cardan_shaft"}
THEIR_OWN = ("test_machines.py", "test_library.py", "test_documents.py")
# Pages whose examples take long; what they show has tests of its own.
LONG_PAGES = ("docs/gallery/", "docs/howto/formulation.md", "docs/statics_and_loads.md", "docs/designer.md")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make test-all` what takes long and repeats: gallery mechanisms everywhere, pages in a real browser."""
    for item in items:
        given = getattr(item, "callspec", None)
        names = {str(x) for x in given.params.values()} if given is not None else set()
        of_gallery = item.path.name not in THEIR_OWN and names & GALLERY
        in_browser = item.path.name == "test_studio.py" and "page" in getattr(item, "fixturenames", ())
        examples = "examples_of_a_page_run[" in item.nodeid or "commands_of_a_page_run[" in item.nodeid
        of_long_page = examples and any(page in item.nodeid for page in LONG_PAGES)
        if of_gallery or in_browser or of_long_page:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def interrupt_at(monkeypatch) -> Callable[..., None]:
    """`interrupt_at(n)`: the next run looks after every step and is stopped, as by Ctrl-C, at its n-th look.

    `interrupt_at(t=0.3)`: at its first look after that time.
    """
    show = progress.Progress.show

    def arm(n: int = 0, t: float = float("inf")) -> None:
        looks = 0

        def look(self, now: float, error: float) -> None:
            nonlocal looks, t
            looks += 1
            if looks == n or now > t:
                t = float("inf")
                self.stop.ask()
            show(self, now, error)

        monkeypatch.setattr(progress, "PULSE", 0.0)
        monkeypatch.setattr(progress, "FEW", 1)
        monkeypatch.setattr(progress.Progress, "show", look)

    return arm
