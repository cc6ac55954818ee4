//! One dialogue with a real kernel, replayed from the recording, and live if a kernel is available.
//! `INSTA_UPDATE=always` records it again.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use jsii::{Kernel, Map, Object, Structure, ToWire};
use serde_json::Value;

const RECORD: &str = "tests/it/transcript.txt";

/// The name of the tarballs' folder in the recording.
const PACKAGES: &str = "PACKAGES";

#[expect(clippy::disallowed_methods, reason = "the test runner passes the packages' folder")]
fn cdk() -> Option<PathBuf> {
    let found = std::env::var_os("JSII_TEST_CDK").map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: JSII_TEST_CDK is not set to a folder with the CDK's packages");
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "insta's own switch for updating")]
fn updates() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

/// Uses every kind of request once, and returns the replies.
fn converse(kernel: &Kernel, packages: &Path, list: &[(String, String, String)]) -> Vec<String> {
    for (name, version, tarball) in list {
        kernel.load(name, version, &packages.join(tarball)).unwrap();
    }
    let mut heard = Vec::new();
    let app: Object = kernel.create("aws-cdk-lib.App", &[]).unwrap();
    let stack: Object = kernel.create("aws-cdk-lib.Stack", &[&app, &"orders"]).unwrap();
    let minutes: Object =
        kernel.call_static("aws-cdk-lib.Duration", "minutes", &[&5 as &dyn ToWire]).unwrap();
    heard.push(minutes.call::<f64>("toSeconds", &[]).unwrap().to_string());
    let queue = "aws-cdk-lib.aws_sqs.Queue";
    let props = |retention: &dyn ToWire| {
        Structure::new("aws-cdk-lib.aws_sqs.QueueProps")
            .with("retentionPeriod", retention)
            .with("enforceSSL", &true)
    };
    let letters: Object = kernel.create(queue, &[&stack, &"letters", &props(&minutes)]).unwrap();
    heard.push(letters.get::<String>("queueArn").unwrap());
    heard.push(letters.get::<Option<String>>("encryptionMasterKey").unwrap().is_none().to_string());
    let tags: Object = kernel.call_static("aws-cdk-lib.Tags", "of", &[&letters]).unwrap();
    let () = tags.call("add", &[&"team", &"orders"]).unwrap();
    let text = Map(&[("TOPIC", "late")]);
    heard.push(
        kernel.call_static("aws-cdk-lib.Fn", "sub", &[&"${TOPIC}", &text as &dyn ToWire]).unwrap(),
    );
    heard.push(kernel.get_static("aws-cdk-lib.Aws", "REGION").unwrap());
    let refused = |error: jsii::Error| error.to_string();
    // A duplicate name, a wrong value deep inside, a wrong number, a missing method.
    heard.push(refused(
        kernel.create::<Object>(queue, &[&stack, &"letters", &props(&minutes)]).unwrap_err(),
    ));
    heard.push(refused(
        kernel.create::<Object>(queue, &[&stack, &"other", &props(&"five")]).unwrap_err(),
    ));
    heard.push(refused(letters.call::<()>("open", &[]).unwrap_err()));
    heard.push(refused(letters.get::<f64>("queueArn").unwrap_err()));
    heard
}

fn list(text: &str) -> Vec<(String, String, String)> {
    let triple = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.next().unwrap(), words.next().unwrap())
    };
    text.lines().map(triple).collect()
}

/// The packages of the recording.
fn recorded_list(record: &str) -> Vec<(String, String, String)> {
    let requests = record.lines().filter_map(|line| line.strip_prefix("> "));
    let requests = requests.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    requests
        .filter(|request| request["api"] == "load")
        .map(|request| {
            let tarball = text(&request["tarball"]).replace(&format!("{PACKAGES}/"), "");
            (text(&request["name"]), text(&request["version"]), tarball)
        })
        .collect()
}

