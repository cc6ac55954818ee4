//! Starts a kernel: a Node.js process that exits when its standard input is closed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// Starts the kernel in the file `runtime` (`webpack/bin/jsii-runtime.js` of the package
/// `@jsii/runtime`) with this Node.js. The library's output goes to standard error.
///
/// # Errors
/// The process cannot be started or does not send its greeting.
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

/// Forwards the library's output. The kernel wraps each piece in JSON, so that it differs from a
/// reply; output that is not wrapped is Node.js's own.
fn relay(console: impl Read, mut out: impl Write) {
    for line in BufReader::new(console).lines().map_while(io::Result::ok) {
        // If standard error is closed, there is no place to report it.
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
    fn library_output_is_unwrapped_and_the_rest_forwarded() {
        let console =
            "{\"stderr\":\"aGkK\"}\n{\"stdout\":\"aG8K\"}\nNode says {no}\n{\"other\":1}\n";
        let mut out = Vec::new();
        relay(console.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "hi\nho\nNode says {no}\n{\"other\":1}\n");
    }
}
