# Everything works in .venv, which these targets make themselves. Environments that other checks need
# (integrations, wheel, lowest versions, servers) are in pyproject.toml: .venv/bin/tox list
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiled modules are kept, whatever the environment says: the tests start hundreds of commands.
PYTEST := PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -rs -n auto --dist loadfile

.PHONY: demo test slow docs format nightly

demo: $(VENV)/core.stamp  ## score the bundled answers and name the report
	$(BIN)/trustassay demo

test: $(VENV)/test.stamp  ## lint, types, and the tests that take less than a second each
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow"

slow: $(VENV)/test.stamp  ## the other tests: processes killed, torch, a browser, thousands of calls
	$(PYTEST) -m slow

docs: $(VENV)/docs.stamp  ## build the site into site/; a warning, or a figure of no file, fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

nightly: $(VENV)/docs.stamp  ## stored outputs, all tests with new random examples and long simulations
	$(BIN)/python -m lab.benchmarks.golden_outputs --check
	FULL_TESTS=1 $(PYTEST)

$(VENV)/core.stamp: requirements/core.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/test.stamp: $(VENV)/core.stamp requirements/test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	touch $@

$(VENV)/docs.stamp: $(VENV)/test.stamp requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	touch $@
