# Two commands matter: make figures, make test. Everything lands in .venv, out/ and caches.
# PYTHON picks the interpreter (3.11, 3.12 or 3.13), LANGUAGE the language of the figures.
PYTHON ?= python3
LANGUAGE ?= en
VENV ?= .venv

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# plain `make test` leaves out what builds whole environments; CI runs all
MARKS := $(if $(CI),,-m "not slow")

.PHONY: figures test lab lint format types layers ci clean
.DELETE_ON_ERROR:

figures: $(VENV)/.base
	$(BIN)/python -m ledgerkit figures --language $(LANGUAGE) --out out

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(MARKS) $(PYTEST_ARGS)

lab: $(VENV)/.base
	$(BIN)/jupyter lab notebooks/01_three_ledgers.ipynb

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.test
	$(BIN)/lint-imports

ci:
	CI=true bash .ci/run

clean:
	rm -rf out build dist .numba_cache .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] else "ledgerkit needs Python 3.11 or newer, not " + sys.version.split()[0] + ". Fix: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[dask,hub,loadtest,test]'
	@touch $@ $(VENV)/.base

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[dask,dev,hub,loadtest,test]'
	@touch $@ $(VENV)/.base $(VENV)/.test
