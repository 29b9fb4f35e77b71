# Copyright The Setpoint Authors.
# SPDX-License-Identifier: Apache-2.0

# Needs Go, git, a POSIX shell and GNU make 3.81 or later. `make help` lists what
# there is. Everything is always handed to the go command, whose cache knows
# better than file times what is out of date.

.DEFAULT_GOAL := help
.NOTPARALLEL:

# Every module is built as its own go.mod says, not as the workspace would merge
# them: what is tested is what `go install` gives to a user.
export GOWORK := off

# Everything but the race detector does without C. The commands hold nothing of the machine they were built on, and run in an
# image that holds nothing else; and what the binaries, the tests and the linter compile is the same, and is compiled once.
# (With C, package net is another one, and with it all that imports it.)
export CGO_ENABLED := 0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BIN     := $(CURDIR)/bin
STEP    := $(CURDIR)/hack/step

# The version is stamped by the linker, and so not asked of git a second time.
BUILD := go build -v -buildvcs=false

# The race detector needs a C compiler, nothing else here does. The tests of these folders run without it: scripts start
# each of the commands many times, and a command with the detector takes a second of CPU to start.
RACE   := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)
WITH_C  = $(if $(RACE),CGO_ENABLED=1)
UNRACED := cmd examples hack

# Finds tests that fail now and then; go doc ./hack/flaky.
FLAKY := $(BIN)/tools/flaky
build-flaky = @$(STEP) 'building bin/tools/flaky' $(BUILD) -o $(FLAKY) ./hack/flaky

# Compiles the tests before one of them runs, and the library as the modules use it that tests write, because compilers that
# take all cores beside tests make servers of tests miss their deadlines. What does not compile is reported by go test, not here.
compile-tests = @GOGC=$(COLLECT) $(STEP) 'compiling the tests' sh -c '$(WITH_C) go list -e -export -test -f "" $(RACE) $(RACED); \
	go list -e -export -test -f "" $(PLAIN); for module in $(TESTED); do (cd $$module && go list -e -export -test -f "" ./...); done' || true

# Flags for go test, such as TESTFLAGS='-run Rollout -count=1'.
TESTFLAGS ?=
# How many tests that fail may run again, alone: one that passes then is named as
# flaky and fails nothing.
RETRIES ?= 0
# How many packages of the root module are tested at the same time. Tests wait for servers, but a server that starts
# takes a core for seconds: with six packages on two cores, servers and managers missed the deadlines of tests.
PARALLEL ?= 2
# Test binaries without tables for debuggers and without a symbol table: to link one takes a third less time, and there
# are more than a hundred. Stacks in panics and in reports of the race detector keep their lines.
LEAN := -ldflags=-s
# go test runs a part of go vet before the tests, which has to read every dependency first, for each set of build flags. make
# lint runs all analyzers of go vet on the same files, so make test does not. VET=atomic,printf chooses some.
VET ?= off
# Compilers, test binaries and the API servers of the tests collect garbage less often than by default: a server
# that starts and serves a package's tests then takes a fifth less CPU, for half as much memory again.
COLLECT ?= 300
# A process with the race detector sleeps before it ends, so that a race which another thread finds meanwhile is printed:
# 50 ms rather than 1 s. Every package of the root module is such a process.
ENDS := GORACE="atexit_sleep_ms=50 $$GORACE"
FUZZTIME  ?= 10s
# How long an input that is new or fails is made smaller: executions, or a time.
FUZZMINIMIZE ?= 100x
# What make flaky counts changes from, how often it runs each test, for how long
# at most, and which tests.
BASE  ?=
COUNT ?= 100
FOR   ?= 10m
RUN   ?= .
# The name of the image, without its tag, which is VERSION.
IMAGE ?= localhost/setpoint
# The time of all files of a release, in seconds since 1970: that of the commit.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# Empty, it leaves the control plane out of the archives of a release.
CONTROLPLANE ?= yes
# Arguments of `make up`, `make bench` and `make conformance`, such as ARGS='--nodes 10'.
ARGS ?=

