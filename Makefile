# make setup    a virtual environment with MindSpore for CPUs and the tools of development
# make demo     convert the CIFAR-10 program, train it on two ranks, compare with one card
# make test     everything that has to hold: lint, types, all tests
# make lint | types | unit | bench | clean
#
# VENV=path     another virtual environment than .venv
# PYTHON=name   another Python to make it with than the first suitable one

VENV = .venv
PYTHON =

BIN = $(VENV)/bin
STAMP = $(VENV)/.ms-distify-installed
# Of the Pythons that MindSpore has wheels for, the ones that most of its releases have them for come first.
PYTHONS = $(or $(PYTHON),python3.11 python3.10 python3.12 python3.9 python3)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_ROOT_USER_ACTION = ignore
# With AVX-512, MindSpore's convolutions end up in a reference kernel that takes ten times as long.
export ONEDNN_MAX_CPU_ISA ?= AVX2

.PHONY: help setup demo lint types unit test bench clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

setup: $(STAMP)
	@:

$(STAMP): pyproject.toml
	@set -e; \
	if ! "$(BIN)/python" -c 'import pip' 2>/dev/null; then \
	    right='import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 12))'; \
	    python=; \
	    for name in $(PYTHONS); do \
	        if "$$name" -c "$$right" 2>/dev/null; then \
	            python=$$name; \
	            if "$$name" -c 'import ensurepip, venv' 2>/dev/null; then break; fi; \
	        fi; \
	    done; \
	    if [ -z "$$python" ]; then \
	        echo 'make: none of these is a Python that MindSpore supports (3.9 to 3.12): $(PYTHONS)' >&2; \
	        echo 'make: install one, or name one: make PYTHON=/path/to/python3.11' >&2; \
	        exit 1; \
	    fi; \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    if "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	        "$$python" -m venv "$(VENV)"; \
	    elif "$$python" -m pip install --quiet --target "$(VENV).bootstrap" virtualenv; then \
	        PYTHONPATH="$(VENV).bootstrap" "$$python" -m virtualenv --quiet "$(VENV)"; \
	        rm -rf "$(VENV).bootstrap"; \
	    else \
	        rm -rf "$(VENV).bootstrap"; \
	        echo "make: $$python can make no virtual environments; on Debian: apt-get install python3-venv" >&2; \
	        exit 1; \
	    fi; \
	    touch "$(VENV)/.made-by-make"; \
	fi; \
	echo "installing MindSpore and the tools into $(VENV) (some minutes the first time)"; \
	"$(BIN)/python" -m pip install --quiet --upgrade pip; \
	"$(BIN)/python" -m pip install --quiet -e '.[cpu,dev]'; \
	touch "$@"

demo: setup
	@"$(BIN)/python" fixtures/cifar10/demo.py demo

lint: setup
	@"$(BIN)/ruff" check --quiet .
	@"$(BIN)/ruff" format --quiet --check .

types: setup
	@"$(BIN)/mypy"
	@MYPYPATH=ms_distify/verify/watch "$(BIN)/mypy" -m sitecustomize -p ms_distify_watch

unit: setup
	@"$(BIN)/python" -m pytest -q -n auto -m 'not e2e'

# Two files of tests with ranks at a time: while one starts up, the other trains.
test: setup lint types unit
	@"$(BIN)/python" -m pytest -n 2 --dist loadfile -m e2e

bench: setup
	@"$(BIN)/python" benchmarks/parse_ratio.py

# A virtual environment that was there before stays.
clean:
	@rm -rf demo .hypothesis .mypy_cache .pytest_cache .ruff_cache "$(VENV).bootstrap"
	@if [ -e "$(VENV)/.made-by-make" ]; then rm -rf "$(VENV)"; else rm -f "$(STAMP)"; fi
	@find . \( -path './.*' -o -path './$(VENV)' \) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +
