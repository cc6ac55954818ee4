//! Third-party linters check the templates.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use infra::cdk::App;
use jsii::{Kernel, Object};
use serde_json::Value;

use crate::kernel::{OTHER, cdk, context, start, tool};
use crate::template::kept;

/// The findings of `cfn-lint` in the golden templates, without positions.
fn findings(linter: &Path, names: &[&str]) -> BTreeSet<String> {
    let output = Command::new(linter)
        // W3005 wants CloudFormation to choose names; here names distinguish the stages.
        .args(["--format", "json", "--ignore-checks", "W3005", "--"])
        .args(names.iter().map(|name| kept(name)))
        .output()
        .unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let said = findings.iter().map(|finding| {
        format!(
            "{} {}",
            finding["Rule"]["Id"].as_str().unwrap(),
            finding["Message"].as_str().unwrap()
        )
    });
    said.collect()
}

#[test]
fn cfn_lint_reports_only_jsonata_fields() {
    let Some(linter) = tool("DAYBOOK_TEST_CFN_LINT") else { return };
    let names: Vec<String> = ["daybook-dev", "daybook-other"]
        .iter()
        .flat_map(|stage| {
            ["", "-journal", "-image"].map(|part| format!("{stage}{part}.template.json"))
        })
        .collect();
    let found = findings(&linter, &names.iter().map(String::as_str).collect::<Vec<_>>());
    // cfn-lint checks a state machine as JSONPath. In JSONata both fields may be expressions;
    // asl-validator accepts them.
    let unknown = [
        "heartbeat_s %}' is not of type 'number' at 'States/WaitForCompletion/HeartbeatSeconds'",
        "timeout_s %}' is not of type 'number' at 'States/WaitForCompletion/TimeoutSeconds'",
    ]
    .map(|what| format!("E3601 '{{% $watch.{what}"));
    assert_eq!(found, BTreeSet::from(unknown));
}

#[test]
fn cfn_lint_reports_an_unknown_property() {
    let Some(linter) = tool("DAYBOOK_TEST_CFN_LINT") else { return };
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.template.json");
    let text = std::fs::read_to_string(kept("daybook-dev-journal.template.json")).unwrap();
    std::fs::write(&broken, text.replace("\"BillingMode\"", "\"BilingMode\"")).unwrap();
    let output = Command::new(linter).arg("--").arg(&broken).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("BilingMode"));
}

/// Whether a stage synthesises when every finding of the CDK's own validator is an error.
fn is_valid(cdk: &Path, with: impl FnOnce(&Kernel, &App)) -> bool {
    let strict = r#"{"@aws-cdk/core:validateAgainstDefaultRules": true}"#;
    let kernel = start(cdk, &[("CDK_VALIDATION", "true"), ("CDK_CONTEXT_JSON", strict)]);
    let (functions, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let context = context(functions.path(), &[]);
    let app = infra::app(&kernel, &infra::Options { out: Some(out.path()), context }).unwrap();
    with(&kernel, &app);
    app.synth().is_ok()
}

#[test]
fn the_cdk_validator_reports_nothing() {
    let Some(cdk) = cdk() else { return };
    assert!(is_valid(&cdk, |_, _| ()));
}

#[test]
fn the_cdk_validator_reports_a_delay_that_is_not_a_number() {
    let Some(cdk) = cdk() else { return };
    assert!(!is_valid(&cdk, |kernel, app| {
        let stack: Object = kernel.create("aws-cdk-lib.Stack", &[app, &"extra"]).unwrap();
        let wrong = serde_json::json!({ "type": "AWS::SQS::Queue", "properties": { "DelaySeconds": "soon" } });
        let _: Object =
            kernel.create("aws-cdk-lib.CfnResource", &[&stack, &"Wrong", &wrong]).unwrap();
    }));
}

/// The `cdk-nag` rules that a stage violates, each with the construct.
fn nagged(cdk: &Path, choices: &[(&str, &str)], with: impl FnOnce(&Kernel, &App)) -> Vec<String> {
    let kernel = start(cdk, &[]);
    kernel.load("cdk-nag", "3.0.2", &cdk.join("cdk-nag.tgz")).unwrap();
    let (functions, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let context = context(functions.path(), choices);
    let app = infra::app(&kernel, &infra::Options { out: Some(out.path()), context }).unwrap();
    with(&kernel, &app);
    let pack: Object = kernel.create("cdk-nag.AwsSolutionsChecks", &[]).unwrap();
    let validations: Object = kernel.call_static("aws-cdk-lib.Validations", "of", &[&app]).unwrap();
    let () = validations.call("addPlugins", &[&pack]).unwrap();
    // Findings make synthesis fail and are in the report.
    let _ = app.synth();
    let report = std::fs::read_to_string(out.path().join("validation-report.json")).unwrap();
    broken(&serde_json::from_str(&report).unwrap())
}

fn broken(report: &Value) -> Vec<String> {
    let each = |value: &Value| value.as_array().into_iter().flatten().cloned().collect::<Vec<_>>();
    let mut found = Vec::new();
    for violation in
        each(&report["pluginReports"]).iter().flat_map(|plugin| each(&plugin["violations"]))
    {
        for construct in each(&violation["violatingConstructs"]) {
            let (rule, path) = (&violation["ruleName"], &construct["constructPath"]);
            found.push(format!("{} {}", rule.as_str().unwrap(), path.as_str().unwrap()));
        }
    }
    found
}

#[test]
fn cdk_nag_reports_nothing_unacknowledged() {
    let Some(cdk) = cdk() else { return };
    let found = nagged(&cdk, &[], |_, _| ());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn cdk_nag_reports_a_queue_without_tls() {
    let Some(cdk) = cdk() else { return };
    let found = nagged(&cdk, OTHER, |kernel, app| {
        let stack: Object = kernel.create("aws-cdk-lib.Stack", &[app, &"extra"]).unwrap();
        let _: Object = kernel.create("aws-cdk-lib.aws_sqs.Queue", &[&stack, &"Open"]).unwrap();
    });
    assert_eq!(
        found,
        ["AwsSolutions-SQS3 extra/Open/Resource", "AwsSolutions-SQS4 extra/Open/Resource"]
    );
}
