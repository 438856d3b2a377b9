# Two commands for newcomers: `make demo` and `make test`. Everything installs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ENGINE ?= embedded
CASES ?= $(addprefix ../shared/conformance/,siddhi_cases.json generated.json functions.json)

.PHONY: install demo test test-integration test-cluster test-deploy faults check format docs pages bench bench-cep conformance clean java

install: java $(STAMP)

demo: java $(STAMP)
	@exec $(BIN)/edgewise demo $(ARGS)

test: java $(STAMP)
	$(BIN)/python -m pytest --cov --cov-context=test --cov-report= $(ARGS)
	@$(BIN)/python -m tests.coverage_report

test-integration: java $(STAMP)
	scripts/install-integration
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check python-qpid-proton==0.40.0
	$(BIN)/python -m pytest -m "integration and not slow" $(ARGS)

test-cluster: java $(STAMP)
	scripts/install-integration
	$(BIN)/python -m pytest -m slow -s tests/integration/test_cluster.py $(ARGS)

test-deploy: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
	$(BIN)/python -m pytest -m "slow or integration" tests/integration/test_deploy.py $(ARGS)

faults: java $(STAMP)
	scripts/install-integration
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check python-qpid-proton==0.40.0
	$(BIN)/python -m tests.faults $(ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_tidy.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build
	@echo "open docs/_build/index.html"

pages: $(STAMP)
	@$(BIN)/python -m pytest -q --pages
	@git status --short docs

bench: java $(STAMP)
	$(BIN)/python -m bench $(ARGS)

bench-cep: java $(STAMP)
	$(BIN)/python -m bench.patterns $(ARGS)

conformance: java $(STAMP)
	for file in $(CASES); do \
	  $(BIN)/python -m tests.conformance --engine $(ENGINE) $$file || exit 1; \
	done

java:
	@scripts/check-java

$(STAMP): requirements.lock pyproject.toml
	@scripts/check-python $(PYTHON)
	@echo "installing into $(VENV) (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip==26.3
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

clean:
	rm -rf $(VENV) docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
