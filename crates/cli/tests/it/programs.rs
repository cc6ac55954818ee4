//! Agents that are Python programs, over the whole path: `daybook.toml`, the stack, the journal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Dev, Ran, daybook, run, run_in};

/// Begins each program.
const HEAD: &str = "import os, sys, time\nfrom daybook import agent, run, Context, StepError, ToolError, Unknown\n\
    def log(line):\n    with open('done.log', 'a') as file:\n        file.write(line + '\\n')\n";

/// A folder with one agent, `it`.
struct Project(tempfile::TempDir);

impl Project {
    fn new(body: &str) -> Self {
        Self::with(body, "")
    }

    fn with(body: &str, configuration: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write(
            "daybook.toml",
            &format!("[agents.it]\ncommand = [\"python3\", \"it.py\"]\n{configuration}"),
        );
        project.program(body);
        project
    }

    fn program(&self, body: &str) {
        self.write("it.py", &format!("{HEAD}{body}\nif __name__ == '__main__':\n    run(it)\n"));
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// What the steps wrote.
    fn done(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join("done.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn dev(&self) -> Dev {
        let mut command = daybook(self.path());
        command.env("PATH", path()).env("PYTHONPATH", kit()).env("PYTHONDONTWRITEBYTECODE", "1");
        Dev::listening_with(
            &mut command,
            &self.path().join("data"),
            "127.0.0.1:0",
            &["--time-scale", "5"],
        )
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run_in(self.path(), &[&["--data", "data"], arguments].concat())
    }

    fn trigger(&self, dev: &Dev, detail: &Value) -> String {
        let detail = detail.to_string();
        let ran =
            self.run(&["--endpoint", &dev.endpoint, "trigger", "--json", "--detail", &detail]);
        ran.json()[0]["session_id"].as_str().unwrap_or_else(|| panic!("{ran:#?}")).to_owned()
    }

    /// Triggers, and waits for the session's end or its question.
    fn ran(&self, dev: &Dev, detail: &Value) -> Value {
        let detail = detail.to_string();
        let trigger =
            ["--endpoint", &dev.endpoint, "trigger", "--wait", "--json", "--detail", &detail];
        let ran = self.run(&trigger);
        ran.json().pop().unwrap_or_else(|| panic!("{ran:#?}"))
    }

    fn session(&self, dev: &Dev, id: &str) -> Value {
        let ran = self.run(&["--endpoint", &dev.endpoint, "show", id, "--json"]);
        ran.json().into_iter().next().unwrap_or_else(|| panic!("{ran:#?}"))
    }

    fn until(&self, dev: &Dev, id: &str, status: &str) -> Value {
        for _ in 0..600 {
            let session = self.session(dev, id);
            if session["status"] == status {
                return session;
            }
            assert!(session["verdict"].is_null(), "{session:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{:#}", self.session(dev, id));
    }

    fn verify(&self, dev: &Dev) {
        let ran = self.run(&["--endpoint", &dev.endpoint, "verify", "--all"]);
        assert_eq!(ran.exit, 0, "{ran:#?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "python3 is found on the machine's search path")]
fn path() -> String {
    std::env::var("PATH").unwrap()
}

fn kit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python").canonicalize().unwrap()
}

/// The steps of a session that closed an effect: ordinal and node.
fn effects(project: &Project, dev: &Dev, id: &str) -> Vec<Value> {
    let ran = project.run(&["--endpoint", &dev.endpoint, "show", id, "--json", "--steps"]);
    let lines = ran.json();
    lines.into_iter().filter(|line| line["type"] == "step").collect()
}

const EVERYTHING: &str = r#"
def work(n):
    log(f'work {n}')
    print('a line on stdout')
    return {'n': n, 'half': n / 2}

@agent('it', version=1, title='All of {name}')
def it(ctx: Context, name: str) -> dict:
    """Does everything."""
    first = ctx.step('first', work, 1)
    both = ctx.gather(ctx.step.later('second', work, 2), ctx.step.later('third', work, 3))
    reply = ctx.chat('Say hello.', context=both, policy=lambda messages: 'hello ' + name)
    ctx.note('halfway', seen=len(both))
    at, luck, uid = ctx.now(), ctx.random(), ctx.uuid()
    answer = ctx.ask('Go on?', choices=['approve', 'reject'])
    ctx.sleep(1)
    last = ctx.step('last', work, 4, critical=True)
    return {'summary': reply.text, 'findings': [answer['decision']], 'first': first, 'last': last,
            'at': at.isoformat(), 'luck': luck, 'uid': uid}
"#;

#[test]
fn a_python_agent_asks_waits_and_goes_on_after_a_restart() {
    let project = Project::new(EVERYTHING);
    let dev = project.dev();
    let asked = project.ran(&dev, &json!({"agent": "it", "input": {"name": "Ann"}}));
    assert_eq!(asked["status"], "WAITING", "{asked:#}");
    assert_eq!(asked["open_question"]["prompt"], "Go on?");
    let id = asked["session_id"].as_str().unwrap().to_owned();
    dev.kill();
    let dev = project.dev();
    let answered = project.run(&["--endpoint", &dev.endpoint, "answer", &id, "--approve"]);
    assert_eq!(answered.exit, 0, "{answered:#?}");
    let session = project.until(&dev, &id, "SUCCEEDED");
    assert_eq!(session["result"]["summary"], "hello Ann");
    assert_eq!(session["result"]["findings"], json!(["approve"]));
    assert_eq!(session["result"]["first"], json!({"n": 1, "half": 0.5}));
    assert_eq!(project.done(), ["work 1", "work 2", "work 3", "work 4"]);
    let nodes: Vec<_> =
        effects(&project, &dev, &id).iter().map(|step| step["node"].clone()).collect();
    for node in ["first", "second", "chat", "now", "random", "uuid", "ask", "sleep", "last"] {
        assert!(nodes.contains(&json!(node)), "{node}: {nodes:?}");
    }
    project.verify(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn a_killed_python_agent_repeats_no_journaled_step() {
    let body = "def work(n):\n    time.sleep(0.02)\n    log(str(n))\n    return n\n\
        @agent('it', version=1)\ndef it(ctx: Context) -> list:\n    \
        return [ctx.step('work', work, n) for n in range(60)]\n";
    let project = Project::new(body);
    let mut dev = project.dev();
    let id = project.trigger(&dev, &json!({"agent": "it"}));
    for wait_ms in [400, 150, 700, 300] {
        std::thread::sleep(Duration::from_millis(wait_ms));
        dev.kill();
        dev = project.dev();
    }
    let session = project.until(&dev, &id, "SUCCEEDED");
    assert_eq!(session["result"], json!((0..60).collect::<Vec<_>>()));
    // A step is repeated only if its process died before its outcome was journaled: at most once for each kill.
    let done = project.done();
    assert!((60..=64).contains(&done.len()), "{done:?}");
    let steps = effects(&project, &dev, &id);
    assert_eq!(steps.iter().filter(|step| step["kind"] == "outcome").count(), 60);
    project.verify(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn a_critical_step_that_was_interrupted_waits_for_a_person() {
    let body = "def work():\n    log('begun')\n    time.sleep(600)\n\
        @agent('it', version=1)\ndef it(ctx: Context) -> str:\n    \
        try:\n        return ctx.step('pay', work, critical=True)\n    \
        except Unknown as error:\n        return 'unknown'\n";
    let project = Project::new(body);
    let dev = project.dev();
    let id = project.trigger(&dev, &json!({"agent": "it"}));
    while project.done().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    dev.kill();
    let dev = project.dev();
    let session = project.until(&dev, &id, "WAITING");
    let prompt = session["open_question"]["prompt"].as_str().unwrap();
    assert!(prompt.contains("Step: pay") && prompt.contains("not known"), "{prompt}");
    let answered = project.run(&["--endpoint", &dev.endpoint, "answer", &id, "--say", "paid 5"]);
    assert_eq!(answered.exit, 0, "{answered:#?}");
    assert_eq!(project.until(&dev, &id, "SUCCEEDED")["result"], "paid 5");
    assert_eq!(project.done(), ["begun"]);
    project.verify(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn a_program_that_misbehaves_ends_its_session_with_a_reason() {
    let project = Project::with("", "idle_seconds = 8\n");
    project.program("@agent('it', version=1)\ndef it(ctx: Context, how: str) -> dict:\n    \
        real = next(fd for fd in range(3, 20) if os.path.exists(f'/proc/self/fd/{fd}'))\n    \
        ctx.step('before', lambda: 1)\n    \
        if how == 'exit':\n        print('the end is near', file=sys.stderr); sys.stderr.flush(); os._exit(3)\n    \
        if how == 'hang':\n        time.sleep(60)\n    \
        if how == 'garbage':\n        os.write(real, b'hello\\n'); time.sleep(60)\n    \
        if how == 'flood':\n        os.write(real, b'x' * 5_000_000); time.sleep(60)\n    \
        if how == 'raise':\n        raise ValueError('no such thing')\n    \
        if how == 'large':\n        ctx.step('large', lambda: 'x' * 5_000_000)\n    \
        if how == 'result':\n        return [1]\n    \
        if how == 'open':\n        ctx.gather(*(ctx.step.later('many', lambda: 1) for _ in range(1001)))\n    \
        return {}\n");
    let dev = project.dev();
    for (how, error) in [
        ("exit", "ProgramError: Exited"),
        ("hang", "ProgramError: Idle"),
        ("garbage", "ProgramError: Malformed"),
        ("flood", "ProgramError: FrameTooLarge"),
        ("raise", "ProgramError: ValueError - no such thing (it.py:"),
        ("large", "ProgramError: StepError - PayloadTooLarge"),
        ("result", "ResultError: Invalid"),
        ("open", "ProgramError: TooManyOpen"),
    ] {
        let session = project.ran(&dev, &json!({"agent": "it", "input": {"how": how}}));
        assert_eq!(session["status"], "FAILED", "{how}: {session:#}");
        let found = session["error"].as_str().unwrap();
        assert!(found.starts_with(error), "{how}: {found}");
        if how == "exit" {
            assert!(
                found.contains("exit status: 3") && found.contains("the end is near"),
                "{found}"
            );
        }
    }
    let refused = project.ran(&dev, &json!({"agent": "it", "input": {"who": 1}}));
    assert_eq!(refused["status"], "FAILED", "{refused:#}");
    project.verify(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn a_program_that_asks_for_another_effect_has_diverged() {
    let body = |first: &str| {
        format!(
            "@agent('it', version=1)\ndef it(ctx: Context) -> int:\n    \
             ctx.step('{first}', lambda: 1)\n    ctx.ask('Go on?')\n    return 1\n"
        )
    };
    let project = Project::new(&body("one"));
    let dev = project.dev();
    let asked = project.ran(&dev, &json!({"agent": "it"}));
    let id = asked["session_id"].as_str().unwrap().to_owned();
    project.program(&body("two"));
    let answered = project.run(&["--endpoint", &dev.endpoint, "answer", &id, "--say", "yes, do"]);
    assert_eq!(answered.exit, 0, "{answered:#?}");
    let session = project.until(&dev, &id, "FAILED");
    let error = session["error"].as_str().unwrap();
    assert!(
        error.starts_with("ReplayError: Diverged - step 2 recorded effect 1, tools `one`"),
        "{error}"
    );
    assert!(error.contains("asks for tools `two`") && error.contains("at it.py:"), "{error}");
    project.verify(&dev);
    assert_eq!(dev.stop("-TERM"), 0);
}

#[test]
fn the_tests_of_the_python_kit_pass() {
    let mut command = std::process::Command::new("python3");
    let ran = run(command.arg(kit().join("tests/test_kit.py")).env("PYTHONDONTWRITEBYTECODE", "1"));
    assert_eq!(ran.exit, 0, "{ran:#?}");
}
