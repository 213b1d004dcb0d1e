# Everything that is done to this repository, one target each; CI calls the same ones.
# Tools are pinned here and in tools/go.mod, and live in bin/ and .cache/; nothing is installed outside the checkout.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_VERSION := v2.15.0
BUF_VERSION      := 1.75.0
VERSION          ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

LINT     := bin/golangci-lint-$(GOLANGCI_VERSION)
BUF_DIR  := .cache/buf-$(BUF_VERSION)
BUF      := $(BUF_DIR)/node_modules/.bin/buf
BASELINE := proto/baseline.binpb
# What the page is built with, pinned in page/package-lock.json.
PAGE     := page/node_modules/.package-lock.json
# The browser of its tests. That without a window of its own works less than half as much for each page.
export CHROMIUM ?= $(firstword $(wildcard /usr/bin/chromium-headless-shell) /usr/bin/chromium)
CHROMIUM_CHECK := [ -x '$(CHROMIUM)' ] || { echo 'make: there is no $(CHROMIUM): apt-get install chromium-headless-shell, or set CHROMIUM' >&2; exit 1; }

# Where images of containers keep Python from storing what it has compiled, each process of the tests would compile
# the SDK anew.
unexport PYTHONDONTWRITEBYTECODE

# Python 3.10 or newer with venv. What CI installs is pinned in sdk/python/constraints.txt.
PYTHON ?= python3
PYENV  ?= .cache/python
VENV   := $(abspath $(PYENV))
# The venv with LangGraph: in the version of constraints.txt, or in that of LANGGRAPH.
ORACLE := $(if $(LANGGRAPH),$(abspath .cache/oracle-$(LANGGRAPH)),$(VENV))
# The generated modules come from an old protoc, so that they run with every protobuf from 4.25 on. Its
# wheels end with Python 3.12, and it does not share a venv with a newer protobuf.
GRPC_TOOLS_VERSION := 1.62.3
GENERATOR          := .cache/grpcio-tools-$(GRPC_TOOLS_VERSION)
PYTHON_CODE        := . ../../examples ../../tests/chaos ../../tests/ledger ../../tests/moves ../../bench

# What the TypeScript SDK is built and tested with, pinned in sdk/typescript/package-lock.json.
TS         := sdk/typescript
TS_MODULES := $(TS)/node_modules/.package-lock.json
# The SDK as programs import it, for tests that run workers.
TS_BUILD   := $(TS)/.build/index.js

# The JavaScript SDK of LangGraph Server, pinned in tests/langgraph-js/package-lock.json.
LANGGRAPH_JS := tests/langgraph-js/node_modules/.package-lock.json
# What examples/chat-ui is built and tested with, pinned in its package-lock.json.
CHAT_UI      := examples/chat-ui/node_modules/.package-lock.json

# For which platforms make wheels builds, or host for this machine alone.
WHEELS      ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# Versions of Python for make test-pythons, like 3.10 3.13; all that are supported when empty.
PYTHONS     ?=
HOST         = $(shell go env GOHOSTOS)/$(shell go env GOHOSTARCH)

# The race detector leaves out SQLite itself and its C library, which are C made into Go and work on memory of their
# own; SQLite takes six times as long with it. All builds have the same flags, so that Go compiles each package once.
RACE        := -race $(patsubst %,-gcflags=%=-race=false,modernc.org/sqlite/lib modernc.org/libc modernc.org/memory)
# CI sets GOTEST to a runner that ends with a count; GOTESTFLAGS adds to it, e.g. -run=Resume.
GOTEST      ?= go test
GOTESTFLAGS ?=
# How long the tests of one package may take on the busiest machine.
GOTIMEOUT   ?= 30m
PKG         ?= ./...
# The long ones begin first. Many tests wait for disks and clocks, so there are more packages than processors.
TESTED      := $(patsubst ./...,./tests/hostile ./internal/runtime/engine ./cmd/graphd ./tests/... ./...,$(PKG))
GOPACKAGES  ?= $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
FUZZTIME    ?= 10s
BENCH       ?= .
BENCHFLAGS  ?=
BENCHMARK   := $(abspath .cache/bench)
# How many questions are open in make bench-inbox; as many as the store is for when empty.
COUNT       ?=
INBOX       := $(abspath .cache/bench-inbox)
THREADS     := $(abspath .cache/bench-threads)
LIVE        := $(abspath .cache/bench-live)
# The commit beside whose build make bench-builds measures this one.
BEFORE      ?= HEAD~1
BUILDS      := $(abspath .cache/bench-builds)
PYTESTFLAGS ?=
VITESTFLAGS ?=
# Versions of Node for make ts-pack.
NODES       ?= 20 22 24
SEEDS       ?= 200
LANGGRAPH   ?=
RUNS        ?= 1000
KILLS       ?= 300
BUSY        ?= 8
BUSY_RUNS   ?= 5
RESUME      ?=
MOVES       ?= 30
FAILOVERS   ?= 3
THREADS     ?= 1000
SOAK        ?= 30m
SEED        ?= $(shell date +%s)
FIRST       ?= 1
KINDS       ?= redis sqlite
VULNDB      ?= https://vuln.go.dev
ANSWER      ?= {"decision":"approved_with_conditions","conditions":"10% restocking fee"}

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: lint generate-check api-check test ## What must pass before a push: lint, generate-check, api-check, test

