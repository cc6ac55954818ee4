# Daybook's commands. `make` alone lists them.

SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

CARGO_TARGET_DIR ?= target
DAYBOOK := $(CARGO_TARGET_DIR)/local/daybook
CONFORMANCE_DIR = ../shared/conformance
# CI uses the lock file unchanged; on a developer's machine it follows the manifests.
LOCKED := $(if $(CI),--locked)

.PHONY: help
help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r target does; do \
	    printf '  make %-18s %s\n' "$$target" "$$does"; done

# --- the main job ---

# Plain assignments, so that only the command line changes them and the environment does not.
TARGET = $(or $(DAYBOOK_TARGET),local)
AGENT = $(if $(filter local,$(TARGET)),incident)
INPUT = $(if $(filter local,$(TARGET)),$(BUNDLED.$(AGENT)))
BUNDLED.incident = packs/incident/incidents/s3-permission-revoked
BUNDLED.fraud = packs/fraud/transactions/account-takeover.json
BUNDLED.network = packs/network/networks/wrong-route-target

# make exits 2 whenever a recipe fails, but a failed session is 1. With -q ("is it up to date?"), make exits 1 for "no",
# still runs recipe lines that begin with +, and exits 2 at $(error). So the run writes its status to a file, and make
# reads its own exit code from there.
ifeq ($(MAKECMDGOALS),trigger-workflow)
ifeq (,$(findstring n,$(firstword -$(MAKEFLAGS))))
MAKEFLAGS += q
endif
endif
STATUS = $(CARGO_TARGET_DIR)/trigger-workflow.$(MAKE_PID)
MAKE_PID := $(shell echo $$PPID)

.PHONY: trigger-workflow
trigger-workflow: run-workflow ## builds, then runs one session [AGENT=incident|fraud|network] [INPUT=path] [TARGET=local|aws]: exits 0 succeeded, 1 failed, 2 unknown
	$(call answer,$(shell cat '$(STATUS)'; rm -f '$(STATUS)'))
answer = $(if $(filter 0,$1),,$(if $(filter 1,$1),@false,$(error the result of the session is unknown (daybook exited with $1))))

.PHONY: run-workflow
run-workflow:
	+@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL bash scripts/trigger-workflow.sh '$(DAYBOOK)' '$(TARGET)' '$(AGENT)' '$(INPUT)'; \
	    status=$$?; mkdir -p '$(CARGO_TARGET_DIR)' && echo $$status >'$(STATUS)'

.PHONY: dev
dev: ## builds daybook and runs the local stack until Ctrl-C
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
	@bash scripts/advisories.sh
	cargo run --quiet $(LOCKED) -p tidy

.PHONY: test
test: check ## make check, then unit and integration tests and the page's main path; installs what they need
	@bash scripts/test.sh quick

.PHONY: verify
verify: ## everything else: fuzzing, planted defects, instruction counts, long simulations, DynamoDB, emulators, all browser tests, the packs' evaluations
	@bash scripts/verify.sh

.PHONY: screenshots
screenshots: ## takes the pictures in docs/pictures again
	cargo build -p cli --profile local
	@mkdir -p docs/pictures && bash scripts/browse.sh '$(DAYBOOK)' screenshots.mjs '$(CURDIR)' docs/pictures

.PHONY: fuzz
fuzz: ## fuzzes every parser of outside input [TARGET=record] [SECONDS=60] (part of make verify)
	@bash scripts/fuzz.sh '$(if $(findstring command line,$(origin TARGET)),$(TARGET),all)' $(SECONDS)

.PHONY: defects
defects: ## plants defects in a copy of the workspace; a test must find each (part of make verify)
	@source scripts/tools.sh && ensure_tools cargo-nextest && cargo run --quiet $(LOCKED) -p defects

.PHONY: smoke-llm
smoke-llm: ## runs the incident agent once with a small real model [MODEL=openai:NAME]; installs 400 MB
	@bash scripts/smoke-llm.sh '$(DAYBOOK)' '$(MODEL)'

.PHONY: conformance
conformance: ## replays recorded answers of AWS [CONFORMANCE_DIR=../shared/conformance]
	@CONFORMANCE_DIR='$(CONFORMANCE_DIR)' cargo run --quiet -p asl --example conformance

.PHONY: bench
bench: bench-fraud ## measures appends, runs, sessions, lists, memory, an eight-hour session and state machines beside the raw disk, and the fraud scores
	cargo bench -p asl --bench asl
	cargo bench -p cli --bench daybook

.PHONY: bench-fraud
bench-fraud: ## how well the fraud agent ranks frauds above honest payments, on worlds that no test uses (part of make bench)
	cargo bench -p fraud-cli --bench fraud

