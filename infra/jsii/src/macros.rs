//! What bindings are written in.

/// A class or interface: its name here, its name in the library, and what else its objects are.
#[macro_export]
macro_rules! handle {
    ($(#[$attribute:meta])* $name:ident = $fqn:literal: $($ancestor:ty),* $(,)?) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        pub struct $name($crate::Object);

        impl $name {
            /// The class's name in the library.
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

/// A struct: its name here and its name in the library. Its members are methods that the binding adds.
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

/// An enum: its name here, its name in the library, and both names of each member.
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
