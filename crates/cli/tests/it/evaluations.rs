//! `daybook eval`: the packs' cases against their baselines, and its exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Ran, daybook, run_within};

/// Deadline of an evaluation of a pack's cases.
const DEADLINE: Duration = Duration::from_secs(540);

fn packs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs").canonicalize().unwrap()
}

fn eval(folder: &Path, cases: &Path, arguments: &[&str]) -> Ran {
    let mut command = daybook(folder);
    command.args(["--data", "data", "--json", "eval"]).arg(cases).args(["--agent", "network"]);
    run_within(command.args(arguments), DEADLINE)
}

/// Packs and the least number of their cases. A checkup takes no input: its few cases are the ways in which it ends.
const CASES_MIN: [(&str, usize); 5] =
    [("assistant", 30), ("checkup", 4), ("fraud", 30), ("incident", 30), ("network", 30)];

/// The packs that ship cases.
fn with_cases() -> Vec<String> {
    let packs = fs::read_dir(packs()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = packs
        .filter(|path| path.join("eval").is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// What is wrong with a pack's evaluation; empty if it agrees with its baseline.
fn disagreements(agent: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let cases = packs().join(agent).join("eval");
    let mut command = daybook(folder.path());
    command.args(["--data", "data", "--json", "eval"]).arg(&cases).args(["--agent", agent]);
    let ran = run_within(command.arg("--baseline").arg(cases.join("baseline.json")), DEADLINE);
    let printed = ran.json();
    let runs: Vec<&Value> = printed.iter().filter(|line| line["type"] == "run").collect();
    let clears = runs.iter().filter(|run| run["false_clear"] == true);
    let mut found: Vec<String> =
        clears.map(|run| format!("{agent}: {} is a false all-clear", run["case"])).collect();
    let least = CASES_MIN.iter().find(|(name, _)| *name == agent).map_or(30, |(_, least)| *least);
    if runs.len() < least {
        found.push(format!("{agent}: {} cases of at least {least}", runs.len()));
    }
    if ran.exit != 0 {
        found.push(format!("{agent}: exit {}: {ran:#?}", ran.exit));
    }
    found
}

#[test]
fn the_cases_of_every_pack_agree_with_their_baselines() {
    let packs = with_cases();
    for (name, _) in CASES_MIN {
        assert!(packs.iter().any(|pack| pack == name), "{name} has no cases");
    }
    let found: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            packs.iter().map(|agent| scope.spawn(move || disagreements(agent))).collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A case of the network agent on the bundled campus.
fn write(cases: &Path, name: &str, query: &str, verdict: &str) {
    let network = packs().join("network/networks/campus/network.json");
    let case = json!({
        "about": "a case", "from": "invented", "input": {"query": query, "inventory": network},
        "expect": {"verdict": verdict},
    });
    fs::create_dir_all(cases).unwrap();
    fs::write(cases.join(format!("{name}.json")), case.to_string()).unwrap();
}

fn comparison(ran: &Ran) -> Value {
    ran.json().pop().unwrap()
}

#[test]
fn a_regression_against_a_baseline_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases");
    write(&cases, "ospf", "Check OSPF neighbors on core1", "fine");
    write(&cases, "ptp", "Is PTP as designed on core1?", "open");
    let saved = eval(folder.path(), &cases, &["--save", "cases/baseline.json"]);
    assert_eq!(saved.exit, 0, "{saved:#?}");
    let against = ["--baseline", "cases/baseline.json"];

    let same = eval(folder.path(), &cases, &against);
    assert_eq!((same.exit, &comparison(&same)["regressions"]), (0, &json!([])), "{same:#?}");

    // A new case that disagrees is no regression; a case that agreed before is one.
    write(&cases, "new", "Is PTP as designed on core2?", "not_fine");
    let new = eval(folder.path(), &cases, &against);
    assert_eq!((new.exit, &comparison(&new)["new"]), (0, &json!(["new (policy)"])), "{new:#?}");
    write(&cases, "ptp", "Is PTP as designed on core1?", "not_fine");
    let worse = eval(folder.path(), &cases, &against);
    let said = "ptp (policy) agrees in 0 of 1 runs, before in 1 of 1";
    assert_eq!((worse.exit, &comparison(&worse)["regressions"]), (1, &json!([said])), "{worse:#?}");

    // So is a case that is gone.
    fs::remove_file(cases.join("ptp.json")).unwrap();
    let gone = eval(folder.path(), &cases, &against);
    let said = json!(["ptp (policy) was not run"]);
    assert_eq!((gone.exit, &comparison(&gone)["regressions"]), (1, &said), "{gone:#?}");

    // No baseline excuses a false all-clear.
    write(&cases, "ospf", "Check OSPF neighbors on core1", "not_fine");
    let clear = eval(folder.path(), &cases, &["--case", "ospf", "--save", "cases/baseline.json"]);
    assert_eq!(clear.exit, 1, "{clear:#?}");
    let excused =
        eval(folder.path(), &cases, &["--case", "ospf", "--baseline", "cases/baseline.json"]);
    let said = json!(["ospf (policy): 1 of 1 runs are a false all-clear"]);
    assert_eq!((excused.exit, &comparison(&excused)["regressions"]), (1, &said), "{excused:#?}");
}

#[test]
fn an_evaluation_without_agreement_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases");
    write(&cases, "ospf", "Check OSPF neighbors on core1", "open");
    assert_eq!(eval(folder.path(), &cases, &[]).exit, 1);
    fs::write(cases.join("bad.json"), r#"{"about": "misspelled", "expcet": {}}"#).unwrap();
    let invalid = eval(folder.path(), &cases, &[]);
    assert_eq!(invalid.exit, 64, "{invalid:#?}");
}
