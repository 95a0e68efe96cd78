# Two commands do everything on a machine with python3 and make: `make demo` and `make test`.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo quick test test-slow test-live torture torture-tests torture-texts torture-kills check format bench docs lock clean

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# What only the site and the notebooks need.
.venv/.docs-ready: .venv/.ready requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

demo: setup
	$(BIN)/panes demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow and not torture and not browser"

# Everything that needs no Spark and takes no seconds by itself, with three examples of each law.
quick: setup
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n 2 --dist loadgroup \
	    -m "not slow and not torture and not browser and not spark and not long" tests

# PART=2/3 runs the second third of them.
PART ?=
test-slow: setup .venv/.docs-ready
	PANES_SLOW_PART=$(PART) $(BIN)/python -m pytest -n 2 --dist loadgroup -m "slow and not torture" tests

# The live page in a real browser. Playwright is installed for this alone; the browser is Debian's
# Chromium, installed if that is possible, or the one that CHROMIUM names.
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome || echo /usr/bin/chromium)
test-live: setup
	test -x "$(CHROMIUM)" || (export DEBIAN_FRONTEND=noninteractive && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core) \
	    || (echo "make test-live needs Chromium: install it, or say make test-live CHROMIUM=/path/to/it" && exit 1)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target .venv/browser --upgrade "playwright>=1.50"
	CHROMIUM="$(CHROMIUM)" PYTHONPATH=.venv/browser $(BIN)/python -m pytest -m browser tests/live

# What takes hours, far more than the tests try. COUNT and SECONDS bound each part of the texts, KILLS
# is the number of kills in each cell. atheris is installed for this alone.
COUNT ?= 100000
SECONDS ?= 3600
KILLS ?= 100
torture: torture-tests torture-texts torture-kills

torture-tests: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m torture tests

torture-texts: setup
	$(BIN)/python -m tests.torture.texts --count $(COUNT) --seconds $(SECONDS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target .venv/torture "atheris>=3"
	PYTHONPATH=.venv/torture $(BIN)/python -m tests.torture.guided -runs=$(COUNT) -max_total_time=$(SECONDS)

torture-kills: setup
	$(BIN)/python -m tests.crash.torture --kills $(KILLS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/panes bench

docs: .venv/.docs-ready
	$(BIN)/python -m docs_site site
	@echo "site/index.html is ready; to search in it: python3 -m http.server --bind 127.0.0.1 -d site"

# Needs `pip install uv`; only for those who change the dependencies.
lock:
	uv pip compile --universal --generate-hashes --no-header --no-annotate \
	    --python-version 3.11 --group dev pyproject.toml -o requirements.lock
	uv pip compile --universal --generate-hashes --no-header --no-annotate \
	    --python-version 3.11 -c requirements.lock --group pyproject.toml:docs -o requirements-docs.lock

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
