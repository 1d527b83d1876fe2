.PHONY: run test test-programs lint lock bench faults fuzz pictures shape
PYTHON ?= python3
BIN := .venv/bin

run: .venv/.ready
	@$(BIN)/python manage.py migrate --verbosity 0
	@exec $(BIN)/python manage.py serve

# Most tests wait for a server, not for a processor; and images that forbid byte code make every start compile it all.
test: .venv/.ready-dev test-programs
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 4

# The tests that need a program skip, with a reason, where it is missing.
test-programs:
	@if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing PostgreSQL for the tests ..."; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null; \
	  else \
	    echo "Without PostgreSQL the tests run on SQLite alone. To have all: apt-get install postgresql"; \
	  fi; \
	fi
	@if ! command -v bwrap >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing bubblewrap for the tests ..."; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq bubblewrap >/dev/null; \
	  else \
	    echo "Without bubblewrap the tests of the sandbox are left out. To have all: apt-get install bubblewrap"; \
	  fi; \
	fi
	@if ! command -v chromium >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium for the tests ..."; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	  else \
	    echo "Without Chromium the tests of the pages are left out. To have all: apt-get install chromium"; \
	  fi; \
	fi
	@command -v npm >/dev/null || echo "Without npm the tests of the Node SDK are left out: apt-get install npm"

lint: .venv/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --deploy --fail-level WARNING

bench: .venv/.ready-dev
	$(BIN)/python bench/run.py

# Faults on purpose, on both databases: 10 rounds are what the suite does, 500 a night's work.
ROUNDS ?= 10
faults: .venv/.ready-dev
	$(BIN)/python -m tests.campaigns --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

# Requests made from the OpenAPI document, against a server of its own.
CASES ?= 20000
fuzz: .venv/.ready-dev
	$(BIN)/python -m tests.fuzz --cases $(CASES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)")

# How the source is built, in figures: before, now, and the target. TREE=PATH measures another checkout.
shape: .venv/.ready-dev
	$(BIN)/python -m tests.shape $(if $(TREE),--tree $(TREE))

# Those of the pages, in docs/pictures.
pictures: .venv/.ready-dev
	$(BIN)/python -m tests.pictures

# After a change of requirements.in or requirements-dev.in. UPGRADE=NAME takes the newest of one package, UPGRADE=all of all.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --custom-compile-command 'make lock' $(if $(UPGRADE),$(if $(filter all,$(UPGRADE)),--upgrade,--upgrade-package $(UPGRADE)))
lock: .venv/.ready-dev
	$(BIN)/$(LOCK) requirements.in -o requirements.txt
	$(BIN)/$(LOCK) requirements-dev.in -c requirements.txt -o requirements-dev.txt

.venv/.ready: requirements.txt
	@echo "Installing what the server needs into .venv (about half a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

.venv/.ready-dev: requirements-dev.txt .venv/.ready
	@echo "Installing what the tests and linters need ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@
