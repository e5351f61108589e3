# Everything runs in .venv, which `make install` prepares; the other targets call it. Needs make and Python 3.11+.
#
#   PYTHON=python3.12 make install    choose the interpreter
#   JOBS=4 make test                  choose the number of test processes

SHELL := /bin/sh
.DEFAULT_GOAL := help

MINIMUM := 3, 11
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
# The first of these that is new enough; python3, to be named in the message, if none is.
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	$$p -c 'import sys; sys.exit(sys.version_info < ($(MINIMUM)))' 2>/dev/null && echo $$p && exit; done; echo python3)
JOBS ?= auto

# Test processes fill the cores by themselves: threads of the linear algebra in each would only wait for one another.
ONE_THREAD := OPENBLAS_NUM_THREADS=1

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
PIP_INSTALL := $(PY) -m pip install -qq --disable-pip-version-check --editable

.PHONY: help install develop kernels wheels test-minimum demo test test-all test-jit-off lint docs tutorial bench clean

help:  ## Show this list
	@echo "loopdyn: dynamics of closed-loop and constrained mechanisms"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

install: $(STAMP)  ## Prepare .venv to run loopdyn, and compile the kernels (once; again when pyproject.toml changes)

$(STAMP): pyproject.toml hatch_build.py
	@$(PY) -m pip --version >/dev/null 2>&1 || { \
		python="$(PYTHON)"; \
		"$$python" -c 'import sys; sys.exit(sys.version_info < ($(MINIMUM)))' 2>/dev/null || { \
			echo "loopdyn needs Python 3.11 or newer; $$python is $$("$$python" --version 2>/dev/null || echo not there)." >&2; \
			echo "Name another one: PYTHON=/path/to/python make install" >&2; exit 1; }; \
		echo "Creating $(VENV) with $$("$$python" --version) ..."; \
		"$$python" -m venv --clear $(VENV) || { \
			echo "$$python cannot create $(VENV). On Debian and Ubuntu its venv module is the package python3-venv." >&2; \
			exit 1; }; }
	@echo "Installing loopdyn and its dependencies into $(VENV) (a few minutes the first time) ..."
	@$(PIP_INSTALL) .
	@echo "Compiling the kernels ..."
	@$(VENV)/bin/loopdyn warm --all
	@touch $@
	@echo "Ready: $(VENV)/bin/loopdyn --help"

develop: $(DEV_STAMP)  ## Install on top what tests and checks need

$(DEV_STAMP): $(STAMP)
	@echo "Installing what tests and checks need ..."
	@$(PIP_INSTALL) '.[dev]'
	@touch $@

demo: install  ## Run the demonstration
	@$(VENV)/bin/loopdyn demo

test: develop  ## Run the tests (without the long sweeps) and the examples in the docstrings
	$(ONE_THREAD) $(PY) -m pytest --doctest-modules -n $(JOBS) -m "not slow" tests src/loopdyn

test-all: develop  ## Run all tests, the long sweeps included
	$(PIP_INSTALL) '.[dev,sweeps]'
	$(ONE_THREAD) $(PY) -m pytest --doctest-modules -n $(JOBS) tests src/loopdyn
	$(MAKE) test-jit-off
	$(MAKE) test-minimum

test-jit-off: develop  ## Run the tests of small models once more as plain Python
	$(ONE_THREAD) NUMBA_DISABLE_JIT=1 $(PY) -m pytest -n $(JOBS) -m jit_off tests

lint: develop  ## Check style, types and the direction of imports
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

docs: develop  ## Build the documentation site in build/site, warnings as errors
	$(PIP_INSTALL) '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

tutorial:  ## Follow the tutorial word for word in a fresh environment (downloads the dependencies, compiles kernels)
	rm -rf build/tutorial && mkdir -p build/tutorial/work
	$(PYTHON) -m venv build/tutorial/venv
	build/tutorial/venv/bin/python -m pip install -qq --disable-pip-version-check .
	cd build/tutorial/work && ../venv/bin/python ../../../docs/follow_tutorial.py

bench: develop  ## Time trees and closed loops beside other engines
	$(PIP_INSTALL) '.[bench]'
	$(PY) benchmarks/tree.py
	$(PY) benchmarks/graph.py
	$(PY) benchmarks/rcr.py
	$(PY) benchmarks/simulate.py
	$(PY) benchmarks/auto.py
	$(PY) benchmarks/linearize.py

kernels: install  ## Build the wheel of compiled kernels, loopdyn-kernels, in dist
	rm -rf build/kernels
	$(PY) tools/kernels.py

wheels: develop  ## Build the wheel and the source distribution of loopdyn in dist, and check them
	rm -f dist/loopdyn-*
	$(PY) -m build --outdir dist .
	$(VENV)/bin/twine check --strict dist/loopdyn-*
	$(VENV)/bin/check-wheel-contents dist/loopdyn-*.whl

MINIMUM_TESTS := tests/unit/test_results.py tests/unit/test_model_files.py tests/unit/test_viewer.py
test-minimum:  ## Run a few tests with the oldest versions of the dependencies, in an environment of its own
	rm -rf build/minimum
	$(PYTHON) -m venv build/minimum
	build/minimum/bin/python -m pip install -qq --disable-pip-version-check uv
	build/minimum/bin/uv pip install -q --python build/minimum/bin/python --resolution lowest-direct .
	build/minimum/bin/python -m pip install -qq --disable-pip-version-check pytest pytest-timeout hypothesis jsonschema
	build/minimum/bin/python -m pytest -q -p no:cacheprovider -W default::DeprecationWarning $(MINIMUM_TESTS)

clean:  ## Remove .venv and everything that was generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
