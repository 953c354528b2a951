# Needs only make and a Python >= 3.11; everything else goes into .venv, in the versions of
# constraints.txt. Reinstalls when pyproject.toml, constraints.txt or the list of packaged files
# changes: the install is a strict editable one, a tree of links, so edits show at once and added or
# removed files do not.
#
#   make prove ARGS='--ranks 4'      arguments for the tool
#   make test ARGS='-k wheel'        arguments for pytest
#   make test PYTHON=python3.12      this interpreter and no other
#
# make itself turns every failure into exit code 2 and prints the tool's own code in its last line;
# a script that needs the code calls .venv/bin/mc2proof.

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTHON ?=
LOCK_PYTHON ?= python3.11
CANDIDATES := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
IS_SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))
FOLDERS := cli protocol checker fuzz
LIST_PACKAGED := find $(FOLDERS) -name __pycache__ -prune -o -type f -print | LC_ALL=C sort

# Under build/, beside the tree of links: losing either build/ or .venv means a new install.
PACKAGED := build/.packaged-files
FOR_USE := build/.installed
FOR_DEV := build/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help prove test test-long lint bench lock clean FORCE
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

prove: $(FOR_USE) ## prove the built-in protocol (ARGS: what `mc2proof prove` takes)
	@$(BIN)/mc2proof prove $(ARGS)

test: $(FOR_DEV) ## run the tests, without those marked long
	$(BIN)/pytest --numprocesses auto --dist worksteal $(ARGS)

test-long: $(FOR_DEV) ## run all tests
	$(BIN)/pytest --numprocesses auto --dist worksteal -m "long or not long" $(ARGS)

lint: $(FOR_DEV) ## check style, format and types
	@failed=; \
	for check in 'ruff check .' 'ruff format --check .' 'mypy --strict -p mc2proof'; do \
	  echo "$$check"; \
	  $(BIN)/$$check || failed="$$failed '$$check'"; \
	done; \
	[ -z "$$failed" ] || { echo "mc2proof: failed:$$failed" >&2; exit 1; }

bench: $(FOR_DEV) ## run the benchmarks
	$(BIN)/python benchmarks/run.py $(ARGS)

lock: ## write constraints.txt anew, from the newest versions that Python 3.11 takes
	@$(LOCK_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "make lock: needs Python 3.11, the lowest supported, so that every pin installs there (LOCK_PYTHON=...)" >&2; \
	  exit 1; }
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	$(LOCK_PYTHON) -m venv "$$scratch/venv" && \
	pip="$$scratch/venv/bin/python -m pip --disable-pip-version-check" && \
	$$pip install --quiet --upgrade setuptools && \
	$$pip install --quiet --upgrade --upgrade-strategy eager --no-build-isolation -e '.[dev]' && \
	{ echo "# Exact versions of everything that '.[dev]' installs; CI and the Makefile install with them." && \
	  echo "# Regenerate with: make lock" && \
	  $$pip freeze --all --exclude pip --exclude-editable; } > "$$scratch/constraints.txt" && \
	cp "$$scratch/constraints.txt" constraints.txt

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(FOLDERS) tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The first candidate that is new enough and can make environments. A name on PATH proves nothing
# (version managers put stubs there), so each is run.
$(VENV)/pyvenv.cfg:
	@without=; \
	for python in $(CANDIDATES); do \
	  "$$python" -c '$(IS_SUPPORTED)' 2>/dev/null || continue; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { without=$$python; continue; }; \
	  "$$python" -m venv $(VENV) && exit 0; \
	  rm -rf $(VENV); \
	  echo "mc2proof: '$$python -m venv $(VENV)' failed" >&2; \
	  exit 1; \
	done; \
	if [ -n "$$without" ]; then \
	  echo "mc2proof: $$without has no ensurepip, so it cannot make $(VENV); install it (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
	else \
	  echo "mc2proof: needs Python >= 3.11; none found among: $(CANDIDATES) (name one with PYTHON=...)" >&2; \
	fi; \
	exit 1

# Rewritten only when the list differs, so its time says when files were last added or removed.
$(PACKAGED): FORCE
	@mkdir -p build
	@$(LIST_PACKAGED) | cmp -s - $@ || $(LIST_PACKAGED) > $@

$(FOR_USE) $(FOR_DEV): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt $(PACKAGED)
	@$(BIN)/python -c '$(IS_SUPPORTED)' 2>/dev/null || { \
	  echo "mc2proof: $(VENV) is broken or older than Python 3.11; run: make clean" >&2; exit 1; }
	@echo "mc2proof: installing into $(VENV)"
	@$(PIP_INSTALL) --constraint constraints.txt setuptools
	@$(PIP_INSTALL) --constraint constraints.txt --no-build-isolation \
	  --config-settings editable_mode=strict --editable '.$(if $(filter $(FOR_DEV),$@),[dev])'
	@touch $(FOR_USE) $@

FORCE:
