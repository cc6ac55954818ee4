//! A Rust client of jsii, for libraries such as the AWS CDK.
//!
//! jsii makes a TypeScript library usable from other languages. A process, the *kernel*, runs the
//! library under Node.js. It reads requests from standard input (create an object, call a method) and
//! writes replies to standard output.
//!
//! - [`process`] starts a kernel.
//! - [`Kernel`] sends requests to it.
//! - [`mod@handle`] holds references to objects in the kernel.
//! - [`wire`] converts values to and from JSON.
//! - The three macros are the building blocks of typed bindings, which `jsii-codegen` generates.
//!
//! ```
//! use jsii::{Kernel, ToWire};
//!
//! // Recorded replies instead of a process; requests are discarded.
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
//! Overriding a library's methods in Rust is not supported, because it needs callbacks from the kernel.

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
