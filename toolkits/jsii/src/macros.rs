//! The macros that generated bindings consist of.

/// A class or interface: its Rust name, its name in the library, and its ancestors.
#[macro_export]
macro_rules! handle {
    ($(#[$attribute:meta])* $name:ident = $fqn:literal: $($ancestor:ty),* $(,)?) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        pub struct $name($crate::Object);

        impl $name {
            pub const FQN: &'static str = $fqn;
        }
        impl $crate::ToWire for $name {
            fn to_wire(&self) -> $crate::Value {
                self.0.to_wire()
            }
        }
        impl $crate::FromWire for $name {
            fn from_wire(kernel: &$crate::Kernel, value: $crate::Value) -> Option<Self> {
                Some(Self($crate::FromWire::from_wire(kernel, value)?))
            }
        }
        impl $crate::Handle for $name {
            fn object(&self) -> &$crate::Object {
                &self.0
            }
        }
        impl $crate::FromObject for $name {
            fn from_object(object: $crate::Object) -> Self {
                Self(object)
            }
        }
        impl $crate::Is<$name> for $name {}
        $( impl $crate::Is<$ancestor> for $name {} )*
    };
}

/// A struct: its Rust name and its name in the library. The binding adds a method per member.
#[macro_export]
macro_rules! structure {
    ($(#[$attribute:meta])* $name:ident = $fqn:literal) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        pub struct $name($crate::Structure);

        impl $name {
            fn empty() -> Self {
                Self($crate::Structure::new($fqn))
            }
            #[must_use]
            fn with(self, name: &str, value: &dyn $crate::ToWire) -> Self {
                Self(self.0.with(name, value))
            }
        }
        impl $crate::ToWire for $name {
            fn to_wire(&self) -> $crate::Value {
                self.0.to_wire()
            }
        }
    };
}

/// An enum: its Rust name, its name in the library, and both names of each member.
#[macro_export]
macro_rules! enumeration {
    ($(#[$attribute:meta])* $name:ident = $fqn:literal { $($member:ident = $wire:literal),* $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("`", $wire, "`")] $member),* }

        impl $crate::ToWire for $name {
            fn to_wire(&self) -> $crate::Value {
                let member = match self { $(Self::$member => $wire),* };
                $crate::serde_json::json!({ "$jsii.enum": format!("{}/{member}", $fqn) })
            }
        }
    };
}
