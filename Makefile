# Everything needs only Python 3.11+, git and make; the rest is installed into .venv on the first call.
PYTHON ?= python3
ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
else
BIN := .venv/bin
endif
# constraints.txt pins every package, also those that builds use
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-full check format gpu-check clean

demo: .venv/.base
	$(BIN)/python -m jumok demo

test: .venv/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not full"

test-full: .venv/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

check: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict --no-warn-return-any src

format: .venv/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# On a machine with a GPU (its own Python with PyTorch): the paths that only exist there
gpu-check:
	PYTHONPATH="src:$$PYTHONPATH" $(PYTHON) -m pytest -p no:cacheprovider tests/gpu

.venv/.base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.test: .venv/.base
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
