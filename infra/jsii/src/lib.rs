//! Rust drives libraries that were written for jsii, such as the AWS CDK, by talking to their kernel.
//!
//! jsii lets a TypeScript library be used from other languages: a process, the *kernel*, runs the
//! library under Node.js and is told over its standard input and output which objects to make and which
//! methods to call. [`process`] starts one, [`Kernel`] speaks with it, [`wire`] says how values travel,
//! [`mod@handle`] what stands for the kernel's objects here. Bindings with real types over all this are
//! written by `jsii-codegen`; the three macros here are what they are written in.
//!
//! ```
//! use jsii::{Kernel, ToWire};
//!
//! // A kernel that was recorded: what it is told is thrown away, what it says is known.
//! let replies = concat!(
//!     r#"{"hello":"@jsii/runtime@1.140.0"}"#, "\n",
//!     r#"{"ok":{"result":{"$jsii.byref":"aws-cdk-lib.Duration@10000"}}}"#, "\n",
//!     r#"{"ok":{"result":300}}"#, "\n",
//! );
//! let kernel = Kernel::over(replies.as_bytes(), std::io::sink())?;
//! let five: jsii::Object = kernel.call_static("aws-cdk-lib.Duration", "minutes", &[&5 as &dyn ToWire])?;
//! let seconds: f64 = five.call("toSeconds", &[])?;
//! assert_eq!(seconds, 300.0);
//! # Ok::<(), jsii::Error>(())
//! ```
//!
//! Overriding a library's methods in Rust is not supported: the kernel then calls back, and whoever
//! only makes constructs never needs it.

mod error;
pub mod handle;
mod kernel;
mod macros;
pub mod process;
mod refusal;
pub mod wire;

pub use error::{Error, Result};
pub use handle::{FromObject, Handle, Is, Object};
pub use kernel::Kernel;
#[doc(hidden)]
pub use serde_json;
pub use serde_json::Value;
pub use wire::{FromWire, Map, Number, Structure, Text, ToWire};