.PHONY: hook
hook: ## Have git run make check before each push of this clone (remove the hook pre-push to end that)
	@hook="$$(git rev-parse --git-path hooks/pre-push)"; \
	[ ! -e "$$hook" ] || { echo "make: $$hook exists already" >&2; exit 1; }; \
	mkdir -p "$${hook%/*}"; \
	printf '#!/bin/sh\nunset $$(git rev-parse --local-env-vars)\nexec make check </dev/null\n' >"$$hook"; \
	chmod +x "$$hook"; echo "git runs make check before each push: $$hook"

.PHONY: build
build: ## Build bin/graphd
	CGO_ENABLED=0 go build -trimpath -ldflags='-X main.version=$(VERSION)' -o bin/graphd ./cmd/graphd

.PHONY: test
test: $(VENV)/ok $(PAGE) $(TS_BUILD) $(LANGGRAPH_JS) $(CHAT_UI) build ## Run all tests: go-test, python-test, page-smoke, examples, ts-test, bench-smoke and langgraph-js-test, three at a time
	$(MAKE) --no-print-directory -j3 --output-sync=target go-test python-test page-smoke examples ts-test bench-smoke langgraph-js-test

.PHONY: go-test
go-test: $(VENV)/ok $(TS_BUILD) build ## Run the Go tests with the race detector, in random order; make lint vets (PKG=./internal/graph/... narrows)
	GRAPHD_BIN='$(CURDIR)/bin/graphd' TEST_VERSION='$(VERSION)' TEST_PYTHON='$(VENV)/bin/python' $(GOTEST) $(RACE) -vet=off -ldflags='-s -w' -shuffle=on -p=$(GOPACKAGES) -timeout=$(GOTIMEOUT) $(GOTESTFLAGS) $(TESTED)

.PHONY: python-test
python-test: $(VENV)/ok build ## Test the Python SDK and its conformance cases against a real server (PYTESTFLAGS="-k memo" narrows)
	cd sdk/python && GRAPHD_BIN='$(CURDIR)/bin/graphd' '$(VENV)/bin/python' -m pytest -q $(PYTESTFLAGS)

.PHONY: ts-test
ts-test: $(TS_MODULES) build ## Test the TypeScript SDK against a real server (VITESTFLAGS="-t codec" narrows)
	cd $(TS) && GRAPHD_BIN='$(CURDIR)/bin/graphd' node_modules/.bin/vitest run $(VITESTFLAGS)

.PHONY: langgraph-js-test
langgraph-js-test: $(LANGGRAPH_JS) build ## Test the API of LangGraph Server with its JavaScript SDK and its React hook
	cd tests/langgraph-js && GRAPHD_BIN='$(CURDIR)/bin/graphd' node --test --test-timeout=300000

.PHONY: langgraph-kills
langgraph-kills: $(VENV)/ok build ## Kill servers under streams of LangGraph's SDK, KILLS (100) times: each update comes once
	cd sdk/python && KILLS='$(if $(filter file,$(origin KILLS)),100,$(KILLS))' GRAPHD_BIN='$(CURDIR)/bin/graphd' '$(VENV)/bin/python' -m pytest -q tests/test_langgraph_api.py -k killed

