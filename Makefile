# One virtual environment in .venv; nothing is installed anywhere else.

PYTHON ?= python3
BIN := .venv/bin
# The first process that imports a module compiles it, for all others; tests start many.
unexport PYTHONDONTWRITEBYTECODE
DEMO ?= train --task digits --out out --overwrite
DEMO_IPU ?= train --task digits --device ipu --epochs 1 --out out/ipu --overwrite
# Two workers: the suite is sized for two cores.
PYTEST ?= -n 2 --dist worksteal

# The compiled kernels, where they can be built; elsewhere everything runs on the references, and those are tested.
LIBRARY := $(if $(shell command -v c++),snnjax/_cpu_kernels.so)
SOURCES := $(wildcard xla_ext/CMake* poplar_kernels/conventions.hpp xla_ext/cpu/*.?pp xla_ext/cpu/*/*.?pp) \
	$(wildcard xla_ext/schema/* snnjax/ops/_tables/*.py) snnjax/_schema.py snnjax/ops/_lif_network/records.py
CPP := $(shell find xla_ext poplar_kernels -name '*.?pp')
# Where the compiled tests run, two at a time.
CTEST ?= --output-on-failure --parallel 2
# What a program needs to run with the sanitizers' build of the kernels.
SANITIZED = LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 SNNJAX_CPU_KERNELS=build/asan/_cpu_kernels.so
FUZZ ?= --examples 2000 --networks 24
# Plans of the IPU with mistakes: many, since each takes a few milliseconds.
FUZZ_PLANS ?= --examples 100000 --rounds 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help:  ## list all targets
	@echo "snnjax: spiking networks in JAX. Targets:"
	@sed -n 's/^\([a-z0-9-]*\):.*  ## \(.*\)$$/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: demo demo-ipu
demo: .venv/ready $(LIBRARY)  ## train a sparse spiking network on digit events (pictures and checkpoint in out/)
	$(BIN)/snnjax $(DEMO)

demo-ipu: kernels  ## train it for an epoch on a modelled IPU, and estimate the cost of a step (profile in out/ipu/)
	$(BIN)/snnjax $(DEMO_IPU)

.PHONY: test
test:  ## every check: linter, types, tests, doctests, notebooks, fuzz
	@$(MAKE) --no-print-directory --jobs 2 lint types $(if $(LIBRARY),fuzz-short build/release)  # keeps two cores busy
	@$(if $(LIBRARY),$(MAKE) --no-print-directory ipu-model)
	@$(if $(wildcard .venv/cross-compile),$(MAKE) --no-print-directory kernels-macos)
	$(BIN)/python -m pytest $(PYTEST)

.PHONY: test-all
test-all: kernels  ## all cases of the tests, of which `make test` takes a sample (tests/project/sampling.py)
	SNNJAX_TESTS=all $(BIN)/python -m pytest $(PYTEST)

.PHONY: lint
lint: .venv/ready  ## linter and formatters, without changing a file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --quiet --offline .github

.PHONY: types
types: .venv/ready  ## static types
	$(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: messages
messages: .venv/ready  ## list every error message of the library
	@$(BIN)/python -m tests.errors.messages

.PHONY: format
format: .venv/ready  ## format the code, and fix what the linter can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CPP)

.PHONY: kernels kernels-asan kernels-tsan
kernels: build/release .venv/ready  ## compile the CPU kernels and the IPU Model (the first time 4 minutes on 2 cores)
kernels-asan: build/asan .venv/ready  # with the address and the undefined-behaviour sanitizer, in build/asan/
kernels-tsan: build/tsan .venv/ready  # with the thread sanitizer, in build/tsan/

# `make --dry-run` runs what is marked by +, which hands its jobs on; there it does nothing.
DRY := $(if $(findstring n,$(firstword -$(MAKEFLAGS))),: )

PRESETS := release asan tsan ipu-model-asan ipu-model-tsan aarch64 macos windows
.PHONY: $(PRESETS:%=build/%)
$(PRESETS:%=build/%): .venv/compile
	$(BIN)/cmake -S xla_ext --preset $(@F) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python
	@echo "Compiling what changed; all of build/release takes about 4 minutes on 2 cores, the CPU kernels one."
	+$(DRY)$(BIN)/cmake --build $@$(if $(ONLY), --target $(ONLY))

.PHONY: ipu-model ipu-model-asan ipu-model-tsan calibrate
ipu-model: build/release  ## test the IPU Model, its codelets and its builders, and the CPU kernels on their own
	$(BIN)/ctest --test-dir $< $(CTEST)

ipu-model-asan: build/ipu-model-asan  # the same under the sanitizers, for a quarter of an hour
	$(BIN)/ctest --test-dir $< $(CTEST)

ipu-model-tsan: build/ipu-model-tsan
	$(BIN)/ctest --test-dir $< $(CTEST)

calibrate: build/release .venv/ready  ## compare predictions of the IPU Model with measurements of hardware
	$(BIN)/cmake --build $< --target calibrate
	SNNJAX_PYTHON=$(abspath $(BIN))/python $</calibrate
	@echo "### The hardware log, our program, a training step as a user writes it (five minutes)"
	$(BIN)/python -m tests.ipu.calibration

.PHONY: kernels-aarch64 cross-compiler
kernels-aarch64: build/aarch64  ## build the CPU kernels for aarch64 (NEON), and test them under emulation
	$(BIN)/ctest --test-dir $< $(CTEST)

# Clang and the headers of the other systems come with the package `ziglang`. What it makes is looked at, and runs nowhere here.
.PHONY: kernels-macos kernels-windows
kernels-macos: ONLY := _cpu_kernels
kernels-macos: build/macos  ## compile the CPU kernels for macOS on Apple silicon, as a check
	$(BIN)/python -m tests.project.exports $</_cpu_kernels.so

kernels-windows: ONLY := _cpu_kernels
kernels-windows: build/windows  ## the same for Windows, and the types of what Python asks of it
	$(BIN)/python -m tests.project.exports $</_cpu_kernels.dll
	$(BIN)/pyright --pythonpath $(BIN)/python --pythonplatform Windows snnjax

build/macos build/windows: .venv/cross-compile

# Python and jaxlib for aarch64 are downloaded, 900 MB, and run in QEMU: some seconds a test, hours for all of these.
.PHONY: test-aarch64
test-aarch64: build/aarch64 .venv/ready  ## test the ops with those kernels and an emulated jaxlib (AARCH64_TESTS=tests/ops/test_dtypes.py)
	$(BIN)/python -m tests.project.emulation build/emulated $</_cpu_kernels.so -- -q $(AARCH64_TESTS)
AARCH64_TESTS ?= -n 2 tests/ops

build/aarch64: cross-compiler
cross-compiler:
	@command -v aarch64-linux-gnu-g++ > /dev/null && command -v qemu-aarch64 > /dev/null || \
		{ echo "This needs aarch64-linux-gnu-g++ and qemu-aarch64, and one of them is missing." \
			"On Debian or Ubuntu: apt-get install g++-aarch64-linux-gnu qemu-user"; exit 1; }

.PHONY: fuzz fuzz-plans fuzz-short
fuzz: kernels-asan fuzz-plans  ## hostile input under the sanitizers, for an hour (FUZZ="--examples 2000 --networks 24")
	$(SANITIZED) $(BIN)/python -m tests.fuzz $(FUZZ)

# Programs saved for the IPU; the library that reads them takes a quarter of an hour to compile. `make test` tries some
# with that of the release (tests/ipu/device/test_hostile_plans.py).
fuzz-plans: kernels-asan
	@$(MAKE) --no-print-directory build/ipu-model-asan ONLY=_ipu_model
	$(SANITIZED) SNNJAX_IPU_MODEL=build/ipu-model-asan/_ipu_model.so $(BIN)/python -m tests.fuzz --parts plans $(FUZZ_PLANS)

fuzz-short: kernels-asan  # the same for seconds, always with the same examples
	$(SANITIZED) $(BIN)/python -m tests.fuzz --examples 60 --networks 2 --seed 1

.PHONY: threads-tsan
threads-tsan: build/tsan  ## test the CPU kernels on their own under the thread sanitizer
	$(BIN)/ctest --test-dir $< $(CTEST)

.PHONY: soak
soak: .venv/ready $(LIBRARY)  ## random checks of values and gradients, to run overnight (SOAK="--checks 1000000 --first-form 500")
	$(BIN)/python -m tests.soak $(SOAK)

.PHONY: ipu-programs
ipu-programs: .venv/ready $(LIBRARY)  ## compare 10,000 random programs on the modelled IPU with the CPU (PROGRAMS="--kind networks --programs 1000")
	$(BIN)/python -m tests.ipu.random_programs.search $(PROGRAMS)

.PHONY: ipu-conformance
ipu-conformance: .venv/ready $(LIBRARY)  ## JAX's own tests on the modelled IPU (JAX=../jax CONFORMANCE="--cases 30 --only lax_test")
	$(BIN)/python -m tests.ipu.conformance $(JAX) $(CONFORMANCE)

# The newest Python that runs here. pip then takes the newest JAX that snnjax allows.
NEWEST ?= $(shell for minor in 14 13 12 11; do python3.$$minor -c '' 2> /dev/null && echo python3.$$minor && break; done)

.PHONY: wheel sdist test-wheel test-newest
wheel: .venv/release  ## a manylinux wheel for any Python 3 on this platform, in dist/
	rm -rf build/wheel
	@echo "Compiling the CPU kernels and the IPU Model: 4 minutes on 2 cores."
	$(BIN)/python -m build --wheel --outdir build/wheel
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl

# Of other systems, by Clang. Their wheels hold the CPU kernels, and not the model, whose codelets are compiled where it runs.
.PHONY: wheel-aarch64 wheel-macos
wheel-aarch64: TAG := manylinux_2_28_aarch64
wheel-macos: TAG := macosx_11_0_arm64
wheel-aarch64: TOOLCHAIN := manylinux-aarch64
wheel-macos: TOOLCHAIN := macos
wheel-aarch64 wheel-macos: .venv/release .venv/cross-compile  ## a wheel for Linux on aarch64, or for Apple silicon, in dist/
	rm -rf build/$@
	$(BIN)/python -m build --wheel --outdir build/$@ -Ccmake.define.SNNJAX_IPU_MODEL=false \
		-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$(abspath xla_ext/toolchains/$(TOOLCHAIN).cmake)
	$(BIN)/wheel tags --remove --platform-tag $(TAG) build/$@/*.whl
	mkdir -p dist && mv build/$@/*.whl dist

sdist: .venv/release  ## the sources as a package, in dist/
	$(BIN)/python -m build --sdist --outdir dist

test-wheel:  ## install the wheel of dist/ into a bare environment and train there (PYTHON=python3.13)
	@ls dist/snnjax-*.whl > /dev/null || { echo "There is no wheel in dist/. Make one: make wheel"; exit 1; }
	rm -rf build/bare
	$(PYTHON) -m venv build/bare
	@echo "Installing the wheel, without a compiler."
	time env CC=false CXX=false build/bare/bin/python -m pip install --quiet dist/snnjax-*.whl
	cd build/bare && time bin/python -I $(abspath tests/project/installed.py)

test-newest: .venv/ready $(LIBRARY)  ## the tests with the newest Python that runs here and the newest JAX for it (NEWEST=python3.13)
	$(NEWEST) -m venv build/newest
	build/newest/bin/python -m pip install --quiet --upgrade --config-settings=wheel.cmake=false --editable '.[test]'
	build/newest/bin/python -m pytest $(PYTEST) $(NEWEST_TESTS)

snnjax/_cpu_kernels.so: $(SOURCES) | .venv/ready
	@$(MAKE) --no-print-directory build/release ONLY=_cpu_kernels

.PHONY: notebooks
notebooks: .venv/ready $(LIBRARY)  ## execute the notebooks, and store their outputs in them
	$(BIN)/python -m tests.project.notebooks

# Where the other libraries are looked for; each may have an environment of its own.
PEERS ?= $(BIN)/python

# What bench-keep measures: whole networks, their gradients, a few time steps, and the products that they are made of.
GUARDED ?= --only W1 W2 W3 W4 W5 W7 W10 W11
# The workload that is sampled: W1, W2, W3 or W7.
PROFILE ?= W3

.PHONY: docs docs-links
docs: .venv/docs  ## build the documentation as a site, in out/docs
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going -c docs -d out/docs/doctrees . out/docs/html
	@echo "The documentation is out/docs/html/index.html."

docs-links: .venv/docs  ## check every external link of the documentation (needs the network)
	$(BIN)/python -m sphinx --quiet -b linkcheck -c docs -d out/docs/doctrees-links . out/docs/links
	@echo "All addresses answer. The list is out/docs/links/output.txt."

.PHONY: bench bench-gpu gpu-compile bench-peers bench-simulators bench-compare bench-keep profile
bench: .venv/ready $(LIBRARY)  ## compare the speed of everything with plain JAX (tables and pictures in out/bench; BENCH="--only W3")
	$(BIN)/python -m tests.benchmarks --out out/bench $(BENCH)

bench-gpu: .venv/ready  ## compare the speed of networks on the GPU with plain JAX (some minutes; tables in out/bench-gpu)
	$(BIN)/python -m tests.benchmarks.devices.gpus --out out/bench-gpu

gpu-compile: build/gpu-compile  ## compile networks for an H100, without one, and count launches, loops, memory (GPU_COMPILE="--only W3")
	$(BIN)/python -m tests.benchmarks.devices.gpu_compile --out out/gpu-compile $(GPU_COMPILE)

bench-peers: .venv/ready $(LIBRARY)  ## the same, also with the other libraries that are installed (PEERS="python ...")
	$(BIN)/python -m tests.benchmarks --out out/bench --peers $(PEERS) $(BENCH)

bench-simulators: .venv/ready $(LIBRARY) build/nest/ready build/brian2/ready  ## compare simulations with NEST and Brian2 (10 minutes; table in out/simulators; SIMULATORS="--only CUBA")
	$(BIN)/python -m tests.benchmarks.simulators --nest build/nest --brian2 build/brian2 $(SIMULATORS)

build/nest/ready:
	$(PYTHON) -m venv build/nest
	build/nest/bin/python -m pip install --quiet nest-simulator==3.10
	@touch $@

# This release of Brian2 needs NumPy 1, and setuptools to find a compiler.
build/brian2/ready:
	$(PYTHON) -m venv build/brian2
	build/brian2/bin/python -m pip install --quiet brian2==2.9 "numpy<2" setuptools
	@touch $@

bench-compare: .venv/ready $(LIBRARY)  ## compare with the ratios kept for this instruction set (BENCH="--only W3")
	$(BIN)/python -m tests.benchmarks --out out/bench --compare $(BENCH)

bench-keep: .venv/ready $(LIBRARY)  ## measure the reference ratios again (on an idle machine; GUARDED="--only W3")
	$(BIN)/python -m tests.benchmarks --out out/bench --keep $(GUARDED)

profile: .venv/ready $(LIBRARY)  ## the share of each phase of a training step and of inference, by perf (PROFILE=W3)
	$(BIN)/python -m tests.benchmarks.profile $(PROFILE)

.PHONY: reproduce
reproduce: .venv/ready $(LIBRARY)  ## train all shipped tasks over five seeds, and write docs/explanation/results.md (REPRODUCE="--only qtdb", NMNIST=path, SPEECH=path, CIFAR10=path)
	$(BIN)/python -m tests.benchmarks.trained.reproduce $(if $(NMNIST),--nmnist "$(NMNIST)") $(if $(SPEECH),--speech "$(SPEECH)") \
		$(if $(CIFAR10),--cifar10 "$(CIFAR10)") $(REPRODUCE)

.PHONY: clean
clean:  ## remove the environment, the compiled kernels, caches and out/
	rm -rf .venv out build dist snnjax/_cpu_kernels.so .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The packages of some extras, and of all users (`dependencies`), one a line.
PACKAGES = $(BIN)/python -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	named = project["optional-dependencies"] | {"dependencies": project["dependencies"]}; \
	print(*(package for name in sys.argv[1:] for package in named[name]), sep="\n")'

# Both are written last, so that an interrupted install is done again; and again whenever pyproject.toml changes. First
# what C++ is compiled with, which takes a quarter of the time: `make test` compiles while pip installs all the rest.
.venv/compile: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "snnjax needs Python 3.11 or newer, $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@echo "Setting up .venv: installing packages takes some minutes and shows no progress."
	$(PYTHON) -m venv .venv
	$(PACKAGES) dependencies compile ipu > $@.txt
	$(BIN)/python -m pip install --quiet --upgrade --no-compile --requirement $@.txt
	@touch $@

# Without the CPU kernels, which are compiled in build/release, where all that is built of them shares their objects. The
# build needs nothing that is not there already, and no environment of its own.
.venv/ready: .venv/compile
	$(BIN)/python -m pip install --quiet --upgrade --no-compile --no-build-isolation \
		--config-settings=wheel.cmake=false --editable '.[test]'
	@touch $@

# What only `make docs` needs, what only `make wheel`, and what compiles for other systems.
.venv/docs .venv/release .venv/cross-compile: .venv/ready
	$(PACKAGES) $(@F) > $@.txt
	$(BIN)/python -m pip install --quiet --requirement $@.txt
	@touch $@

build/gpu-compile: .venv/ready
	mkdir -p build
	$(PACKAGES) $(@F) > $@.txt
	@echo "Downloading XLA for GPUs, about 570 MB."
	$(BIN)/python -c 'import jax; print(*(f"jax-cuda13-{part}=={jax.__version__}" for part in ("plugin", "pjrt")), sep="\n")' > $@.jax.txt
	$(BIN)/python -m pip install --quiet --no-deps --target $@ --requirement $@.txt --constraint $@.jax.txt
	@touch $@
