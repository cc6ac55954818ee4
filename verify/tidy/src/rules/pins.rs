//! Each tool that a script downloads is pinned by hash, and each base image by digest or named as not
//! pinned.

use serde_json::Value;

use crate::tree::{Finding, Tree};

const TOOLS: &str = "scripts/tools.sh";
const BASES: &str = "infra/image/bases";

/// Commands that install without looking at a hash, and what to write instead.
const UNCHECKED: [(&str, &str); 3] = [
    ("npm install", "`npm ci` with a lock file in scripts/pins"),
    ("curl ", "a package with a hash in scripts/pins"),
    ("wget ", "a package with a hash in scripts/pins"),
];

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let Some(script) = tree.text(TOOLS) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, line) in script.lines().enumerate().filter(|(_, line)| !is_comment(line)) {
        let mut complain = |what: String| found.push(Finding::new(TOOLS, index + 1, what));
        for (command, instead) in UNCHECKED.iter().filter(|(command, _)| line.contains(command)) {
            complain(format!("`{}` checks no hash: use {instead}", command.trim()));
        }
        if line.contains("pip\" install") && !script.contains("--require-hashes") {
            complain("pip installs without --require-hashes".to_owned());
        }
        for (call, folder, end) in
            [("from_pypi ", "pip/", ".txt"), ("from_npm ", "npm/", "/package-lock.json")]
        {
            let called = line.split(call).nth(1).and_then(|rest| rest.split_whitespace().next());
            let tool = called.filter(|tool| tool.starts_with(|c: char| c.is_ascii_lowercase()));
            let path = tool.map(|tool| format!("scripts/pins/{folder}{tool}{end}"));
            if let Some(path) = path.filter(|path| tree.text(path).is_none()) {
                complain(format!("no hashes in {path}: write them with scripts/pins.sh"));
            }
        }
    }
    for (path, text) in tree.iter().filter(|(path, _)| path.starts_with("scripts/pins/")) {
        found.extend(unpinned(path, text).into_iter().map(|what| Finding::new(path, 1, what)));
    }
    found.extend(bases(tree));
    found
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// The packages of a lock file that have no version or no hash.
fn unpinned(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("package-lock.json") {
        let lock: Value = serde_json::from_str(text).unwrap_or_default();
        let packages = lock["packages"].as_object().into_iter().flatten();
        let bare = packages.filter(|(name, package)| {
            !name.is_empty()
                && !package["integrity"].as_str().is_some_and(|it| it.starts_with("sha512-"))
        });
        return bare.map(|(name, _)| format!("{name} has no SHA-512 hash")).collect();
    }
    if !path.ends_with(".txt") {
        return Vec::new();
    }
    let starts = |line: &&str| !line.starts_with([' ', '#']) && !line.is_empty();
    let is_pinned = |line: &str| line.contains("==") && line.ends_with('\\');
    let bare = text.lines().filter(starts).filter(|line| !is_pinned(line));
    bare.map(|line| format!("`{line}` has no version or no hash")).collect()
}

