//! Invalid usage and unknown results: exit codes, errors and hints.

use crate::fixture;
use crate::harness::{Dev, daybook, free_endpoint, incident, run, run_in};

fn check(arguments: &[&str], exit: i32, said: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_in(folder.path(), arguments);
    assert_eq!(ran.exit, exit, "{arguments:?}: {ran:#?}");
    assert_eq!(ran.stdout, "", "{arguments:?}");
    for text in said {
        assert!(ran.stderr.contains(text), "{arguments:?} does not say {text:?}: {}", ran.stderr);
    }
}

#[test]
fn an_invalid_command_line_exits_64() {
    for (arguments, said) in [
        (&[][..], "Usage: daybook"),
        (&["nonsense"][..], "unrecognized subcommand"),
        (&["show"][..], "<SESSION>"),
        (&["sessions", "--since", "soon"][..], "such as 24h"),
        (&["sessions", "--status", "broken"][..], "one of INITIATED"),
        (&["sessions", "--limit", "0"][..], "--limit"),
        (&["trigger", "--with-stack"][..], "--wait"),
        (&["trigger", "--detail", "[]"][..], "--detail is not a JSON object"),
        (&["trigger", "--detail", "{"][..], "--detail is not JSON"),
        (&["answer", "0190a5c4"][..], "--approve"),
        (&["answer", "0190a5c4", "--approve", "--reject"][..], "cannot be used with"),
        (&["answer", "0190a5c4", "--approve", "--reason", "x"][..], "cannot be used with"),
        (&["verify"][..], "Usage"),
        (&["verify", "0190a5c4", "--head", "123"][..], "64 hexadecimal digits"),
        (&["tools", "nobody"][..], "unknown MCP server `nobody`"),
        (&["mcp", "aws-diagnostics"][..], "--snapshot DIR"),
        (&["mcp", "pk-sim", "--snapshot", "."][..], "--snapshot is an option of aws-diagnostics"),
        (&["mcp", "aws-diagnostics", "--models", "."][..], "--models is an option of pk-sim"),
        (
            &["mcp", "pk-sim", "--inventory", "."][..],
            "--inventory is an option of network-inventory",
        ),
        (&["--target", "mars", "sessions"][..], "[possible values: local, aws]"),
        (&["--endpoint", "ftp://here", "sessions"][..], "expected http://HOST:PORT"),
    ] {
        check(arguments, 64, &[said]);
    }
}

#[test]
fn help_and_version_exit_0() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["trigger", "--help"],
        &["help"],
        &["help", "trigger"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["man"],
    ] {
        let ran = run_in(folder.path(), arguments);
        assert_eq!(ran.exit, 0, "{arguments:?}: {ran:#?}");
        assert!(!ran.stdout.is_empty() && ran.stderr.is_empty(), "{arguments:?}: {ran:#?}");
    }
}

#[test]
fn help_lists_every_command_in_a_group_and_options_once() {
    let folder = tempfile::tempdir().unwrap();
    let help = run_in(folder.path(), &["--help"]).stdout;
    for heading in ["Run:", "Inspect:", "Decide:", "Develop:", "Operate:"] {
        assert!(help.contains(&format!("{heading}\n  ")), "{heading} {help}");
    }
    for command in ["trigger", "compare", "open", "answer", "completions", "doctor", "verify"] {
        assert_eq!(help.matches(&format!("\n  {command} ")).count(), 1, "{command}: {help}");
    }
    assert!(help.contains("--endpoint"), "{help}");
}

