# Everything that is done to this repository, one target each; CI calls the same ones.
# Tools are pinned here and live in bin/ and .cache/; nothing is installed outside the checkout.

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

# CI sets GOTEST to a runner that ends with a count; GOTESTFLAGS adds to it, e.g. -run=Resume.
GOTEST      ?= go test
GOTESTFLAGS ?=
PKG         ?= ./...
FUZZTIME    ?= 10s
BENCH       ?= .
ANSWER      ?= {"decision":"approved_with_conditions","conditions":"10% restocking fee"}

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: lint generate-check test ## What must pass before a push: lint, generate-check, test

.PHONY: build
build: ## Build bin/graphd
	CGO_ENABLED=0 go build -trimpath -ldflags='-X main.version=$(VERSION)' -o bin/graphd ./cmd/graphd

.PHONY: test
test: ## Run all tests with the race detector, in random order (PKG=./internal/graph/... narrows)
	$(GOTEST) -race -shuffle=on $(GOTESTFLAGS) $(PKG)

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target for FUZZTIME (10s)
	tools/fuzz '$(FUZZTIME)' $(PKG)

.PHONY: bench
bench: ## Run the Go benchmarks (BENCH=regexp narrows)
	go test -run='^$$' -bench='$(BENCH)' -benchmem $(PKG)

.PHONY: lint
lint: $(LINT) $(BUF) ## Check the Go code and the protos
	$(LINT) run $(PKG)
	$(BUF) format --diff --exit-code proto
	$(BUF) lint

.PHONY: fmt
fmt: $(LINT) $(BUF) ## Format the Go code and the protos
	$(LINT) fmt
	$(BUF) format --write proto

.PHONY: generate
generate: $(BUF) ## Generate gen/ from proto/
	$(BUF) generate

.PHONY: generate-check
generate-check: $(BUF) ## Fail if gen/ is not what proto/ generates
	@rm -rf .cache/generated && mkdir -p .cache/generated
	$(BUF) generate --output .cache/generated
	diff -r gen .cache/generated/gen
	@rm -rf .cache/generated

.PHONY: breaking
breaking: $(BUF) ## Fail if proto/ breaks clients of the committed baseline
	$(BUF) breaking proto --against $(BASELINE)

.PHONY: baseline
baseline: $(BUF) ## Make today's proto/ the baseline; only for a release
	$(BUF) build proto --exclude-source-info --output $(BASELINE)

.PHONY: demo
demo: ## Run the refund review with an answer given beforehand (ANSWER=JSON)
	go run ./cmd/graphd demo --answer '$(ANSWER)'

.PHONY: serve
serve: ## Serve the refund review on an embedded store in .cache/
	@mkdir -p .cache
	go run ./cmd/graphd serve --store sqlite:.cache/graphd.db --graphs examples/refund-review

.PHONY: docker
docker: ## Build the container image graphd:VERSION
	docker build --build-arg VERSION='$(VERSION)' --tag 'graphd:$(VERSION)' .

.PHONY: clean
clean: ## Remove what was built or fetched into this checkout
	rm -rf bin .cache

$(LINT):
	@mkdir -p bin
	GOBIN='$(CURDIR)/bin' go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv bin/golangci-lint '$@'

$(BUF):
	@mkdir -p $(BUF_DIR)
	npm install --prefix $(BUF_DIR) --no-save --no-audit --no-fund --loglevel=error @bufbuild/buf@$(BUF_VERSION)

PYENV ?= .cache/python

$(PYENV)/ok: sdk/python/pyproject.toml
	python3 -m venv $(PYENV) && $(PYENV)/bin/pip install -q -e 'sdk/python[test]' && touch $@

.PHONY: python-test
python-test: $(PYENV)/ok build ## Test the Python SDK and its conformance cases against a real server
	cd sdk/python && GRAPHD_BIN=$(CURDIR)/bin/graphd $(CURDIR)/$(PYENV)/bin/python -m pytest -q

.PHONY: oracle
oracle: $(PYENV)/ok build ## Compare SEEDS (200) random graphs with LangGraph itself
	$(PYENV)/bin/pip install -q 'langgraph==1.2.11'
	cd sdk/python && GRAPHD_BIN=$(CURDIR)/bin/graphd PYTHONPATH=. $(CURDIR)/$(PYENV)/bin/python -W ignore -m oracle --seeds $(or $(SEEDS),200)
