.PHONY: help run cluster test test-clients test-cluster test-dialects test-model test-programs lint lint-style lint-types lint-imports lint-django lock bench bench-check bench-growth profile faults fuzz pictures pictures-openwebui shape
.DEFAULT_GOAL := run
PYTHON ?= python3
BIN := .venv/bin

help: ## List the targets, each with what it does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/.ready ## Install what is missing, migrate the database and serve
	@$(BIN)/python manage.py migrate --verbosity 0
	@exec $(BIN)/python manage.py serve

# PostgreSQL, Redis and nginx are found, installed with apt-get as root, or given by DATABASE_URL and REDIS_URL.
WEB ?= 2
WORKERS ?= 2
cluster: .venv/.ready ## Run web processes and workers behind nginx on this machine: WEB=2, WORKERS=2
	@exec $(BIN)/python manage.py cluster --web $(WEB) --workers $(WORKERS)

# Most tests wait for a server, not for a processor; and images that forbid byte code make every start compile it all.
test: .venv/.ready-dev test-programs ## Run all tests
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4 --dist worksteal

# Everything about several processes, also what takes too long for `make test`. ONLY may choose none of a call (5).
test-cluster: .venv/.ready-dev test-programs ## Run the tests of several processes, with those that take long
	@[ "$$(id -u)" != 0 ] || for name in pgbouncer caddy; do \
	  PATH="$$PATH:/usr/sbin" command -v $$name >/dev/null || { echo "Installing $$name for the tests ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$name >/dev/null; }; \
	done
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal tests/cluster tests/project/test_cluster_files.py \
	  $(if $(ONLY),-k "$(ONLY)" || [ $$? = 5 ])
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest tests/cluster/large $(if $(ONLY),-k "$(ONLY)" || [ $$? = 5 ])

# Stand-ins for twelve kinds of model servers; `make test` has a sample of it.
test-dialects: .venv/.ready-dev ## Run every case against every kind of model server: ONLY=part of a name
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4 --dist worksteal tests/dialects --all-dialects $(if $(ONLY),-k "$(ONLY)")

# Clients that are too large for the suite, in environments of their own.
test-clients: .venv/.ready-dev test-programs .venv-clients/.ready .venv-aider/.ready .venv-openwebui/.ready ## Drive client frameworks over turns with tools: ONLY=part of a name
	$(BIN)/python -m tests.clients .venv-clients $(if $(ONLY),"$(ONLY)")

# A real model on two real servers; it takes some minutes, and is no part of `make test`.
test-model: .venv/.ready-dev .venv-model/.ready ## Run the tests against a real model: ONLY=part of a test's name
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest tests/model $(if $(ONLY),-k "$(ONLY)")

# The tests that need a program skip, with a reason, where it is missing.
# A test for the program, its name, its package, what is missing without it.
define program
	@$(1) || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing $(2) for the tests ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(3) >/dev/null; \
	else \
	  echo "Without $(2) $(4). To have all: apt-get install $(3)"; \
	fi
endef

test-programs: ## Install the programs that tests need, or name those that are missing
	$(call program,command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1,PostgreSQL,postgresql,the tests run on SQLite alone)
	$(call program,command -v bwrap >/dev/null,bubblewrap,bubblewrap,the tests of the sandbox are left out)
	$(call program,command -v chromium >/dev/null,Chromium,chromium,the tests of the pages are left out)
	$(call program,command -v redis-server >/dev/null,Redis,redis-server,the tests of several processes are left out)
	$(call program,command -v nginx >/dev/null || [ -x /usr/sbin/nginx ],nginx,nginx-light,the tests of make cluster are left out)
	@command -v npm >/dev/null || echo "Without npm the tests of the Node SDK are left out: apt-get install npm"

# The hooks of .pre-commit-config.yaml call the parts.
lint: lint-style lint-types lint-imports lint-django ## Check the source: style, types, imports, migrations, settings

lint-style: .venv/.ready-dev ## Check style and format with Ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: .venv/.ready-dev ## Check types with mypy
	$(BIN)/mypy .

lint-imports: .venv/.ready-dev ## Check which module may import which
	$(BIN)/lint-imports

# By tag: the other checks for deployment are about the machine that serves.
lint-django: .venv/.ready-dev ## Check for missing migrations and unsafe settings
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py check --deploy --tag security --tag async_support --fail-level WARNING

# bench/README.md explains the options. Without any, all of docs/performance.md is measured again.
BENCH := $(if $(API),--api $(API)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(COUNT),--count $(COUNT)) $(if $(TREE),--tree $(TREE))
BENCH_ROUNDS := $(if $(filter-out file undefined,$(origin ROUNDS)),--rounds $(ROUNDS))
bench: .venv/.ready-dev $(if $(CLUSTER),,.venv-litellm/.ready) ## Measure performance: SCENARIO=, TARGETS=, API=, ROUNDS=, SECONDS=, COUNT=, CLUSTER=1
ifdef CLUSTER
	$(BIN)/python -m bench cluster $(BENCH_ROUNDS) $(if $(SECONDS),--seconds $(SECONDS)) --page
else
	$(BIN)/python -m bench run $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(TARGETS),--targets $(TARGETS)) $(BENCH_ROUNDS) $(BENCH) \
	  $(if $(SCENARIO)$(TARGETS)$(API),,--page)
endif

bench-check: .venv/.ready-dev ## Compare CPU per token and per request with the stored figures: STORE=1 stores them
	$(BIN)/python -m bench check $(BENCH_ROUNDS) $(BENCH) $(if $(STORE),--store)

