//! Kernels that are missing, exit early, or send invalid replies.

use std::io;
use std::path::Path;

use jsii::{Error, Kernel, Object, process};

const HELLO: &str = "{\"hello\":\"@jsii/runtime@1.140.0\"}\n";

fn kernel(replies: &str) -> Result<Kernel, Error> {
    Kernel::over(io::Cursor::new(replies.to_owned()), io::sink())
}

#[test]
fn a_kernel_that_cannot_be_started_is_named() {
    let error =
        process::start(Path::new("/nowhere/node"), Path::new("runtime.js"), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "starting /nowhere/node runtime.js: the jsii kernel cannot be reached"
    );
}

#[test]
fn a_kernel_without_greeting_is_rejected() {
    assert!(matches!(kernel("{\"ok\":{}}\n"), Err(Error::Protocol { .. })));
    assert!(matches!(kernel("Node.js v20\n"), Err(Error::Protocol { .. })));
    assert!(matches!(kernel(""), Err(Error::Unreachable { .. })));
}

#[test]
fn a_kernel_that_exited_is_noticed_at_the_next_call() {
    let kernel = kernel(HELLO).unwrap();
    let error = kernel.create::<Object>("a.B", &[]).unwrap_err();
    assert_eq!(error.to_string(), "new a.B: the jsii kernel cannot be reached");
}

#[test]
fn a_truncated_reply_is_rejected() {
    let kernel = kernel(&format!("{HELLO}{{\"ok\":{{\"$jsii.byref\"")).unwrap();
    assert!(matches!(kernel.create::<Object>("a.B", &[]), Err(Error::Unreachable { .. })));
}

#[test]
fn a_reply_of_another_type_is_named() {
    let kernel =
        kernel(&format!("{HELLO}{{\"ok\":{{\"value\":7}}}}\n{{\"callback\":{{}}}}\n")).unwrap();
    let error = kernel.get_static::<String>("a.B", "NAME").unwrap_err();
    assert!(error.to_string().starts_with("a.B.NAME: invalid reply from the jsii kernel: 7"));
    assert!(matches!(kernel.get_static::<String>("a.B", "NAME"), Err(Error::Protocol { .. })));
}
