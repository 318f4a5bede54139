//! The types of CEL, their names, and unification. Upstream: `cel-go/checker/types.go`.

use std::{fmt, sync::Arc};

/// A type of CEL. `Display` writes it as cel-go's messages about overloads do.
///
/// ```
/// use kctl_cel::Type;
///
/// let hosts = Type::map(Type::Text, Type::list(Type::Timestamp));
/// assert_eq!(hosts.to_string(), "map(string, list(timestamp))");
/// assert_eq!(hosts.depth(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `dyn`: the type is known only at evaluation, and any operation type-checks.
    Dyn,
    /// `google.protobuf.Any`: like [`Self::Dyn`], except that no macro iterates over it.
    Any,
    /// The type of an expression with an error: it fits everywhere, so that one mistake yields one message.
    Error,
    /// The type of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// Signed integers of 64 bits.
    Int,
    /// Unsigned integers of 64 bits: `1u`.
    Uint,
    /// Floating point numbers of 64 bits.
    Double,
    /// Strings (`string`), whose length counts characters.
    Text,
    /// Byte sequences: `b'…'`, and strings with `format: byte`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// The type of a type: `type(1) == int` compares two of them.
    Kind(Box<Type>),
    /// Lists, with the type of their items.
    List(Box<Type>),
    /// Maps, with the types of their keys and values.
    Map(Box<Type>, Box<Type>),
    /// Values that may be absent: `object.?field`, `optional.of(1)`.
    Optional(Box<Type>),
    /// A named type: one with fields, or an opaque one such as `kubernetes.Quantity`.
    Object(Arc<str>),
    /// A type parameter, by its number. Within one call it has one type.
    Param(usize),
}

impl Type {
    /// Returns the list type with these items.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    /// Returns the map type with these keys and values.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    /// Returns the optional type of these values.
    #[must_use]
    pub fn optional(value: Self) -> Self {
        Self::Optional(Box::new(value))
    }

    /// Returns the type of a type.
    pub(crate) fn kind(ty: Self) -> Self {
        Self::Kind(Box::new(ty))
    }

    /// Parses a name of `library.txt` or `fields.txt`. `A` and `B` are type parameters; unknown names are opaque types.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim();
        let (name, inner) = match text.split_once('(') {
            Some((name, inner)) => (name, inner.strip_suffix(')').unwrap_or(inner)),
            None => (text, ""),
        };
        match name {
            "dyn" => Self::Dyn,
            "any" => Self::Any,
            "null" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "duration" => Self::Duration,
            "timestamp" => Self::Timestamp,
            "type" => Self::kind(Self::read(inner)),
            "list" => Self::list(Self::read(inner)),
            "optional" => Self::optional(Self::read(inner)),
            "map" => {
                let (key, value) = inner.split_once(',').unwrap_or((inner, "dyn"));
                Self::map(Self::read(key), Self::read(value))
            }
            "A" => Self::Param(0),
            "B" => Self::Param(1),
            name => Self::Object(name.into()),
        }
    }

    /// Returns `true` for types that fit every other one.
    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Error)
    }

    /// Returns `true` if `null` is a value of the type. Messages and optional values can be `null`; strings and numbers
    /// can't.
    fn takes_null(&self) -> bool {
        matches!(self, Self::Null | Self::Object(_) | Self::Duration | Self::Timestamp | Self::Optional(_))
    }

    /// Returns the type with its parameters renumbered, so that two calls don't share them.
    pub(crate) fn renumber(&self, by: usize) -> Self {
        self.map_parameters(&|index| Self::Param(index + by))
    }

    /// Replaces each type parameter.
    fn map_parameters(&self, parameter: &dyn Fn(usize) -> Self) -> Self {
        let boxed = |inner: &Self| Box::new(inner.map_parameters(parameter));
        match self {
            Self::Param(index) => parameter(*index),
            Self::Kind(inner) => Self::Kind(boxed(inner)),
            Self::List(inner) => Self::List(boxed(inner)),
            Self::Optional(inner) => Self::Optional(boxed(inner)),
            Self::Map(key, value) => Self::Map(boxed(key), boxed(value)),
            other => other.clone(),
        }
    }

    /// Returns the number of nested types: 0 for `int`, 1 for `list(int)`.
    ///
    /// Callers bound it for types that a client declares, because functions on types recurse.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Kind(inner) | Self::List(inner) | Self::Optional(inner) => 1 + inner.depth(),
            Self::Map(key, value) => 1 + key.depth().max(value.depth()),
            _ => 0,
        }
    }

    /// Returns `true` if a type parameter occurs in the type (occurs check): it must not be bound to such a type.
    fn holds(&self, parameter: usize) -> bool {
        match self {
            Self::Param(index) => *index == parameter,
            Self::Kind(inner) | Self::List(inner) | Self::Optional(inner) => inner.holds(parameter),
            Self::Map(key, value) => key.holds(parameter) || value.holds(parameter),
            _ => false,
        }
    }

    /// Returns `true` if this type is equal to the other or less specific (`isEqualOrLessSpecific`).
    fn is_more_general(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Any | Self::Error | Self::Param(_), _) | (Self::Kind(_), Self::Kind(_)) => true,
            (_, Self::Dyn | Self::Any | Self::Error | Self::Param(_)) => false,
            (Self::List(general), Self::List(other)) | (Self::Optional(general), Self::Optional(other)) => {
                general.is_more_general(other)
            }
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.is_more_general(other_key) && value.is_more_general(other_value)
            }
            (general, other) => general == other,
        }
    }

    /// Returns the less specific of two types that fit.
    pub(crate) fn more_general(left: &Self, right: &Self) -> Self {
        if left.is_more_general(right) { left.clone() } else { right.clone() }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Param(_) => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Kind(inner) => write!(f, "type({inner})"),
            Self::List(inner) => write!(f, "list({inner})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Object(name) => f.write_str(name),
        }
    }
}

