# Small commands. `make run` and `make test` do all the set-up on a fresh machine.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
THREADS := OMP_NUM_THREADS=2 MKL_NUM_THREADS=2
ALONE := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
PARALLEL := -n auto --dist worksteal
# Tests start hundreds of processes; without bytecode on disk each one compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test conformance interop sizes mutants lint bench screenshots docs texts gpu-check clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt .ci/packages
	.ci/packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

run: setup
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then exec $(BIN)/layerwright; \
	else echo "No display: running the tour instead."; $(BIN)/layerwright tour build/tour; fi

# The run without Qt blocks it, so that everything but the window is shown to work without it. `worksteal` keeps most files in one
# process, where their tests share an engine, and goes on after a crash (`loadfile` of pytest-xdist 3.8 then waits forever).
# Windows are offscreen, so processes do not share a display; the story has a real one. It is played next to the run without Qt,
# which is nice to it, and shown after it. Before that run one process compiles the modules of its tests: otherwise each of them
# does so for itself, which took 20 seconds of each.
test: setup
	@mkdir -p build; $(THREADS) QT_QPA_PLATFORM=xcb xvfb-run -a -s "-screen 0 1600x1000x24" $(BIN)/pytest -q -m story >build/story.log 2>&1 & \
	story=$$!; \
	$(ALONE) LAYERWRIGHT_BLOCK=PySide6,shiboken6,NodeGraphQt,Qt $(BIN)/pytest -qq --collect-only -p no:pytest-qt -m "not gui" >/dev/null 2>&1; \
	$(ALONE) nice $(BIN)/pytest -qq --collect-only -m gui >/dev/null 2>&1 & \
	$(ALONE) LAYERWRIGHT_BLOCK=PySide6,shiboken6,NodeGraphQt,Qt nice $(BIN)/pytest -q $(PARALLEL) -p no:pytest-qt -m "not gui"; \
	failed=$$?; wait $$story || failed=1; wait; cat build/story.log; exit $$failed
	$(ALONE) QT_QPA_PLATFORM=offscreen $(BIN)/pytest -q $(PARALLEL) -m "gui and not story"

# Every pair of operators, triples of layers that engines merge and random networks on every engine, in both layouts and exported, and
# random chains in tiles; `make test` tries a sample. Other networks and chains: make conformance SEED=50000
conformance: setup
	$(ALONE) $(BIN)/pytest -q -n auto --timeout 1800 tests/conformance --all-pairs --networks 10000 --tiled-runs 3500 \
		--first-seed $(or $(SEED),0)

# The backend tests of the onnx package: imported, run and exported again; `make test` tries a sample.
interop: setup
	$(THREADS) $(BIN)/python -m app.checks.interop docs/records/interop.md
	$(THREADS) $(BIN)/python -m app.checks.torch_interop docs/records/interop_pytorch.md

# Rules about input sizes against torch at every size up to 160 x 160.
sizes: setup
	$(ALONE) nice $(BIN)/python tests/conformance/size_record.py docs/records/sizes.md

# Plants mistakes in a copy of the sources for ten minutes and prints those that no test finds: make mutants ONLY=designer/graph
mutants: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt coverage
	$(BIN)/python tests/mutants.py $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

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
