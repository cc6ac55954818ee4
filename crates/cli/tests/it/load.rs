//! The limits of a stack's load and `drain`, as typed.

use std::path::Path;
use std::time::Duration;

use crate::harness::{Dev, Ran, daybook, run_in};

fn dev(folder: &Path, arguments: &[&str]) -> Dev {
    let data = folder.join("data");
    Dev::listening_with(&mut daybook(folder), &data, "127.0.0.1:0", arguments)
}

fn typed(folder: &Path, endpoint: &str, arguments: &[&str]) -> Ran {
    run_in(folder, &[&["--endpoint", endpoint], arguments].concat())
}

/// A session that waits for a person.
fn waiting(folder: &Path, endpoint: &str) -> String {
    let asked = typed(folder, endpoint, &["trigger", "--agent", "assistant", "--wait"]);
    assert_eq!(asked.exit, 2, "a question is open: {asked:#?}");
    asked.stdout.lines().next().unwrap().to_owned()
}

#[test]
fn a_drained_stack_exits_0_and_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = dev(folder, &[]);
    let session = waiting(folder, &first.endpoint);
    let drained = typed(folder, &first.endpoint, &["drain", "--within", "20"]);
    assert_eq!(drained.exit, 0, "{drained:#?}");
    for line in ["draining: 0 sessions at work, 0 queued", "drained; the stack has stopped"] {
        assert!(drained.stderr.contains(line), "no {line} in {drained:#?}");
    }
    assert_eq!(first.ended(), 0);
    let again = dev(folder, &[]);
    let bye = typed(folder, &again.endpoint, &["answer", &session, "--say", "bye"]);
    assert_eq!(bye.exit, 0, "{bye:#?}");
    let drained = typed(folder, &again.endpoint, &["drain", "--json"]);
    assert_eq!((drained.exit, &drained.json()[0]["at_work"]), (0, &0.into()), "{drained:#?}");
    assert_eq!(again.ended(), 0);
    let absent = typed(folder, "http://127.0.0.1:9", &["drain"]);
    assert!(absent.exit == 2 && absent.stderr.contains("nothing listens"), "{absent:#?}");
    for wrong in [&["drain", "--within", "-1"][..], &["drain", "--within", "86401"]] {
        assert_eq!(run_in(folder, wrong).exit, 64, "{wrong:?}");
    }
}

#[test]
fn a_throttled_trigger_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let stack = dev(folder, &["--executions-max", "1", "--agents-max", "2"]);
    let first = waiting(folder, &stack.endpoint);
    let doctor = typed(folder, &stack.endpoint, &["doctor"]);
    assert!(doctor.stdout.contains("0 sessions at work, of at most 2"), "{doctor:#?}");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| typed(folder, &stack.endpoint, &["trigger", "--wait"]));
        // The first attempt is refused by then, or the cancellation comes before it.
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(typed(folder, &stack.endpoint, &["cancel", &first]).exit, 0);
        let second = second.join().unwrap();
        assert_eq!(second.exit, 0, "{second:#?}");
        let says = "1 executions are under way, and no more may be; trying again in";
        assert!(second.stderr.contains(says), "{second:#?}");
    });
    assert_eq!(stack.stop("-TERM"), 0);
}

#[test]
fn a_limit_of_an_unknown_agent_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let listen = ["dev", "--listen", "127.0.0.1:0"];
    let unknown = run_in(folder, &[&listen[..], &["--agent-max", "chekup=2"]].concat());
    assert_eq!(unknown.exit, 64, "{unknown:#?}");
    assert!(unknown.stderr.contains("did you mean `checkup`?"), "{unknown:#?}");
    for wrong in ["checkup", "checkup=0", "=1", "checkup=many"] {
        let refused = run_in(folder, &[&listen[..], &["--agent-max", wrong]].concat());
        assert!(refused.stderr.contains("expected NAME=N"), "{refused:#?}");
        assert_eq!(refused.exit, 64, "{refused:#?}");
    }
    let mut command = daybook(folder);
    command.env("DAYBOOK_AGENTS_MAX", "none").args(listen);
    let refused = crate::harness::run(&mut command);
    assert!(refused.stderr.contains("DAYBOOK_AGENTS_MAX is `none`"), "{refused:#?}");
}

#[test]
fn a_used_up_disk_budget_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // An empty journal is larger than nine tenths of it.
    let stack = dev(folder, &["--disk-max", "100KB"]);
    let refused = typed(folder, &stack.endpoint, &["trigger", "--wait"]);
    assert_eq!(refused.exit, 2, "{refused:#?}");
    for line in
        ["admits no new session", "of its budget of 100000 (--disk-max)", "hint: daybook prune"]
    {
        assert!(refused.stderr.contains(line), "no {line} in {refused:#?}");
    }
    let doctor = typed(folder, &stack.endpoint, &["doctor"]);
    assert!(doctor.exit == 1 && doctor.stdout.contains("budget of 100000"), "{doctor:#?}");
    assert_eq!(stack.stop("-TERM"), 0);
    let mut command = daybook(folder);
    command.env("DAYBOOK_DISK_MAX", "1GB");
    let stack = Dev::listening_with(&mut command, &folder.join("data"), "127.0.0.1:0", &[]);
    assert_eq!(typed(folder, &stack.endpoint, &["trigger", "--wait"]).exit, 0);
    let doctor = typed(folder, &stack.endpoint, &["doctor"]);
    assert!(doctor.stdout.contains("of at most 1000000000"), "{doctor:#?}");
    assert_eq!(stack.stop("-TERM"), 0);
    let wrong = run_in(folder, &["dev", "--listen", "127.0.0.1:0", "--disk-max", "20 gigs"]);
    assert!(wrong.exit == 64 && wrong.stderr.contains("such as 500MB or 20GiB"), "{wrong:#?}");
}