.PHONY: ts-build
ts-build: $(TS_BUILD) ## Build the TypeScript SDK for the Go tests that run its workers

.PHONY: ts-pack
ts-pack: $(TS_MODULES) build ## Pack the TypeScript SDK, and try the file in an empty project on NODES (20 22 24; empty: the Node that is here)
	cd $(TS) && GRAPHD_BIN='$(CURDIR)/bin/graphd' node tools/pack.mjs $(NODES)

.PHONY: examples
examples: $(VENV)/ok $(CHAT_UI) build ## Run the examples as people do: servers, workers, the command line and Chromium as processes
	@$(CHROMIUM_CHECK)
	GRAPHD_BIN='$(CURDIR)/bin/graphd' go test -C examples/notify-mail $(RACE) -vet=off -timeout=$(GOTIMEOUT) ./...
	GRAPHD_BIN='$(CURDIR)/bin/graphd' go test -C examples/notify-chat $(RACE) -vet=off -timeout=$(GOTIMEOUT) ./...
	go test -C examples/handler-go $(RACE) -vet=off -timeout=$(GOTIMEOUT) ./...
	GRAPHD_BIN='$(CURDIR)/bin/graphd' go test -C examples/worker-go $(RACE) -vet=off -timeout=$(GOTIMEOUT) ./...
	cd sdk/python && GRAPHD_BIN='$(CURDIR)/bin/graphd' '$(VENV)/bin/python' -m pytest -q -c pyproject.toml \
		$(PYTESTFLAGS) ../../examples
	cd examples/chat-ui && node_modules/.bin/tsc --noEmit
	cd examples/chat-ui && GRAPHD_BIN='$(CURDIR)/bin/graphd' PYTHON='$(VENV)/bin/python' node --test --test-timeout=600000

.PHONY: oracle
oracle: $(ORACLE)/ok build ## Play the recorded cases on LangGraph, and SEEDS (200) random graphs on it and on graphd (FIRST=number of the first, LANGGRAPH=1.2.11 takes another release)
	cd sdk/python && GRAPHD_BIN='$(CURDIR)/bin/graphd' PYTHONPATH=. '$(ORACLE)/bin/python' -W ignore -m oracle \
		--seeds $(SEEDS) --first $(FIRST)

.PHONY: oracle-ts
oracle-ts: $(ORACLE)/ok $(TS_MODULES) build ## Play SEEDS (200) random graphs on LangGraph, and on graphd with nodes in TypeScript (FIRST=number of the first)
	GRAPHD_BIN='$(CURDIR)/bin/graphd' ORACLE_PYTHON='$(ORACLE)/bin/python' tools/oracle-ts $(SEEDS) $(FIRST)

.PHONY: oracle-newest
oracle-newest: ## The same with the newest release of LangGraph that there is: a weekly run shows what it does differently
	rm -rf .cache/oracle-newest
	$(MAKE) --no-print-directory oracle LANGGRAPH=newest

.PHONY: oracle-coverage
oracle-coverage: $(ORACLE)/ok ## Count how many of 5000 seeds of the oracle draw each feature; fail if one is drawn by fewer than 50
	cd sdk/python && PYTHONPATH=. '$(ORACLE)/bin/python' -W ignore -m oracle --coverage --seeds 5000

.PHONY: hostile
hostile: ## Give a server with 1 GiB what an attacker would give it, and judge how long a bystander waits
	go test ./tests/hostile -run=HostileSet -count=1 -v -timeout=1h -args -long

.PHONY: chaos
chaos: $(VENV)/ok $(TS_BUILD) ## Break workers in three languages, network and server under RUNS (1000) runs; SEED=number draws the same faults again
	TEST_PYTHON='$(VENV)/bin/python' go test ./tests/chaos -run=EveryRun -count=1 -v -timeout=2h \
		-args -runs=$(RUNS) -seed=$(SEED) -limit=110m

.PHONY: crash
crash: ## Let every store call of every drama fail in every way, in memory and on SQLite, and break a migration off everywhere (make test tries some of them)
	go test ./internal/runtime/engine -run='^TestCrash' -count=1 -timeout=2h -args -crash-every=1
	go test ./tests/upgrade -run=BrokenOff -count=1 -args -every=1

