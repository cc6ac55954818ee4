//! The agents' image without a container engine: lints the Dockerfile, and repeats the last step of its
//! build stage with the programs of this build.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::harness::{DEADLINE, run, tool};
use crate::page::root;
use crate::projects::block;

/// The image's user id, which has no account on this machine.
const USER: u32 = 10_001;

#[test]
fn the_linter_finds_nothing_in_the_dockerfile() {
    let Some(linter) = tool("DAYBOOK_TEST_HADOLINT") else { return };
    let file = root().join("infra/image/Dockerfile");
    let good = run(Command::new(&linter).arg(&file));
    assert_eq!((good.exit, good.stdout.as_str()), (0, ""), "{good:#?}");
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("Dockerfile");
    let text = std::fs::read_to_string(&file).unwrap().replace("USER 10001:10001", "USER root");
    std::fs::write(&broken, text).unwrap();
    let bad = run(Command::new(&linter).arg(&broken));
    assert!(bad.stdout.contains("DL3002"), "{bad:#?}");
}

/// The one for agents of a user's own. Its base has the tag that its reader gave it, and the version of Python is Debian's.
#[test]
fn the_linter_finds_nothing_in_the_documented_dockerfile() {
    let Some(linter) = tool("DAYBOOK_TEST_HADOLINT") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Dockerfile");
    std::fs::write(&file, block("docs/configuration.md", "dockerfile")).unwrap();
    let linted =
        run(Command::new(&linter).args(["--ignore", "DL3006", "--ignore", "DL3008"]).arg(&file));
    assert_eq!((linted.exit, linted.stdout.as_str()), (0, ""), "{linted:#?}");
}

/// Creates the image's files in a folder.
fn lay(folder: &Path) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_daybook")).parent().unwrap();
    let image = folder.join("image");
    let script = root().join("infra/image/image.sh");
    let laid = run(Command::new("bash").arg(script).arg("lay").arg(built).arg(&image));
    assert_eq!(laid.exit, 0, "{laid:#?}");
    image
}

fn everything_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything_below(&path));
        }
        found.push(path);
    }
    found
}

#[test]
fn only_root_can_write_to_the_image_s_files() {
    let folder = tempfile::tempdir().unwrap();
    let image = lay(folder.path());
    let all = everything_below(&image);
    assert!(all.len() > 6, "{all:?}");
    for path in all {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7022, 0, "{}: {mode:o}", path.display());
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The container's program as the image starts it, as the image's user if we may choose one.
fn agent(image: &Path, port: u16) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(image.join("usr/local/bin/agent"));
    command.env_clear().envs([
        ("DAYBOOK_MCP_SERVERS", image.join("etc/daybook/servers.json").as_os_str()),
        ("DAYBOOK_AGENT_PORT", port.to_string().as_ref()),
        ("JOURNAL_TABLE_NAME", "journal".as_ref()),
        ("AWS_REGION", "us-east-1".as_ref()),
        ("AWS_EC2_METADATA_DISABLED", "true".as_ref()),
    ]);
    let is_root =
        std::fs::metadata(image).is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if is_root {
        command.uid(USER).gid(USER);
    }
    command.stdin(Stdio::null());
    command
}

/// What the Dockerfile sets, with its files below a folder.
#[cfg(feature = "live")]
fn variables_of_the_image(image: &Path) -> Vec<(String, String)> {
    let file = std::fs::read_to_string(root().join("infra/image/Dockerfile")).unwrap();
    let set = file.lines().filter_map(|line| line.strip_prefix("ENV "));
    let set = set.flat_map(str::split_whitespace).map(|pair| pair.split_once('=').unwrap());
    set.map(|(name, value)| {
        let below = value.strip_prefix('/').map(|path| image.join(path).display().to_string());
        (name.to_owned(), below.unwrap_or_else(|| value.to_owned()))
    })
    .collect()
}

/// Runs a script in which `$0` is the agent, with exactly these variables, in a network of its own.
#[cfg(feature = "live")]
fn alone(image: &Path, variables: &[(String, String)], script: &str) -> crate::harness::Ran {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--", "/bin/bash", "-c", script]);
    command.arg(image.join("usr/local/bin/agent")).stdin(Stdio::null());
    command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    run(&mut command)
}

#[cfg(feature = "live")]
#[test]
fn the_image_starts_with_exactly_the_templates_variables() {
    const STARTS: &str = r#"
        /usr/sbin/ip link set lo up
        "$0" & agent=$!
        for i in {1..200}; do
            "$0" --healthy && { kill -TERM $agent; wait $agent; exit; }
            kill -0 $agent || { wait $agent; exit; }
            /bin/sleep 0.1
        done
        kill -KILL $agent; exit 99"#;
    let folder = tempfile::tempdir().unwrap();
    let image = lay(folder.path());
    if alone(&image, &[], "/usr/sbin/ip link set lo up").exit != 0 {
        eprintln!("skipped: cannot create a network namespace");
        return;
    }
    for template in ["daybook-dev", "daybook-other"] {
        let template = crate::deployed::account::golden(template);
        let mut variables = variables_of_the_image(&image);
        variables.extend(crate::deployed::runtime::variables_of(&template));
        if variables.iter().any(|(_, value)| value.starts_with("${ssm:")) {
            // There is no account to read the parameter from.
            variables.retain(|(name, _)| name != "OPENAI_API_KEY");
        }
        let ran = alone(&image, &variables, STARTS);
        assert_eq!(ran.exit, 0, "{ran:#?}");
        variables.retain(|(name, _)| name != "AWS_REGION");
        let ran = alone(&image, &variables, STARTS);
        assert_ne!(ran.exit, 0, "{ran:#?}");
        let why = "AWS_REGION is not set, expected a region, such as us-east-1";
        assert!(ran.stderr.contains(why), "{ran:#?}");
    }
}

#[test]
fn the_image_runs_unprivileged_and_passes_its_health_check() {
    let folder = tempfile::tempdir().unwrap();
    // The image's user has to get to it.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let image = lay(folder.path());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let healthy = || run(agent(&image, port).arg("--healthy"));
    let before = healthy();
    assert_ne!(before.exit, 0, "nothing runs yet");
    let child = agent(&image, port).stderr(Stdio::null()).spawn().unwrap();
    let mut running = Killed(child);
    for _ in 0..DEADLINE.as_millis() / 100 {
        if healthy().exit == 0 {
            let id = running.0.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
            assert!(running.0.wait().unwrap().success());
            return;
        }
        assert_eq!(running.0.try_wait().unwrap(), None, "it ended");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("it does not become healthy");
}
