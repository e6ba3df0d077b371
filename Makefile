# Everything needs only Python >= 3.11 with its venv module, and make; .venv is made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Packages for the tests of backend="torch", which run wherever PyTorch is installed in $(VENV). To install it, call
# make test TORCH='torch==2.13.0 triton'. On Linux, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu chooses the
# small build without CUDA.
TORCH ?=
# uv installs in seconds what takes pip minutes. It is used if it is there.
UV ?= $(shell command -v uv)
EDITABLE := -e '.[dev,docs]' -e ./paper
DEV := $(VENV)/dev$(if $(TORCH),-torch)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Python compiles the modules that are imported, which are few of those that are installed.
export PIP_NO_COMPILE := 1
# Python keeps what it has compiled, even if the environment forbids it, because the tests start many processes. Each would
# spend five seconds on compiling again.
unexport PYTHONDONTWRITEBYTECODE
# Tests run in several processes. Without this, idle OpenMP threads of one process slow the others down by a factor of six.
export OMP_WAIT_POLICY := PASSIVE
# Compiled kernels are kept between runs, beside the packages that compiled them.
CACHE := $(abspath $(VENV))/numba
PYTEST := SCIPY_ARRAY_API=1 NUMBA_CACHE_DIR=$(CACHE) $(BIN)/python -m pytest -n auto --dist worksteal -q
REPRODUCE := NUMBA_CACHE_DIR=$(CACHE) $(BIN)/drsne reproduce --quick

.PHONY: demo check test lint format types fast unit nightly paper quick wheel minimum docs tutorials clean help

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit("drsne needs Python >= 3.11: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/base: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[plot]'
	touch $@

# One call for everything, because every call resolves all dependencies and builds the package. pip fetches PyTorch also
# for uv, which does not know pip's settings, where the build without CUDA may be.
$(DEV): $(VENV)/made pyproject.toml paper/pyproject.toml
	mkdir -p $(VENV)/wheels
	{ [ -n "$(UV)" ] && \
	  { [ -z "$(TORCH)" ] || $(BIN)/python -m pip download --quiet --no-deps --dest $(VENV)/wheels $(TORCH); } && \
	  $(UV) pip install --quiet --python $(BIN)/python $(EDITABLE) $$(find $(VENV)/wheels -name '*.whl'); } || \
	  $(BIN)/python -m pip install --quiet $(EDITABLE) $(TORCH)
	rm -r $(VENV)/wheels
	touch $@ $(VENV)/base $(VENV)/docs

$(VENV)/docs: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@

demo: $(VENV)/base  ## embed the Digits data, write demo/
	$(BIN)/python examples/digits.py demo

check: lint types fast  ## lint, types and the fast tests: run it while you work

test: $(DEV)  ## lint, types, all tests, the paper, the built wheel and the documentation
	@$(MAKE) --jobs=2 lint types wheel docs
	@$(MAKE) unit paper

lint: $(DEV)  ## check style, which module imports which, and that all imported packages are declared
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry src

format: $(DEV)  ## fix formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(DEV)  ## check types
	$(BIN)/mypy

fast: $(DEV)  ## run the tests that are not marked slow
	$(PYTEST) -m "not slow"

unit: $(DEV)  ## run all tests
	$(PYTEST)

nightly: $(DEV)  ## run all tests, also those that take turns by day
	DRSNE_SEEDS=all $(PYTEST)

paper: $(DEV)  ## test the paper's studies, unless nothing has changed since they passed
	$(BIN)/python paper/passed.py check || \
	  { $(PYTEST) paper && $(MAKE) quick && $(BIN)/python paper/passed.py write; }

quick: $(DEV)  ## run the studies of the paper with few small runs, from the start
	rm -rf $(VENV)/quick
	$(REPRODUCE) theory --folder $(VENV)/quick/theory > /dev/null
	for study in main tradeoff; do \
	  $(REPRODUCE) $$study --seeds 0 --datasets digits --folder $(VENV)/quick/$$study > /dev/null || exit 1; done
	for study in ablations anomaly runtime; do \
	  $(REPRODUCE) $$study --seeds 0 --folder $(VENV)/quick/$$study > /dev/null || exit 1; done
	@echo "quick studies: $$(cat $(VENV)/quick/*/rows.jsonl | wc -l) rows"
	@! grep -h '"error": "' $(VENV)/quick/*/rows.jsonl

# The fit is that of a few points, for which compilation would take longer.
wheel: $(DEV)  ## build the wheel, and use it instead of the source
	rm -rf dist $(VENV)-wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . > /dev/null
	$(BIN)/python -m zipfile -e dist/*.whl $(VENV)-wheel
	cd dist && NUMBA_DISABLE_JIT=1 PYTHONPATH=$(abspath $(VENV)-wheel) $(abspath $(BIN))/python -c 'import drsne, numpy; \
	  Y = drsne.DRSNE(perplexity=3, density_neighbors=3, max_iter=20).fit_transform(numpy.random.rand(20, 4)); \
	  assert Y.shape == (20, 2) and "$(VENV)-wheel" in drsne.__file__, drsne.__file__; \
	  print("wheel: drsne", drsne.__version__, "imported and fitted")'

minimum:  ## run the fast tests with the oldest dependencies, in an environment of its own
	$(PYTHON) -m venv $(VENV)-minimum
	$(VENV)-minimum/bin/python -m pip install --quiet -e '.[dev]' -c .ci/minimum.txt
	NUMBA_CACHE_DIR=$(abspath $(VENV)-minimum)/numba $(VENV)-minimum/bin/python -m pytest -n auto -q -m "not slow"

docs: $(VENV)/docs  ## build the documentation into site/
	$(BIN)/python -m mkdocs build --strict
	@echo "Wrote site/index.html"

tutorials: $(DEV)  ## execute the tutorial notebooks and store their outputs
	NUMBA_CACHE_DIR=$(CACHE) $(BIN)/python docs/tutorials/run.py

clean:  ## remove everything that was made
	rm -rf $(VENV) $(VENV)-wheel $(VENV)-minimum $(VENV)-uv dist site demo .mypy_cache .ruff_cache