.PHONY: ledger
ledger: $(VENV)/ok ## Kill servers KILLS (300) times on each store while workers have effects, and count the effects; SEED=number draws the same kills again
	TEST_PYTHON='$(VENV)/bin/python' go test ./tests/ledger -run=Effects -count=1 -v -timeout=3h \
		-args -kills=$(KILLS) -seed=$(SEED) -every=4s -limit=170m

.PHONY: faults
faults: ## Break servers, Redis, clocks and the network between under THREADS (1000) threads with a question each; SEED=number draws the same faults again
	go test -tags=faults ./tests/replicas -count=1 -v -parallel=1 -timeout=2h \
		-args -threads=$(THREADS) -watchers=2000 -over=1m -seed=$(SEED) -limit=30m

.PHONY: soak
soak: ## The same again and again for SOAK (30m), each time with other faults
	tools/soak '$(SOAK)' '$(SEED)' '$(THREADS)'

.PHONY: test-cluster
test-cluster: ## Test on Redis clusters of three nodes; a slot moves MOVES (30) times, FAILOVERS (3) masters die
	go test ./internal/checkpoint/redis -run=Cluster -count=1 -v -timeout=20m -args -moves=$(MOVES) -failovers=$(FAILOVERS)
	go test ./cmd/graphd -run=Cluster -count=1 -v

.PHONY: test-servers
test-servers: $(VENV)/ok build ## Test on Valkey, and see an old Redis refused (fetches both where they are missing)
	tools/test-servers '$(VENV)/bin'

.PHONY: flake
flake: $(VENV)/ok ## Run the tests RUNS (10) times quiet and BUSY_RUNS (5) times beside BUSY (8) busy processes, and count failures (PKG= narrows, RESUME=yes goes on)
	TEST_PYTHON='$(VENV)/bin/python' tools/flake --runs '$(if $(filter file,$(origin RUNS)),10,$(RUNS))' \
		--busy-runs '$(BUSY_RUNS)' --busy '$(BUSY)' --timeout '$(GOTIMEOUT)' $(if $(RESUME),--resume) $(PKG)

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target for FUZZTIME (10s)
	tools/fuzz '$(FUZZTIME)' $(PKG)

.PHONY: format
format: ## Take over what the stores now write, while no store of that number is frozen (see CONTRIBUTING.md)
	go test ./internal/checkpoint/redis ./internal/checkpoint/sqlite -run='^TestFormat$$' -count=1 -args -update-format

.PHONY: freeze
freeze: ## Keep stores of the present formats for ever, for tests/upgrade (KINDS="redis sqlite")
	tools/freeze '$(KINDS)'

.PHONY: bench
bench: $(VENV)/ok bench-build bench-peers ## Measure graphd beside its limits and peers, six minutes (see bench; BENCHFLAGS="--only W1")
	cd bench && '$(BENCHMARK)' --python '$(VENV)/bin/python' --out results $(BENCHFLAGS)

.PHONY: bench-full
bench-full: $(VENV)/ok bench-build bench-peers ## The same for longer, with 100,000 parked threads and all numbers of clients
	cd bench && '$(BENCHMARK)' --python '$(VENV)/bin/python' --size full --out results $(BENCHFLAGS)

.PHONY: bench-smoke
bench-smoke: $(VENV)/ok bench-build ## Try whether the benchmark works: one short round; fails on broken, never on slow
	cd bench && go test $(RACE) -vet=off -timeout=$(GOTIMEOUT) ./... && '$(BENCHMARK)' --python '$(VENV)/bin/python' --size smoke --peers= $(BENCHFLAGS)
	cd bench && '$(INBOX)' --chromium '$(CHROMIUM)' --size smoke
	cd bench && '$(BUILDS)' --before ../bin/graphd --now ../bin/graphd --rounds 1 --for 100ms
	cd bench && '$(THREADS)' --count 500 --repeat 2
	cd bench && '$(LIVE)' -stores memory,sqlite -runs 20 -for 100ms -kill

.PHONY: bench-inbox
bench-inbox: bench-build ## Measure the inbox with 1,000,000 open questions on Redis and 100,000 on SQLite (COUNT=20000 on each; BENCHFLAGS="--stores sqlite")
	cd bench && '$(INBOX)' --chromium '$(CHROMIUM)' --count '$(or $(COUNT),0)' --out results $(BENCHFLAGS)

