# Every command that a person or CI needs. `make` alone lists them.
PYTHON     ?= python3
VENV       := .venv
BIN        := $(VENV)/bin
UV         := $(BIN)/uv
UV_VERSION := 0.13.8
COMMAND    := attr attrs cyclopts msgspec nats rich typing_extensions.py yaml
STAMP      := $(VENV)/.installed
COMPILED   := $(VENV)/.compiled
MEMBERS    := $(patsubst %/pyproject.toml,%,$(sort $(wildcard libs/*/pyproject.toml services/*/pyproject.toml)))
PROJECTS   := $(addsuffix /pyproject.toml,$(MEMBERS))
NAMES      := $(addprefix fairlead-,$(notdir $(MEMBERS)))
CODE       := $(MEMBERS) tests bench deploy
WORKERS    ?= 7
FLOOR      := 95
TEST       := $(BIN)/python -m pytest -n $(WORKERS) -m "not deep" --durations 25 --durations-min 5
NIGHTLY    := deep faults chaos abuse coverage audit
DEEP       := HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest --timeout 1800

# Bytecode is kept, out of the sources, also where the environment says otherwise: each service that a test starts would
# compile two thousand modules anew (3.3 s of CPU instead of 1.2).
# What `fairlead` imports is compiled by setup, beside the sources: a command typed into a shell that keeps no bytecode would
# do it anew each time (0.7 s of CPU instead of 0.3).
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX     := $(CURDIR)/$(VENV)/bytecode

.DEFAULT_GOAL := help
.PHONY: help setup demo test tests check lint types deep deep-policy deep-others faults coverage audit nightly chaos rollback abuse bytes images-check bench pictures dashboards settings schemas words format lock clean lab-kube lab-slurm lab-down lab-build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## install everything into .venv, where `fairlead` then is
	@echo 'ready: . .venv/bin/activate; fairlead demo'

