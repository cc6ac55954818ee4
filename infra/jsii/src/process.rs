//! Starting a kernel: a Node.js process that ends when its standard input does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// Starts the kernel in the file `runtime` (`webpack/bin/jsii-runtime.js` of the package
/// `@jsii/runtime`) with this Node.js. What the library prints goes to standard error.
///
/// # Errors
/// When it cannot be started or does not greet.
pub fn start(node: &Path, runtime: &Path, environment: &[(&str, &str)]) -> Result<Kernel> {
    let call = format!("starting {} {}", node.display(), runtime.display());
    let unreachable = |cause| Error::Unreachable { call: call.clone(), cause };
    let mut process = Command::new(node)
        .arg(runtime)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(unreachable)?;
    let missing = || unreachable(io::ErrorKind::BrokenPipe.into());
    let requests = process.stdin.take().ok_or_else(missing)?;
    let replies = process.stdout.take().ok_or_else(missing)?;
    let console = process.stderr.take().ok_or_else(missing)?;
    std::thread::spawn(move || relay(console, io::stderr()));
    Kernel::connect(replies, Box::new(requests), Some(process))
}

/// Passes on what the library printed: the kernel wraps each piece, so that it cannot be mistaken for a
/// reply. What is not wrapped is Node.js's own.
fn relay(console: impl Read, mut out: impl Write) {
    for line in BufReader::new(console).lines().map_while(io::Result::ok) {
        // A closed standard error leaves nobody to tell.
        let _ = match unwrapped(&line) {
            Some(printed) => out.write_all(&printed),
            None => writeln!(out, "{line}"),
        };
    }
}

fn unwrapped(line: &str) -> Option<Vec<u8>> {
    let value: Value = serde_json::from_str(line).ok()?;
    let printed = value.get("stderr").or_else(|| value.get("stdout"))?;
    BASE64_STANDARD.decode(printed.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_prints_is_unwrapped_and_the_rest_passed_on() {
        let console =
            "{\"stderr\":\"aGkK\"}\n{\"stdout\":\"aG8K\"}\nNode says {no}\n{\"other\":1}\n";
        let mut out = Vec::new();
        relay(console.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "hi\nho\nNode says {no}\n{\"other\":1}\n");
    }
}
