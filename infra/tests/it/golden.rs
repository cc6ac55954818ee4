//! The templates equal the golden ones; `INSTA_UPDATE=always` updates those.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::kernel::{OTHER, cdk, synthesised};
use crate::template::{kept, of_type, read, resolved};

#[expect(clippy::disallowed_methods, reason = "insta's own switch for updating")]
fn updates() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

fn check(folder: &Path, name: &str) {
    let made = std::fs::read_to_string(folder.join(name)).unwrap();
    if updates() {
        std::fs::create_dir_all(kept(name).parent().unwrap()).unwrap();
        std::fs::write(kept(name), &made).unwrap();
    }
    let golden = std::fs::read_to_string(kept(name)).unwrap_or_default();
    let differs = made.lines().zip(golden.lines()).position(|(made, kept)| made != kept);
    let line = differs.unwrap_or_else(|| made.lines().count().min(golden.lines().count()));
    assert!(
        made == golden,
        "{name} differs from line {}: {:?} became {:?}",
        line + 1,
        golden.lines().nth(line),
        made.lines().nth(line)
    );
}

#[test]
fn the_same_settings_give_the_golden_templates() {
    let Some(cdk) = cdk() else { return };
    let (once, twice) = (synthesised(&cdk, &[]), synthesised(&cdk, &[]));
    for part in ["", "-journal", "-image"] {
        let name = &format!("daybook-dev{part}.template.json");
        check(once.path(), name);
        let read = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
        assert_eq!(read(once.path()), read(twice.path()), "{name}");
    }
}

#[test]
fn templates_are_synthesised_without_network() {
    let Some(cdk) = cdk() else { return };
    let alone = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--", program]);
        command
    };
    if !alone("true").output().is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: cannot create a network namespace");
        return;
    }
    let (functions, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut made = alone(env!("CARGO_BIN_EXE_infra"));
    made.arg("--packages").arg(&cdk).arg("--out").arg(out.path());
    for (name, value) in crate::kernel::context(functions.path(), &[]) {
        made.arg("--context").arg(format!("{name}={value}"));
    }
    let made = made.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    check(out.path(), "daybook-dev.template.json");
}

#[test]
fn every_setting_changes_the_golden_template() {
    let Some(cdk) = cdk() else { return };
    let made = synthesised(&cdk, OTHER);
    for part in ["", "-journal", "-image"] {
        check(made.path(), &format!("daybook-other{part}.template.json"));
    }
}

#[test]
fn a_bus_of_another_stage_is_used_and_not_created() {
    let Some(cdk) = cdk() else { return };
    let shared = [OTHER, &[("createBus", "false")]].concat();
    let made = synthesised(&cdk, &shared);
    let text = std::fs::read_to_string(made.path().join("daybook-other.template.json")).unwrap();
    let template: Value = serde_json::from_str(&text).unwrap();
    let buses: Vec<_> = of_type(&template, "AWS::Events::EventBus").collect();
    let [(_, own)] = buses[..] else { panic!("{buses:#?}") };
    assert_eq!(own["Name"], "daybook-other");
    let rules = of_type(&template, "AWS::Events::Rule");
    assert!(rules.into_iter().any(|(_, rule)| rule["EventBusName"] == "agents"));
}

/// What a failed creation leaves is in the way of its repetition.
#[test]
fn nothing_remains_of_a_stack_that_could_not_be_created() {
    for name in ["daybook-dev", "daybook-dev-journal", "daybook-dev-image"] {
        let template = read(&format!("{name}.template.json"));
        for (id, resource) in template["Resources"].as_object().unwrap() {
            assert_ne!(resource["DeletionPolicy"], "Retain", "{name}: {id}");
        }
    }
    // The protected table is the last of its stack to be created.
    let template = read("daybook-dev-journal.template.json");
    let resources = template["Resources"].as_object().unwrap();
    let table = resources.values().find(|it| it["Type"] == "AWS::DynamoDB::Table").unwrap();
    assert_eq!(table["Properties"]["DeletionProtectionEnabled"], true);
    let others = resources.values().filter(|it| it["Type"] != "AWS::DynamoDB::Table").count();
    assert_eq!((others, table["DependsOn"].to_string().contains("LogKeyAlias")), (2, true));
}

#[test]
fn an_invalid_setting_is_named() {
    let Some(cdk) = cdk() else { return };
    let kernel = crate::kernel::start(&cdk, &[]);
    let folder = tempfile::tempdir().unwrap();
    let context = crate::kernel::context(folder.path(), &[("stage", "Prod")]);
    let refusal = infra::app(&kernel, &infra::Options { out: None, context }).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "invalid context `stage=Prod`: expected 1 to 20 characters of a-z, 0-9 and -, starting with a letter"
    );
}

/// Names that must be unique in an account or region.
fn names(template: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for resource in template["Resources"].as_object().unwrap().values() {
        for (property, value) in resource["Properties"].as_object().unwrap() {
            let names_it = property == "Name" || property.ends_with("Name");
            let shared = ["FunctionName", "MetricName", "DisplayName", "EventBusName"];
            if names_it && !shared.contains(&property.as_str()) {
                names.insert(resolved(value).as_str().unwrap().to_owned());
            }
        }
    }
    names
}

#[test]
fn two_stages_share_no_names() {
    let one = names(&read("daybook-dev.template.json"));
    let other = names(&read("daybook-other.template.json"));
    assert!(one.len() > 20 && other.len() > 20, "{one:?} {other:?}");
    let both: Vec<_> = one.intersection(&other).collect();
    assert!(both.is_empty(), "{both:?}");
}
