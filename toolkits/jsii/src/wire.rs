//! Values on the wire: JSON in which objects, enums, structs and maps are tagged.

use serde_json::{Map as Members, Value, json};

use crate::kernel::Kernel;

/// A value that can be sent to the kernel.
pub trait ToWire {
    fn to_wire(&self) -> Value;
}

/// A value that the kernel can return.
pub trait FromWire: Sized {
    /// Reads a value; `None` if it has another type.
    fn from_wire(kernel: &Kernel, value: Value) -> Option<Self>;
}

/// A string: `&str`, `String` or `&String`. It may contain tokens, which the library resolves
/// later.
pub trait Text: ToWire {}

/// A number. Whole numbers are sent as integers.
pub trait Number: ToWire {}

impl<T: ToWire + ?Sized> ToWire for &T {
    fn to_wire(&self) -> Value {
        (**self).to_wire()
    }
}

impl ToWire for str {
    fn to_wire(&self) -> Value {
        Value::from(self)
    }
}

impl ToWire for String {
    fn to_wire(&self) -> Value {
        Value::from(self.as_str())
    }
}

impl Text for &str {}
impl Text for String {}
impl Text for &String {}

impl ToWire for bool {
    fn to_wire(&self) -> Value {
        Value::from(*self)
    }
}

impl ToWire for Value {
    fn to_wire(&self) -> Value {
        self.clone()
    }
}

impl<T: ToWire> ToWire for [T] {
    fn to_wire(&self) -> Value {
        self.iter().map(ToWire::to_wire).collect()
    }
}

impl<T: ToWire> ToWire for Vec<T> {
    fn to_wire(&self) -> Value {
        self.as_slice().to_wire()
    }
}

macro_rules! number {
    ($($type:ty)*) => { $(
        impl ToWire for $type {
            fn to_wire(&self) -> Value {
                Value::from(*self)
            }
        }
        impl Number for $type {}
    )* };
}
number!(i32 u32 i64 u64 f64);

/// A map; keeps the order of its pairs.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a, K, V>(pub &'a [(K, V)]);

impl<K: AsRef<str>, V: ToWire> ToWire for Map<'_, K, V> {
    fn to_wire(&self) -> Value {
        let members: Members<_, _> =
            self.0.iter().map(|(key, value)| (key.as_ref().to_owned(), value.to_wire())).collect();
        json!({ "$jsii.map": members })
    }
}

/// The members of a struct that have been set.
#[derive(Clone, Debug)]
pub struct Structure {
    name: &'static str,
    members: Members<String, Value>,
}

impl Structure {
    pub fn new(name: &'static str) -> Self {
        Self { name, members: Members::new() }
    }

    /// Sets a member; the last value wins.
    #[must_use]
    pub fn with(mut self, name: &str, value: &dyn ToWire) -> Self {
        self.members.insert(name.to_owned(), value.to_wire());
        self
    }
}

impl ToWire for Structure {
    fn to_wire(&self) -> Value {
        json!({ "$jsii.struct": { "fqn": self.name, "data": self.members } })
    }
}

impl FromWire for () {
    fn from_wire(_: &Kernel, _: Value) -> Option<Self> {
        Some(())
    }
}

impl FromWire for String {
    fn from_wire(_: &Kernel, value: Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl FromWire for bool {
    fn from_wire(_: &Kernel, value: Value) -> Option<Self> {
        value.as_bool()
    }
}

impl FromWire for f64 {
    fn from_wire(_: &Kernel, value: Value) -> Option<Self> {
        value.as_f64()
    }
}

impl FromWire for Value {
    fn from_wire(_: &Kernel, value: Value) -> Option<Self> {
        Some(value)
    }
}

impl<T: FromWire> FromWire for Option<T> {
    fn from_wire(kernel: &Kernel, value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => Some(Some(T::from_wire(kernel, value)?)),
        }
    }
}

impl<T: FromWire> FromWire for Vec<T> {
    fn from_wire(kernel: &Kernel, value: Value) -> Option<Self> {
        match value {
            Value::Array(values) => {
                values.into_iter().map(|value| T::from_wire(kernel, value)).collect()
            }
            _ => None,
        }
    }
}
