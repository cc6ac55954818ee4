//! The program of the suite that every kit passes; `agent/tests/it/programs` has the same in Python and JavaScript.

use std::io::{Error as IoError, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use daybook_kit::{Agent, Context, Decision, Error, Kind, Reply};
use serde_json::{Value, json};

#[derive(serde::Deserialize)]
struct Input {
    case: String,
    log: String,
    #[serde(default)]
    count: u32,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let (Some("child"), Some(log)) = (arguments.next().as_deref(), arguments.next()) {
        let _ = did(&log, &format!("pid {}", std::process::id()));
        sleep(600);
    }
    daybook_kit::run(Agent::new("it", "1", it));
}

fn did(log: &str, line: &str) -> Result<(), IoError> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(log)?;
    file.write_all(format!("{line}\n").as_bytes())
}

fn sleep(seconds: u32) {
    std::thread::sleep(Duration::from_secs(seconds.into()));
}

async fn work(log: &str, n: u32) -> Result<Value, IoError> {
    did(log, &format!("work {n}"))?;
    Ok(json!({"n": n, "half": f64::from(n) / 2.0}))
}

#[derive(Debug)]
struct ValueError;

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no such thing")
    }
}

impl std::error::Error for ValueError {}

async fn it(ctx: Context, input: Input) -> Result<Value, Error> {
    let log = input.log.as_str();
    match input.case.as_str() {
        "everything" => everything(&ctx, log).await,
        "count" => {
            let mut sum = 0;
            for n in 0..input.count {
                sum += ctx.step::<u32, Error, _, _>("n", n, async || Ok(n)).await?;
            }
            Ok(json!({ "sum": sum }))
        }
        "gather" => {
            let each =
                (0..input.count).map(|n| ctx.step::<u32, Error, _, _>("n", n, async move || Ok(n)));
            let found = ctx.gather(each.collect::<Vec<_>>()).await?;
            Ok(json!({ "found": found }))
        }
        "large" => {
            let large = async || Ok::<_, Error>("x".repeat(input.count as usize));
            let text: String = ctx.step("large", Value::Null, large).await?;
            Ok(json!({"length": text.len()}))
        }
        "chats" => {
            for _ in 0..input.count {
                ctx.chat("Say hello.").policy(|_| Reply::says("hello")).await?;
            }
            Ok(json!({}))
        }
        "critical" => {
            let slow = async || {
                did(log, &format!("pid {}", std::process::id()))?;
                sleep(input.count);
                Ok::<_, IoError>(json!("yes"))
            };
            let done: Value = ctx.critical_step("slow", input.count, slow).await?;
            Ok(json!({"done": done}))
        }
        "hang in a step" => {
            let hang = async || {
                did(log, &format!("pid {}", std::process::id()))?;
                sleep(input.count);
                Ok::<_, IoError>(())
            };
            ctx.step::<(), _, _, _>("hang", input.count, hang).await?;
            ctx.step::<Value, _, _, _>("after", 1, || work(log, 1)).await?;
            Ok(json!({}))
        }
        _ => misbehave(&ctx, &input).await,
    }
}

async fn everything(ctx: &Context, log: &str) -> Result<Value, Error> {
    let first: Value = ctx.step("first", 1, || work(log, 1)).await?;
    let both = [ctx.step("second", 2, || work(log, 2)), ctx.step("third", 3, || work(log, 3))];
    let both: Vec<Value> = ctx.gather(both).await?;
    let fail = async || {
        let _ = did(log, "fail");
        Err::<Value, _>(ValueError)
    };
    let failed = ctx.step("fails", Value::Null, fail).await.expect_err("it fails");
    assert_eq!(failed.kind, Kind::Step);
    let reply = ctx.chat("Say hello.").context(&both).policy(|_| Reply::says("hello")).await?;
    ctx.note("halfway", json!({"seen": 2})).await?;
    let (at, luck, uid) = (ctx.now().await?, ctx.random().await?, ctx.uuid().await?);
    let answer = ctx.ask("Go on?").choices([Decision::Approve, Decision::Reject]).await?;
    ctx.sleep(Duration::from_millis(10)).await?;
    let last: Value = ctx.critical_step("last", 4, || work(log, 4)).await?;
    assert!(at.as_str() > "2000" && (0.0..1.0).contains(&luck));
    let said = json!([first, both, failed.to_string(), reply.text, answer.decision, last]);
    Ok(json!({"said": said, "uid": uid}))
}

/// The host's end of stdout, which the kit has moved, is the highest descriptor that is a pipe but stdin and stderr.
fn to_the_host(bytes: &[u8]) {
    let stderr = std::fs::read_link("/proc/self/fd/2").expect("a stderr");
    for number in 3..20 {
        let path = format!("/proc/self/fd/{number}");
        let Ok(target) = std::fs::read_link(&path) else { continue };
        if target.to_string_lossy().starts_with("pipe:") && target != stderr {
            let mut host = std::fs::OpenOptions::new().write(true).open(path).expect("a pipe");
            let _ = host.write_all(bytes);
            return;
        }
    }
}

async fn misbehave(ctx: &Context, input: &Input) -> Result<Value, Error> {
    let log = input.log.as_str();
    ctx.step::<Value, _, _, _>("before", 1, || work(log, 1)).await?;
    match input.case.as_str() {
        "exit" => {
            eprintln!("the end is near");
            std::process::exit(3);
        }
        "hang" => sleep(600),
        "garbage" => {
            to_the_host(b"hello\n");
            sleep(600);
        }
        "flood" => {
            to_the_host(&b"x".repeat(5_000_000));
            sleep(600);
        }
        "fork" => {
            let mut child = Command::new(std::env::current_exe()?);
            child.args(["child", log]).stdout(Stdio::null()).spawn()?;
            let has_child = || {
                let text = std::fs::read_to_string(Path::new(log)).unwrap_or_default();
                text.lines().any(|line| line.starts_with("pid"))
            };
            while !has_child() {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::process::exit(4);
        }
        _ => {}
    }
    Err(format!("no such case: {}", input.case).into())
}