.PHONY: bench-threads
bench-threads: bench-build ## Measure pages after an offset, and counts, of 100,000 threads in memory, on SQLite and on Redis (BENCHFLAGS="--count 20000")
	cd bench && '$(THREADS)' $(BENCHFLAGS)

.PHONY: bench-builds
bench-builds: bench-build ## Measure this build beside that of another commit (BEFORE=commit; BENCHFLAGS="--workloads W1,W2")
	rm -rf .cache/before && mkdir -p .cache/before && git archive '$(BEFORE)' | tar -x -C .cache/before
	CGO_ENABLED=0 go build -C .cache/before -trimpath -o graphd ./cmd/graphd
	cd bench && '$(BUILDS)' --before ../.cache/before/graphd --now ../bin/graphd $(BENCHFLAGS)

.PHONY: bench-peers
bench-peers: ## Install what graphd is measured beside into .cache/peers (see bench/peer)
	PYTHON='$(PYTHON)' bench/peer/install.sh '$(CURDIR)/.cache/peers'
	go build -C bench/peer/embedded -trimpath -o '$(CURDIR)/.cache/peers/embedded/bin/embedded' .

.PHONY: bench-build
bench-build: build
	CGO_ENABLED=0 go build -C bench -trimpath -o '$(BENCHMARK)' .
	CGO_ENABLED=0 go build -C bench -trimpath -o '$(INBOX)' ./inbox
	CGO_ENABLED=0 go build -C bench -trimpath -o '$(BUILDS)' ./builds
	CGO_ENABLED=0 go build -C bench -trimpath -o '$(THREADS)' ./threads
	CGO_ENABLED=0 go build -C bench -trimpath -o '$(LIVE)' ./live

.PHONY: go-bench
go-bench: ## Run the Go benchmarks (BENCH=regexp narrows)
	go test -run='^$$' -bench='$(BENCH)' -benchmem $(PKG)

.PHONY: bench-remote
bench-remote: $(VENV)/ok $(TS_BUILD) build ## Measure chains of nodes in Python, Go and TypeScript beside bare gRPC calls and LangGraph (see bench/remote)
	go run -C bench ./remote -graphd='$(CURDIR)/bin/graphd' -python='$(VENV)/bin/python' \
		-langgraph-python='$(LANGGRAPH_PYTHON)' -scripts=remote -typescript='$(CURDIR)/$(TS_BUILD)'

# LangGraph Server as its developers run it, of bench/langgraph/requirements.txt, and its client.
LANGGRAPH_API := $(abspath .cache)/langgraph-api

.PHONY: bench-tokens
bench-tokens: ## Measure how pieces of messages reach many watchers (see bench/tokens; BENCHFLAGS="-rates 1000 -watchers 300")
	go run -C bench ./tokens $(BENCHFLAGS)

.PHONY: bench-live
bench-live: bench-build ## Measure runs that wait for workers: memory, processor, commands of Redis, takeover (see bench/live; BENCHFLAGS="-runs 10000 -kill")
	cd bench && '$(LIVE)' $(BENCHFLAGS)

.PHONY: sim
sim: ## Play a thousand servers in virtual time: tables, and the graph in docs/pictures/sim.svg (SIMFLAGS="-servers 100"; see docs/performance.md)
	go run ./internal/sim/play -graph docs/pictures/sim.svg $(SIMFLAGS)

.PHONY: bench-langgraph
bench-langgraph: $(LANGGRAPH_API)/ok build ## Measure LangGraph's SDK on graphd beside `langgraph dev` and graphd's SDK (see bench/langgraph; BENCHFLAGS="--rounds 3")
	'$(LANGGRAPH_API)/bin/python' bench/langgraph/measure.py --graphd bin/graphd $(BENCHFLAGS)

$(LANGGRAPH_API)/ok: bench/langgraph/requirements.txt sdk/python/pyproject.toml
	$(PYTHON) -m venv --clear '$(@D)'
	'$(@D)/bin/pip' install -q --disable-pip-version-check -r bench/langgraph/requirements.txt -e sdk/python
	@touch '$@'

