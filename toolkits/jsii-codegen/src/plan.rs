//! Decides what to generate: the selected members, and the types that they use.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::assembly::{Assembly, Callable, Kind, Property, Type, TypeRef};
use crate::selection::Selection;

/// Everything to generate, by full name.
#[derive(Debug, Default)]
pub struct Plan {
    /// Packages and versions, in the order given.
    pub packages: Vec<(String, String)>,
    pub handles: BTreeMap<String, Handle>,
    pub structs: BTreeMap<String, Struct>,
    /// Enums with their members.
    pub enums: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default)]
pub struct Handle {
    /// Those of the other handles that are its ancestors.
    pub ancestors: Vec<String>,
    pub members: Vec<Member>,
}

#[derive(Debug)]
pub enum Member {
    /// A constructor.
    New(Vec<Field>),
    Method {
        /// Its name in the library.
        name: String,
        is_static: bool,
        /// Its parameters, without optional ones that no selected type fits.
        parameters: Vec<Field>,
        /// Return type, and whether it is optional.
        returns: Option<(Ty, bool)>,
    },
    /// A readable property.
    Property {
        /// Its name in the library.
        name: String,
        is_static: bool,
        of: Ty,
        optional: bool,
    },
}

/// Members of a struct, required ones first.
#[derive(Debug)]
pub struct Struct(pub Vec<Field>);

/// A parameter or struct member.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in the library.
    pub name: String,
    pub of: Ty,
    pub optional: bool,
    pub variadic: bool,
}

/// A type, as Rust has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    Text,
    Number,
    Bool,
    Any,
    /// An enum by full name.
    Enum(String),
    /// A struct by full name.
    Struct(String),
    /// A class or interface by full name.
    Handle(String),
    List(Box<Ty>),
    /// A map with string keys.
    Map(Box<Ty>),
}

/// Plans the bindings of a selection.
///
/// # Errors
/// A selected class or member does not exist, or needs a type that Rust bindings do not support.
pub fn plan(assemblies: &[Assembly], selection: &Selection) -> Result<Plan> {
    let library = Library { assemblies };
    let obtainable = library.obtainable(selection)?;
    let mut planner = Planner { obtainable, library, selection, plan: Plan::default() };
    for (class, members) in selection {
        if library.get(class)?.datatype {
            planner.check_structure(class, members)?;
            continue;
        }
        planner.handle(class);
        for member in members {
            let planned =
                planner.member(class, member).with_context(|| format!("{class}.{member}"))?;
            planner.handle(class).members.push(planned);
        }
    }
    let mut plan = planner.plan;
    let known: BTreeSet<String> = plan.handles.keys().cloned().collect();
    for (name, handle) in &mut plan.handles {
        let mut ancestors = library.ancestors(name)?;
        ancestors.retain(|ancestor| known.contains(ancestor));
        handle.ancestors = ancestors.into_iter().collect();
    }
    plan.packages = assemblies.iter().map(|a| (a.name.clone(), a.version.clone())).collect();
    Ok(plan)
}

#[derive(Clone, Copy)]
struct Library<'a> {
    assemblies: &'a [Assembly],
}