.PHONY: bench-recovery
bench-recovery: ## kill -9 of a stack with 50 sessions of each agent under way: the time from ready to the next step [KILLS=100]
	cargo bench -p cli --bench daybook -- recovery kills='$(or $(KILLS),100)'
.PHONY: instructions
instructions: ## counts the instructions of an append, a step and a resumed step under valgrind (part of make verify)
	@bash scripts/instructions.sh

.PHONY: bench-scale
bench-scale: ## measures lists and appends over up to 1,000,000 sessions; takes six minutes and 5 GB of disk
	cargo bench -p cli --bench daybook -- scale

.PHONY: soak
soak: ## runs sessions of all agents while the stack is killed, stopped and given bad clocks and disks [HOURS=8] [RATE=20]
	cargo build -p cli --bin daybook --release
	python3 verify/soak/soak.py --daybook '$(CARGO_TARGET_DIR)/release/daybook' --hours '$(or $(HOURS),8)' --rate '$(or $(RATE),20)'

.PHONY: soak-restart
soak-restart: ## kills a stack with sessions of MCP servers in flight and starts it again; none may fail [SESSIONS=1000] [KILLS=3]
	cargo build -p cli --bin daybook --release
	python3 verify/soak/restart.py --daybook '$(CARGO_TARGET_DIR)/release/daybook' --sessions '$(or $(SESSIONS),1000)' --kills '$(or $(KILLS),3)'

.PHONY: bench-peers
bench-peers: ## ten durable steps with Daybook, LangGraph and Restate in turn [ROUNDS=3]; installs LangGraph and Restate
	@bench=$$(cargo bench -p cli --bench daybook --no-run --message-format json \
	    | sed -n 's/.*"kind":\["bench"\].*"name":"daybook".*"executable":"\([^"]*\)".*/\1/p' | tail -1) \
	    && bash scripts/bench-peers.sh "$$bench" '$(or $(ROUNDS),3)'

.PHONY: bench-page
bench-page: ## frame times of the page while it scrolls through 10,000 records in Chromium
	cargo build -p cli --profile local
	@bash scripts/browse.sh '$(DAYBOOK)' scrolling.mjs '$(CURDIR)'

.PHONY: bench-lambdas
bench-lambdas: ## size, start, event times and memory of the packaged functions, for this machine's architecture
	@bash scripts/lambdas.sh '$(CARGO_TARGET_DIR)' '$(LAMBDA_ARCHITECTURE)'
	cargo bench --quiet -p lambda --bench functions -- \
	    "$$(realpath '$(CARGO_TARGET_DIR)')/lambdas/$(LAMBDA_ARCHITECTURE)"

LAMBDA_ARCHITECTURE = $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)

# --- for people to install ---

.PHONY: dist
dist: ## builds wheels, npm packages, .debs, archives, SBOMs and SHA256SUMS for Linux [PROFILE=release] [ARCHITECTURES="x86_64 aarch64"]
	@bash scripts/dist.sh '$(CARGO_TARGET_DIR)' '$(or $(PROFILE),release)' $(ARCHITECTURES)

# --- in an account ---

.PHONY: lambdas
lambdas: ## packages the three functions as zips for Lambda [ARCHITECTURE=arm64|x86_64]
	@bash scripts/lambdas.sh '$(CARGO_TARGET_DIR)' '$(or $(ARCHITECTURE),arm64)'

.PHONY: synth
synth: ## writes the CloudFormation templates to target/cdk.out [CONTEXT="stage=prod model=bedrock:ID"]
	@bash scripts/cdk.sh synth '$(CARGO_TARGET_DIR)' $(CONTEXT)

.PHONY: bindings
bindings: ## regenerates the CDK's Rust bindings from infra/bindings.toml
	@bash scripts/cdk.sh bindings

.PHONY: image
image: ## builds the agents' image with docker or podman [TAG=daybook-agent] [ARCHITECTURE=arm64|amd64]
	@bash scripts/image.sh '$(or $(TAG),daybook-agent)' '$(or $(ARCHITECTURE),arm64)'

STAGE = dev

.PHONY: deploy diff destroy
deploy: ## deploys a stage with the current credentials [STAGE=dev] [CONTEXT=...] [APPROVAL=never]; see DEPLOYMENT.md
	@bash scripts/deploy.sh deploy '$(CARGO_TARGET_DIR)' '$(STAGE)' $(CONTEXT)

diff: ## shows what deploying would change [STAGE=dev] [CONTEXT=...]
	@bash scripts/deploy.sh diff '$(CARGO_TARGET_DIR)' '$(STAGE)' $(CONTEXT)

destroy: ## removes a stage but keeps its journal [STAGE=dev] [JOURNAL=drop]
	@bash scripts/deploy.sh destroy '$(CARGO_TARGET_DIR)' '$(STAGE)' $(JOURNAL)