.PHONY: lint
lint: go-lint mod-lint python-lint page-lint ts-lint $(BUF) ## Check the Go code, the go.mod files, the Python code, the page, the TypeScript SDK and the protos
	$(BUF) format --diff --exit-code proto
	$(BUF) lint

# The linter asks for compiled packages: with the flags of the tests they are there already.
RUN_LINT    := GOFLAGS='$(strip $(GOFLAGS) $(RACE))' '$(CURDIR)/$(LINT)' run

.PHONY: go-lint
go-lint: $(LINT) ## Check the Go code
	$(RUN_LINT) $(PKG)
	for module in bench bench/peer/embedded examples/notify-mail examples/notify-chat examples/handler-go examples/worker-go; do (cd "$$module" && $(RUN_LINT) ./...) || exit; done

.PHONY: mod-lint
mod-lint: ## Fail if go mod tidy would change a go.mod or go.sum
	for module in . bench bench/peer/embedded tools examples/notify-mail examples/notify-chat examples/handler-go examples/worker-go; do go -C "$$module" mod tidy -diff; done

.PHONY: python-lint
python-lint: $(VENV)/ok ## Check the Python code and its types
	cd sdk/python && '$(VENV)/bin/ruff' check --config pyproject.toml $(PYTHON_CODE)
	cd sdk/python && '$(VENV)/bin/ruff' format --check --config pyproject.toml $(PYTHON_CODE)
	cd sdk/python && '$(VENV)/bin/mypy'
	'$(VENV)/bin/mypy' --strict --config-file= sdk/python/hatch_build.py sdk/python/tests/typing/*.py examples/*.py examples/*/*.py tests/chaos/*.py tests/ledger/*.py tests/moves/*.py
	PYRIGHT_PYTHON_CACHE_DIR='$(CURDIR)/.cache/pyright' '$(VENV)/bin/pyright' -p sdk/python/tests/typing --pythonpath '$(VENV)/bin/python'

.PHONY: ts-lint
ts-lint: $(TS_MODULES) ## Check the TypeScript SDK: its types, format and rules
	cd $(TS) && node_modules/.bin/tsc --noEmit
	cd $(TS) && node_modules/.bin/biome check --error-on-warnings .

.PHONY: page-smoke
page-smoke: $(PAGE) build ## Test the main flows of the page in Chromium, on memory, SQLite and Redis; pictures are in .cache/page
	@$(CHROMIUM_CHECK)
	cd page && GRAPHD_BIN='$(CURDIR)/bin/graphd' node --test --test-timeout=600000 --test-concurrency=1 tests/

.PHONY: page-test
page-test: $(PAGE) build ## Test the page in Chromium as a whole: each screen in each theme and width, and what takes long
	@$(CHROMIUM_CHECK)
	cd page && GRAPHD_BIN='$(CURDIR)/bin/graphd' PAGE_TESTS=all node --test --test-timeout=600000 --test-concurrency=1 tests/

.PHONY: pictures
pictures: $(PAGE) build drawings ## Take the pictures of docs/pictures anew, in Chromium; page-smoke and page-test compare them
	@$(CHROMIUM_CHECK)
	cd page && GRAPHD_BIN='$(CURDIR)/bin/graphd' UPDATE_PICTURES=yes node --test --test-timeout=600000 --test-concurrency=1 tests/pictures.test.mjs

.PHONY: page-lint
page-lint: $(PAGE) $(BUF) ## Check the types of the page
	rm -rf page/gen && cd page && '$(CURDIR)/$(BUF)' generate .. --template buf.gen.yaml
	cd page && node_modules/.bin/tsc --noEmit

.PHONY: fmt
fmt: $(LINT) $(VENV)/ok $(BUF) ## Format the Go code, the Python code and the protos
	$(LINT) fmt
	cd sdk/python && '$(VENV)/bin/ruff' format --config pyproject.toml $(PYTHON_CODE)
	$(BUF) format --write proto

.PHONY: generate
generate: go-generate python-generate ts-generate cli-reference roles-reference langgraph-names page drawings ## Generate gen/ and the code of both SDKs from proto/, tables and drawings of docs/ from the code, and the page from its sources

.PHONY: page
page: $(PAGE) ## Build page/dist, the page that is in the binary, from page/src
	cd page && node build.mjs

.PHONY: drawings
drawings: ## Draw the graph of the demo in docs/pictures
	go run ./cmd/graphd graph draw examples/refund-review/graph.yaml --file docs/pictures/refund-review.svg

.PHONY: go-generate
go-generate: $(BUF) ## Generate gen/ from proto/
	$(BUF) generate

.PHONY: cli-reference
cli-reference: ## Generate docs/cli.md from the commands
	go test ./cmd/graphd -run='^TestCommandReference$$' -count=1 -args -update-reference

.PHONY: roles-reference
roles-reference: ## Generate the tables of docs/roles.md from internal/access
	go test ./docs -run='^TestRolesPage$$' -count=1 -args -update-roles

.PHONY: langgraph-names
langgraph-names: $(VENV)/ok ## Write the tables of LangGraph's names in docs/python.md
	cd sdk/python && PYTHONPATH=src '$(VENV)/bin/python' tools/langgraph_names.py write

.PHONY: python-generate
python-generate: $(GENERATOR)/ok ## Generate the Python stubs from proto/
	'$(GENERATOR)/bin/python' sdk/python/tools/generate.py

.PHONY: ts-generate
ts-generate: $(BUF) $(TS_MODULES) ## Generate the messages of the TypeScript SDK from proto/
	cd $(TS) && '$(CURDIR)/$(BUF)' generate

.PHONY: generate-check
generate-check: $(BUF) $(GENERATOR)/ok $(PAGE) $(TS_MODULES) build ## Fail if gen/, the generated code of the SDKs, page/dist or the drawings of docs/ are not what their sources make
	@rm -rf .cache/generated && mkdir -p .cache/generated
	$(BUF) generate --output .cache/generated
	diff -r gen .cache/generated/gen
	'$(GENERATOR)/bin/python' sdk/python/tools/generate.py .cache/generated/_gen
	diff -r --exclude=__pycache__ sdk/python/src/graphd/_gen .cache/generated/_gen
	cd $(TS) && '$(CURDIR)/$(BUF)' generate --output '$(CURDIR)/.cache/generated/typescript'
	diff -r $(TS)/src/_gen .cache/generated/typescript/src/_gen
	cd page && node build.mjs '$(CURDIR)/.cache/generated/page'
	diff -r page/dist .cache/generated/page
	bin/graphd graph draw examples/refund-review/graph.yaml --file .cache/generated/refund-review.svg
	diff docs/pictures/refund-review.svg .cache/generated/refund-review.svg
	@rm -rf .cache/generated

.PHONY: breaking
breaking: $(BUF) ## Fail if proto/ breaks clients of the committed baseline
	$(BUF) breaking proto --against $(BASELINE)

.PHONY: baseline
baseline: $(BUF) ## Make today's proto/ the baseline; only for a release
	$(BUF) build proto --exclude-source-info --output $(BASELINE)

.PHONY: api-check
api-check: ## Fail if the packages of Go programs break programs for the committed baseline in api/
	tools/api check

.PHONY: api-baseline
api-baseline: ## Make today's packages of Go programs the baseline; only for a release
	tools/api write

.PHONY: demo
demo: ## Run the refund review with an answer given beforehand (ANSWER=JSON)
	go run ./cmd/demo --answer '$(ANSWER)'

.PHONY: serve
serve: ## Serve the refund review on an embedded store in .cache/
	@mkdir -p .cache
	go run ./cmd/graphd serve --store sqlite:.cache/graphd.db --graphs examples/refund-review

.PHONY: wheels
wheels: $(VENV)/ok ## Build wheels of the Python SDK with the program in them, and the sdist, in dist/ (WHEELS=host for this machine)
	@version="v$$(cd sdk/python && '$(VENV)/bin/python' -m hatchling version)"; \
	for tag in $$(git tag --points-at HEAD 'v[0-9]*'); do \
		[ "$$tag" = "$$version" ] || { echo "make: the tag is $$tag, and sdk/python/pyproject.toml says $$version" >&2; exit 1; }; \
	done; rm -rf dist
	cd sdk/python; export SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}"; \
	for platform in $(if $(filter host,$(WHEELS)),$(HOST),$(WHEELS)); do \
		GOOS="$${platform%/*}" GOARCH="$${platform#*/}" '$(VENV)/bin/python' -m hatchling build -t wheel -d '$(CURDIR)/dist'; \
	done; \
	'$(VENV)/bin/python' -m hatchling build -t sdist -d '$(CURDIR)/dist'