impl<'a> Library<'a> {
    fn get(self, name: &str) -> Result<&'a Type> {
        let found = self.assemblies.iter().find_map(|assembly| assembly.types.get(name));
        found.with_context(|| format!("unknown type {name}"))
    }

    /// All ancestors of a type, direct and indirect.
    fn ancestors(self, name: &str) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut open = vec![name.to_owned()];
        while let Some(name) = open.pop() {
            // Types of an assembly that was not passed are never selected.
            let Ok(described) = self.get(&name) else { continue };
            for next in described.base.iter().chain(&described.interfaces) {
                if found.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        Ok(found)
    }

    /// Every type of which the selection can return or create an object.
    fn obtainable(self, selection: &Selection) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for (class, members) in selection {
            if self.get(class)?.datatype {
                continue;
            }
            let mut direct = vec![class.clone()];
            for member in members.iter().filter(|member| *member != "new") {
                let of = match self.find(class, member)? {
                    Found::Method(method) => method.returns.as_ref().map(|returned| &returned.of),
                    Found::Property(property) => Some(&property.of),
                };
                if let Some(TypeRef::Fqn(name)) = of {
                    direct.push(name.clone());
                }
            }
            for name in direct {
                found.extend(self.ancestors(&name)?);
                found.insert(name);
            }
        }
        Ok(found)
    }

    /// A method or property of a type or of its ancestors.
    fn find(self, class: &str, member: &str) -> Result<Found<'a>> {
        let mut types = vec![class.to_owned()];
        types.extend(self.ancestors(class)?);
        for name in types {
            let Ok(described) = self.get(&name) else { continue };
            if let Some(method) =
                described.methods.iter().find(|m| m.name == member && !m.protected)
            {
                return Ok(Found::Method(method));
            }
            let property = described.properties.iter().find(|p| p.name == member && !p.protected);
            if let Some(property) = property {
                return Ok(Found::Property(property));
            }
        }
        bail!("{class} has no public member {member}")
    }

    fn initializer(self, class: &str) -> Result<&'a Callable> {
        let described = self.get(class)?;
        match (&described.initializer, &described.base) {
            (Some(initializer), _) => Ok(initializer),
            (None, Some(base)) => self.initializer(base),
            (None, None) => bail!("{class} has no public constructor"),
        }
    }

    /// A struct's own and inherited members: required ones first, then in declared order.
    fn members_of(self, name: &str) -> Result<Vec<&'a Property>> {
        let described = self.get(name)?;
        let mut members: Vec<&Property> = described.properties.iter().collect();
        for parent in &described.interfaces {
            for inherited in self.members_of(parent)? {
                if members.iter().all(|member| member.name != inherited.name) {
                    members.push(inherited);
                }
            }
        }
        members.sort_by_key(|member| member.optional);
        Ok(members)
    }
}

enum Found<'a> {
    Method(&'a Callable),
    Property(&'a Property),
}

struct Planner<'a> {
    library: Library<'a>,
    selection: &'a Selection,
    obtainable: BTreeSet<String>,
    plan: Plan,
}

