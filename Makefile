.PHONY: run test lint bench
PYTHON ?= python3
BIN := .venv/bin

run: .venv/.ready
	@$(BIN)/python manage.py migrate --verbosity 0
	@exec $(BIN)/python manage.py serve

test: .venv/.ready-dev
	$(BIN)/pytest

lint: .venv/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --deploy --fail-level WARNING

bench: .venv/.ready-dev
	$(BIN)/python bench/run.py

.venv/.ready: requirements.txt constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/.ready-dev: requirements-dev.txt .venv/.ready
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
