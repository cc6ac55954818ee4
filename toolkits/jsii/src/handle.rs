//! References to objects in the kernel.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::error::Result;
use crate::kernel::Kernel;
use crate::wire::{FromWire, ToWire};

/// A reference to an object in the kernel, of any class.
#[derive(Clone, Debug)]
pub struct Object {
    kernel: Kernel,
    id: Rc<str>,
}

impl Object {
    pub(crate) fn new(kernel: Kernel, id: &str) -> Self {
        Self { kernel, id: id.into() }
    }

    /// The kernel that holds the object.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Calls a method.
    ///
    /// # Errors
    /// The library rejects the call.
    pub fn call<T: FromWire>(&self, method: &str, arguments: &[&dyn ToWire]) -> Result<T> {
        self.kernel.call(&self.id, method, arguments)
    }

    /// Reads a property.
    ///
    /// # Errors
    /// The object has no such property.
    pub fn get<T: FromWire>(&self, property: &str) -> Result<T> {
        self.kernel.get(&self.id, property)
    }
}

impl ToWire for Object {
    fn to_wire(&self) -> Value {
        json!({ "$jsii.byref": &*self.id })
    }
}

impl FromWire for Object {
    fn from_wire(kernel: &Kernel, value: Value) -> Option<Self> {
        Some(kernel.object(value["$jsii.byref"].as_str()?))
    }
}

/// A typed reference: a binding of a class or interface, wrapping an [`Object`].
pub trait Handle: ToWire {
    fn object(&self) -> &Object;
}

/// Creates a typed reference. For generated bindings only: they know the class.
pub trait FromObject: Handle + Sized {
    fn from_object(object: Object) -> Self;
}

/// States that an object of this type is also a `T`: a base class or an implemented interface.
pub trait Is<T: FromObject>: Handle {
    /// The same object as a `T`.
    fn upcast(&self) -> T {
        T::from_object(self.object().clone())
    }
}
