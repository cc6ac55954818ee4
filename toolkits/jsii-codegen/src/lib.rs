//! Generates Rust bindings for selected classes of a jsii library, such as the AWS CDK.
//!
//! - [`assembly`] parses the library's *assembly* (`.jsii` in its package), which describes all types.
//! - [`selection`] lists the classes and members to generate.
//! - [`plan`] adds the structs, enums and interfaces that these use.
//! - [`render`] writes the source files.
//!
//! The same assembly and selection give the same files, byte for byte.
//!
//! How types are mapped:
//!
//! | in the library | in Rust |
//! |---|---|
//! | class, interface | a handle; `impl Is<Ancestor>` for each ancestor that a parameter uses |
//! | struct | a builder: required members are the arguments of `new`, optional ones are methods |
//! | struct with adjacent required members of one type | `new` takes them by name, in a second struct |
//! | enum | enum |
//! | trailing optional arguments | a second method, `…_with` |
//! | optional members of a struct | the selected ones; all if the selection does not list the struct |
//! | union | its first alternative that is not an object |
//! | member or parameter that only accepts objects of unselected classes | omitted |
//! | deprecated and protected members | omitted |

pub mod assembly;
mod name;
pub mod plan;
pub mod render;
pub mod selection;
