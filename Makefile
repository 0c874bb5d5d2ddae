# `make demo` compiles and runs a ResNet-18; `make test` runs every check. Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test format lint types lit pytest docs setup

demo: setup
	$(BIN)/python examples/resnet18.py

test: format lint types lit pytest

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt scripts/setup.sh
	scripts/setup.sh $(PYTHON)
	touch $@

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

lit: setup
	$(BIN)/lit -q lit_tests

pytest: setup lit
	$(BIN)/pytest -n auto

docs: setup
	$(BIN)/python -m pipeline.tools.docs
