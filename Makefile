# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

ENGINES := .venv-engines
ENGINES_STAMP := $(ENGINES)/.installed

# Two workers on two cores: more threads in each would only wait for each other. A worker that is done takes tests
# from the other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

.PHONY: demo test quick engines test-engines check format clean

demo: $(STAMP)
	rm -rf demo-output
	$(BIN)/understudy demo -o demo-output

# All tests, or those of a folder or file: make test FOLDER=tests/queries
# TIMED=--record-slow says anew which tests are slow.
FOLDER :=
TIMED :=
test: check
	$(PYTEST) $(TIMED) $(FOLDER)

# A minute while one works: everything but slow tests (tests/slow.txt). `make test` decides.
quick: check
	$(PYTEST) -m "not slow" $(FOLDER)

# Spark and Ray in an environment of their own. Spark wants Java; without it its tests are left out, aloud.
engines: $(ENGINES_STAMP)
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get install -qq -y --no-install-recommends default-jre-headless >/dev/null; } || true

# Engines wait more than they work: tests of two files run at a time. Workers import from the folder's own conftest.
ENGINES_PYTEST := OMP_NUM_THREADS=1 $(ENGINES)/bin/pytest -n 2 --dist loadfile --import-mode=prepend \
	--confcutdir=tests/clusters tests/clusters
test-engines: engines
	@if command -v java >/dev/null; then \
		$(ENGINES_PYTEST); \
	else \
		echo "MISSING: a Java runtime (such as default-jre-headless). Spark is not tested."; \
		$(ENGINES_PYTEST) --ignore-glob='*/test_spark*'; \
	fi

$(ENGINES_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[fast,parties,ray,spark,sql]" hypothesis pytest pytest-xdist -c constraints.txt
	touch $(ENGINES_STAMP)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/mutants_fit.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch goes first and exactly pinned: a looser wish fetches gigabytes of accelerator packages.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)" -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]" -c constraints.txt
	touch $(STAMP)

clean:
	rm -rf $(VENV) $(ENGINES) demo-output build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
