# Two commands do all the set-up: `make demo` and `make test`. Python 3.11+, make and pip are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.ready-demo
READY := $(VENV)/.ready
PIP := $(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check
DEMO_NEEDS := numpy scipy numba threadpoolctl opendp pyarrow typer rich  # all that the demo imports; tests/test_cli.py runs the demo with these
export PYTHONDONTWRITEBYTECODE :=  # empty: bytecode is kept, or every process would compile all that it imports
KERNELS := tests/model tests/data/test_sources.py tests/data/test_reading_rule.py tests/data/test_data.py  # tests of compiled loops, which coverage sees only without compilation

.PHONY: setup help demo test check lint size release-check stops audit attacks assurance coverage mutants crashes bench bench-assistants bench-start bench-associations bench-peers docs pictures clean portable load bench-plan bench-hits bench-tuning bench-release fuzz-release bench-models console-speed screenshots

setup: $(READY)

help:                  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

# The demo runs from the sources with the libraries that it imports, and no others. Bytecode is written as modules are first imported.
$(DEMO): pyproject.toml
	@echo "Setting up $(VENV): under a minute, mostly downloads"
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) tools/needs.py $(DEMO_NEEDS) > $(VENV)/demo.txt
	$(PIP) install --no-compile --progress-bar off -r $(VENV)/demo.txt
	touch $(DEMO)

# Developers' libraries, and the package itself, in the same environment.
$(READY): $(DEMO)
	$(PIP) install --quiet --no-compile -e '.[dev]'
	touch $(READY)

demo: $(DEMO)          ## the main job on bundled data, with a table and a picture
	PYTHONPATH=src $(BIN)/python -m hedgerow.cli demo
	@echo "Next: pip install hedgerow, and README.md for a first session on your own table."

lint: setup            ## style, types, and randomness in one module only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint             ## everything that must hold on every commit
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

check: lint            ## during work: style, types, and the tests near what git sees changed
	$(BIN)/python tools/near.py

stops: setup           ## count the modules that a question goes through
	$(BIN)/python tools/stops.py --check

audit: setup           ## empirical privacy: every mechanism and the gallery into docs/audit.md, then the long tests
	$(BIN)/python -m hedgerow.audit --docs docs --workers 2
	$(BIN)/python -m pytest -n 2 -q -m audit

assurance: setup       ## every promise with its checks and last figures, into docs/assurance.md
	$(BIN)/python tools/assurance.py

coverage: setup        ## check that tests take at least 95 % of the branches of code that pays, draws or sees rows
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest -n 2 --dist worksteal -q
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -q $(KERNELS)
	$(BIN)/python -m coverage combine -q
	for folder in privacy data drafting model textbook engine erm generalise ledger; do \
	  $(BIN)/python -m coverage report --include="src/hedgerow/$$folder/*" || exit 1; done

mutants: setup         ## make small harmful changes, listed and random, which the tests must notice
	$(BIN)/python tools/mutants.py

attacks: setup         ## bars against analysts who know the table: 200 sessions of each kind, into docs/attacks-bars.json
	$(BIN)/python tests/attacks/adaptive_bars.py docs/attacks-bars.json

crashes: setup         ## sessions killed at every step, and many at once, on SQLite and PostgreSQL
	$(BIN)/python tools/crashes.py

load: setup            ## the service under load: 32 clients, kills, fuzz, memory, into docs/benchmarks-service.md
	$(BIN)/python tools/load.py

portable: setup        ## compare results with those of other processors: other linear algebra, fewer instructions, another folder
	$(BIN)/python tools/portable.py

bench: setup           ## speed and accuracy, tables and plots into docs/
	$(BIN)/python benchmarks/run.py

bench-assistants: setup ## an assistant as adversary and as analyst, into docs/benchmarks-assistants.md
	$(BIN)/python benchmarks/assistants.py

bench-start: setup     ## measure the time from nothing to an answer, into docs/benchmarks-start.md
	$(BIN)/python benchmarks/start.py

bench-associations: setup  ## all pairs of a wide table, beside plain Gaussian noise, into docs/
	$(BIN)/python benchmarks/associations.py
	$(BIN)/python benchmarks/associations.py --tables census-28 census-42 --neighbours replace
	$(BIN)/python benchmarks/means.py
	$(BIN)/python benchmarks/means.py --columns

bench-plan: setup      ## errors of real tables beside those that a plan predicts, into docs/benchmarks-plan.md
	$(BIN)/python benchmarks/plan.py

bench-hits: setup      ## guards on streams that leave the workload, into docs/benchmarks-hits.md
	$(BIN)/python benchmarks/hits.py

bench-tuning: setup    ## a private search among models beside one model, into docs/benchmarks-tuning.md
	$(BIN)/python benchmarks/tuning.py

BEFORE := b6ddc74  # the last commit before release files

bench-release: setup   ## release files: speed beside earlier code, sizes, processes, into docs/benchmarks-release.md
	rm -rf .before && mkdir .before && git archive $(BEFORE) src | tar -x -C .before
	$(BIN)/python benchmarks/release_file.py --before .before

fuzz-release: setup    ## read 20,000 mutated release files, and write what became of them into docs/fuzz-release.json
	PYTHONPATH=tests $(BIN)/python tests/release_file/fuzzing.py docs/fuzz-release.json

bench-peers: setup     ## beside AIM and MST on real tables, into docs/; hours at their defaults, and goes on where it was
	$(BIN)/python benchmarks/peers.py

bench-models: setup     ## models of 9, 20 and 40 features beside those without privacy, and the coverage of their intervals
	$(BIN)/python benchmarks/models.py

size: setup            ## what a plain install weighs, into docs/install.md
	$(BIN)/python tools/install_size.py

console-speed: setup   ## the console in Chromium: first paint, and a click on a bar to its redrawn picture
	$(BIN)/python tests/console/pictures.py speed

screenshots: setup     ## pictures of the console into docs/screenshots/
	$(BIN)/python tests/console/pictures.py screenshots

docs: setup            ## the documentation site into site/, to be read offline; dead links and code that fails stop it
	$(BIN)/python docs/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python -m pytest -q -n 2 tests/test_docs.py tests/test_site.py tests/cli/test_guides.py
	@echo "Open site/index.html"

pictures: setup        ## pictures and printed output of the pages, made anew by running their code
	$(BIN)/python tools/doc_pictures.py

release-check: setup   ## the wheel and the sdist, built and tried in an empty environment
	$(BIN)/python tools/release.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.* .mutants
