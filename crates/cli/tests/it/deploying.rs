//! `scripts/deploy.sh` against moto, an independent AWS implementation.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::account::Account;
use crate::harness::{Ran, run, tool};
use crate::page::root;
use crate::people::with_lines;

const PARAMETER: &str = "/incident-response/mcp-api-key";

struct World {
    account: Account,
    aws: PathBuf,
}

impl World {
    fn open() -> Option<Self> {
        Some(Self { aws: tool("DAYBOOK_TEST_AWS")?, account: Account::open()? })
    }

    fn there(&self, command: &mut Command) {
        command.envs([
            ("AWS_ENDPOINT_URL", self.account.endpoint.as_str()),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
        ]);
    }

    fn aws(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(&self.aws);
        self.there(command.args(arguments).args(["--output", "json"]));
        let ran = run(&mut command);
        assert_eq!(ran.exit, 0, "{ran:#?}");
        serde_json::from_str(&ran.stdout).unwrap_or_default()
    }

    fn script(&self, arguments: &[&str], lines: &[&str]) -> Ran {
        let mut command = Command::new("bash");
        command.arg(root().join("scripts/deploy.sh")).args(arguments);
        self.there(&mut command);
        with_lines(&mut command, lines)
    }
}

#[test]
fn the_mcp_key_is_prompted_once_and_stored_encrypted() {
    let Some(world) = World::open() else { return };
    let target = tempfile::tempdir().unwrap();
    let target = target.path().to_str().unwrap();
    let none = world.script(&["api-key", target, "dev"], &[]);
    assert!(none.exit == 0 && none.stderr.contains("does not exist"), "{none:#?}");
    let key = r#"with "quotes", \ and $signs"#;
    for line in [key, "another"] {
        let asked = world.script(&["api-key", target, "dev"], &[line]);
        assert_eq!((asked.exit, asked.stdout.as_str()), (0, ""), "{asked:#?}");
    }
    let kept = world.aws(&["ssm", "get-parameter", "--with-decryption", "--name", PARAMETER]);
    assert_eq!(
        (kept["Parameter"]["Type"].as_str(), kept["Parameter"]["Value"].as_str()),
        (Some("SecureString"), Some(key))
    );
}

#[test]
fn an_unattended_deployment_asks_for_no_key() {
    let Some(world) = World::open() else { return };
    let target = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    let target = target.path().to_str().unwrap();
    command.arg(root().join("scripts/deploy.sh")).args(["api-key", target, "dev"]);
    world.there(&mut command);
    let asked = with_lines(command.env("APPROVAL", "never"), &["a key"]);
    assert!(asked.exit == 0 && asked.stderr.contains("does not exist"), "{asked:#?}");
    let refused = with_lines(command.env("APPROVAL", "always"), &[]);
    assert_eq!(refused.exit, 2, "{refused:#?}");
    assert!(refused.stderr.contains("invalid APPROVAL `always`"), "{refused:#?}");
}

#[test]
fn the_images_tag_is_of_the_source_that_is_compiled() {
    let tag = |folder: &std::path::Path| {
        let ran = run(Command::new("bash").arg(folder.join("scripts/image.sh")).arg("--tag"));
        assert_eq!(ran.exit, 0, "{ran:#?}");
        ran.stdout.trim().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path();
    for path in [
        "Cargo.toml",
        "Cargo.lock",
        "rust-toolchain.toml",
        "scripts/image.sh",
        "infra/image",
        "agent/src",
        "agent/tests",
        "crates/mcp",
        "invoker/src",
        "journal/src",
        "packs/checkup",
        "poller/src",
        "sdk/rust",
        "toolkits/asl/src",
        "toolkits/tlog/src",
    ] {
        std::fs::create_dir_all(into.join(path).parent().unwrap()).unwrap();
        let mut copy = Command::new("cp");
        let copied = copy.arg("-r").arg(root().join(path)).arg(into.join(path)).status().unwrap();
        assert!(copied.success(), "{path}");
    }
    let before = tag(into);
    assert!(before.starts_with(concat!(env!("CARGO_PKG_VERSION"), "-")), "{before}");
    std::fs::write(into.join("agent/tests/it/main.rs"), "").unwrap();
    std::fs::write(into.join("README.md"), "").unwrap();
    assert_eq!(tag(into), before);
    std::fs::write(into.join("agent/src/main.rs"), "").unwrap();
    assert_ne!(tag(into), before);
}

#[test]
fn an_unreadable_journal_does_not_count_as_absent() {
    let Some(world) = World::open() else { return };
    let target = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command.arg(root().join("scripts/deploy.sh")).args([
        "destroy",
        target.path().to_str().unwrap(),
        "dev",
    ]);
    world.there(&mut command);
    command.env_remove("AWS_DEFAULT_REGION");
    let stopped = run(&mut command);
    assert_eq!(stopped.exit, 2, "{stopped:#?}");
    assert!(stopped.stderr.contains("error: aws dynamodb describe-table: "), "{stopped:#?}");
}

#[test]
fn an_invalid_stage_is_refused_before_any_request() {
    let Some(world) = World::open() else { return };
    for stage in ["", "Dev", "dev; rm -rf /", "../dev"] {
        let refused = world.script(&["destroy", "target", stage], &[]);
        assert_eq!(refused.exit, 2, "{refused:#?}");
        assert!(refused.stderr.contains("invalid stage"), "{refused:#?}");
    }
}
