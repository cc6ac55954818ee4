//! The template before linters that others wrote.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use infra::cdk::App;
use jsii::{Kernel, Object};
use serde_json::Value;

use crate::kernel::{OTHER, cdk, context, start, tool};
use crate::template::kept;

/// What `cfn-lint` says of the templates that were kept, without the places.
fn findings(linter: &Path, names: &[&str]) -> BTreeSet<String> {
    let output = Command::new(linter)
        // The rule that names should be left to CloudFormation: here they tell stages apart.
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
fn cfn_lint_finds_nothing_but_what_it_does_not_know() {
    let Some(linter) = tool("DAYBOOK_TEST_CFN_LINT") else { return };
    let names = ["daybook-dev", "daybook-dev-image", "daybook-other", "daybook-other-image"]
        .map(|name| format!("{name}.template.json"));
    let found = findings(&linter, &names.each_ref().map(String::as_str));
    // It checks a state machine by the fields of JSONPath; in JSONata both may be expressions, which
    // asl-validator knows.
    let unknown = [
        "heartbeat_s %}' is not of type 'number' at 'States/WaitForCompletion/HeartbeatSeconds'",
        "timeout_s %}' is not of type 'number' at 'States/WaitForCompletion/TimeoutSeconds'",
    ]
    .map(|what| format!("E3601 '{{% $watch.{what}"));
    assert_eq!(found, BTreeSet::from(unknown));
}

#[test]
fn cfn_lint_would_find_a_property_that_does_not_exist() {
    let Some(linter) = tool("DAYBOOK_TEST_CFN_LINT") else { return };
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.template.json");
    let text = std::fs::read_to_string(kept("daybook-dev.template.json")).unwrap();
    std::fs::write(&broken, text.replace("\"BillingMode\"", "\"BilingMode\"")).unwrap();
    let output = Command::new(linter).arg("--").arg(&broken).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("BilingMode"));
}

/// Whether a stage is synthesised where each finding of the CDK's own validator is an error.
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
fn the_cdk_s_own_validator_finds_nothing_where_each_finding_is_an_error() {
    let Some(cdk) = cdk() else { return };
    assert!(is_valid(&cdk, |_, _| ()));
}

#[test]
fn the_cdk_s_own_validator_would_find_a_delay_that_is_no_number() {
    let Some(cdk) = cdk() else { return };
    assert!(!is_valid(&cdk, |kernel, app| {
        let stack: Object = kernel.create("aws-cdk-lib.Stack", &[app, &"extra"]).unwrap();
        let wrong = serde_json::json!({ "type": "AWS::SQS::Queue", "properties": { "DelaySeconds": "soon" } });
        let _: Object =
            kernel.create("aws-cdk-lib.CfnResource", &[&stack, &"Wrong", &wrong]).unwrap();
    }));
}

/// The rules of `cdk-nag` that a stage breaks, each with the construct that does.
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
    // Findings make it fail, and stand in the report.
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
fn cdk_nag_finds_nothing_that_is_not_acknowledged_with_a_reason() {
    let Some(cdk) = cdk() else { return };
    let found = nagged(&cdk, &[], |_, _| ());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn cdk_nag_looks_at_every_choice_and_would_find_a_queue_without_tls() {
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
