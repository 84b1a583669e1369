# Everything runs from a virtual environment of its own; nothing is installed system-wide unless LAB_INSTALL=1 says so.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# What they measure must not follow from what runs beside them.
ALONE := tests/bench tests/e2e/test_demo.py

.PHONY: help demo test test-fast lint types bench bench-verdict faults lab clean
help:            ## This list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[demo]' --group dev
	touch $@

demo: $(VENV)/.ready ## A real llama.cpp server: one change kept, one reverted, then the history (about 3 minutes)
	$(BIN)/python -m changectl.demo

test: $(VENV)/.ready ## All that this machine allows; LAB_INSTALL=1 as root on Debian adds the lab's real hosts
	@ended=0; \
	$(PYTEST) $(ALONE) || ended=$$?; \
	$(PYTEST) -n 3 --durations=25 tests $(ALONE:%=--ignore=%) || ended=$$?; \
	exit $$ended

test-fast: $(VENV)/.ready ## Without the lab
	$(PYTEST) tests -m "not lab and not vllm"

lint: $(VENV)/.ready ## ruff, mypy --strict, ansible-lint (production)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/ansible-lint --offline playbooks

bench: $(VENV)/.ready ## Speed and size, side by side with rivals
	$(BIN)/python -m tests.bench

bench-verdict: $(VENV)/.ready ## How often verdicts are right, against floors and rivals (about 2 hours on 2 cores)
	$(BIN)/python -m tests.bench verdict

faults: $(VENV)/.ready ## Interrupt runs at every event and in every state, here and on the lab's hosts (about 60 minutes)
	$(BIN)/python -m tests.faults

lab: $(VENV)/.ready ## Boot the lab's hosts and keep them until Ctrl-C
	$(BIN)/python -m tests.lab.harness up

clean:           ## Remove what make made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache demo-work
