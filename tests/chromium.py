"""The machine's own chromium, headless, with software rendering; tests that need it are skipped where it is missing."""

import os
import shutil
from contextlib import contextmanager

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def launched():
    if PROGRAM is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="drives the browser: pip install playwright")
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # chromium's sandbox refuses to work for root
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS + ["--no-sandbox"] * root)
        yield browser
        browser.close()