impl Planner<'_> {
    fn handle(&mut self, name: &str) -> &mut Handle {
        self.plan.handles.entry(name.to_owned()).or_default()
    }

    fn member(&mut self, class: &str, member: &str) -> Result<Member> {
        if member == "new" {
            let initializer = self.library.initializer(class)?;
            return Ok(Member::New(self.parameters(&initializer.parameters)?));
        }
        Ok(match self.library.find(class, member)? {
            Found::Method(method) => {
                let returns = match &method.returns {
                    Some(returned) => Some((self.answer(&returned.of)?, returned.optional)),
                    None => None,
                };
                Member::Method {
                    name: method.name.clone(),
                    is_static: method.is_static,
                    parameters: self.parameters(&method.parameters)?,
                    returns,
                }
            }
            Found::Property(property) => Member::Property {
                name: property.name.clone(),
                is_static: property.is_static,
                of: self.answer(&property.of)?,
                optional: property.optional,
            },
        })
    }

    fn parameters(&mut self, parameters: &[Property]) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for parameter in parameters {
            match self.field(parameter)? {
                Some(field) => fields.push(field),
                // Parameters after an omitted one cannot be passed.
                None if parameter.optional => break,
                None => bail!("no selected type fits `{}`", parameter.name),
            }
        }
        Ok(fields)
    }

    fn field(&mut self, property: &Property) -> Result<Option<Field>> {
        let of = self.value(&property.of)?;
        Ok(of.map(|of| Field {
            name: property.name.clone(),
            of,
            optional: property.optional,
            variadic: property.variadic,
        }))
    }

    /// The type of a parameter; `None` if no selected type fits.
    fn value(&mut self, of: &TypeRef) -> Result<Option<Ty>> {
        Ok(match of {
            TypeRef::Primitive(name) => primitive(name),
            TypeRef::Fqn(name) => self.named(name)?,
            TypeRef::Collection(collection) => {
                let element = self.value(&collection.element)?.map(Box::new);
                element.map(if collection.kind == "map" { Ty::Map } else { Ty::List })
            }
            TypeRef::Union(union) => self.alternative(&union.types)?,
            TypeRef::Intersection(_) => None,
        })
    }

    fn named(&mut self, name: &str) -> Result<Option<Ty>> {
        let described = self.library.get(name)?;
        Ok(match described.kind {
            Kind::Enum => {
                let members = described.members.iter().map(|member| member.name.clone()).collect();
                self.plan.enums.insert(name.to_owned(), members);
                Some(Ty::Enum(name.to_owned()))
            }
            Kind::Interface if described.datatype => {
                self.structure(name)?.then(|| Ty::Struct(name.to_owned()))
            }
            Kind::Class | Kind::Interface => self.obtainable.contains(name).then(|| {
                self.handle(name);
                Ty::Handle(name.to_owned())
            }),
        })
    }

    /// The alternative of a union to generate: the first that is not an object, or else the first
    /// object.
    fn alternative(&mut self, types: &[TypeRef]) -> Result<Option<Ty>> {
        let is_object = |of: &&TypeRef| match of {
            TypeRef::Fqn(name) => self.library.get(name).is_ok_and(|described| {
                described.kind == Kind::Class
                    || (described.kind == Kind::Interface && !described.datatype)
            }),
            _ => false,
        };
        let (objects, plain): (Vec<&TypeRef>, Vec<&TypeRef>) = types.iter().partition(is_object);
        for of in plain.into_iter().chain(objects) {
            if let Some(of) = self.value(of)? {
                return Ok(Some(of));
            }
        }
        Ok(None)
    }

    /// Checks that the selected members of a struct exist.
    fn check_structure(&self, name: &str, members: &[String]) -> Result<()> {
        let known = self.library.members_of(name)?;
        for member in members {
            if known.iter().all(|known| known.name != *member) {
                bail!("{name}.{member}: no such member in the struct");
            }
        }
        Ok(())
    }

    /// Plans a struct; returns whether it can be constructed.
    fn structure(&mut self, name: &str) -> Result<bool> {
        if self.plan.structs.contains_key(name) {
            return Ok(true);
        }
        // A struct may contain itself.
        self.plan.structs.insert(name.to_owned(), Struct(Vec::new()));
        let mut fields = Vec::new();
        for member in self.library.members_of(name)? {
            let unselected =
                self.selection.get(name).is_some_and(|selected| !selected.contains(&member.name));
            if member.optional && (unselected || member.docs.deprecated.is_some()) {
                continue;
            }
            match self.field(member)? {
                Some(field) => fields.push(field),
                None if member.optional => {}
                None => {
                    self.plan.structs.remove(name);
                    return Ok(false);
                }
            }
        }
        self.plan.structs.insert(name.to_owned(), Struct(fields));
        Ok(true)
    }

    /// The type of a return value.
    fn answer(&mut self, of: &TypeRef) -> Result<Ty> {
        Ok(match of {
            TypeRef::Primitive(name) => primitive(name).context("dates are not supported")?,
            TypeRef::Collection(collection) if collection.kind == "array" => {
                Ty::List(Box::new(self.answer(&collection.element)?))
            }
            TypeRef::Fqn(name) => {
                let described = self.library.get(name)?;
                // Structs and enums cannot be returned by value.
                if described.kind == Kind::Enum || described.datatype {
                    return Ok(Ty::Any);
                }
                self.handle(name);
                Ty::Handle(name.clone())
            }
            _ => bail!("values of this type are not supported"),
        })
    }
}

fn primitive(name: &str) -> Option<Ty> {
    match name {
        "string" => Some(Ty::Text),
        "number" => Some(Ty::Number),
        "boolean" => Some(Ty::Bool),
        "any" | "json" => Some(Ty::Any),
        _ => None,
    }
}
