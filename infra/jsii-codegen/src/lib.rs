//! From a jsii library's own description, writes Rust bindings for the classes that somebody uses.
//!
//! A library's *assembly* (`.jsii` in its package) describes every type. [`assembly`] reads it,
//! [`selection`] is the list of classes and members that are wanted, [`plan`] finds what else they take
//! (structs, enums, interfaces), [`render`] writes it down. The same assembly and selection give the same
//! text, byte for byte.
//!
//! What becomes of what:
//!
//! | in the library | in Rust |
//! |---|---|
//! | class, interface | a handle; `impl Is<Ancestor>` for each ancestor that somebody takes |
//! | struct | a builder: required members are the arguments of `new`, optional ones are methods |
//! | struct with neighbouring required members of one type | `new` takes them by name, in a struct of its own |
//! | enum | enum |
//! | optional arguments at the end | a second method, `…_with` |
//! | of a large struct | the optional members that are selected, all of them if the struct is not listed |
//! | of a union | its first alternative that is no object |
//! | what only an object of an unselected class could be | left out |
//! | deprecated and protected members | left out |

pub mod assembly;
mod name;
pub mod plan;
pub mod render;
pub mod selection;
