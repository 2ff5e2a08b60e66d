# Ten small commands. `make run` and `make test` do all the set-up on a fresh machine.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
THREADS := OMP_NUM_THREADS=2 MKL_NUM_THREADS=2

.PHONY: setup run test conformance lint bench screenshots docs texts gpu-check clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt .ci/packages
	.ci/packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

run: setup
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then exec $(BIN)/layerwright; \
	else echo "No display: running the tour instead."; $(BIN)/layerwright tour build/tour; fi

# The first run blocks Qt, so that everything but the window is shown to work without it.
test: setup
	$(THREADS) LAYERWRIGHT_BLOCK=PySide6,shiboken6,NodeGraphQt,Qt $(BIN)/pytest -q -p no:pytest-qt -m "not gui"
	$(THREADS) QT_QPA_PLATFORM=offscreen $(BIN)/pytest -q -m "gui and not story"
	$(THREADS) QT_QPA_PLATFORM=xcb xvfb-run -a -s "-screen 0 1600x1000x24" $(BIN)/pytest -q -m story

# Every pair of operators on every engine, in both layouts and exported; `make test` tries a sample.
conformance: setup
	$(THREADS) $(BIN)/pytest -q -n auto tests/conformance --all-pairs

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m app.checks.operator_reference docs/operators.md --check
	$(BIN)/python -m app.checks.texts_catalogue resources/languages/layerwright.pot --check

# Pages that are generated from the declarations.
docs: setup
	$(BIN)/python -m app.checks.operator_reference docs/operators.md

# What the window says, for translators.
texts: setup
	$(BIN)/python -m app.checks.texts_catalogue resources/languages/layerwright.pot

# One group or more: make bench ONLY="engines canvas" (the names are in tests/benchmarks).
bench: setup
	$(THREADS) QT_QPA_PLATFORM=offscreen $(BIN)/pytest -q --timeout 1800 --benchmark-enable --benchmark-only \
		--benchmark-quiet --benchmark-json=build/bench.json $(if $(ONLY),$(ONLY:%=tests/benchmarks/test_%.py),tests/benchmarks)

screenshots: setup
	xvfb-run -a -s "-screen 0 1600x1000x24" $(BIN)/python -m app.checks.screenshots docs/screenshots

# Any Python that has torch and numpy; nothing is installed.
gpu-check:
	$(PYTHON) -m app.checks.gpu_check

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
