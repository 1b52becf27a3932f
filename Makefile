# `make book` and `make test` do everything on a machine with python3 (3.11 or newer, with venv) and a package index.

PYTHON ?= python3
ARGS ?=
TESTS ?= tests
PORT ?= 8000
# All tests run two at a time; a chosen few in one process, where -s and --pdb work.
WORKERS ?= $(if $(filter tests,$(TESTS)),2,0)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BUILT := _build/html/index.html

# One thread: steady timings and the same sums on every machine; and only this checkout's kernels and settings.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export NUMBA_NUM_THREADS := 1
export JUPYTER_PREFER_ENV_PATH := 1
export IPYTHONDIR := $(CURDIR)/_build/.ipython
export PYTHONPATH :=

.PHONY: help setup pytorch-source book chapter notebooks test lab serve pdf reference bench gpu gpu-wheels fake-gpu clean distclean

help:
	@echo "make book             set up, run every chapter, build the site"
	@echo "make test             set up, run all tests (TESTS=tests/test_x.py ARGS='-x -k word')"
	@echo "make pytorch-source   bring PyTorch's C++ for the book to quote (FROM=git or FROM=debian: only from there)"
	@echo "make lab              the chapters in JupyterLab"
	@echo "make serve            the built site at http://localhost:$(PORT)"
	@echo "make pdf              the built site as one printable book, _build/readtorch.pdf (needs a Chromium)"
	@echo "make reference VERSION=x  try the book against another release of PyTorch: a report, _build/reference/x.md (CHAPTERS='fx hooks')"
	@echo "make chapter NAME=x   build book/x.md alone, with the same strict checks"
	@echo "make notebooks        run every notebook that the site offers, each in an empty folder (ARGS='autograd hooks' for some)"
	@echo "make bench            compare speed with PyTorch on this machine"
	@echo "make gpu              tests and benchmarks that need an NVIDIA GPU, with the system's python3"
	@echo "make gpu-wheels       bring what such a machine's python3 may lack, into _build/gpu-wheels (GPU_PYTHON=3.12)"
	@echo "make fake-gpu         the same tests, a chapter's GPU cells and the benchmarks on a fake GPU (needs gcc, no GPU)"
	@echo "make clean            remove what was built; make distclean: the environment too"

setup: $(READY)

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "readtorch needs Python 3.11 or newer: make PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	@touch $@

# A failed page must not count as up to date the next time: Sphinx would keep quiet about it.
STRICT = -W --keep-going || { rm -rf $(1)/_build/.doctrees; exit 1; }

# Files that no wheel ships. `make book` asks once, and builds without them where they cannot be had.
BRING := tools/pytorch_source.py _build/pytorch/source

pytorch-source:
	$(PYTHON) $(BRING) $(if $(FROM),--from $(FROM))

book: $(READY)
	@$(PYTHON) $(BRING) --once --seconds 60
	$(BIN)/jupyter-book build . $(call STRICT,.)
	@echo "The book is built: file://$(CURDIR)/$(BUILT)"

chapter: $(READY)
	@test -f book/$(NAME).md || { echo "make chapter NAME=x, where book/x.md is the chapter"; exit 1; }
	@mkdir -p _build/one/$(NAME)
	@printf 'format: jb-book\nroot: book/$(NAME)\n' > _build/one/$(NAME)/_toc.yml
	READTORCH_ONE_CHAPTER=1 $(BIN)/jupyter-book build . --toc _build/one/$(NAME)/_toc.yml --path-output _build/one/$(NAME) \
		$(call STRICT,_build/one/$(NAME))
	@echo "The chapter is built: file://$(CURDIR)/_build/one/$(NAME)/_build/html/book/$(NAME).html"

notebooks: $(READY)
	$(BIN)/python tools/run_notebooks.py $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(TESTS) $(ARGS)

lab: $(READY)
	@mkdir -p $(IPYTHONDIR)
	JUPYTER_CONFIG_PATH=$(CURDIR)/book/_lab $(BIN)/jupyter lab --notebook-dir=. book/index.md $(ARGS)

serve: $(BUILT)
	$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(dir $(BUILT))

pdf: $(BUILT)
	$(BIN)/python tools/pdf.py $(dir $(BUILT)) _build/readtorch.pdf

reference: $(BUILT)
	@test -n "$(VERSION)" || { echo "make reference VERSION=x, where x is a release of PyTorch, like 2.12.1"; exit 1; }
	$(BIN)/python tools/reference.py $(VERSION) $(CHAPTERS)

$(BUILT):
	$(MAKE) book

bench: $(READY)
	$(BIN)/python -m benchmarks $(ARGS)

# With the system's python3, which has CUDA's packages; nothing is installed into it.
gpu:
	$(PYTHON) tools/gpu.py $(ARGS)

# For a machine that reaches no package index: carry _build/gpu-wheels there, and `make gpu` finds it.
GPU_PYTHON ?= 3.12
GLIBC := 2_28 2_27 2_17
gpu-wheels:
	$(PYTHON) -m pip download --quiet --no-deps --only-binary=:all: --python-version $(GPU_PYTHON) --implementation cp \
		$(GLIBC:%=--platform manylinux_%_x86_64) --platform manylinux2014_x86_64 --dest _build/gpu-wheels -r tests/gpu/wheels.txt
	@ls _build/gpu-wheels

# The same there, without a GPU; then with threads reversed and shuffled, and every stream's work held back until somebody waits.
FAKE := $(BIN)/python -m tests.gpu $(BIN)/python
fake-gpu: export FAKE_GPU_DEVICES := 2
fake-gpu: $(READY)
	$(FAKE) tools/gpu.py --numprocesses 2 --dist load $(ARGS)
	FAKE_GPU_ORDER=reversed FAKE_GPU_HOLD=1 $(FAKE) -m pytest tests -m gpu --numprocesses 2 --dist load $(ARGS)
	FAKE_GPU_ORDER=shuffled $(FAKE) -m pytest tests -m gpu --numprocesses 2 --dist load $(ARGS)
	FAKE_GPU_RUN=0 $(FAKE) -m tests.gpu.chapters

clean:
	rm -rf _build build .pytest_cache .hypothesis
	find src book tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) src/*.egg-info
