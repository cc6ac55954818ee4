//! What `make dist` packs, made of the program of this build: installed without a network, and used from an empty folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Dev, Ran, free_endpoint, run_within, tool};
use crate::page::{page, root};
use crate::projects::{path, session};

/// The program of this build is large, because it has every feature and is not optimised.
const PACKED_WITHIN: Duration = Duration::from_secs(100);

/// A command in a folder, with nothing of this environment but the search path.
fn command(program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear().env("PATH", path()).stdin(Stdio::null());
    command.env("HOME", folder).env("DAYBOOK_KEYS", folder.join(".keys"));
    command
}

fn succeeds(command: &mut Command) -> Ran {
    let ran = run_within(command, PACKED_WITHIN);
    assert_eq!(ran.exit, 0, "{command:?} {ran:#?}");
    ran
}

/// What cargo needs, from the test runner's environment.
#[expect(clippy::disallowed_methods, reason = "cargo and rustup find their folders there")]
fn with_cargo(command: &mut Command) -> &mut Command {
    for name in ["CARGO", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "HOME"] {
        command.envs(std::env::var(name).map(|value| (name, value)));
    }
    command.env("CARGO_NET_OFFLINE", "true")
}

/// Packs this build's program; the files.
fn packed(out: &Path, kinds: &str) -> Vec<PathBuf> {
    let program = format!("{}={}", std::env::consts::ARCH, env!("CARGO_BIN_EXE_daybook"));
    let mut pack = command("python3", &root());
    pack.arg("scripts/dist.py").arg(out).args(["--program", &program, "--only", kinds, "--quick"]);
    succeeds(with_cargo(&mut pack).env("SOURCE_DATE_EPOCH", "1700000000"));
    let mut files: Vec<_> =
        std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn empty(folder: &Path, name: &str) -> PathBuf {
    let empty = folder.join(name);
    std::fs::create_dir(&empty).unwrap();
    empty
}

/// Diagnoses a bundled incident with a stack of its own.
fn does_the_main_job(program: &Path, folder: &Path) {
    let incident = "packs/incident/incidents/s3-permission-revoked";
    let mut trigger = command(program, folder);
    trigger.args(["--endpoint", &free_endpoint(), "trigger", "--input", incident]);
    let ran = succeeds(trigger.args(["--wait", "--with-stack"]));
    for expected in ["SESSION_SUCCEEDED", "Root cause", "s3:GetObject", "Remediation"] {
        assert!(ran.stdout.contains(expected), "{expected}: {ran:#?}");
    }
    assert!(ran.stderr.contains(&format!("share/daybook/{incident}")), "{ran:#?}");
}

/// Makes an agent, runs it to its question, answers, and verifies.
fn runs_a_new_agent(program: &Path, folder: &Path, language: &str, arguments: &[&str]) {
    succeeds(command(program, folder).args(["new", "agent", "tidy", "--language", language]));
    let folder = folder.join("tidy");
    let mut dev = command(program, &folder);
    dev.env("PYTHONDONTWRITEBYTECODE", "1").args(["dev", "--listen", "127.0.0.1:0"]);
    let dev = Dev::ready(dev.args(arguments));
    let daybook = |arguments: &[&str]| {
        let mut command = command(program, &folder);
        run_within(command.args(["--endpoint", &dev.endpoint]).args(arguments), PACKED_WITHIN)
    };
    let asked =
        daybook(&["trigger", "--agent", "tidy", "--input", "input.json", "--wait", "--json"]);
    let asked = session(&asked);
    assert_eq!(asked["status"], "WAITING", "{asked:#}");
    let id = asked["session_id"].as_str().unwrap();
    assert_eq!(daybook(&["answer", id, "--approve"]).exit, 0);
    let tail = daybook(&["tail", id]);
    assert_eq!(tail.exit, 0, "{tail:#?}");
    let shown = session(&daybook(&["show", id, "--json"]));
    assert_eq!(shown["result"]["findings"][0], "old.log", "{shown:#}");
    assert!(!folder.join("box/old.log").exists() && folder.join("box/new.log").exists());
    assert_eq!(daybook(&["verify", "--all"]).exit, 0);
    assert_eq!(dev.stop("-TERM"), 0);
}

/// The agent on the first page, from every effect of its journal.
const PLAYED: &str = r#"
from daybook.testing import Script, every_prefix
from release_notes import release_notes
script = Script(release_notes, {"since": "v1", "out": "NOTES.md"})
script.tool("repo.commits", [{"id": "a"}, {"id": "b"}])
script.tool("repo.commit", lambda arguments: {"text": "change " + arguments["id"]})
script.tool("fs.write_file", {"written": True}).chat("Two changes.")
print(every_prefix(script)["report"])
"#;

#[test]
fn a_wheel_installs_offline_and_runs_from_an_empty_folder() {
    let Some(checks) = tool("DAYBOOK_TEST_DIST_CHECKS") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [wheel] = &packed(&folder.join("out"), "wheel")[..] else { panic!("one wheel") };
    let name = wheel.file_stem().unwrap().to_str().unwrap();
    let platform = name.rsplit('-').next().unwrap().split('.').next().unwrap();
    let judged = succeeds(command(checks, folder).args(["-m", "auditwheel", "show"]).arg(wheel));
    let expected = format!("consistent with the following platform tag: \"{platform}\"");
    let judged = judged.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(platform.starts_with("manylinux_2_") && judged.contains(&expected), "{judged}");

    succeeds(command("python3", folder).args(["-m", "venv", "venv"]));
    let bin = folder.join("venv/bin");
    let install = ["install", "--quiet", "--no-index", "--disable-pip-version-check"];
    succeeds(command(bin.join("pip"), folder).args(install).arg(wheel));
    let program = bin.join("daybook");
    let here = empty(folder, "here");
    does_the_main_job(&program, &here);
    // The environment's Python is not on the search path, and no binary `agent` is beside the program.
    runs_a_new_agent(&program, &here, "python", &["--isolate"]);

    let agent = page("README.md");
    let agent = agent.split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    std::fs::write(here.join("release_notes.py"), agent).unwrap();
    std::fs::write(here.join("played.py"), PLAYED).unwrap();
    let played = succeeds(command(bin.join("python"), &here).arg("played.py"));
    assert_eq!(played.stdout, "Two changes.\n");
}

#[test]
fn an_npm_package_installs_offline_and_runs_from_an_empty_folder() {
    let Some(node) = tool("DAYBOOK_TEST_NODE") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [package] = &packed(&folder.join("out"), "npm")[..] else { panic!("one package") };
    let here = empty(folder, "here");
    let install = ["install", "--offline", "--no-audit", "--no-fund"];
    succeeds(command(node.with_file_name("npm"), &here).args(install).arg(package));
    let npx = node.with_file_name("npx");
    let version = succeeds(command(npx, &here).args(["--offline", "daybook", "--version"]));
    assert_eq!(version.stdout, concat!("daybook ", env!("CARGO_PKG_VERSION"), "\n"));
    let imported = "import { agent, run } from 'daybook'; import { everyPrefix } from 'daybook/testing'; \
        console.log(typeof agent, typeof run, typeof everyPrefix);";
    let node = succeeds(command(node, &here).args(["--input-type=module", "--eval", imported]));
    assert_eq!(node.stdout, "function function function\n");
    let program = here.join("node_modules/.bin/daybook");
    does_the_main_job(&program, &here);
    runs_a_new_agent(&program, &here, "typescript", &[]);
}

#[test]
fn a_deb_and_an_archive_have_all_and_the_same_bytes_again() {
    if tool("DAYBOOK_TEST_DIST_CHECKS").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [first, second] = ["first", "second"].map(|name| packed(&folder.join(name), "deb,archive"));
    assert_eq!(first.len(), 2);
    for (first, second) in first.iter().zip(&second) {
        let same = std::fs::read(first).unwrap() == std::fs::read(second).unwrap();
        assert!(same, "{} differs", first.display());
    }
    let (archive, deb) = (&first[0], &first[1]);
    let (unpacked, laid) = (empty(folder, "unpacked"), empty(folder, "laid"));
    succeeds(command("tar", &unpacked).args(["--strip-components=1", "-xzf"]).arg(archive));
    succeeds(command("dpkg-deb", folder).arg("-x").arg(deb).arg(&laid));
    let conffiles = run_within(
        command("dpkg-deb", folder).args(["-I"]).arg(deb).arg("conffiles"),
        PACKED_WITHIN,
    );
    assert_ne!(conffiles.exit, 0, "it has none: {conffiles:#?}");
    for (prefix, page, zsh) in [
        (&unpacked, "share/man/man1/daybook.1", "site-functions"),
        (&laid.join("usr"), "share/man/man1/daybook.1.gz", "vendor-completions"),
    ] {
        for file in [
            page,
            &format!("share/zsh/{zsh}/_daybook"),
            "share/bash-completion/completions/daybook",
            "share/fish/vendor_completions.d/daybook.fish",
            "share/daybook/LICENSE",
            "share/daybook/sdk/rust/Cargo.toml",
        ] {
            assert!(prefix.join(file).is_file(), "{} is missing", prefix.join(file).display());
        }
        let here = empty(prefix, "here");
        does_the_main_job(&prefix.join("bin/daybook"), &here);
    }
    for file in ["README.md", "LICENSE"] {
        assert!(unpacked.join(file).is_file(), "{file}");
    }
}

#[test]
fn the_sbom_is_valid_and_names_what_is_linked() {
    let Some(checks) = tool("DAYBOOK_TEST_DIST_CHECKS") else { return };
    let folder = tempfile::tempdir().unwrap();
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut write = command("python3", &root());
    write.arg("scripts/sbom.py").arg(folder.path()).args([&triple, "live"]);
    succeeds(with_cargo(&mut write));
    let name = concat!("daybook-", env!("CARGO_PKG_VERSION"));
    let sbom = folder.path().join(format!("{name}-{}-linux.cdx.json", std::env::consts::ARCH));
    let check = || {
        let mut check = command(&checks, &root());
        run_within(check.arg("scripts/sbom-check.py").arg(&sbom), PACKED_WITHIN)
    };
    let valid = check();
    assert_eq!(valid.exit, 0, "{valid:#?}");
    let text = std::fs::read_to_string(&sbom).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    let scope = |name: &str| {
        let mut all = read["components"].as_array().unwrap().iter();
        all.find(|it| it["name"] == name).map(|it| it["scope"].as_str().unwrap().to_owned())
    };
    assert_eq!(scope("tokio").as_deref(), Some("required"));
    assert_eq!(scope("cc").as_deref(), Some("excluded"));
    // A test's, and another feature's.
    assert_eq!((scope("proptest"), scope("candle-core")), (None, None));
    std::fs::write(&sbom, text.replacen("pkg:cargo/tokio@", "pkg:cargo/tokyo@", 1)).unwrap();
    assert_ne!(check().exit, 0, "a reference without a component is found");
}