/// The types that type parameters are bound to so far, by the number of the parameter.
///
/// cel-go calls it `mapping`. It only grows: a call that does not fit leaves it unchanged.
#[derive(Debug, Default)]
pub(crate) struct Substitution {
    /// `None` for free parameters.
    bindings: Vec<Option<Type>>,
    /// The previous bindings that one unification has replaced, to undo it if it fails. A copy of all bindings for each
    /// overload would take quadratic time in a long expression.
    replaced: Vec<(usize, Option<Type>)>,
}

impl Substitution {
    /// Creates an unbound type parameter, such as the item type of `[]`.
    pub(crate) fn new_parameter(&mut self) -> Type {
        self.bindings.push(None);
        Type::Param(self.bindings.len() - 1)
    }

    /// Reserves `n` type parameters for a call, and returns the number of the first one.
    pub(crate) fn reserve_parameters(&mut self, n: usize) -> usize {
        let begin = self.bindings.len();
        self.bindings.resize(begin + n, None);
        begin
    }

    /// Returns the type that a parameter is bound to, which may contain further parameters.
    fn binding(&self, parameter: usize) -> Option<Type> {
        self.bindings.get(parameter).cloned().flatten()
    }

    /// Binds a parameter. Invariant: the type does not contain the parameter itself, or `substitute` would not end.
    fn set(&mut self, parameter: usize, is: Type) {
        if let Some(slot) = self.bindings.get_mut(parameter) {
            debug_assert!(!is.holds(parameter), "a parameter is never bound to a type that contains it");
            self.replaced.push((parameter, slot.replace(is)));
        }
    }

    /// Returns a type with its bound parameters replaced; free ones are kept.
    pub(crate) fn substitute(&self, ty: &Type) -> Type {
        ty.map_parameters(&|index| self.binding(index).map_or(Type::Param(index), |found| self.substitute(&found)))
    }

    /// Returns a type without parameters: free ones become `dyn`, as after the check of a whole expression.
    pub(crate) fn substitute_all(&self, ty: &Type) -> Type {
        self.substitute(ty).map_parameters(&|_| Type::Dyn)
    }

    /// Unifies arguments with parameters in pairs. Unless all fit, no parameter is bound.
    pub(crate) fn try_unify_all(&mut self, arguments: &[Type], parameters: &[Type]) -> bool {
        let fit = arguments.len() == parameters.len()
            && arguments.iter().zip(parameters).all(|(argument, parameter)| self.unify(argument, parameter));
        if fit {
            self.replaced.clear();
        }
        while let Some((parameter, before)) = self.replaced.pop() {
            self.bindings[parameter] = before;
        }
        fit
    }

    /// Unifies one type with another.
    pub(crate) fn try_unify(&mut self, argument: &Type, parameter: &Type) -> bool {
        self.try_unify_all(std::slice::from_ref(argument), std::slice::from_ref(parameter))
    }

    /// Unifies two types (`internalIsAssignable`). It may bind parameters even if it returns `false`; `try_unify_all`
    /// undoes that.
    fn unify(&mut self, left: &Type, right: &Type) -> bool {
        if let Type::Param(index) = right {
            let (fits, is_known) = self.try_bind(left, *index);
            if fits || is_known {
                return fits;
            }
        }
        if let Type::Param(index) = left {
            return self.try_bind(right, *index).0;
        }
        match (left, right) {
            (left, right) if left.is_dyn() || right.is_dyn() => true,
            (Type::Null, right) | (right, Type::Null) => right.takes_null(),
            (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
                self.unify(left, right)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.unify(key, other_key) && self.unify(value, other_value)
            }
            (Type::Kind(_), Type::Kind(_)) => true,
            (left, right) => left == right,
        }
    }

    /// Returns two flags: a parameter can be bound to the type, and this result is final (`isValidTypeSubstitution`).
    ///
    /// If the parameter is bound already, the more general of both types is kept.
    fn try_bind(&mut self, is: &Type, parameter: usize) -> (bool, bool) {
        if *is == Type::Param(parameter) {
            return (true, true);
        }
        if let Some(found) = self.binding(parameter) {
            if *is == found {
                return (true, true);
            }
            if !self.unify(is, &found) {
                return (false, true);
            }
            let general = Type::more_general(is, &found);
            if !self.substitute(&general).holds(parameter) {
                self.set(parameter, general);
            }
            return (true, true);
        }
        let is_free = !self.substitute(is).holds(parameter);
        if is_free {
            self.set(parameter, is.clone());
        }
        (is_free, false)
    }
}