bench-growth: .venv/.ready-dev ## Measure how costs grow: ONLY=chains,answers,tables,waiting,readers, LARGEST=size
	$(BIN)/python -m bench growth --page $(if $(ONLY),--only $(ONLY)) $(if $(LARGEST),--largest $(LARGEST)) $(BENCH)

profile: .venv/.ready-dev ## Record where the server spends its time: SCENARIO=streams_50, API=, SECONDS=, GIL=1
	$(BIN)/python -m bench profile $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(TARGETS),--targets $(TARGETS)) $(if $(GIL),--gil) $(BENCH)

# Faults on purpose, on both databases: 10 rounds are what the suite does, 500 a night's work.
ROUNDS ?= 10
faults: .venv/.ready-dev ## Inject faults: ROUNDS=10, SEED=number, ONLY=campaign, CLUSTER=1 for several processes
	$(BIN)/python -m tests.faults.campaigns --rounds $(ROUNDS) $(if $(CLUSTER),--cluster) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

# Requests made from the OpenAPI document, against a server of its own.
CASES ?= 20000
fuzz: .venv/.ready-dev ## Send generated requests: CASES=20000, SEED=number, ONLY=operation
	$(BIN)/python -m tests.fuzz --cases $(CASES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)")

shape: .venv/.ready-dev ## Print figures of the source beside their targets: TREE=another checkout
	$(BIN)/python -m tests.shape $(if $(TREE),--tree $(TREE))

pictures: .venv/.ready-dev ## Take the screenshots of the pages in docs/pictures again
	$(BIN)/python -m tests.support.pictures

pictures-openwebui: .venv/.ready-dev .venv-openwebui/.ready ## Take the screenshots of Open WebUI for its guide again
	$(BIN)/python -m tests.clients.open_webui_pictures .venv-openwebui

# After a change of requirements.in or requirements-dev.in. UPGRADE=NAME takes the newest of one package, UPGRADE=all of all.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --custom-compile-command 'make lock' $(if $(UPGRADE),$(if $(filter all,$(UPGRADE)),--upgrade,--upgrade-package $(UPGRADE)))
lock: .venv/.ready-dev ## Write the locked requirements: UPGRADE=package or all
	$(BIN)/$(LOCK) requirements.in -o requirements.txt
	$(BIN)/$(LOCK) requirements-dev.in -c requirements.txt -o requirements-dev.txt
	$(BIN)/$(LOCK) requirements-model.in -o requirements-model.txt
	$(BIN)/$(LOCK) requirements-litellm.in -o requirements-litellm.txt
	$(BIN)/$(LOCK) requirements-clients.in -o requirements-clients.txt
	$(BIN)/$(LOCK) requirements-aider.in -o requirements-aider.txt
	$(BIN)/$(LOCK) requirements-openwebui.in --override requirements-openwebui.without -o requirements-openwebui.txt

.venv/.ready: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Hermes Site needs Python 3.11 or newer, and $(PYTHON) is older or missing. Install one, and name it: make run PYTHON=python3.11" >&2; exit 1; }
	@[ -w . ] || { echo "$(CURDIR) cannot be written. Change its owner (chown), or use a copy of your own." >&2; exit 1; }
	@echo "Installing what the server needs into .venv (about half a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

.venv/.ready-dev: requirements-dev.txt .venv/.ready
	@echo "Installing what the tests and linters need ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

# llama-cpp-python is compiled. pip keeps the result in its cache, so another environment does not compile it again.
BUILD_JOBS ?= 1
.venv-model/.ready: requirements-model.txt
	@echo "Installing a model and its servers into .venv-model (a quarter of an hour to compile; BUILD_JOBS=2 is faster) ..."
	@$(PYTHON) -m venv .venv-model
	@CMAKE_BUILD_PARALLEL_LEVEL=$(BUILD_JOBS) nice -n 19 .venv-model/bin/pip install --quiet --disable-pip-version-check \
	  --require-hashes -r requirements-model.txt
	@touch $@

.venv-litellm/.ready: requirements-litellm.txt
	@echo "Installing the LiteLLM proxy into .venv-litellm, to be measured beside this server ..."
	@$(PYTHON) -m venv .venv-litellm
	@.venv-litellm/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-litellm.txt
	@touch $@

.venv-aider/.ready: requirements-aider.txt
	@echo "Installing aider into .venv-aider (a minute) ..."
	@$(PYTHON) -m venv .venv-aider
	@.venv-aider/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-aider.txt
	@touch $@

# Without dependencies of the packages: the lock has all but those that its chats never load.
.venv-openwebui/.ready: requirements-openwebui.txt
	@echo "Installing Open WebUI into .venv-openwebui (some minutes, 1.3 GB) ..."
	@$(PYTHON) -m venv .venv-openwebui
	@.venv-openwebui/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  -r requirements-openwebui.txt
	@touch $@

# Node.js and its npm are from PyPI: the clients need a newer one than most systems have.
NODE_CLIENTS := .venv-clients/node
.venv-clients/.ready: requirements-clients.txt tests/clients/node/package.json
	@echo "Installing client frameworks into .venv-clients (some minutes) ..."
	@$(PYTHON) -m venv .venv-clients
	@.venv-clients/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-clients.txt
	@mkdir -p $(NODE_CLIENTS) && cp tests/clients/node/package.json $(NODE_CLIENTS)
	@PATH="$(CURDIR)/.venv-clients/bin:$$PATH" npm install --prefix $(NODE_CLIENTS) --silent --no-audit --no-fund --no-package-lock
	@touch $@
