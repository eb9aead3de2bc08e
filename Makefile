# `make` lists the targets. Needs GNU make 3.81 or newer and Python 3.11 or newer, nothing else.
#   make chat PYTHON=python3.12          another interpreter
#   make test ARGS='-k tokens -x'        arguments for the command behind a target
PYTHON ?= python3
ARGS =
# The extra with llama.cpp. `make demo EXTRA=` installs without it, on a platform that has no wheel of it.
EXTRA = local
# The interpreters that one set of pins has to fit, the oldest first.
PYTHONS = python3.11 python3.12 python3.13

VENV = .venv
BIN = $(VENV)/bin
# The stamps carry the Python version: another PYTHON makes a new environment. Paths are relative, so that a checkout may have spaces in its own.
VERSION := $(shell '$(PYTHON)' -c 'import platform; print(platform.python_version())' 2>/dev/null)
CREATED = $(VENV)/.created-$(VERSION)
RUNS = $(VENV)/.runs-$(VERSION)-$(EXTRA)
DEVELOPS = $(VENV)/.develops-$(VERSION)
# As variables, pins reach the isolated environments in which pip builds what comes as source, too.
INSTALL = PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/python -m pip install --quiet --only-binary xllamacpp

.PHONY: help venv chat demo test soak lint types bench backends up down pins clean
.NOTPARALLEL:

help: ## list the targets (the default)
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 14

venv: $(RUNS) ## make .venv and install HoloDeck with pinned versions

chat: $(RUNS) ## talk to a small real model on this machine
	@$(BIN)/holodeck models pull smollm2
	@$(BIN)/holodeck chat examples/quickstart/agent.yaml $(ARGS)

demo: $(RUNS) ## watch an agent with tools, and its spans; needs no model
	@$(BIN)/holodeck chat examples/support/agent.yaml --verbose \
		--message 'Where is order 1042?' \
		--message 'Is the desk lamp in stock, and what does shipping to Norway cost?' \
		--message 'Track the parcel of order 1042' $(ARGS)

test: $(DEVELOPS) ## run the whole test suite
	@$(BIN)/holodeck models pull smollm2 || echo 'make: the model could not be fetched: tests that talk to it are skipped' >&2
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(ARGS)

soak: $(DEVELOPS) ## run the long form of the reliability tests: many kills, long outages
	@HOLODECK_SOAK=1 $(BIN)/python -m pytest tests/reliability $(ARGS)

lint: $(DEVELOPS) ## check style, formatting and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

types: $(DEVELOPS) ## check types
	@$(BIN)/mypy

bench: $(DEVELOPS) ## measure HoloDeck beside its peers; ARGS=--quick: alone, in a minute
	@$(BIN)/python benchmarks/bench.py $(ARGS)

backends: ## build Jaeger and a collector from their Go modules, for machines without containers
	@'$(PYTHON)' scripts/backends.py build

up: backends ## start Jaeger and the collector, and wait until they are healthy
	@'$(PYTHON)' scripts/backends.py up

down: ## stop Jaeger and the collector; what they keep stays
	@'$(PYTHON)' scripts/backends.py down

pins: ## write constraints.txt anew, with each of PYTHONS
	@'$(PYTHON)' scripts/pin.py $(PYTHONS)

clean: ## remove .venv and everything else that was made here
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(CREATED):
	@test -n '$(VERSION)' || { echo "make: there is no '$(PYTHON)' here: install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: '$(PYTHON)' is Python $(VERSION), and HoloDeck needs 3.11 or newer: name another one: make PYTHON=python3.12" >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make: '$(PYTHON)' cannot make environments: install its venv package (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	@'$(PYTHON)' -m venv --clear $(VENV)
	@touch $@

$(RUNS): $(CREATED) pyproject.toml constraints.txt
	@echo 'Installing HoloDeck into $(VENV); the first time this takes about a minute.'
	@$(INSTALL) --editable '$(if $(EXTRA),.[$(EXTRA)],.)'
	@$(BIN)/python -m compileall -q src
	@touch $@

$(DEVELOPS): $(CREATED) pyproject.toml constraints.txt
	@echo 'Installing HoloDeck and its development tools into $(VENV); the first time this takes about a minute.'
	@$(INSTALL) --editable '.[local,dev]'
	@$(BIN)/python -m compileall -q src
	@touch $(VENV)/.runs-$(VERSION)-local $@