.PHONY: test-pythons
test-pythons: ## Install the wheel of dist/ for this machine into each Python that is here, and run the demo and a program
	tools/test-pythons $(PYTHONS)

.PHONY: sbom
sbom: build ## List what is in bin/graphd, modules and Go, in bin/graphd.cdx.json (CycloneDX); the image has it as /graphd.cdx.json
	CGO_ENABLED=0 GOFLAGS=-trimpath go tool -modfile=tools/go.mod cyclonedx-gomod bin -json -std -short-purls -noserial -notimestamp -version '$(VERSION)' \
		-output bin/graphd.cdx.json bin/graphd

.PHONY: vulncheck
vulncheck: ## Fail if graphd calls code with a known vulnerability, or when the database can't be had (VULNDB=URL of another one)
	VULNDB='$(VULNDB)' tools/vulncheck $(PKG)

.PHONY: docker
docker: ## Build the container image graphd:VERSION
	docker build --build-arg VERSION='$(VERSION)' --tag 'graphd:$(VERSION)' .

.PHONY: clean
clean: ## Remove what was built or fetched into this checkout
	rm -rf bin dist .cache

$(LINT):
	@mkdir -p bin
	CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN='$(CURDIR)/bin' go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv bin/golangci-lint '$@'

$(BUF):
	@mkdir -p $(BUF_DIR)
	npm install --prefix $(BUF_DIR) --no-save --no-audit --no-fund --loglevel=error @bufbuild/buf@$(BUF_VERSION)

