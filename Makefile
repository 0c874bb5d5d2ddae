# `make demo` compiles and runs a ResNet-18; `make test` runs every check. Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

# Images of containers forbid Python to keep bytecode. Every process that a test starts would compile 600 modules anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: gpu-check bench bench-language bench-shapes bench-train demo test test-all test-quick checks format lint types lit pytest docs setup

demo: setup
	$(BIN)/python examples/resnet18.py

test: checks pytest

# All but pytest, side by side, each with its output in one piece: pytest's summary comes last.
checks: setup
	$(MAKE) --no-print-directory -j2 --output-sync=target format lint types lit

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt scripts/setup.sh
	scripts/setup.sh $(PYTHON)
	touch $@

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy

lit: setup
	$(BIN)/lit -q lit_tests

# Of tests with many cases some, others with each day that has a commit; all of them have had their turn after five.
TURN ?= $(shell git log -1 --format=%cd --date=format:%j)
pytest: setup
	$(BIN)/pytest -n auto --dist worksteal --turn=$(or $(TURN),0)

# The same with all cases: hours on two processors.
test-all: checks
	$(BIN)/pytest -n auto --dist worksteal

# For the daily round: what tests/quick.txt names is of every kind, and takes a minute or two.
test-quick: checks
	$(BIN)/pytest -n auto --dist worksteal @tests/quick.txt

# For a machine with an NVIDIA GPU: kernels and models against PyTorch, times into docs/performance.md. See docs/gpu.md.
GPU_TARGET ?= cuda:sm_80
gpu-check: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[compile,cuda,cuda-compiler,cublas]'
	$(BIN)/python scripts/gpu_check.py build build/gpu-check --target $(GPU_TARGET)
	$(BIN)/python scripts/gpu_check.py run build/gpu-check --write

# Against PyTorch and the peers that pip installs; docs/performance.md gets the tables. For a quiet machine.
bench: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[compile,bench]'
	rm -f build/benchmarks.jsonl build/bf16.jsonl
	$(BIN)/python benchmarks/compare.py $(BENCH) --write
	$(BIN)/python benchmarks/compare.py $(BENCH) --write --no-warm --malloc-tuned \
	  W6a_int W6b_int_inplace W6c_float W6d_float_inplace W7a_softmax W7b_layernorm
	$(BIN)/python benchmarks/compare.py $(BENCH) --write --no-warm --threads 2 --contestants pipeline \
	  W4_ffn W5_encoder W8a_resnet18 W8c_bert
	$(BIN)/python benchmarks/compare.py $(BENCH) --write --no-warm --output build/bf16.jsonl \
	  --contestants eager,pipeline,eager-bf16,pipeline-of-bf16,pipeline-bf16 \
	  W4_ffn W5_encoder W8a_resnet18 W8c_bert W8e_mlp

# Many shapes of every kind of op, and whole models; an hour on two quiet processors, `SWEEP=--sample` ten minutes. It
# goes on where it was stopped: what build/shapes.jsonl has is not run again.
bench-shapes: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[compile,bench,dev]'
	$(BIN)/python benchmarks/sweep.py $(SWEEP) --write

# Steps of training on one thread and on two; docs/training.md gets the tables. For a quiet machine.
bench-train: setup
	rm -f build/training.jsonl
	$(BIN)/python benchmarks/compare.py --training $(BENCH) --write
	$(BIN)/python benchmarks/compare.py --training $(BENCH) --write --threads 2

# Steps and prompts of a language model with weights of several kinds; docs/generation.md gets the tables. For a quiet
# machine. llama.cpp is built from source; optimum-intel has transformers of its own, and onnxruntime-genai an ONNX Runtime,
# so that they run where `BENCH=--python=openvino,onnxruntime-genai=/some/venv/bin/python` has them.
bench-language: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[compile,bench,bench-language]'
	rm -f build/language.jsonl
	$(BIN)/python benchmarks/compare.py --language $(BENCH) --no-warm --write
	$(BIN)/python benchmarks/compare.py --language $(BENCH) --no-warm --write --threads 2

# The reference of passes, sample reports in build/reports, then the site, in build/site; a link that leads nowhere is
# an error.
docs: setup
	$(BIN)/python -m pipeline.tools.docs
	$(BIN)/python scripts/sample_reports.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
