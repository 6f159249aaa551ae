# Everything here works on a machine that has only Python 3.11 or newer and make.
#   make demo    solve the shipped instance to proven optimality
#   make test    run the test suite, but for what is slow
#   make slow    run the slow tests: what proves for long, and the other cases of long tables
#   make check   ruff, mypy and the doctests
#   make docs    build the manual in docs/_build/html, and run every block of code in it
#   make clean   remove the virtual environment and what was built
# PYTHON=/path/to/python chooses the interpreter; otherwise the newest suitable one on the PATH is taken.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CANDIDATES := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python

# Bytecode is kept, whatever the shell says: hundreds of tests start a process, and pytest rewrites every test file.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test slow check docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	@$(BIN)/mipfs demo

test: $(VENV)/installed-dev
	$(BIN)/python -m tests.compile
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow"

slow: $(VENV)/installed-dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "slow and not every" --ignore=tests/docs

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/mypy & typed=$$!; \
	$(BIN)/python -m pytest -q --doctest-modules mipfs; tested=$$?; \
	wait $$typed && exit $$tested

docs: $(VENV)/installed-docs
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html & built=$$!; \
	$(BIN)/python -m pytest -q -n auto --dist worksteal tests/docs; tested=$$?; \
	wait $$built && exit $$tested
	@echo "docs/_build/html/index.html"

clean:
	rm -rf docs/_build docs/formulations.md docs/notebooks $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache

# A candidate counts only if it runs (a pyenv shim may be there without an interpreter behind it).
$(BIN)/python:
	@for python in $(CANDIDATES); do \
	    if "$$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        echo "making $(VENV) with $$("$$python" --version)"; \
	        exec "$$python" -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo "mipfs needs Python 3.11 or newer with its venv module (Debian: python3-venv); none was found among:" \
	     "$(strip $(CANDIDATES)). Install one, or say where it is: make demo PYTHON=/path/to/python" >&2; exit 1

# The stamps make a second run start at once; a changed pyproject.toml installs again.
$(VENV)/installed: pyproject.toml | $(BIN)/python
	@echo "installing mipfs into $(VENV) (a few minutes on a cold cache)"
	@$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	@echo "installing mipfs and its development tools into $(VENV) (a few minutes on a cold cache)"
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-docs: pyproject.toml $(VENV)/installed-dev | $(BIN)/python
	@echo "installing what the manual needs into $(VENV)"
	@$(PIP) install --quiet --editable '.[dev,docs]'
	@touch $@ $(VENV)/installed $(VENV)/installed-dev
