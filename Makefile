# Daybook's commands. `make` alone lists them.

SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

CARGO_TARGET_DIR ?= target
DAYBOOK := $(CARGO_TARGET_DIR)/local/daybook
CONFORMANCE_DIR = ../shared/conformance
# In CI the lock file is taken as it is; at a desk it follows the manifests.
LOCKED := $(if $(CI),--locked)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r target does; do \
	    printf '  make %-18s %s\n' "$$target" "$$does"; done

# --- the main job ---

# Plain assignments: only the command line changes them, never a variable that happens to be in the environment.
TARGET = $(or $(DAYBOOK_TARGET),local)
AGENT = $(if $(filter local,$(TARGET)),incident)
INPUT = $(if $(filter local,$(TARGET)),$(BUNDLED.$(AGENT)))
BUNDLED.incident = packs/incident/incidents/s3-permission-revoked
BUNDLED.fraud = packs/fraud/transactions/account-takeover.json
BUNDLED.network = packs/network/networks/wrong-route-target

# make exits 2 whenever a recipe fails, but a failed session is 1. A make that only answers "is it up to date?" (-q) exits
# 1 for "no", still runs recipe lines that begin with +, and stops with 2 at $(error). So the run leaves its status in a
# file, and the answer to the question is read from there.
ifeq ($(MAKECMDGOALS),trigger-workflow)
ifeq (,$(findstring n,$(firstword -$(MAKEFLAGS))))
MAKEFLAGS += q
endif
endif
STATUS = $(CARGO_TARGET_DIR)/trigger-workflow.$(MAKE_PID)
MAKE_PID := $(shell echo $$PPID)

.PHONY: trigger-workflow
trigger-workflow: run-workflow ## the main job [AGENT=incident|fraud] [INPUT=path] [TARGET=local|aws]: exits 0 succeeded, 1 failed, 2 unknown
	$(call answer,$(shell cat '$(STATUS)'; rm -f '$(STATUS)'))
answer = $(if $(filter 0,$1),,$(if $(filter 1,$1),@false,$(error could not find out how the session ended (daybook exited $1))))

.PHONY: run-workflow
run-workflow:
	+@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL bash scripts/trigger-workflow.sh '$(DAYBOOK)' '$(TARGET)' '$(AGENT)' '$(INPUT)'; \
	    status=$$?; mkdir -p '$(CARGO_TARGET_DIR)' && echo $$status >'$(STATUS)'

.PHONY: dev
dev: ## the local stack, until Ctrl-C
	cargo build -p cli --profile local
	@exec '$(DAYBOOK)' dev

# --- tests ---

# The main job's `cli` has no `live`. The second lint run leaves these features of other crates on, so that it checks only
# `cli` again; a feature missing here costs time and hides nothing.
BESIDE_CLI = agent/container aws-diagnostics/live stack/dynamodb

.PHONY: check
check: ## format, lints, docs, cargo deny, tidy
	cargo fmt --all --check
	cargo fetch --quiet $(LOCKED)
	cargo clippy --quiet $(LOCKED) --workspace --all-targets --all-features -- -D warnings
	cargo clippy --quiet $(LOCKED) --workspace --all-targets --features '$(BESIDE_CLI)' -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet $(LOCKED) --workspace --no-deps --all-features --document-private-items
	@source scripts/tools.sh && ensure_tools cargo-deny && set -x && cargo deny --offline check --hide-inclusion-graph bans licenses sources
	cargo run --quiet $(LOCKED) -p tidy

.PHONY: test
test: check ## make check, then unit and integration tests and the page's main path; installs what they need
	@bash scripts/test.sh quick

.PHONY: verify
verify: ## all the rest: fuzzing, defects, instruction counts, long simulation, both stores, emulators, every browser test
	@bash scripts/verify.sh

.PHONY: screenshots
screenshots: ## takes the pictures in docs/pictures anew
	cargo build -p cli --profile local
	@mkdir -p docs/pictures && bash scripts/browse.sh '$(DAYBOOK)' screenshots.mjs '$(CURDIR)' docs/pictures

.PHONY: fuzz
fuzz: ## any bytes at every border [TARGET=record] [SECONDS=60] (part of make verify)
	@bash scripts/fuzz.sh '$(if $(findstring command line,$(origin TARGET)),$(TARGET),all)' $(SECONDS)