/// Base images of the Dockerfile that the list of digests does not name, and invalid digests.
fn bases(tree: &Tree) -> Vec<Finding> {
    let dockerfiles = tree.iter().filter(|(path, _)| path.ends_with("Dockerfile"));
    let listed = tree.text(BASES).unwrap_or_default();
    let listed: Vec<_> = listed
        .lines()
        .enumerate()
        .filter(|(_, line)| !is_comment(line) && !line.is_empty())
        .map(|(index, line)| (index, line.split_whitespace().collect::<Vec<_>>()))
        .collect();
    let mut found = Vec::new();
    for (path, text) in dockerfiles {
        for (index, line) in text.lines().enumerate() {
            let image = line
                .strip_prefix("FROM ")
                .and_then(|rest| rest.split_whitespace().find(|word| !word.starts_with("--")));
            let argument =
                image.and_then(|it| it.strip_prefix("${")).and_then(|it| it.strip_suffix('}'));
            let is_listed =
                |name: &str| listed.iter().any(|(_, fields)| fields.first() == Some(&name));
            if image.is_some() && !argument.is_some_and(is_listed) {
                let what =
                    format!("the base image is no argument of {BASES}, so no digest pins it");
                found.push(Finding::new(path, index + 1, what));
            }
        }
    }
    for (index, fields) in &listed {
        if !matches!(fields[..], [_, _, digest] if digest == "unpinned" || is_digest(digest)) {
            let what = "expected ARGUMENT IMAGE:TAG and sha256:DIGEST or `unpinned`";
            found.push(Finding::new(BASES, index + 1, what));
        }
    }
    found
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::{Command, Output};

    use crate::tree::fixture;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        fixture::check(super::findings, input, expected);
    }

    #[test]
    fn a_tool_without_hashes_is_named() {
        check(
            "//- scripts/tools.sh\n# curl is fine here\nx) once x 1 from_pypi x ;;\ny) from_npm y\nfrom_npm z\n\
             npm install --prefix f\n\
             //- scripts/pins/pip/x.txt\nx==1 \\\n    --hash=sha256:00\nbare==2\nloose>=3 \\\n\
             //- scripts/pins/npm/y/package-lock.json\n\
             {\"packages\": {\"\": {}, \"a\": {\"integrity\": \"sha512-x\"}, \"b\": {}}}\n",
            &[
                "scripts/tools.sh:4: no hashes in scripts/pins/npm/z/package-lock.json: write them with scripts/pins.sh",
                "scripts/tools.sh:5: `npm install` checks no hash: use `npm ci` with a lock file in scripts/pins",
                "scripts/pins/npm/y/package-lock.json:1: b has no SHA-512 hash",
                "scripts/pins/pip/x.txt:1: `bare==2` has no version or no hash",
                "scripts/pins/pip/x.txt:1: `loose>=3 \\` has no version or no hash",
            ],
        );
    }

    #[test]
    fn a_base_image_is_listed_with_its_digest_or_as_unpinned() {
        let digest = "0".repeat(64);
        let input = format!(
            "//- scripts/tools.sh\n//- infra/image/Dockerfile\nFROM --platform=p ${{RUST}} AS build\n\
             FROM debian:bookworm\nFROM ${{OTHER}}\n\
             //- infra/image/bases\n# a comment\nRUST rust:1 sha256:{digest}\nDEBIAN debian:1 unpinned\n\
             BAD debian:1 sha256:12\n"
        );
        let unlisted = "the base image is no argument of infra/image/bases, so no digest pins it";
        check(
            &input,
            &[
                &format!("infra/image/Dockerfile:2: {unlisted}"),
                &format!("infra/image/Dockerfile:3: {unlisted}"),
                "infra/image/bases:4: expected ARGUMENT IMAGE:TAG and sha256:DIGEST or `unpinned`",
            ],
        );
    }

    /// Runs the advisories' script with a `git` that reaches nothing.
    fn advisories(named: Option<&str>) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join("git");
        std::fs::write(&git, "#!/bin/sh\nexit 128\n").unwrap();
        std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let script = crate::workspace_root().join("scripts/advisories.sh");
        let mut command = Command::new("/bin/bash");
        command.arg(script).env_clear().env("PATH", path).env("HOME", Path::new("/nonexistent"));
        command.envs(named.map(|url| ("DAYBOOK_ADVISORIES", url))).output().unwrap()
    }

    #[test]
    fn advisories_that_nobody_could_check_are_said_to_be_open() {
        let open = advisories(None);
        let said = String::from_utf8_lossy(&open.stderr);
        assert!(said.contains("advisories: not checked"), "{said}");
        assert!(open.status.success(), "{said}");
        let named = advisories(Some("https://user:hunter2@example.com/db"));
        let said = String::from_utf8_lossy(&named.stderr);
        assert_eq!(named.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot be read") && !said.contains("hunter2"), "{said}");
    }
}
