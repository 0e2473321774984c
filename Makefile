# Everything runs in .venv, which each target makes for itself: Python 3.11+ and make are enough.
PYTHON ?= python3
BIN    := .venv/bin
STAMP  := .venv/.installed
# More workers than this gain little: the kernels are themselves parallel.
JOBS   ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs bench pyepo recompile clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## run the demonstration; its pictures go to out/demo
	$(BIN)/revealed demo --out out/demo

test: lint ## check style and types, then run the tests (ARGS="-k name" to choose some)
	$(BIN)/pytest -n $(JOBS) $(ARGS)

lint: $(STAMP) ## check style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

format: $(STAMP) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## build the documentation into out/docs; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q -a -d out/docs-cache docs out/docs
	@echo "Open out/docs/index.html"

bench: $(STAMP) ## time the projection against its rivals; figures go to out/bench
	$(BIN)/revealed bench projection --out out/bench/projection.json $(ARGS)

pyepo: ## make .venv-pyepo, the environment of the rival library, for `revealed bench epochs`
	experiments/pyepo/setup

recompile: ## forget compiled kernels (numba does not notice a change in a function they call)
	find src -name '*.nb[ic]' -delete

clean: ## remove the environment, caches and outputs
	rm -rf .venv .venv-pyepo out .pytest_cache .ruff_cache .hypothesis
	rm -rf docs/generated
	find src experiments tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed again whenever what is asked for changes; the code itself is used in place.
$(STAMP): pyproject.toml experiments/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("revealed needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@echo "Setting up .venv (once; a minute or two) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e './experiments[sweeps]'
	@touch $(STAMP)