/// Keeps the requests that it receives.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lines<'a>(record: &'a str, mark: &str) -> Vec<&'a str> {
    record.lines().filter_map(|line| line.strip_prefix(mark)).collect()
}

#[test]
fn a_recorded_dialogue_replays_without_a_kernel() {
    let record = std::fs::read_to_string(RECORD).unwrap();
    let replies = lines(&record, "< ").join("\n") + "\n";
    let requests = Kept::default();
    let kernel = Kernel::over(io::Cursor::new(replies), requests.clone()).unwrap();
    let heard = converse(&kernel, Path::new(PACKAGES), &recorded_list(&record));
    kernel.exit().unwrap();
    insta::assert_snapshot!("heard", heard.join("\n"));
    let said = String::from_utf8(requests.0.take()).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), lines(&record, "> "));
}

/// Forwards bytes and records them, with a mark before each line.
struct Tee<T> {
    through: T,
    mark: &'static str,
    record: Arc<Mutex<String>>,
}

impl<T> Tee<T> {
    fn note(&self, line: &str) {
        let mut record = self.record.lock().unwrap();
        record.push_str(self.mark);
        record.push_str(line.trim_end());
        record.push('\n');
    }
}

impl Write for Tee<std::process::ChildStdin> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.through.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        let line = text.to_string();
        self.note(&line);
        self.through.write_all(line.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.through.flush()
    }
}

impl Read for Tee<BufReader<std::process::ChildStdout>> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut line = String::new();
        if self.through.fill_buf()?.is_empty() {
            return Ok(0);
        }
        self.through.read_line(&mut line)?;
        self.note(&line);
        // Replies of this dialogue are short, and the kernel's reader uses a large buffer.
        assert!(line.len() <= buffer.len(), "{} bytes", line.len());
        buffer[..line.len()].copy_from_slice(line.as_bytes());
        Ok(line.len())
    }
}

/// Removes what differs between runs: folders, and positions in the library's source.
fn without_places(record: &str, packages: &Path) -> String {
    let mut text = String::new();
    for line in record.replace(packages.to_str().unwrap(), PACKAGES).lines() {
        let (mark, rest) = line.split_at(2);
        let mut value: Value = serde_json::from_str(rest).unwrap();
        if let Some(members) = value.as_object_mut() {
            members.remove("stack");
        }
        text.push_str(&format!("{mark}{value}\n"));
    }
    without_numbers(&text)
}

/// Removes token numbers: tokens are numbered as they are created, also by the library itself.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split("Token[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(']').unwrap();
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        plain.push_str(&format!("Token[{name}N]{rest}"));
    }
    plain
}

#[test]
fn a_real_kernel_replies_as_recorded() {
    let Some(packages) = cdk() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mut process = Command::new("node")
        .arg(packages.join("runtime/webpack/bin/jsii-runtime.js"))
        .env("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
        .env("JSII_RUNTIME_PACKAGE_CACHE_ROOT", cache.path())
        .env("CDK_OUTDIR", cache.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let record = Arc::new(Mutex::new(String::new()));
    let replies = Tee {
        through: BufReader::new(process.stdout.take().unwrap()),
        mark: "< ",
        record: Arc::clone(&record),
    };
    let requests =
        Tee { through: process.stdin.take().unwrap(), mark: "> ", record: Arc::clone(&record) };
    let kernel = Kernel::over(replies, requests).unwrap();
    let packages_list = std::fs::read_to_string(packages.join("packages")).unwrap();
    let heard = converse(&kernel, &packages, &list(&packages_list));
    kernel.exit().unwrap();
    assert!(process.wait().unwrap().success());
    let said = without_places(&record.lock().unwrap(), &packages);
    if updates() {
        std::fs::write(RECORD, &said).unwrap();
    }
    assert_eq!(said, std::fs::read_to_string(RECORD).unwrap());
    assert!(heard.len() > 8);
}