# The folders of the root module with Go in them.
FOLDERS := $(sort $(foreach file,$(wildcard */*.go */*/*.go */*/*/*.go),$(firstword $(subst /, ,$(file)))))
MODULES := . controlplane adapters browser $(patsubst %/go.mod,%,$(wildcard bench/go.mod)) generate release tools
TESTED  := $(filter-out . tools,$(MODULES))
RACED   := $(patsubst %,./%/...,$(filter-out $(UNRACED) $(MODULES),$(FOLDERS)))
PLAIN   := $(patsubst %,./%/...,$(UNRACED))

# What tests against a real API server start. They are built first, always.
export SETPOINT_BIN              := $(BIN)/setpoint
export SETPOINT_CONTROLPLANE_BIN := $(BIN)/setpoint-controlplane
export KUBECTL                   := $(BIN)/kubectl
export KUBE_CONTROLLER_MANAGER   := $(BIN)/kube-controller-manager

include kubernetes.mk

.PHONY: help
help: ## list the targets
	@echo 'make TARGET, where TARGET is one of'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-24s %s\n", $$1, $$2 }' $(MAKEFILE_LIST) | sort
	@echo 'and variables are VERSION, TESTFLAGS, RETRIES and PARALLEL (for test), BASE, COUNT, FOR and RUN (for flaky),'
	@echo 'IMAGE (for image), CONTROLPLANE (for release), SOURCE_DATE_EPOCH (for both), FUZZTIME, FUZZMINIMIZE, and ARGS (for up, bench and conformance).'

## Building and running

.PHONY: build
build: setpoint setpoint-watch setpoint-generate setpoint-controlplane ## build every binary of the project into bin/

.PHONY: setpoint
setpoint: ## build bin/setpoint: the command, the manager and the library's own code
	@$(STEP) 'building bin/setpoint' $(BUILD) -ldflags '-X main.version=$(VERSION)' -o $(BIN)/setpoint ./cmd/setpoint

.PHONY: setpoint-watch
setpoint-watch: ## build bin/setpoint-watch: what "setpoint watch" hands over to
	@$(STEP) 'building bin/setpoint-watch' $(BUILD) -ldflags '-X main.version=$(VERSION)' -o $(BIN)/setpoint-watch ./cmd/setpoint-watch

.PHONY: setpoint-generate
setpoint-generate: ## build bin/setpoint-generate: what "setpoint generate" hands over to
	@cd generate && $(STEP) 'building bin/setpoint-generate' $(BUILD) -o $(BIN)/setpoint-generate ./cmd/setpoint-generate

.PHONY: up
up: build ## build, then start control plane, nodes and manager, and stay until Ctrl-C
	@$(BIN)/setpoint up $(ARGS)

.PHONY: pictures
pictures: build kubectl ## draw docs/pictures anew, from real runs of setpoint up and setpoint watch (on Linux)
	@go run ./hack/pictures -out docs/pictures -setpoint $(BIN)/setpoint -kubectl $(KUBECTL)

.PHONY: page-pictures
page-pictures: build kubectl ## take the pictures of the page anew, in a real Chromium and a cluster of setpoint up
	@cd browser && go build -o $(BIN)/page-pictures ./pictures
	@$(BIN)/setpoint up --nodes 2 -- $(BIN)/page-pictures -out docs/pictures -setpoint $(BIN)/setpoint -kubectl $(KUBECTL)

.PHONY: gates
gates: ## write the table of the feature gates of Kubernetes anew (downloads four versions)
	go run ./hack/gates

## Releasing

# release runs the program in release/, which writes into bin/release.
release = cd release && go run -buildvcs=false . -version '$(VERSION)' -revision '$(shell git rev-parse HEAD 2>/dev/null || echo unknown)' \
	-time '$(SOURCE_DATE_EPOCH)' -name '$(IMAGE)' -out $(BIN)/release \
	$(if $(CONTROLPLANE),-controlplane '$(KUBERNETES_LDFLAGS) -X main.version=$(VERSION)')

.PHONY: image
image: ## write the image for linux/amd64 and linux/arm64 into bin/release, without Docker
	@$(release) image

.PHONY: release
release: ## write the image, archives, their sums and bills of materials into bin/release (first time: minutes for each platform)
	@$(release) all

.PHONY: manifests
manifests: setpoint ## write the rights in deploy/manager anew
	@printf '%s\n' '# Made by "make manifests": setpoint manager rbac $(MANAGER_RIGHTS)' >deploy/manager/rbac.yaml
	@$(BIN)/setpoint manager rbac $(MANAGER_RIGHTS) >>deploy/manager/rbac.yaml

MANAGER_RIGHTS := --service-account kube-system/setpoint-manager --use-service-account-credentials

.PHONY: clean
clean: ## remove everything that was built here (Go's own cache stays)
	rm -rf bin dist

## Testing

.PHONY: test
test: build kubectl kube-controller-manager ## run all tests of all modules, those against a real API server included
	@$(if $(RACE),,echo 'no C compiler: testing without the race detector')
	$(build-flaky)
	$(compile-tests)
	@GOGC=$(COLLECT) $(ENDS) $(FLAKY) retry -retries $(RETRIES) -report $(BIN)/flaky.txt \
		-- . $(WITH_C) $(RACE) $(LEAN) -vet=$(VET) -p $(PARALLEL) -timeout 40m $(TESTFLAGS) $(RACED) \
		-- . $(LEAN) -vet=$(VET) -p $(PARALLEL) -timeout 40m $(TESTFLAGS) $(PLAIN) \
		$(foreach module,$(TESTED),-- $(module) $(LEAN) -vet=$(VET) -timeout 40m $(TESTFLAGS))

.PHONY: first-hour
first-hour: build kubectl ## run the first hour of a new user as a test, and print what the terminals show
	@status=0; FIRST_HOUR=$(BIN)/first-hour go test -count=1 -run TestTheFirstHour ./cmd/setpoint || status=1; \
	for terminal in $(BIN)/first-hour/*.txt; do printf '\n=== %s\n' "$$(basename $$terminal)"; cat $$terminal; done; exit $$status

.PHONY: flaky
flaky: build kubectl ## run the tests of the packages that changed since BASE COUNT times, under load
	$(build-flaky)
	@$(WITH_C) $(FLAKY) hunt $(RACE) -base '$(BASE)' -count $(COUNT) -for $(FOR) -run '$(RUN)' -out $(BIN)/flaky

.PHONY: conformance
conformance: setpoint setpoint-controlplane ## run the tests of other projects on what is built here, and print how many pass (downloads them)
	@cd adapters && go run ./clientgo/conformance && go run ./controllerruntime/conformance
	@assets=$$($(BIN)/setpoint assets) && go run ./hack/conformance -assets "$$assets" $(ARGS)

.PHONY: conformance-controller-runtime
conformance-controller-runtime: setpoint setpoint-controlplane ## run controller-runtime's own tests on NewCache, and print how many pass
	@cd adapters && go run ./controllerruntime/conformance

.PHONY: conformance-operators
conformance-operators: setpoint setpoint-controlplane ## run the tests of operators with and without NewCache, and print how many pass (downloads them)
	@assets=$$($(BIN)/setpoint assets) && go run ./hack/conformance -assets "$$assets" -adapters adapters $(ARGS)

.PHONY: test-short
test-short: ## run the tests that need no API server, in a minute
	$(WITH_C) go test $(RACE) -short $(TESTFLAGS) ./...

.PHONY: cover
cover: build kubectl kube-controller-manager ## run the tests of the library and write bin/coverage.html
	go test -timeout 20m -coverpkg ./... -coverprofile $(BIN)/coverage.out $(TESTFLAGS) ./...
	go tool cover -html $(BIN)/coverage.out -o $(BIN)/coverage.html
	@go tool cover -func $(BIN)/coverage.out | tail -n 1

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME: minutes all in all, to see that each works
	@status=0; $(CURDIR)/hack/fuzz $(FUZZTIME) $(FUZZMINIMIZE) || status=1; \
	(cd controlplane && $(CURDIR)/hack/fuzz $(FUZZTIME) $(FUZZMINIMIZE)) || status=1; exit $$status

.PHONY: fuzz-nightly
fuzz-nightly: ## run every fuzz target for ten minutes, and minimize more: a night all in all
	@$(MAKE) --no-print-directory fuzz FUZZTIME=10m FUZZMINIMIZE=10s

.PHONY: bench
bench: build kubectl kube-controller-manager ## measure everything in docs/performance.md side by side with the peers, and write its tables; or the case in ARGS
	cd bench && go run . $(or $(ARGS),figures)

## Checking

.PHONY: lint
lint: golangci-lint ## look for mistakes in every module, by the rules in .golangci.yml
	@status=0; for module in $(filter-out tools,$(MODULES)); do \
		echo "golangci-lint run, in $$module"; \
		(cd $$module && $(BIN)/tools/golangci-lint run --config $(CURDIR)/.golangci.yml) || status=1; \
	done; exit $$status

.PHONY: fmt
fmt: golangci-lint ## format the code of every module
	@for module in $(filter-out tools,$(MODULES)); do \
		(cd $$module && $(BIN)/tools/golangci-lint fmt --config $(CURDIR)/.golangci.yml) || exit 1; \
	done

.PHONY: tidy
tidy: ## make every go.mod and go.sum say what the code needs
	@for module in $(MODULES); do (cd $$module && go mod tidy) || exit 1; done

.PHONY: tidy-check
tidy-check: ## fail if tidy would change something
	@status=0; for module in $(MODULES); do \
		(cd $$module && go mod tidy -diff) || { echo "$$module/go.mod is not tidy: run make tidy"; status=1; }; \
	done; exit $$status

# The library is looked at call by call. The control plane is looked at as it was
# built: to read the source of all of Kubernetes takes longer than to build it.
.PHONY: vuln
vuln: govulncheck setpoint-controlplane ## look for known vulnerabilities in what is built
	@status=0; \
	$(BIN)/tools/govulncheck ./... || status=1; \
	$(BIN)/tools/govulncheck -mode binary $(BIN)/setpoint-controlplane || status=1; \
	exit $$status

## Tools, at the versions of tools/go.mod

# tool builds the tool with the import path $(1).
tool = @cd tools && $(STEP) 'building bin/tools/$(@F)' $(BUILD) -o $(BIN)/tools/$(@F) $(1)

.PHONY: golangci-lint
golangci-lint: ## build bin/tools/golangci-lint
	$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

.PHONY: govulncheck
govulncheck: ## build bin/tools/govulncheck
	$(call tool,golang.org/x/vuln/cmd/govulncheck)

.PHONY: benchstat
benchstat: ## build bin/tools/benchstat, which compares the outputs of two benchmark runs
	$(call tool,golang.org/x/perf/cmd/benchstat)
