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
# The seed of the property tests. Empty: derived from the commit, or 1 without
# git. 0: another one each time.
RAPID_SEED ?=
# The module that make lint checks, by its directory. Empty: all of them.
MODULE ?=
# Which mistakes make mutants draws, and how many.
SEED ?= 1
COUNT ?= 60
export FUZZTIME BENCH BENCHTIME RACE TESTFLAGS RAPID_SEED MODULE

.PHONY: test test-core prove soak lint bench bench-kubernetes fuzz mutants docs compat try-kubernetes help

test: ## lint, then the tests of every module, 10 min (default)
	@sh scripts/test.sh all

test-core: ## gofmt, go vet and the short tests of the root module; no linters needed, 2 min
	@sh scripts/test.sh core

prove: ## the long tests that make test shortens, and a soak of 2 min: 20 min
	@sh scripts/test.sh prove

soak: ## a soak of 10 min, then 40 quickstarts that are killed and go on after up to a minute (SOAK=1h RUNS=100)
	@sh scripts/soak.sh

lint: ## gofmt, go vet, staticcheck, exhaustive switches, revive (MODULE=examples)
	@sh scripts/lint.sh

bench: ## all benchmarks with allocations (BENCH=, BENCHTIME=)
	@sh scripts/bench.sh

bench-kubernetes: ## machines created, rolled and deleted on a real API server, as a table (BENCHFLAGS="-large 0 -settled 0"), about 10 min
	@GOWORK=off go -C cmd/millwright-manager run ./bench $(BENCHFLAGS)

fuzz: ## every fuzz target for FUZZTIME each (20s)
	@sh scripts/fuzz.sh

mutants: ## COUNT (60) random mistakes in the core, drawn by SEED (1): the score, and those no test notices; 10 to 30 min
	@GOWORK=off go -C test/mutation run ./mutants -seed $(SEED) -count $(COUNT)

docs: ## regenerate the generated pages under docs/
	@sh scripts/docs.sh

compat: ## what callers of the last tag would have to change, by apidiff
	@sh scripts/compat.sh

try-kubernetes: ## an API server with the manager, a simulated provider and a sample; Ctrl-C ends it
	@GOWORK=off go -C cmd/millwright-manager run ./try

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
