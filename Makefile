# make demo    see it work
# make test    everything a change must pass
# make help    the rest

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/usher-mcp/usher/cli/cmdutil.version=$(VERSION)
PKGS    ?= ./...
PREFIX  ?= $(HOME)/.local

.PHONY: help build install setup test proof demo bench microbench docs man lint lint-quick fmt conformance fuzz clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

build: ## static binaries: bin/usher, and bin/usher-torture, which tests it
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/usher ./cmd/usher-torture

install: build ## copy bin/usher to PREFIX/bin (~/.local/bin)
	install -d '$(PREFIX)/bin'
	install -m 755 bin/usher '$(PREFIX)/bin/usher'

demo: build ## build, then run the tour with built-in servers
	@bin/usher demo

setup: ## install what the tests need, into .cache/
	@scripts/setup.sh

# Strict: a test that lacks something set-up installs fails instead of being skipped.
test: export USHER_TEST_STRICT = 1
test: setup lint-quick ## set-up, quick lint, race tests, conformance
	scripts/postgres.sh run go run ./test/canary go test -json -race -shuffle=on -timeout 9m $(PKGS)
	@$(MAKE) conformance

proof: export USHER_TEST_STRICT = 1
proof: export USHER_PROOF = 1
proof: setup ## the long forms of the tests
	scripts/postgres.sh run go test -race -shuffle=on -timeout 60m -count=1 -skip '^TestReplicasAddNoCost$$' $(PKGS)
	scripts/postgres.sh run go test -run '^TestReplicasAddNoCost$$' -timeout 30m -count=1 -v ./test/replicas # alone: it measures
	USHER_SIM_RUNS=1000000 go test -run '^TestSimulation$$' -timeout 60m -count=1 -v ./auth/grants
	@scripts/postgres.sh run go run ./test/conformance -all -doc docs/conformance.md

conformance: setup ## the official MCP conformance suite against usher
	@scripts/postgres.sh run go run ./test/conformance

bench: ## compare usher with alternatives; writes bench/results.json and docs/performance.md
	go run ./bench

microbench: ## Go benchmarks of single functions
	go test -run '^$$' -bench . -benchmem $(PKGS)

docs: ## write the generated parts of the documents
	@go run ./test/docs/gen

man: ## man pages: bin/man
	@go run ./test/docs/gen -man bin/man

lint-quick: setup
	@scripts/lint.sh quick

lint: setup ## format, vet for three systems, staticcheck, known vulnerabilities
	@scripts/lint.sh full

fmt: setup ## gofumpt everything
	@.cache/bin/gofumpt -w $$(git ls-files -co --exclude-standard '*.go')

fuzz: ## each fuzz target for FUZZTIME (10s)
	@scripts/fuzz.sh

clean: ## remove what was built and installed here
	rm -rf bin .cache test/.out
