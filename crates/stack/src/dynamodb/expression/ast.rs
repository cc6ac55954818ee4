//! The syntax tree of an expression: first with placeholders ([`raw`]), then bound.

use super::super::value::AttributeValue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparator {
    /// The comparator in source form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The equivalent comparator for exchanged operands.
    pub const fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

/// A bound and type-checked condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Operand, Comparator, Operand),
    /// `value BETWEEN low AND high`.
    Between(Operand, Operand, Operand),
    /// `value IN (options)`.
    In(Operand, Vec<Operand>),
    /// `attribute_exists(path)`.
    Exists(Path),
    /// `attribute_not_exists(path)`.
    NotExists(Path),
    /// `attribute_type(value, type)`.
    IsType(Operand, String),
    /// `begins_with(value, prefix)`.
    BeginsWith(Operand, Operand),
    /// `contains(value, part)`.
    Contains(Operand, Operand),
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value of the item.
    Attribute(Path),
    /// A value of the request.
    Value(AttributeValue),
    /// `size(operand)`.
    Size(Box<Operand>),
}

/// A document path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The attribute.
    pub name: String,
    /// The path inside the attribute.
    pub inner: Vec<Segment>,
}

/// A segment of a document path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A member of a map.
    Name(String),
    /// An element of a list.
    Index(u32),
}

impl Path {
    /// Whether the path is a whole attribute.
    pub fn is_attribute(&self, name: &str) -> bool {
        self.inner.is_empty() && self.name == name
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}", self.name)?;
        for segment in &self.inner {
            match segment {
                Segment::Name(name) => write!(f, ", {name}")?,
                Segment::Index(index) => write!(f, ", [{index}]")?,
            }
        }
        write!(f, "]")
    }
}

/// The tree with placeholders.
pub mod raw {
    use super::Comparator;

    #[derive(Clone, Debug, PartialEq)]
    pub enum Condition {
        All(Vec<Condition>),
        Any(Vec<Condition>),
        Not(Box<Condition>),
        Compare(Operand, Comparator, Operand),
        Between(Operand, Operand, Operand),
        In(Operand, Vec<Operand>),
        Call(Call),
    }

    /// An operand.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Operand {
        Path(Path),
        /// A value placeholder, with its colon.
        Value(String),
        Call(Call),
    }

    /// A function call.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Call {
        pub function: String,
        /// The operands, at least one.
        pub operands: Vec<Operand>,
    }

    /// A document path; starts with a name.
    pub type Path = Vec<Segment>;

    /// A segment of a document path.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Segment {
        /// A plain name.
        Name(String),
        /// A name placeholder, with its hash sign.
        Placeholder(String),
        /// A list index in source form.
        Index(String),
    }
}
