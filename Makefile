# Everything from nothing: each target first makes the virtual environment it needs, once.
PYTHON ?= python3
VENV ?= .venv
READY := $(VENV)/.ready
READY_FOR_DOCS := $(VENV)/.ready-for-docs

.PHONY: demo test test-all check format bench docs clean

demo: $(READY)
	$(VENV)/bin/lcmat demo --out runs/demo

test: $(READY)
	$(VENV)/bin/python -m pytest -q

test-all: $(READY)
	$(VENV)/bin/python -m pytest -q -m ""

check: $(READY)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

format: $(READY)
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: $(READY)
	for script in benchmarks/*.py; do echo "== $$script"; $(VENV)/bin/python $$script || exit 1; done

# Every warning fails: a dead link, a page that nothing leads to, a docstring that does not fit its function.
docs: $(READY_FOR_DOCS)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	@echo "open build/site/index.html"

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "lcmat needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

$(READY_FOR_DOCS): $(READY)
	$(VENV)/bin/pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@