$(STAMP): requirements.lock $(PROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit("Fairlead needs Python 3.13: make setup PYTHON=/path/to/python3.13" if sys.version_info < (3, 13) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(UV) || $(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation $(addprefix -e ,$(MEMBERS))
	$(UV) pip check --quiet --python $(BIN)/python
	@PYTHONPYCACHEPREFIX= $(BIN)/python -m compileall -q libs/*/src services/cli/src \
	  $(foreach one,$(COMMAND),$(VENV)/lib/python3.*/site-packages/$(one))
	touch $@

demo: $(STAMP) ## three times more jobs than GPUs: watch them ordered fairly; ends within two minutes
	$(BIN)/fairlead demo

lab-kube: $(STAMP) ## a real Kubernetes with Kueue on loopback, no Docker, no root; built once with Go
	@$(BIN)/python -m fairlead_testkit.kubelab up

lab-slurm: $(STAMP) ## a real Slurm on loopback, of Debian's packages; as root with accounting
	@$(BIN)/python -m fairlead_testkit.slurmlab up

lab-down: $(STAMP) ## end what lab-kube and lab-slurm started
	@$(BIN)/python -m fairlead_testkit.kubelab down
	@$(BIN)/python -m fairlead_testkit.slurmlab down

lab-build: $(STAMP) ## only build what lab-kube and the tests of Kueue need
	@$(BIN)/python -m fairlead_testkit.kubelab build

# Types are checked beside the tests: mypy takes one core, and the lab waits more than it computes.
test: lint ## what CI runs: check, and the tests
	@$(MAKE) --no-print-directory -j2 types tests

tests: $(STAMP) $(COMPILED)
	$(TEST)

# On a fresh clone each worker would compile all tests for itself: 40 s with six of them, 23 s where two compile for all.
$(COMPILED): $(STAMP)
	@for part in libs "services tests"; do $(BIN)/python -m pytest --collect-only -qq $$part > /dev/null & done; wait
	touch $@

check: lint types ## linters, import walls and type checkers

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports --no-cache

types: $(STAMP)
	$(BIN)/mypy $(CODE)

deep: check ## the long forms of the tests, the policy's beside all others: an hour or two
	@$(MAKE) --no-print-directory -j2 --output-sync=target deep-policy deep-others

deep-policy: $(STAMP)
	$(DEEP) libs/policy

deep-others: $(STAMP)
	$(DEEP) --ignore libs/policy

faults: $(STAMP) ## make known faults one by one in a copy of the code, and see a test fail for each
	$(BIN)/python tests/faults/run.py

coverage: $(STAMP) ## how much of the policy its tests run through; red below a floor
	COVERAGE_CORE=sysmon $(BIN)/python -m pytest -n 2 -m "not deep" --cov=fairlead_policy --cov-report=term:skip-covered --cov-fail-under=$(FLOOR) libs/policy

audit: $(STAMP) ## look the locked packages up among known vulnerabilities (asks PyPI)
	@$(BIN)/python tests/audit/run.py $(UV) tool run pip-audit --require-hashes --disable-pip -r requirements.lock -f json

# Each part runs whatever the ones before it said, and what they printed is long: the last lines say which were red.
nightly: $(STAMP) ## all that is too long for each change, one after another: deep, faults, chaos, abuse, coverage, audit; a night
	@ended=0; told=; for part in $(NIGHTLY); do \
	  begun=$$(date +%s); \
	  if $(MAKE) --no-print-directory $$part; then found=green; else found=red; ended=1; fi; \
	  told="$$told$$(printf 'nightly: %-8s %-5s %4d min' $$part $$found $$((($$(date +%s) - begun + 30) / 60)))\n"; \
	done; printf "$$told"; exit $$ended

chaos: $(STAMP) ## five minutes of kills and pauses on a real nats-server under load
	FAIRLEAD_CHAOS_SECONDS=$${FAIRLEAD_CHAOS_SECONDS:-300} $(BIN)/python -m pytest --timeout 2400 -m chaos tests/chaos

bytes: $(STAMP) ## whether orders, levels, decisions and explanations of all recorded pools are as they were
	$(BIN)/python tests/bytes/test_bytes.py check

rollback: $(STAMP) ## an older release (OLDER=commit), this one, the older again: on one NATS, beside a simulated cluster and Kueue
	FAIRLEAD_OLDER=$${OLDER:-$$(git rev-parse HEAD~60)} $(BIN)/python -m pytest -s -m deep tests/integration/test_rollback.py

abuse: $(STAMP) ## a million mutated messages of a hostile tenant beside a neighbour, under the shipped accounts
	FAIRLEAD_ABUSE_MESSAGES=$${FAIRLEAD_ABUSE_MESSAGES:-1000000} $(BIN)/python -m pytest --timeout 7200 -s tests/abuse

images-check: $(STAMP) ## build the image, start docker-compose.yml with it on a local engine, look, and end it
	$(BIN)/python deploy/images/check.py

bench: $(STAMP) ## figures, a JSON object a line
	$(BIN)/python bench/run.py

pictures: $(STAMP) ## draw those of docs/policy.md anew, from the policy at work
	$(BIN)/python bench/pictures.py

dashboards: $(STAMP) ## write Grafana's dashboards anew, from deploy/monitoring/dashboards.py
	$(BIN)/python deploy/monitoring/dashboards.py

settings: $(STAMP) ## write docs/settings.md anew, from the services' settings
	$(BIN)/python -m fairlead_testkit.source.flag_tables > docs/settings.md

words: $(STAMP) ## write docs/words.md anew: every sentence that people read, found in the code
	$(BIN)/python tests/words/test_words.py write

schemas: $(STAMP) ## write docs/output.schema.json anew, from what commands print
	$(BIN)/python -m fairlead_cli.output_schema > docs/output.schema.json

format: $(STAMP) ## let ruff mend what it can
	-$(BIN)/ruff check --fix --quiet $(CODE)
	$(BIN)/ruff format --quiet $(CODE)

lock: ## resolve requirements.lock anew from the members' pyproject files
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.13 --all-extras \
	  $(addprefix --no-emit-package ,$(NAMES)) $(PROJECTS) --group pyproject.toml:dev -o requirements.lock

clean: ## remove what setup and the tests made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