.PHONY: defects
defects: ## puts defects into a copy of the workspace, one after the other: each must be found by its test
	@source scripts/tools.sh && ensure_tools cargo-nextest && cargo run --quiet $(LOCKED) -p defects

.PHONY: smoke-llm
smoke-llm: ## a small real model drives the incident agent once [MODEL=openai:NAME]; optional, installs 400 MB
	@bash scripts/smoke-llm.sh '$(DAYBOOK)' '$(MODEL)'

.PHONY: conformance
conformance: ## what real AWS answered, replayed [CONFORMANCE_DIR=../shared/conformance]
	@CONFORMANCE_DIR='$(CONFORMANCE_DIR)' cargo run --quiet -p asl --example conformance

.PHONY: bench
bench: ## every figure beside the raw disk: appends, runs, whole sessions, lists, memory, eight hours, state machines
	cargo bench -p asl --bench asl
	cargo bench -p cli --bench daybook

.PHONY: instructions
instructions: ## counts what an append, a step and a resumed step take of the processor, under valgrind (part of make verify)
	@bash scripts/instructions.sh

.PHONY: bench-scale
bench-scale: ## lists and appends over files of 10,000, 100,000 and 1,000,000 sessions; minutes, and gigabytes of disk
	cargo bench -p cli --bench daybook -- scale

.PHONY: bench-peers
bench-peers: ## ten durable steps with Daybook, LangGraph and Restate in turn [ROUNDS=3]; installs the two
	@bench=$$(cargo bench -p cli --bench daybook --no-run --message-format json \
	    | sed -n 's/.*"kind":\["bench"\].*"name":"daybook".*"executable":"\([^"]*\)".*/\1/p' | tail -1) \
	    && bash scripts/bench-peers.sh "$$bench" '$(or $(ROUNDS),3)'

.PHONY: bench-page
bench-page: ## frames of the page in Chromium while it scrolls through a session of 10,000 records
	cargo build -p cli --profile local
	@bash scripts/browse.sh '$(DAYBOOK)' scrolling.mjs '$(CURDIR)'

.PHONY: bench-lambdas
bench-lambdas: ## the packaged functions of this machine's architecture: size, start, events, memory
	@bash scripts/lambdas.sh '$(CARGO_TARGET_DIR)' '$(LAMBDA_ARCHITECTURE)'
	cargo bench --quiet -p lambda --bench functions -- \
	    "$$(realpath '$(CARGO_TARGET_DIR)')/lambdas/$(LAMBDA_ARCHITECTURE)"

LAMBDA_ARCHITECTURE = $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)

# --- in an account ---

.PHONY: lambdas
lambdas: ## the three functions as zips for Lambda [ARCHITECTURE=arm64|x86_64]
	@bash scripts/lambdas.sh '$(CARGO_TARGET_DIR)' '$(or $(ARCHITECTURE),arm64)'

.PHONY: synth
synth: ## the CloudFormation templates, into target/cdk.out [CONTEXT="stage=prod model=bedrock:ID"]
	@bash scripts/cdk.sh synth '$(CARGO_TARGET_DIR)' $(CONTEXT)

.PHONY: bindings
bindings: ## writes the CDK's Rust bindings anew, from infra/bindings.toml
	@bash scripts/cdk.sh bindings

.PHONY: image
image: ## the agents' image, with docker or podman [TAG=daybook-agent] [ARCHITECTURE=arm64|amd64]
	@bash scripts/image.sh '$(or $(TAG),daybook-agent)' '$(or $(ARCHITECTURE),arm64)'

STAGE = dev

.PHONY: deploy diff destroy
deploy: ## a stage into the account of the current credentials [STAGE=dev] [CONTEXT=...]; see DEPLOYMENT.md
	@bash scripts/deploy.sh deploy '$(CARGO_TARGET_DIR)' '$(STAGE)' $(CONTEXT)

diff: ## what deploying would change [STAGE=dev] [CONTEXT=...]
	@bash scripts/deploy.sh diff '$(CARGO_TARGET_DIR)' '$(STAGE)' $(CONTEXT)

destroy: ## removes a stage and leaves its journal [STAGE=dev] [JOURNAL=drop]
	@bash scripts/deploy.sh destroy '$(CARGO_TARGET_DIR)' '$(STAGE)' $(JOURNAL)
