//! A library's description of its types. Documentation is not read: copying it may not be
//! permitted.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Assembly {
    pub name: String,
    pub version: String,
    /// Types by fully qualified name.
    #[serde(default)]
    pub types: BTreeMap<String, Type>,
}

#[derive(Debug, Deserialize)]
pub struct Type {
    pub kind: Kind,
    /// For an interface: whether it is a struct, passed by value.
    #[serde(default)]
    pub datatype: bool,
    /// The class that it extends.
    pub base: Option<String>,
    /// Implemented or extended interfaces.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// The constructor; a class without one inherits that of its base.
    pub initializer: Option<Callable>,
    /// Its own methods.
    #[serde(default)]
    pub methods: Vec<Callable>,
    /// Its own properties.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// Members of an enum.
    #[serde(default)]
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Class,
    Interface,
    Enum,
}

#[derive(Debug, Deserialize)]
pub struct Member {
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub struct Callable {
    /// `None` for an initializer.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub parameters: Vec<Property>,
    /// `None` for void.
    pub returns: Option<Returned>,
    #[serde(default, rename = "static")]
    pub is_static: bool,
    #[serde(default)]
    pub protected: bool,
}

#[derive(Debug, Deserialize)]
pub struct Returned {
    #[serde(rename = "type")]
    pub of: TypeRef,
    #[serde(default)]
    pub optional: bool,
}

/// A property, a struct member or a parameter.
#[derive(Clone, Debug, Deserialize)]
pub struct Property {
    pub name: String,
    #[serde(rename = "type")]
    pub of: TypeRef,
    #[serde(default)]
    pub optional: bool,
    #[serde(default, rename = "static")]
    pub is_static: bool,
    #[serde(default)]
    pub protected: bool,
    #[serde(default)]
    pub variadic: bool,
    #[serde(default)]
    pub docs: Docs,
}

/// The part of the documentation that is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Docs {
    /// The reason for the deprecation, if deprecated.
    pub deprecated: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TypeRef {
    /// `string`, `number`, `boolean`, `date`, `json` or `any`.
    Primitive(String),
    /// A type by fully qualified name.
    Fqn(String),
    Collection(Collection),
    /// One of several.
    Union(Types),
    /// All of several.
    Intersection(Types),
}

#[derive(Clone, Debug, Deserialize)]
pub struct Collection {
    /// `array` or `map`.
    pub kind: String,
    #[serde(rename = "elementtype")]
    pub element: Box<TypeRef>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Types {
    pub types: Vec<TypeRef>,
}

/// Parses an assembly.
///
/// # Errors
/// The text is not an assembly. A package's `.jsii` may only refer to a compressed file; the
/// message then says so.
pub fn parse(text: &str) -> Result<Assembly> {
    serde_json::from_str(text)
        .context("not a jsii assembly; if the file refers to a `.jsii.gz`, decompress that and pass it instead")
}
