//! The types of an expression: reads its tree and what it may name, hands on its type and what does not fit, with places.
//!
//! Upstream: `cel-go/checker/checker.go`, and the validators of literals in `cel-go/cel/validator.go`.

use std::collections::HashMap;

use super::{
    library::{PARAMETERS_MAX, fields, function, type_named},
    tree::{Item, Node, Part, Refused, qualified},
    types::{Known, Type},
};

/// What an expression may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    variables: HashMap<String, Type>,
    /// Fields of types that are made for one policy.
    own: HashMap<String, HashMap<String, Type>>,
    /// Whether expressions make objects (`Object{…}`).
    makes_objects: bool,
}

impl Environment {
    pub(crate) fn with(mut self, name: &str, is: Type) -> Self {
        self.variables.insert(name.into(), is);
        self
    }

    /// A variable whose fields are those that it is given.
    pub(crate) fn with_object(mut self, name: &str, is: &str) -> Self {
        self.own.entry(is.into()).or_default();
        self.with(name, Type::Object(is.into()))
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// Gives a type one more field.
    pub(crate) fn add_field(&mut self, of: &str, name: &str, is: Type) {
        self.own.entry(of.into()).or_default().insert(name.into(), is);
    }

    pub(crate) fn making_objects(mut self) -> Self {
        self.makes_objects = true;
        self
    }

    fn is_made(&self, name: &str) -> bool {
        let root = name.split('.').next().unwrap_or_default();
        self.makes_objects && (root == "Object" || name == "JSONPatch")
    }
}

pub(super) struct Checker<'a> {
    environment: &'a Environment,
    known: Known,
    /// What macros declare, the innermost last.
    declared: Vec<(String, Type)>,
    pub(super) errors: Vec<Refused>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(environment: &'a Environment) -> Self {
        Self { environment, known: Known::default(), declared: Vec::new(), errors: Vec::new() }
    }

    /// The type of the whole.
    pub(super) fn whole(&mut self, node: &Node) -> Type {
        let found = self.of(node);
        self.known.resolved(&found)
    }

    fn wrong(&mut self, at: usize, why: String) -> Type {
        self.errors.push(Refused { at, why });
        Type::Error
    }

    fn mismatch(&mut self, at: usize, wanted: &Type, found: &Type) -> Type {
        let (wanted, found) = (self.known.resolved(wanted), self.known.resolved(found));
        self.wrong(at, format!("expected type '{wanted}' but found '{found}'"))
    }

    fn variable(&self, name: &str) -> Option<Type> {
        let declared = self.declared.iter().rev().find(|(known, _)| known == name).map(|(_, is)| is.clone());
        declared.or_else(|| self.environment.variables.get(name).cloned()).or_else(|| type_named(name).map(Type::kind))
    }

