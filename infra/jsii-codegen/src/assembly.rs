//! What a library says of its types. Documentation is not read: it is not ours to copy.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

/// A library's description.
#[derive(Debug, Deserialize)]
pub struct Assembly {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its types by their full names.
    #[serde(default)]
    pub types: BTreeMap<String, Type>,
}

/// One type.
#[derive(Debug, Deserialize)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// Of an interface: whether it is a struct, passed by value.
    #[serde(default)]
    pub datatype: bool,
    /// The class that it extends.
    pub base: Option<String>,
    /// The interfaces that it extends or has.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// How it is made; a class without one inherits its base's.
    pub initializer: Option<Callable>,
    /// Its own methods.
    #[serde(default)]
    pub methods: Vec<Callable>,
    /// Its own properties.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// Of an enum: its members.
    #[serde(default)]
    pub members: Vec<Member>,
}

/// What a type is.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A class.
    Class,
    /// An interface or a struct.
    Interface,
    /// An enum.
    Enum,
}

/// An enum's member.
#[derive(Debug, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
}

/// A method or an initializer.
#[derive(Debug, Deserialize)]
pub struct Callable {
    /// Its name; an initializer has none.
    #[serde(default)]
    pub name: String,
    /// Its parameters in order.
    #[serde(default)]
    pub parameters: Vec<Property>,
    /// What it returns, if anything.
    pub returns: Option<Returned>,
    /// Whether it is called on the class.
    #[serde(default, rename = "static")]
    pub is_static: bool,
    /// Whether only heirs may call it.
    #[serde(default)]
    pub protected: bool,
}

/// What a method returns.
#[derive(Debug, Deserialize)]
pub struct Returned {
    /// Of which type.
    #[serde(rename = "type")]
    pub of: TypeRef,
    /// Whether it may be nothing.
    #[serde(default)]
    pub optional: bool,
}

/// A property, a struct's member or a parameter.
#[derive(Clone, Debug, Deserialize)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub of: TypeRef,
    /// Whether it may be left out.
    #[serde(default)]
    pub optional: bool,
    /// Whether it is the class's.
    #[serde(default, rename = "static")]
    pub is_static: bool,
    /// Whether only heirs may read it.
    #[serde(default)]
    pub protected: bool,
    /// Whether any number of values may be given.
    #[serde(default)]
    pub variadic: bool,
    /// The one thing that is read of its documentation.
    #[serde(default)]
    pub docs: Docs,
}

/// The one thing that is read of documentation.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Docs {
    /// Why it should not be used any more, if so.
    pub deprecated: Option<String>,
}

/// A reference to a type.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TypeRef {
    /// `string`, `number`, `boolean`, `date`, `json` or `any`.
    Primitive(String),
    /// A type by its full name.
    Fqn(String),
    /// A list or a map.
    Collection(Collection),
    /// One of several.
    Union(Types),
    /// All of several.
    Intersection(Types),
}

/// A list or a map.
#[derive(Clone, Debug, Deserialize)]
pub struct Collection {
    /// `array` or `map`.
    pub kind: String,
    /// What is in it.
    #[serde(rename = "elementtype")]
    pub element: Box<TypeRef>,
}

/// Several types.
#[derive(Clone, Debug, Deserialize)]
pub struct Types {
    /// Each of them.
    pub types: Vec<TypeRef>,
}

/// Reads an assembly.
///
/// # Errors
/// When the text is none; a package's `.jsii` may be compressed, and says so.
pub fn parse(text: &str) -> Result<Assembly> {
    serde_json::from_str(text)
        .context("no jsii assembly; if it names a `.jsii.gz`, unpack that and give it instead")
}
