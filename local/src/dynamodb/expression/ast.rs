//! What an expression says: first as it is written ([`raw`]), then with its placeholders put in.

use super::super::value::AttributeValue;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// `=`.
    Equal,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

impl Comparator {
    /// As it is written.
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

    /// The comparator that says the same with the operands exchanged.
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

/// A condition whose names and values are known and of fitting types.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// All of these.
    All(Vec<Condition>),
    /// At least one of these.
    Any(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
    /// `left comparator right`.
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

/// Something with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The item's.
    Attribute(Path),
    /// The request's.
    Value(AttributeValue),
    /// `size(operand)`.
    Size(Box<Operand>),
}

/// Where a value stands in an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The attribute.
    pub name: String,
    /// The way into it.
    pub inner: Vec<Segment>,
}

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A map's member.
    Name(String),
    /// A list's element.
    Index(u32),
}

impl Path {
    /// Whether the path is an attribute and not something inside one.
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

/// The same as it is written.
pub mod raw {
    use super::Comparator;

    /// A condition.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Condition {
        /// Joined by AND.
        All(Vec<Condition>),
        /// Joined by OR.
        Any(Vec<Condition>),
        /// After NOT.
        Not(Box<Condition>),
        /// Two operands.
        Compare(Operand, Comparator, Operand),
        /// BETWEEN.
        Between(Operand, Operand, Operand),
        /// IN.
        In(Operand, Vec<Operand>),
        /// A function.
        Call(Call),
    }

    /// Something with a value.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Operand {
        /// A document path.
        Path(Path),
        /// A value placeholder, colon included.
        Value(String),
        /// A function.
        Call(Call),
    }

    /// A function and its operands.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Call {
        /// The function's name.
        pub function: String,
        /// At least one.
        pub operands: Vec<Operand>,
    }

    /// A document path; begins with a name.
    pub type Path = Vec<Segment>;

    /// A part of a document path.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Segment {
        /// A bare name.
        Name(String),
        /// A name placeholder, hash sign included.
        Placeholder(String),
        /// A list index as it is written.
        Index(String),
    }
}