    fn of(&mut self, node: &Node) -> Type {
        match &node.is {
            Part::Null => Type::Null,
            Part::Bool => Type::Bool,
            Part::Int => Type::Int,
            Part::Uint => Type::Uint,
            Part::Double => Type::Double,
            Part::Text(_) => Type::Text,
            Part::Bytes => Type::Bytes,
            Part::Name(name) => match self.variable(name) {
                Some(found) => found,
                None => self.undeclared(node.at, name),
            },
            Part::Select { of, field, is_optional } => {
                let whole = qualified(node).and_then(|name| self.variable(&name));
                whole.unwrap_or_else(|| self.select(node.at, of, field, *is_optional))
            }
            Part::Has { of, field } => {
                self.select(node.at, of, field, false);
                Type::Bool
            }
            Part::Call { target, name, arguments } => self.call(node.at, target.as_deref(), name, arguments),
            Part::List(items) => {
                let is = self.joined(items.iter());
                Type::list(is)
            }
            Part::Map(entries) => self.map(entries),
            Part::Message { name, fields } => self.message(node.at, name, fields),
            Part::Loop { over, name, declared, arguments } => self.macro_call(node.at, over, name, declared, arguments),
        }
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type {
        self.wrong(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, at: usize, of: &Node, field: &str, is_optional: bool) -> Type {
        let operand = self.of(of);
        let (operand, was_optional) = match self.known.resolved(&operand) {
            Type::Optional(inner) => (*inner, true),
            other => (other, false),
        };
        let found = match &operand {
            Type::Map(_, value) => Type::clone(value),
            Type::Dyn | Type::Error => Type::Dyn,
            Type::Param(_) => {
                self.known.fits(&Type::Dyn, &operand);
                Type::Dyn
            }
            Type::Object(name) => self.field(at, name, field),
            other => {
                let why = format!("type '{other}' does not support field selection");
                self.wrong(at, why);
                Type::Dyn
            }
        };
        let found = self.known.resolved(&found);
        if was_optional || is_optional { Type::optional(found) } else { found }
    }

    fn field(&mut self, at: usize, of: &str, field: &str) -> Type {
        let own = self.environment.own.get(of).map(|fields| fields.get(field).cloned());
        let found = own.or_else(|| fields(of).map(|fields| fields.get(field).cloned()));
        match found {
            Some(Some(found)) => found,
            Some(None) => self.wrong(at, format!("undefined field '{field}'")),
            None if self.environment.is_made(of) => Type::Dyn,
            None => self.wrong(at, format!("unexpected failed resolution of '{of}'")),
        }
    }

    /// The one type of all items.
    fn joined<'n>(&mut self, items: impl Iterator<Item = &'n Item>) -> Type {
        let mut joined: Option<Type> = None;
        for item in items {
            let is = self.item(item);
            joined = Some(match joined {
                None => is,
                Some(before) if self.known.fits(&before, &is) => Type::more_general(&before, &is),
                Some(before) => self.mismatch(item.at, &before, &is),
            });
        }
        joined.unwrap_or_else(|| self.known.new_parameter())
    }

    /// The type of what may be left out.
    fn item(&mut self, item: &Item) -> Type {
        let is = self.of(&item.node);
        if !item.is_optional {
            return is;
        }
        match self.known.resolved(&is) {
            Type::Optional(inner) => *inner,
            other => {
                if !other.is_dyn() {
                    self.mismatch(item.at, &Type::optional(other.clone()), &other);
                }
                other
            }
        }
    }

    fn map(&mut self, entries: &[(Item, Item)]) -> Type {
        let (mut keys, mut values): (Option<Type>, Option<Type>) = (None, None);
        for (key, value) in entries {
            for (item, joined) in [(key, &mut keys), (value, &mut values)] {
                let is = self.item(item);
                *joined = Some(match joined.take() {
                    None => is,
                    Some(before) if self.known.fits(&before, &is) => Type::more_general(&before, &is),
                    Some(before) => self.mismatch(item.at, &before, &is),
                });
            }
        }
        let keys = keys.unwrap_or_else(|| self.known.new_parameter());
        let values = values.unwrap_or_else(|| self.known.new_parameter());
        Type::map(keys, values)
    }

    fn message(&mut self, at: usize, name: &str, given: &[(String, Item)]) -> Type {
        let is = match (self.environment.is_made(name), self.variable(name)) {
            (true, _) => Type::Object(name.into()),
            // Of the messages of protobuf, which nobody writes, the fields are not known.
            (false, _) if name.starts_with("google.protobuf.") => {
                for (_, item) in given {
                    self.item(item);
                }
                return type_named(name).unwrap_or(Type::Dyn);
            }
            (false, None) => return self.undeclared(at, name),
            (false, Some(Type::Kind(is))) => {
                let why = format!("'{is}' is not a message type");
                self.wrong(at, why)
            }
            (false, Some(other)) => {
                let why = format!("'{other}' is not a type");
                self.wrong(at, why)
            }
        };
        for (field, item) in given {
            let found = self.item(item);
            match &is {
                Type::Object(of) => self.message_field(of, field, item.at, &found),
                _ if type_named(name).is_some() => drop(self.wrong(item.at, format!("undefined field '{field}'"))),
                _ => drop(self.wrong(item.at, format!("unexpected failed resolution of '{name}'"))),
            }
        }
        is
    }

    fn message_field(&mut self, of: &str, field: &str, at: usize, found: &Type) {
        let Some(known) = fields(of) else { return };
        let wanted = known.get(field);
        if wanted.is_some_and(|wanted| self.known.fits(found, wanted)) {
            return;
        }
        let shown = wanted.map(ToString::to_string).unwrap_or_default();
        let found = self.known.resolved(found);
        self.wrong(at, format!("expected type of field '{field}' is '{shown}' but provided type is '{found}'"));
    }

    fn call(&mut self, at: usize, target: Option<&Node>, name: &str, arguments: &[Node]) -> Type {
        let given: Vec<Type> = arguments.iter().map(|argument| self.of(argument)).collect();
        if matches!(name, "_&&_" | "_||_") {
            return self.all_bool(arguments, &given);
        }
        // A name with dots is a function, or a method of what stands before its last dot.
        let whole = target.and_then(qualified).map(|prefix| format!("{prefix}.{name}"));
        if let Some(whole) = whole.filter(|whole| self.is_function(whole)) {
            return self.resolve(at, &whole, &given, false);
        }
        let Some(target) = target else {
            return if function(name).is_some() {
                self.resolve(at, name, &given, false)
            } else {
                self.undeclared(at, name)
            };
        };
        let mut all = vec![self.of(target)];
        all.extend(given);
        if function(name).is_none() {
            return self.undeclared(at, name);
        }
        self.resolve(at, name, &all, true)
    }

    fn is_function(&self, name: &str) -> bool {
        let is_there = self.environment.makes_objects || !name.starts_with("jsonpatch.");
        is_there && function(name).is_some_and(|known| !known.forms(false).is_empty())
    }

    fn all_bool(&mut self, arguments: &[Node], given: &[Type]) -> Type {
        let mut is = Type::Bool;
        for (argument, found) in arguments.iter().zip(given) {
            if !self.known.fits(found, &Type::Bool) {
                is = self.mismatch(argument.at, &Type::Bool, found);
            }
        }
        is
    }

    /// What the forms of a function that take the arguments hand back; `dyn` where they do not agree.
    fn resolve(&mut self, at: usize, name: &str, given: &[Type], is_method: bool) -> Type {
        let mut gives: Option<Type> = None;
        for form in function(name).map(|known| known.forms(is_method)).unwrap_or_default() {
            let begin = self.known.room(PARAMETERS_MAX);
            let takes: Vec<Type> = form.takes.iter().map(|one| one.instantiated(begin)).collect();
            if !self.known.all_fit(given, &takes) {
                continue;
            }
            let is = self.known.resolved(&form.gives.instantiated(begin));
            gives = Some(match gives {
                Some(before) if before != is && before != Type::Dyn => Type::Dyn,
                Some(before) => before,
                None => is,
            });
        }
        gives.unwrap_or_else(|| {
            let shown: Vec<String> = given.iter().map(|one| self.known.resolved(one).to_string()).collect();
            let shown = match shown.as_slice() {
                [target, rest @ ..] if is_method => format!("{target}.({})", rest.join(", ")),
                all => format!("({})", all.join(", ")),
            };
            self.wrong(at, format!("found no matching overload for '{name}' applied to '{shown}'"))
        })
    }

    fn within(&mut self, declared: &[(&String, Type)], node: &Node) -> Type {
        let n_before = self.declared.len();
        self.declared.extend(declared.iter().map(|(name, is)| ((*name).clone(), is.clone())));
        let found = self.of(node);
        self.declared.truncate(n_before);
        found
    }

    /// The types of the keys and the items of what a macro goes through.
    fn range(&mut self, over: &Node) -> (Type, Type, bool) {
        let of = self.of(over);
        match self.known.resolved(&of) {
            Type::List(item) => (Type::Int, *item, false),
            Type::Map(key, value) => (*key, *value, true),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn, false),
            Type::Param(_) => {
                self.known.fits(&Type::Dyn, &of);
                (Type::Dyn, Type::Dyn, false)
            }
            other => {
                let why = "cannot be range of a comprehension (must be list, map, or dynamic)";
                self.wrong(over.at, format!("expression of type '{other}' {why}"));
                (Type::Error, Type::Error, false)
            }
        }
    }

