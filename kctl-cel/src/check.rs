//! The type checker: the type of each node of an expression, and type errors with their positions.
//!
//! Upstream: `cel-go/checker/checker.go`, and the validators of literals in `cel-go/cel/validator.go`.

use std::collections::HashMap;

use crate::{
    Environment, Issue, IssueKind,
    library::{CallStyle, PARAMETERS_MAX, fields, function, type_named},
    tree::{Expr, Item, Node, qualified_name},
    types::{Substitution, Type},
};

/// Checks one expression. Errors don't end the check: their nodes have [`Type::Error`], which fits everywhere.
pub(crate) struct Checker<'a> {
    environment: &'a Environment,
    /// Types of type parameters, shared by all calls of the expression.
    substitution: Substitution,
    /// Variables of the macros around the current node; the innermost is last and shadows the others.
    declared: Vec<(String, Type)>,
    /// Types of checked nodes by address. The tree is borrowed while the checker lives, so addresses are stable.
    types: HashMap<*const Node, Type>,
    /// Errors in the order in which they were found.
    pub(crate) errors: Vec<Issue>,
}

impl<'a> Checker<'a> {
    /// Creates a checker for one expression.
    pub(crate) fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            substitution: Substitution::default(),
            declared: Vec::new(),
            types: HashMap::new(),
            errors: Vec::new(),
        }
    }

    /// Returns the type of the whole expression.
    pub(crate) fn check_expression(&mut self, node: &Node) -> Type {
        let found = self.check(node);
        self.substitution.substitute(&found)
    }

    /// Adds an error, and returns the type of the node that has it.
    fn report(&mut self, at: usize, kind: IssueKind) -> Type {
        self.errors.push(Issue { at, kind });
        Type::Error
    }

    /// Adds the error that another type is needed.
    fn mismatch(&mut self, at: usize, expected: &Type, found: &Type) -> Type {
        let (expected, found) = (self.substitution.substitute(expected), self.substitution.substitute(found));
        self.report(at, IssueKind::Mismatch { expected, found })
    }

    /// Returns the type of an identifier: a variable of a macro, of the environment, or the name of a type.
    fn variable(&self, name: &str) -> Option<Type> {
        let declared =
            self.declared.iter().rev().find(|(declared_name, _)| declared_name == name).map(|(_, is)| is.clone());
        declared.or_else(|| self.environment.variable(name)).or_else(|| type_named(name).map(Type::kind))
    }

    /// Returns the type of a checked node; `dyn` for one that was not reached.
    pub(crate) fn type_of(&self, node: &Node) -> Type {
        self.types.get(&std::ptr::from_ref(node)).map_or(Type::Dyn, |is| self.substitution.substitute_all(is))
    }

    /// Checks a node and records its type.
    fn check(&mut self, node: &Node) -> Type {
        let is = self.infer(node);
        self.types.insert(std::ptr::from_ref(node), is.clone());
        is
    }

    /// Checks a node (`check` of upstream's checker).
    fn infer(&mut self, node: &Node) -> Type {
        match &node.is {
            Expr::Null => Type::Null,
            Expr::Bool => Type::Bool,
            Expr::Int(_) => Type::Int,
            Expr::Uint(_) => Type::Uint,
            Expr::Double(_) => Type::Double,
            Expr::Text(_) => Type::Text,
            Expr::Bytes(_) => Type::Bytes,
            Expr::Name(name) => match self.variable(name) {
                Some(found) => found,
                None => self.report_undeclared(node.at, name),
            },
            Expr::Select { operand, field, is_optional } => {
                let whole = qualified_name(node).and_then(|name| self.variable(&name));
                whole.unwrap_or_else(|| self.select(node.at, operand, field, *is_optional))
            }
            Expr::Has { operand, field } => {
                self.select(node.at, operand, field, false);
                Type::Bool
            }
            Expr::Call { target, name, arguments } => self.call(node.at, target.as_deref(), name, arguments),
            Expr::List(items) => {
                let all = items.iter().map(|item| self.item(item)).collect();
                Type::list(self.common_type(all))
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Message { name, fields } => self.message(node.at, name, fields),
            Expr::Loop { over, name, declared, arguments } => self.macro_call(node.at, over, name, declared, arguments),
        }
    }

    /// Adds the error for an unknown variable.
    fn report_undeclared(&mut self, at: usize, name: &str) -> Type {
        self.report(at, IssueKind::Undeclared { name: name.into(), is_function: false })
    }

    /// Checks `of.field` and `of.?field`. Selecting from an optional value gives an optional one.
    fn select(&mut self, at: usize, operand: &Node, field: &str, is_optional: bool) -> Type {
        let operand = self.check(operand);
        let (operand, was_optional) = match self.substitution.substitute(&operand) {
            Type::Optional(inner) => (*inner, true),
            other => (other, false),
        };
        let found = match &operand {
            Type::Map(_, value) => Type::clone(value),
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            Type::Param(_) => {
                self.substitution.try_unify(&Type::Dyn, &operand);
                Type::Dyn
            }
            Type::Object(name) => self.field(at, name, field),
            other => {
                self.report(at, IssueKind::NoFields { operand: other.clone(), field: field.into() });
                Type::Dyn
            }
        };
        let found = self.substitution.substitute(&found);
        if was_optional || is_optional { Type::optional(found) } else { found }
    }

    /// Returns the type of a field of a named type.
    fn field(&mut self, at: usize, type_name: &str, field: &str) -> Type {
        let found = match fields(type_name) {
            _ if self.environment.declares(type_name) => self.environment.field(type_name, field),
            Some(fields) => fields.get(field).cloned(),
            None if self.environment.is_constructible(type_name) => return Type::Dyn,
            None => return self.report(at, IssueKind::Other(format!("unknown type `{type_name}`"))),
        };
        found.unwrap_or_else(|| {
            self.report(at, IssueKind::UndefinedField { operand: type_name.into(), field: field.into() })
        })
    }

    /// Returns the common type of the items of a literal: the most general one, or `dyn` if they don't fit together.
    fn common_type(&mut self, all: Vec<Type>) -> Type {
        let mut joined: Option<Type> = None;
        for is in all {
            joined = Some(match joined {
                None => is,
                Some(before) if self.substitution.try_unify(&before, &is) => Type::more_general(&before, &is),
                Some(_) => Type::Dyn,
            });
        }
        joined.unwrap_or_else(|| self.substitution.new_parameter())
    }

    /// Checks an item. The value of `?item` has to be optional, and its inner type is returned.
    fn item(&mut self, item: &Item) -> Type {
        let is = self.check(&item.node);
        if !item.is_optional {
            return is;
        }
        match self.substitution.substitute(&is) {
            Type::Optional(inner) => *inner,
            other => {
                if !other.is_dyn() {
                    self.mismatch(item.at, &Type::optional(other.clone()), &other);
                }
                other
            }
        }
    }

    /// Checks a map literal.
    fn map(&mut self, entries: &[(Item, Item)]) -> Type {
        let (keys, values) = entries.iter().map(|(key, value)| (self.item(key), self.item(value))).unzip();
        let (keys, values) = (self.common_type(keys), self.common_type(values));
        Type::map(keys, values)
    }

    /// Checks a constructed object: `Object{…}` of a mutating policy, or a protobuf message.
    fn message(&mut self, at: usize, name: &str, fields_given: &[(String, Item)]) -> Type {
        let is = match (self.environment.is_constructible(name), self.variable(name)) {
            (true, _) => Type::Object(name.into()),
            // Fields of protobuf messages are not in the tables: no expression of Kubernetes constructs one.
            (false, _) if name.starts_with("google.protobuf.") => {
                for (_, item) in fields_given {
                    self.item(item);
                }
                return type_named(name).unwrap_or(Type::Dyn);
            }
            (false, None) => return self.report_undeclared(at, name),
            (false, Some(Type::Kind(is))) => self.report(at, IssueKind::Other(format!("'{is}' is not a message type"))),
            (false, Some(other)) => self.report(at, IssueKind::Other(format!("'{other}' is not a type"))),
        };
        for (field, item) in fields_given {
            let found = self.item(item);
            match &is {
                Type::Object(of) => self.message_field(of, field, item.at, &found),
                _ if type_named(name).is_some() => {
                    self.report(item.at, IssueKind::UndefinedField { operand: name.into(), field: field.clone() });
                }
                _ => {
                    self.report(item.at, IssueKind::Other(format!("unknown type `{name}`")));
                }
            }
        }
        is
    }

    /// Checks the type of one field of a constructed object.
    fn message_field(&mut self, type_name: &str, field: &str, at: usize, found: &Type) {
        let Some(known_fields) = fields(type_name) else { return };
        let field_type = known_fields.get(field);
        if field_type.is_some_and(|field_type| self.substitution.try_unify(found, field_type)) {
            return;
        }
        let shown = field_type.map(ToString::to_string).unwrap_or_default();
        let found = self.substitution.substitute(found);
        let why = format!("expected type of field '{field}' is '{shown}' but provided type is '{found}'");
        self.report(at, IssueKind::Other(why));
    }

    /// Checks a call: `cel.bind`, a logical operator, a function with dots in its name, or a method.
    fn call(&mut self, at: usize, target: Option<&Node>, name: &str, arguments: &[Node]) -> Type {
        if let Some((bound, value, rest)) = self.binding(target, name, arguments) {
            let Expr::Name(bound) = &bound.is else {
                let why = "cel.bind() variable names must be simple identifiers";
                return self.report(bound.at, IssueKind::Other(why.into()));
            };
            let value = self.check(value);
            return self.within(&[(bound, value)], rest);
        }
        let argument_types: Vec<Type> = arguments.iter().map(|argument| self.check(argument)).collect();
        if matches!(name, "_&&_" | "_||_") {
            return self.all_bool(arguments, &argument_types);
        }
        // `a.b.f(x)` is the function `a.b.f` if there is one, and otherwise the method `f` of `a.b`.
        let whole = target.and_then(qualified_name).map(|prefix| format!("{prefix}.{name}"));
        if let Some(whole) = whole.filter(|whole| self.is_function(whole)) {
            return self.resolve(at, &whole, &argument_types, CallStyle::Function);
        }
        let style = if target.is_some() { CallStyle::Method } else { CallStyle::Function };
        let receiver = target.map(|target| self.check(target));
        if function(name).is_none() {
            return self.report(at, IssueKind::Undeclared { name: name.into(), is_function: true });
        }
        let all: Vec<Type> = receiver.into_iter().chain(argument_types).collect();
        self.resolve(at, name, &all, style)
    }

    /// Returns the arguments of `cel.bind`: name, value, and the expression that uses the name.
    fn binding<'n>(
        &self,
        target: Option<&Node>,
        name: &str,
        arguments: &'n [Node],
    ) -> Option<(&'n Node, &'n Node, &'n Node)> {
        let is_bind = name == "bind" && matches!(&target?.is, Expr::Name(target_name) if target_name == "cel");
        match arguments {
            [bound, value, rest] if is_bind && self.environment.binds() => Some((bound, value, rest)),
            _ => None,
        }
    }

    /// Returns `true` for a function that is called without a receiver. `jsonpatch.…` belongs to mutating policies.
    fn is_function(&self, name: &str) -> bool {
        let is_available = self.environment.can_construct_objects() || !name.starts_with("jsonpatch.");
        is_available && function(name).is_some_and(|declaration| !declaration.forms(CallStyle::Function).is_empty())
    }

    /// Checks that all operands are `bool`, and reports each one that is not.
    fn all_bool(&mut self, arguments: &[Node], types: &[Type]) -> Type {
        let mut is = Type::Bool;
        for (argument, found) in arguments.iter().zip(types) {
            if !self.substitution.try_unify(found, &Type::Bool) {
                is = self.mismatch(argument.at, &Type::Bool, found);
            }
        }
        is
    }

    /// Returns the result type of the overloads that accept the arguments; `dyn` if these overloads differ in it
    /// (`resolveOverload`).
    fn resolve(&mut self, at: usize, name: &str, arguments: &[Type], style: CallStyle) -> Type {
        let mut gives: Option<Type> = None;
        for form in function(name).map(|declaration| declaration.forms(style)).unwrap_or_default() {
            let begin = self.substitution.reserve_parameters(PARAMETERS_MAX);
            let takes: Vec<Type> = form.takes.iter().map(|parameter| parameter.renumber(begin)).collect();
            if !self.substitution.try_unify_all(arguments, &takes) {
                continue;
            }
            let is = self.substitution.substitute(&form.gives.renumber(begin));
            gives = Some(match gives {
                Some(before) if before != is && before != Type::Dyn => Type::Dyn,
                Some(before) => before,
                None => is,
            });
        }
        gives.unwrap_or_else(|| {
            let arguments = arguments.iter().map(|argument| self.substitution.substitute(argument)).collect();
            self.report(at, IssueKind::NoOverload { function: name.into(), arguments })
        })
    }

    /// Checks a node with further variables in scope.
    fn within(&mut self, declared: &[(&String, Type)], node: &Node) -> Type {
        let n_before = self.declared.len();
        self.declared.extend(declared.iter().map(|(name, is)| ((*name).clone(), is.clone())));
        let found = self.check(node);
        self.declared.truncate(n_before);
        found
    }

    /// Checks the last argument of a macro, which makes an item of the result.
    fn last_within(&mut self, declared: &[(&String, Type)], arguments: &[Node]) -> Type {
        arguments.last().map_or(Type::Error, |node| self.within(declared, node))
    }

    /// Returns the type of the map that `transformMapEntry` fills with one map per entry.
    fn map_of_entries(&mut self, at: usize, entry: Type) -> Type {
        let before = Type::map(self.substitution.new_parameter(), self.substitution.new_parameter());
        match self.resolve(at, "cel.@mapInsert", &[before.clone(), entry], CallStyle::Function) {
            Type::Error => before,
            map => map,
        }
    }

    /// Returns the types of the keys and values that a macro iterates over, and `true` for a map.
    fn range(&mut self, ty: &Type, at: usize) -> (Type, Type, bool) {
        match self.substitution.substitute(ty) {
            Type::List(item) => (Type::Int, *item, false),
            Type::Map(key, value) => (*key, *value, true),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn, false),
            Type::Param(_) => {
                self.substitution.try_unify(&Type::Dyn, ty);
                (Type::Dyn, Type::Dyn, false)
            }
            other => {
                self.report(at, IssueKind::NoRange { operand: other });
                (Type::Error, Type::Error, false)
            }
        }
    }

    /// Checks a macro as the comprehension that cel-go expands it to, so that errors have the same types and positions.
    fn macro_call(&mut self, at: usize, over: &Node, name: &str, declared: &[String], arguments: &[Node]) -> Type {
        if matches!(name, "optMap" | "optFlatMap") {
            return self.optional_macro(at, over, name, &declared[0], &arguments[0]);
        }
        // cel-go binds the sorted list to a name first, which moves the position of a range error.
        let range_at = if name == "sortBy" { at } else { over.at };
        let iterated = self.check(over);
        let (key, value, is_map) = self.range(&iterated, range_at);
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
                self.resolve(at, "_?_:_", &[test.unwrap_or(Type::Error), Type::Int, Type::Int], CallStyle::Function);
                return Type::Bool;
            }
            "filter" => Type::list(item),
            "sortBy" => {
                let keys = Type::list(self.last_within(&scope, arguments));
                return self.resolve(at, "@sortByAssociatedKeys", &[iterated, keys], CallStyle::Method);
            }
            "transformMap" => Type::map(key, self.last_within(&scope, arguments)),
            "transformMapEntry" => {
                let entry = self.last_within(&scope, arguments);
                self.map_of_entries(at, entry)
            }
            _ => Type::list(self.last_within(&scope, arguments)),
        };
        // The result keeps its type even if the filter has the wrong type.
        if let Some(test) = test {
            self.resolve(at, "_?_:_", &[test, made.clone(), made.clone()], CallStyle::Function);
        }
        made
    }

    /// Checks `optMap` and `optFlatMap`.
    fn optional_macro(&mut self, at: usize, over: &Node, name: &str, declared: &String, then: &Node) -> Type {
        let iterated = self.check(over);
        let test = self.resolve(at, "hasValue", std::slice::from_ref(&iterated), CallStyle::Method);
        let value = self.resolve(at, "value", &[iterated], CallStyle::Method);
        let made = self.within(&[(declared, value)], then);
        let made = if name == "optMap" { Type::optional(made) } else { made };
        let none = self.substitution.new_parameter();
        self.resolve(at, "_?_:_", &[test, made, Type::optional(none)], CallStyle::Function)
    }
}
