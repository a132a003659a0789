# Everything works in .venv, which these targets make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test slow lint types unit nightly golden docs figures pictures integrations servers wheel lowest format clean

demo: $(VENV)/core.stamp  ## score the bundled answers and name the report
	$(BIN)/trustassay demo

test: lint types unit  ## lint, types, and the tests that take less than a second each

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/mypy

# Compiled modules are kept, whatever the environment says: the tests start hundreds of commands.
PYTEST := PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -rs -n auto --dist loadfile

unit: $(VENV)/test.stamp
	$(PYTEST) -m "not slow"

slow: $(VENV)/test.stamp  ## the other tests: processes killed, torch, a browser, thousands of calls
	$(PYTEST) -m slow

golden: $(VENV)/test.stamp  ## compare commands, files and figures with stored hashes
	$(BIN)/python -m benchmarks.golden_outputs --check

nightly: golden $(VENV)/docs.stamp  ## what takes too long for each change: new random examples, long simulations, stored outputs, the site
	FULL_TESTS=1 $(PYTEST)

docs: $(VENV)/docs.stamp  ## build the site into site/; a warning, or a figure of no file, fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(VENV)/test.stamp  ## put measured figures into the pages, and write the tables of the results
	$(BIN)/python -m tests.docs.guide

pictures: $(VENV)/test.stamp  ## take the pictures of the guide from today's program
	$(BIN)/python -m benchmarks.pictures

INTEGRATIONS := $(wildcard integrations/*/pyproject.toml)

integrations: $(VENV)-integrations/stamp $(VENV)-tools/stamp  ## the tests of integrations/, from wheels in environments of their own
	$(VENV)-integrations/bin/python -m pytest -rs -p no:cacheprovider $(dir $(INTEGRATIONS))
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(VENV)-tools/bin/python -m pytest -rs -p no:cacheprovider integrations/tools

servers: $(VENV)-tools/stamp $(VENV)-phoenix/stamp $(VENV)-s3/stamp  ## tests at real servers: Phoenix, and one that speaks S3
	PHOENIX=$(CURDIR)/$(VENV)-phoenix/bin/phoenix PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(VENV)-tools/bin/python -m pytest -rs -p no:cacheprovider integrations/tools -k phoenix
	$(VENV)-s3/bin/python -m pytest -rs -p no:cacheprovider cluster/tests/test_s3.py

$(VENV)-integrations/stamp: requirements/core.txt requirements/integrations.txt pyproject.toml $(INTEGRATIONS) \
		$(shell find src papers/src serve/src integrations -name '*.py' -o -name '*.jsonl')
	test -x $(VENV)-integrations/bin/python || $(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt -r requirements/integrations.txt
	rm -rf dist/integrations dist/tools && mkdir -p dist/integrations
	$(VENV)-integrations/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/integrations . ./papers $(dir $(INTEGRATIONS))
	$(VENV)-integrations/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/tools ./serve
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/integrations/*.whl
	$(VENV)-integrations/bin/python -m pip check
	touch $@

# LlamaIndex and the other tools do not agree on one fsspec.
$(VENV)-tools/stamp: requirements/tools.txt $(VENV)-integrations/stamp
	test -x $(VENV)-tools/bin/python || $(PYTHON) -m venv $(VENV)-tools
	$(VENV)-tools/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/tools.txt
	$(VENV)-tools/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/integrations/trustassay-*.whl dist/tools/*.whl
	$(VENV)-tools/bin/python -m pip check
	touch $@

# A server, which agrees with neither.
$(VENV)-phoenix/stamp: requirements/phoenix.txt
	test -x $(VENV)-phoenix/bin/python || $(PYTHON) -m venv $(VENV)-phoenix
	$(VENV)-phoenix/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/phoenix.txt
	touch $@

$(VENV)-s3/stamp: requirements/core.txt requirements/s3.txt cluster/pyproject.toml $(VENV)-integrations/stamp
	test -x $(VENV)-s3/bin/python || $(PYTHON) -m venv $(VENV)-s3
	$(VENV)-s3/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/s3.txt
	$(VENV)-s3/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/integrations/trustassay-*.whl ./cluster
	touch $@

wheel: $(VENV)/core.stamp  ## build the wheel, and run the demo from it in an empty environment
	rm -rf dist $(VENV)-wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist && ../$(VENV)-wheel/bin/trustassay demo

lowest: $(VENV)/core.stamp  ## run the demo with the lowest versions that pyproject.toml allows
	rm -rf $(VENV)-lowest
	$(PYTHON) -m venv $(VENV)-lowest
	mkdir -p dist
	sed -n '/^dependencies/,/^]/s/^ *"\([a-z0-9-]*\)>=\([0-9.]*\)".*/\1==\2.*/p' pyproject.toml > dist/lowest.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -r dist/lowest.txt .
	cd dist && ../$(VENV)-lowest/bin/trustassay demo

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/core.stamp: requirements/core.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/test.stamp: $(VENV)/core.stamp requirements/test.txt papers/pyproject.toml cluster/pyproject.toml serve/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable papers --editable cluster --editable serve
	touch $@

$(VENV)/docs.stamp: $(VENV)/core.stamp requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	touch $@

clean:
	rm -rf site $(VENV) $(VENV)-wheel $(VENV)-lowest $(VENV)-integrations $(VENV)-tools $(VENV)-phoenix $(VENV)-s3 .mypy_cache .pytest_cache .ruff_cache dist