    fn macro_call(&mut self, at: usize, over: &Node, name: &str, declared: &[String], arguments: &[Node]) -> Type {
        if matches!(name, "optMap" | "optFlatMap") {
            return self.optional_macro(at, over, name, &declared[0], &arguments[0]);
        }
        let (key, value, is_map) = self.range(over);
        let scope: Vec<(&String, Type)> = match declared {
            [one] => vec![(one, if is_map { key.clone() } else { value.clone() })],
            names => names.iter().zip([key.clone(), value.clone()]).collect(),
        };
        let item = scope[0].1.clone();
        let test = arguments.len() > 1 || matches!(name, "all" | "exists" | "exists_one" | "existsOne" | "filter");
        let test = test.then(|| self.within(&scope, &arguments[0]));
        let made = match name {
            "all" | "exists" => {
                let found = test.unwrap_or(Type::Error);
                self.all_bool(&arguments[..1], &[found]);
                return Type::Bool;
            }
            "exists_one" | "existsOne" => {
                self.resolve(at, "_?_:_", &[test.unwrap_or(Type::Error), Type::Int, Type::Int], false);
                return Type::Bool;
            }
            "filter" => Type::list(item),
            last => {
                let made = arguments.last().map_or(Type::Error, |node| self.within(&scope, node));
                match last {
                    "sortBy" => {
                        let method = "sort";
                        self.resolve(at, method, &[Type::list(made)], true);
                        return Type::list(item);
                    }
                    "transformMap" => Type::map(key, made),
                    "transformMapEntry" => made,
                    _ => Type::list(made),
                }
            }
        };
        match test {
            Some(test) => self.resolve(at, "_?_:_", &[test, made.clone(), made], false),
            None => made,
        }
    }

    fn optional_macro(&mut self, at: usize, over: &Node, name: &str, declared: &String, then: &Node) -> Type {
        let of = self.of(over);
        let test = self.resolve(at, "hasValue", std::slice::from_ref(&of), true);
        let value = self.resolve(at, "value", &[of], true);
        let made = self.within(&[(declared, value)], then);
        let made = if name == "optMap" { Type::optional(made) } else { made };
        let none = self.known.new_parameter();
        self.resolve(at, "_?_:_", &[test, made, Type::optional(none)], false)
    }
}