$(PAGE): page/package-lock.json
	cd page && npm ci --no-audit --no-fund --loglevel=error
	@touch '$@'

$(LANGGRAPH_JS): tests/langgraph-js/package-lock.json
	cd tests/langgraph-js && npm ci --no-audit --no-fund --loglevel=error
	@touch '$@'

$(CHAT_UI): examples/chat-ui/package-lock.json
	cd examples/chat-ui && npm ci --no-audit --no-fund --loglevel=error
	@touch '$@'

$(TS_BUILD): $(TS_MODULES) $(TS)/tsdown.config.ts $(shell find $(TS)/src -name '*.ts')
	cd $(TS) && node_modules/.bin/tsdown --out-dir .build --no-dts --format esm --logLevel warn
	@touch $@

$(TS_MODULES): $(TS)/package-lock.json
	cd $(TS) && npm ci --no-audit --no-fund --loglevel=error
	@touch '$@'

# A venv that is half made has no file "ok" and is made anew.
$(VENV)/ok: sdk/python/pyproject.toml sdk/python/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo 'make: $(PYTHON) is not Python 3.10 or newer; set PYTHON=python3.11 or the like' >&2; exit 1; }
	$(PYTHON) -m venv --clear '$(VENV)'
	'$(VENV)/bin/pip' install -q -c sdk/python/constraints.txt -e 'sdk/python[test,lint,oracle]'
	@touch '$@'

# The newest release may want newer versions of what it is made of.
$(abspath .cache)/oracle-%/ok: sdk/python/pyproject.toml sdk/python/constraints.txt
	$(PYTHON) -m venv --clear '$(@D)'
	grep -v '^lang$(if $(filter newest,$*),,graph==)' sdk/python/constraints.txt >'$(@D)/constraints.txt'
	'$(@D)/bin/pip' install -q -c '$(@D)/constraints.txt' -e 'sdk/python[test]' 'langgraph$(if $(filter newest,$*),,==$*)'
	@touch '$@'

$(GENERATOR)/ok:
	$(PYTHON) -m venv --clear '$(GENERATOR)'
	'$(GENERATOR)/bin/pip' install -q --only-binary=:all: 'grpcio-tools==$(GRPC_TOOLS_VERSION)' 'setuptools<80' || \
		{ echo 'make: grpcio-tools $(GRPC_TOOLS_VERSION) needs Python 3.10 to 3.12; set PYTHON=python3.12 or the like' >&2; exit 1; }
	@touch '$@'
