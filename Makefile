# The front door. Everything is done by CMake or by a script in .ci/.

BUILD ?= build
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
JOBS ?= $(shell nproc)
LUA ?= $(notdir $(firstword $(shell command -v lua5.4 lua54 lua5.5 lua55 lua)))

MAKEFLAGS += --no-print-directory
export LUATRACE_BUILD := $(abspath $(BUILD))

build:
	cmake -S . -B $(BUILD) -DLUATRACE_WERROR=ON -DLUATRACE_TESTS=ON $(CMAKE_FLAGS)
	cmake --build $(BUILD) --parallel $(JOBS)

deps:
	.ci/deps build test

demo: deps
	@$(MAKE) build
	@.ci/demo $(BUILD)

# TESTS=spec/some_spec.lua runs that file alone.
test: deps
	-@$(MAKE) static
	.ci/test $(TESTS)

bench: deps
	.ci/deps bench vm
	@$(MAKE) build
	$(LUA) spec/bench/run.lua $(BUILD)

lint:
	.ci/deps lint
	.ci/lint

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

# build/static/luatrace: one file that needs nothing on the machine where it runs.
static: deps
	.ci/deps static
	@$(MAKE) build
	cmake --build $(BUILD) --target luatrace_static

# A Debian package: build/deb/lua-tracefs_VERSION_ARCHITECTURE.deb
deb: deps
	cmake -S . -B $(BUILD)/deb -DCMAKE_INSTALL_PREFIX=/usr -DLUATRACE_WERROR=ON \
		-DLUATRACE_LIBRARY=OFF
	cmake --build $(BUILD)/deb --parallel $(JOBS)
	cd $(BUILD)/deb && cpack

# Debian's kernels under QEMU. KERNEL="5.10 newest" boots these, SPEC="hist probes" runs these files
# of spec/vm/checks alone and shows every check.
vm: deps
	.ci/deps vm
	-@$(MAKE) static
	LUATRACE_VM_CHECKS="$(SPEC)" spec/vm/run $(if $(SPEC),-v) $(KERNEL)

# Debian's releases with their Lua, libraries and compiler, in a folder each: RELEASE="trixie sid".
matrix:
	.ci/deps matrix
	TESTS="$(TESTS)" .ci/matrix $(RELEASE)

# SECONDS for each of the fuzzers.
fuzz:
	spec/fuzz/run $(or $(SECONDS),20)

# So many random damages of trace files of each kind, under the address sanitizer: it takes hours.
damages:
	LUATRACE_DAMAGES=$(or $(COUNT),20000) .ci/sanitize address \
		spec/csrc/engine/datafile_made_spec.lua --filter="a damaged file"

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD) build-ci build.luarocks

.PHONY: build deps demo test bench fuzz damages lint format static deb vm matrix install clean
