# Two commands on a fresh machine: make run, make test. Everything else is a convenience.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(firstword $(shell for p in python3 python python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p; done))
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := instructor,lab,vision,gpu,data,frames,profile,serve,postgres,canvas,ao,dev
SYSTEM_PACKAGES := bubblewrap libseccomp2 g++ python3-dev
JOBS ?= 2
INSTALL = $(BIN)/python -m pip install --quiet --retries 8 --constraint constraints.txt --editable '.[$(EXTRAS)]'
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests start some thousand processes; without compiled files each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup system run checked test test-all test-install test-gpu docs test-docs dist build check-build lint types clean lock
help: ## Print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready $(VENV)/.system ## Create the environment in .venv from pyproject.toml and constraints.txt

$(VENV)/.ready: pyproject.toml constraints.txt
	@if [ -z "$(PYTHON)" ]; then \
	  echo "no python of version 3.11 or newer was found"; \
	  echo "  why:  torch and the notebooks need it"; \
	  echo "  next: install one, or give its path: make PYTHON=/path/to/python3.12 setup"; exit 2; fi
	@if [ ! -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); scripts/system_packages python3-venv; $(PYTHON) -m venv $(VENV); }; fi
	@echo "Installing into $(VENV) (about 5 GB with torch; this takes several minutes the first time)"
	@$(INSTALL) || { echo "the installation failed; trying again"; $(INSTALL); }
	@touch $@

$(VENV)/.system: scripts/system_packages $(VENV)/.ready
	@scripts/system_packages $(SYSTEM_PACKAGES)
	@touch $@

system: ## Install only the system packages (sudo make system, if make setup does not run as root)
	@scripts/system_packages $(SYSTEM_PACKAGES)

run: setup ## Build the notebooks, run every solution notebook, and print a table
	@$(BIN)/edl-labs build
	@$(BIN)/edl-labs run

checked: setup # side by side: each of them keeps one core busy
	@$(MAKE) --no-print-directory --output-sync=target --jobs 2 lint types check-build

test: checked ## Check lint, types and generated files, and run the quick tests (under 10 minutes)
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow and not browser" -q

test-all: checked docs ## Run all tests: fuzzing, many seeds, wheels, browsers, the site
	@scripts/system_packages chromium npm postgresql
	@$(BIN)/python -m pip install --quiet --retries 8 --constraint constraints.txt --editable '.[$(EXTRAS),cluster,docs]'
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q --timeout 1800 --hypothesis-profile new_draws
	@$(BIN)/edl-labs test --seeds 200

test-install: setup ## Run every lab in a fresh environment with only the wheel and [lab], as students install it
	@$(BIN)/python -m pytest tests/course/test_student_install.py -q

test-gpu: setup ## Run the tests that need an accelerator; each skipped test gives its reason
	@$(BIN)/python -m pytest tests/gpu -q -m gpu -r fE

docs: setup ## Build the site in build/site/html: pages, labs, gallery, API (several minutes the first time)
	@scripts/system_packages npm
	@$(BIN)/python -m pip install --quiet --retries 8 --constraint constraints.txt --editable '.[$(EXTRAS),docs]'
	@$(BIN)/python scripts/build_site.py

test-docs: setup ## Test the built site in a real browser: search, pictures, explorers, no requests to other hosts
	@scripts/system_packages chromium npm
	@$(BIN)/python -m pytest tests/browser/test_site.py -q

dist: setup ## Build and check the wheel and the sdist of a release in dist/
	@$(BIN)/python scripts/release_files.py

lint: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: setup
	@$(BIN)/mypy --no-error-summary

build: setup ## Build notebooks, goldens and the table of labs from solutions/
	@$(BIN)/edl-labs build

check-build: setup
	@$(BIN)/edl-labs build --check

lock: ## Write constraints.txt again from the packages that are installed in .venv
	@{ sed -n '/^#/p' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable | sort -f; } > constraints.new
	@mv constraints.new constraints.txt

clean: ## Remove generated files that are not committed
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache
