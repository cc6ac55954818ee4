//! `daybook chaos`: reverts exactly the faults that it injected, even after a crash.

use std::path::Path;

use serde_json::{Value, json};

use crate::account::{Account, FUNCTION, allowed};
use crate::harness::{Ran, daybook, run};

/// Arguments of each fault, and its name for `revert`.
const FAULTS: [(&[&str], &str); 6] = [
    (&["permission", "--target", "s3"], "permission"),
    (&["permission", "--target", "cloudwatch"], "permission"),
    (&["permission", "--target", "both"], "permission"),
    (&["throttle", "--to", "0"], "throttle"),
    (&["throttle", "--to", "1"], "throttle"),
    (&["network"], "network"),
];

struct Bench {
    account: Account,
    group: Value,
    folder: tempfile::TempDir,
}

impl Bench {
    fn open() -> Option<Self> {
        let mut account = Account::open()?;
        let group = account.ask(json!(["function", FUNCTION]));
        Some(Self { account, group, folder: tempfile::tempdir().unwrap() })
    }

    fn chaos(&self, deed: &str, fault: &[&str]) -> Ran {
        let mut command = self.account.daybook(self.folder.path());
        run(command.args(["chaos", deed]).args(fault))
    }

    fn state(&mut self) -> Value {
        let request = json!(["state", FUNCTION, self.group]);
        self.account.ask(request)
    }

