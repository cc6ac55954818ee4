//! What stands here for the kernel's objects.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::error::Result;
use crate::kernel::Kernel;
use crate::wire::{FromWire, ToWire};

/// An object that lives in the kernel, of a class that only the kernel knows.
#[derive(Clone, Debug)]
pub struct Object {
    kernel: Kernel,
    id: Rc<str>,
}

impl Object {
    pub(crate) fn new(kernel: Kernel, id: &str) -> Self {
        Self { kernel, id: id.into() }
    }

    /// The kernel that it lives in.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Calls a method.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn call<T: FromWire>(&self, method: &str, arguments: &[&dyn ToWire]) -> Result<T> {
        self.kernel.call(&self.id, method, arguments)
    }

    /// Reads a property.
    ///
    /// # Errors
    /// When there is none of this name.
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

/// A binding's class or interface: a type over an [`Object`].
pub trait Handle: ToWire {
    /// The object.
    fn object(&self) -> &Object;
}

/// A handle that can be made of an object, which only bindings do: they know its class.
pub trait FromObject: Handle + Sized {
    /// The object as this class.
    fn from_object(object: Object) -> Self;
}

/// Says that a handle's object is also a `T`: a class that it extends or an interface that it has.
pub trait Is<T: FromObject>: Handle {
    /// The same object as a `T`.
    fn upcast(&self) -> T {
        T::from_object(self.object().clone())
    }
}
