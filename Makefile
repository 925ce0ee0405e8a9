# The recipes are scripts under scripts/, in plain sh, so that they run the
# same under the make 3.81 of macOS. Nothing here installs system packages.
SHELL := /bin/sh
.DEFAULT_GOAL := test

# How long each fuzz target runs.
FUZZTIME ?= 20s
# Which benchmarks run (a regular expression), and for how long each.
BENCH ?= .
BENCHTIME ?= 1s
# on: race detector where goroutines are (see scripts/test.sh); off: nowhere.
RACE ?= on
# More flags for go test, such as TESTFLAGS="-count=1 -v".
TESTFLAGS ?=
export FUZZTIME BENCH BENCHTIME RACE TESTFLAGS

.PHONY: test test-core lint bench fuzz docs help

test: ## lint, then all tests of every module (default)
	@sh scripts/test.sh all

test-core: ## gofmt, go vet and the tests of the root module; no linters needed
	@sh scripts/test.sh core

lint: ## gofmt, go vet, staticcheck, exhaustive switches, complexity
	@sh scripts/lint.sh

bench: ## all benchmarks with allocations (BENCH=, BENCHTIME=)
	@sh scripts/bench.sh

fuzz: ## every fuzz target for FUZZTIME each (20s)
	@sh scripts/fuzz.sh

docs: ## regenerate the generated pages under docs/
	@sh scripts/docs.sh

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