    fn records(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join(".daybook/chaos")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[test]
fn every_fault_is_injected_once_and_reverted() {
    let Some(mut bench) = Bench::open() else { return };
    for reserved in [None, Some(7)] {
        if let Some(reserved) = reserved {
            bench.account.ask(json!(["reserve", FUNCTION, reserved]));
        }
        let healthy = bench.state();
        for (fault, name) in FAULTS {
            let ran = bench.chaos("inject", fault);
            assert_eq!(ran.exit, 0, "{fault:?}: {ran:#?}");
            assert!(!ran.stdout.is_empty(), "it says what it changed");
            let broken = bench.state();
            assert_ne!(broken, healthy, "{fault:?}");
            let again = bench.chaos("inject", fault);
            assert_eq!(again.exit, 2, "{fault:?}: {again:#?}");
            assert!(again.stderr.contains(&format!("already has a {name} fault")), "{again:#?}");
            assert!(again.stderr.contains(&format!("chaos revert {name}")), "{again:#?}");
            assert_eq!(bench.state(), broken, "{fault:?}: twice is refused");
            for _ in 0..2 {
                let ran = bench.chaos("revert", &[name]);
                assert_eq!(ran.exit, 0, "{fault:?}: {ran:#?}");
                assert_eq!(bench.state(), healthy, "{fault:?}");
            }
            assert_eq!(bench.records(), [""; 0], "{fault:?}");
        }
    }
}

#[test]
fn what_is_changed_is_said_to_programs() {
    let Some(bench) = Bench::open() else { return };
    let change = json!({"change": "concurrency", "function": FUNCTION, "before": null, "after": 0});
    for (deed, is_undone) in [("inject", false), ("revert", true)] {
        let ran = bench.chaos(deed, &["throttle", "--to", "0", "--json"]);
        assert_eq!(ran.json(), [json!({"undone": is_undone, "change": change})], "{ran:#?}");
    }
}

#[test]
fn faults_of_several_kinds_coexist() {
    let Some(mut bench) = Bench::open() else { return };
    let healthy = bench.state();
    let faults = [FAULTS[2], FAULTS[3], FAULTS[5]];
    for (fault, _) in faults {
        assert_eq!(bench.chaos("inject", fault).exit, 0);
    }
    for (_, name) in faults {
        assert_eq!(bench.chaos("revert", &[name]).exit, 0);
    }
    assert_eq!(bench.state(), healthy);
}

/// Simulates a crash: the record is on disk, and some changes are made.
#[test]
fn a_partial_fault_is_reverted() {
    let Some(mut bench) = Bench::open() else { return };
    let healthy = bench.state();
    for (refused, fault, name, is_changed) in [
        ("iam:PutRolePolicy", FAULTS[2].0, "permission", false),
        ("iam:DetachRolePolicy", FAULTS[2].0, "permission", true),
        ("lambda:PutFunctionConcurrency", FAULTS[3].0, "throttle", false),
        ("ec2:RevokeSecurityGroupEgress", FAULTS[5].0, "network", false),
    ] {
        bench.account.ask(json!(["refuse", refused]));
        let ran = bench.chaos("inject", fault);
        assert_eq!(ran.exit, 2, "{refused}: {ran:#?}");
        assert!(ran.stderr.contains(refused), "{refused}: {}", ran.stderr);
        assert_eq!(bench.records(), [format!("{FUNCTION}.{name}.json")], "{refused}");
        assert_eq!(bench.state() != healthy, is_changed, "{refused}");
        bench.account.ask(json!(["refuse"]));
        assert_eq!(bench.chaos("revert", &[name]).exit, 0, "{refused}");
        assert_eq!(bench.state(), healthy, "{refused}");
    }
}

#[test]
fn an_interrupted_revert_can_be_repeated() {
    let Some(mut bench) = Bench::open() else { return };
    let healthy = bench.state();
    assert_eq!(bench.chaos("inject", FAULTS[2].0).exit, 0);
    bench.account.ask(json!(["refuse", "iam:PutRolePolicy"]));
    let ran = bench.chaos("revert", &["permission"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert_ne!(bench.state(), healthy);
    bench.account.ask(json!(["refuse"]));
    assert_eq!(bench.chaos("revert", &["permission"]).exit, 0);
    assert_eq!(bench.state(), healthy);
}

#[test]
fn a_fault_that_cannot_be_recorded_is_not_injected() {
    let Some(mut bench) = Bench::open() else { return };
    let healthy = bench.state();
    std::fs::write(bench.folder.path().join(".daybook"), "a file").unwrap();
    for (fault, _) in FAULTS {
        let ran = bench.chaos("inject", fault);
        assert_eq!(ran.exit, 2, "{fault:?}: {ran:#?}");
        assert!(ran.stderr.contains("cannot access the record"), "{fault:?}: {}", ran.stderr);
        assert_eq!(bench.state(), healthy, "{fault:?}");
    }
}

#[test]
fn only_the_named_account_is_changed() {
    let Some(mut bench) = Bench::open() else { return };
    let healthy = bench.state();
    let ran = bench.chaos("inject", &["network", "--account", "999999999999"]);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    let said = "the credentials are those of account 123456789012, not of 999999999999";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(bench.state(), healthy);
    let ran = bench.chaos("inject", &["network", "--account", "123456789012"]);
    assert_eq!(ran.exit, 0, "{ran:#?}");
}

#[test]
fn a_policy_that_allows_everything_is_not_narrowed() {
    let Some(mut bench) = Bench::open() else { return };
    let all = json!([{"Effect": "Allow", "Action": "*", "Resource": "*"}]);
    bench.account.ask(json!(["put_policy", "data-processor-role", "zz-admin", all]));
    let healthy = bench.state();
    let ran = bench.chaos("inject", FAULTS[0].0);
    assert_eq!(ran.exit, 2, "{ran:#?}");
    assert!(ran.stderr.contains("policy zz-admin allows *"), "{}", ran.stderr);
    assert_eq!(bench.state(), healthy);
    assert_eq!(bench.records(), [""; 0]);
}

#[test]
fn the_documented_policy_allows_what_is_called_and_no_more() {
    let Some(mut bench) = Bench::open() else { return };
    let only = json!([{"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}]);
    bench.account.ask(json!(["put_policy", "data-processor-role", "only-s3", only]));
    for (fault, name) in [FAULTS[2], FAULTS[3], FAULTS[5]] {
        assert_eq!(bench.chaos("inject", fault).exit, 0);
        assert_eq!(bench.chaos("revert", &[name]).exit, 0);
    }
    assert_eq!(bench.account.ask(json!(["calls"])), json!(allowed("chaos.json")));
}

fn check_usage(arguments: &[&str], endpoint: Option<&str>, said: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = daybook(folder.path());
    command.envs(endpoint.map(|endpoint| ("AWS_ENDPOINT_URL", endpoint)));
    let ran = run(command.arg("chaos").args(arguments));
    assert_eq!(ran.exit, 64, "{arguments:?}: {ran:#?}");
    assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    assert!(!Path::new(&folder.path().join(".daybook")).exists());
}

#[test]
fn a_fault_requires_a_named_account() {
    for endpoint in [None, Some("https://iam.amazonaws.com"), Some("http://10.0.0.7:5000")] {
        check_usage(&["inject", "network"], endpoint, "--account ID");
        check_usage(&["revert", "network"], endpoint, "--account ID");
    }
}

#[test]
fn an_invalid_fault_is_a_usage_error() {
    let here = Some("http://127.0.0.1:9");
    check_usage(&["inject", "permission"], here, "--target s3, cloudwatch or both is missing");
    check_usage(&["inject", "permission", "--target", "aws"], here, "--target s3, cloudwatch");
    check_usage(&["inject", "permission", "--target", "dynamodb"], here, "invalid value");
    check_usage(&["inject", "throttle"], here, "--to 0 or 1 is missing");
    check_usage(&["inject", "throttle", "--to", "2"], here, "--to");
    check_usage(&["inject", "network", "--function", "../x"], here, "expected a function name");
    check_usage(&["inject", "gremlins"], here, "unrecognized subcommand");
}