#[test]
fn an_invalid_variable_is_named_with_its_value_and_format() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, arguments, expected) in [
        ("DAYBOOK_TARGET", "mars", &["agents"][..], "expected local or aws"),
        ("DAYBOOK_MODEL", "gpt", &["dev"][..], "expected policy, bedrock:ID"),
        ("MCP_INIT_TIMEOUT", "soon", &["dev"][..], "expected a whole number of seconds"),
        ("JOURNAL_TTL_DAYS", "many", &["dev"][..], "expected a whole number of days"),
    ] {
        let ran = run(daybook(folder.path()).env(name, value).args(arguments));
        assert_eq!(ran.exit, 64, "{name}: {ran:#?}");
        let said = format!("error: {name} is `{value}`, {expected}");
        assert!(ran.stderr.contains(&said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn a_command_ignores_invalid_variables_it_does_not_use() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(daybook(folder.path()).env("DAYBOOK_MODEL", "gpt").arg("agents"));
    assert_eq!(ran.exit, 0, "{ran:#?}");
}

#[test]
fn without_a_stack_commands_exit_2_with_a_hint() {
    let endpoint = free_endpoint();
    let not_there = format!("error: nothing listens at {endpoint}");
    let e = ["--endpoint", &endpoint];
    check(&[&e[..], &["trigger"]].concat(), 2, &[&not_there, "hint:", "daybook dev"]);
    check(&[&e[..], &["trigger", "--wait"]].concat(), 2, &[&not_there, "--with-stack"]);
    let id = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f";
    check(&[&e[..], &["cancel", id]].concat(), 2, &[&not_there, "hint:", "daybook dev"]);
    check(&[&e[..], &["resume", id]].concat(), 2, &[&not_there, "hint:"]);
    check(&["sessions"], 2, &["no journal at", "hint:"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_journal_is_read_for_an_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    fixture::write(&folder.path().join(".daybook"), fixture::began()).await;
    let endpoint = free_endpoint();
    let not_there = format!("error: nothing listens at {endpoint}");
    let list = ["sessions", "--since", "100000h"];
    for (variable, said) in [
        (None, None),
        (Some("DAYBOOK_ENDPOINT"), Some(&not_there)),
        (Some("AWS_ENDPOINT_URL"), Some(&not_there)),
    ] {
        let mut command = daybook(folder.path());
        command.envs(variable.map(|name| (name, &endpoint))).args(list);
        let ran = run(&mut command);
        match said {
            None => assert_eq!(ran.exit, 0, "{ran:#?}"),
            Some(said) => {
                assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
                assert!(ran.stderr.contains(said), "{ran:#?}");
            }
        }
    }
    let ran = run_in(folder.path(), &[&["--endpoint", &endpoint][..], &list].concat());
    assert_eq!((ran.exit, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    let mut elsewhere = daybook(folder.path());
    elsewhere.env("AWS_ENDPOINT_URL", "https://example.invalid").args(list);
    assert_eq!(run(&mut elsewhere).exit, 0, "an address elsewhere is not the local stack's");
    let mut wrong = daybook(folder.path());
    wrong.env("DAYBOOK_ENDPOINT", "here").args(list);
    let ran = run(&mut wrong);
    assert_eq!(ran.exit, 64, "{ran:#?}");
    assert!(ran.stderr.contains("DAYBOOK_ENDPOINT is `here`"), "{ran:#?}");
}

#[test]
fn an_unknown_agent_is_refused_before_its_event_is_put() {
    let folder = tempfile::tempdir().unwrap();
    let stack = Dev::start(folder.path(), &folder.path().join("data"));
    for arguments in [
        &["trigger", "--agent", "incdent"][..],
        &["trigger", "--detail", r#"{"agent": "incdent"}"#],
        &["trigger", "--wait", "--agent", "incdent"],
    ] {
        let ran =
            run_in(folder.path(), &[&["--endpoint", &stack.endpoint][..], arguments].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (64, ""), "{ran:#?}");
        assert!(ran.stderr.contains("no agent is named `incdent`"), "{ran:#?}");
        assert!(ran.stderr.contains("did you mean `incident`?"), "{ran:#?}");
    }
    let ran = run_in(folder.path(), &["--endpoint", &stack.endpoint, "--json", "sessions"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""), "no event was put");
    let ran = run_in(folder.path(), &["--endpoint", &stack.endpoint, "--json", "doctor"]);
    let clock = ran.json().into_iter().find(|check| check["name"] == "clock").unwrap();
    assert_eq!(clock["state"], "ok", "{ran:#?}");
    stack.stop("-TERM");
}

#[test]
fn another_program_is_not_mistaken_for_a_stack() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4_096]).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    check(&["--endpoint", &endpoint, "trigger"], 2, &["another program listens at", "hint:"]);
    server.join().unwrap();
}

#[test]
fn target_aws_refuses_folders_and_local_commands() {
    let folder = incident("network-blocked");
    let folder = folder.to_str().unwrap();
    let aws = ["--target", "aws"];
    check(&[&aws[..], &["trigger", "--input", folder]].concat(), 64, &["it is a folder", "hint:"]);
    let investigate = &["investigate", "payments.csv", "--ids", "ids.txt"];
    for command in [&["dev"][..], investigate, &["import", "session.jsonl"]] {
        check(&[&aws[..], command].concat(), 2, &["on this machine only", "hint:"]);
    }
    #[cfg(not(feature = "live"))]
    check(&[&aws[..], &["sessions"]].concat(), 2, &["this build has no support for", "hint:"]);
}

#[test]
fn a_missing_input_is_named() {
    let endpoint = free_endpoint();
    let e = ["--endpoint", &endpoint];
    let trigger = |path| [&e[..], &["trigger", "--input", path]].concat();
    check(
        &trigger("/nowhere/incident.json"),
        2,
        &["cannot read /nowhere/incident.json", "No such file"],
    );
    check(&trigger("/"), 2, &["unrecognized folder /", "hint:", "incident.json"]);
}

#[test]
fn agents_are_listed_for_people_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(run_in(folder.path(), &["agents"]).stdout);
    let agents = run_in(folder.path(), &["agents", "--json"]).json();
    let names: Vec<_> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["checkup", "incident", "fraud", "network", "assistant"]);
    assert!(agents.iter().all(|agent| agent["input_schema"].is_object()));
}
