//! The types of CEL: reads and writes their names, and says which fit together. Upstream: `cel-go/checker/types.go`.

use std::{fmt, sync::Arc};

/// A type of CEL; shown as cel-go shows it in messages about what does not fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Known when it is evaluated.
    Dyn,
    /// Anything that is wrapped: as [`Self::Dyn`], but that no loop goes through it.
    Any,
    /// Of what is wrong already: it fits everywhere, so that one mistake is told once.
    Error,
    /// Of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// Whole numbers.
    Int,
    /// Whole numbers that are not below zero.
    Uint,
    /// Numbers with a point.
    Double,
    /// `string`.
    Text,
    /// Bytes.
    Bytes,
    /// Lengths of time.
    Duration,
    /// Points in time.
    Timestamp,
    /// The type of a type.
    Kind(Box<Type>),
    /// Lists of one type.
    List(Box<Type>),
    /// Maps, with the types of their keys and values.
    Map(Box<Type>, Box<Type>),
    /// Values that may be there or not.
    Optional(Box<Type>),
    /// A type with fields, or one whose values only functions look into, by its name.
    Object(Arc<str>),
    /// Any type, which is one and the same in all of a call.
    Param(usize),
}

impl Type {
    /// A list of a type.
    #[must_use]
    pub fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    /// A map.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    /// A value that may be there or not.
    #[must_use]
    pub fn optional(of: Self) -> Self {
        Self::Optional(Box::new(of))
    }

    pub(crate) fn kind(of: Self) -> Self {
        Self::Kind(Box::new(of))
    }

    /// Reads a name as the tables beside this file have it; a single capital letter is a parameter.
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

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Error)
    }

    fn takes_null(&self) -> bool {
        matches!(self, Self::Null | Self::Object(_) | Self::Duration | Self::Timestamp | Self::Optional(_))
    }

    /// The parameters moved on, so that two calls do not share them.
    pub(crate) fn instantiated(&self, by: usize) -> Self {
        self.changed(&|index| Self::Param(index + by))
    }

    fn changed(&self, parameter: &dyn Fn(usize) -> Self) -> Self {
        let of = |inner: &Self| Box::new(inner.changed(parameter));
        match self {
            Self::Param(index) => parameter(*index),
            Self::Kind(inner) => Self::Kind(of(inner)),
            Self::List(inner) => Self::List(of(inner)),
            Self::Optional(inner) => Self::Optional(of(inner)),
            Self::Map(key, value) => Self::Map(of(key), of(value)),
            other => other.clone(),
        }
    }

    /// Returns how many types are within one another: 0 for `int`, 1 for `list(int)`.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Kind(inner) | Self::List(inner) | Self::Optional(inner) => 1 + inner.depth(),
            Self::Map(key, value) => 1 + key.depth().max(value.depth()),
            _ => 0,
        }
    }

    fn holds(&self, parameter: usize) -> bool {
        match self {
            Self::Param(index) => *index == parameter,
            Self::Kind(inner) | Self::List(inner) | Self::Optional(inner) => inner.holds(parameter),
            Self::Map(key, value) => key.holds(parameter) || value.holds(parameter),
            _ => false,
        }
    }

    /// Whether this is the more general of two (`isEqualOrLessSpecific`).
    fn is_more_general(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Any | Self::Error | Self::Param(_), _) | (Self::Kind(_), Self::Kind(_)) => true,
            (_, Self::Dyn | Self::Any | Self::Error | Self::Param(_)) => false,
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => {
                one.is_more_general(other)
            }
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.is_more_general(other_key) && value.is_more_general(other_value)
            }
            (one, other) => one == other,
        }
    }

    pub(crate) fn more_general(one: &Self, other: &Self) -> Self {
        if one.is_more_general(other) { one.clone() } else { other.clone() }
    }

    /// The name of the type of its values; none where that is known only when they are evaluated.
    pub(crate) fn runtime_name(&self) -> Option<String> {
        Some(match self {
            Self::Dyn | Self::Any | Self::Error | Self::Param(_) => return None,
            Self::List(_) => "list".into(),
            Self::Map(..) => "map".into(),
            Self::Kind(_) => "type".into(),
            Self::Optional(_) => "optional_type".into(),
            other => other.whole_name(),
        })
    }

    /// As messages about what an expression has to be show it.
    #[must_use]
    pub fn whole_name(&self) -> String {
        match self {
            Self::Null => "null_type".into(),
            Self::Any => "google.protobuf.Any".into(),
            Self::Duration => "google.protobuf.Duration".into(),
            Self::Timestamp => "google.protobuf.Timestamp".into(),
            Self::List(inner) => format!("list({})", inner.whole_name()),
            Self::Optional(inner) => format!("optional_type({})", inner.whole_name()),
            Self::Kind(inner) => format!("type({})", inner.whole_name()),
            Self::Map(key, value) => format!("map({}, {})", key.whole_name(), value.whole_name()),
            other => other.to_string(),
        }
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

/// What parameters stand for so far, by their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(Vec<Option<Type>>);

impl Known {
    pub(crate) fn new_parameter(&mut self) -> Type {
        self.0.push(None);
        Type::Param(self.0.len() - 1)
    }

    /// Makes room for the parameters of a function, and says where they begin.
    pub(crate) fn room(&mut self, n: usize) -> usize {
        let begin = self.0.len();
        self.0.resize(begin + n, None);
        begin
    }

    fn found(&self, parameter: usize) -> Option<Type> {
        self.0.get(parameter).cloned().flatten()
    }

    fn set(&mut self, parameter: usize, is: Type) {
        if let Some(place) = self.0.get_mut(parameter) {
            *place = Some(is);
        }
    }

    /// The type with what its parameters stand for.
    pub(crate) fn resolved(&self, of: &Type) -> Type {
        of.changed(&|index| self.found(index).map_or(Type::Param(index), |found| self.resolved(&found)))
    }

    /// The same when nothing more will be learnt: what is not known by then is known when it is evaluated.
    pub(crate) fn settled(&self, of: &Type) -> Type {
        self.resolved(of).changed(&|_| Type::Dyn)
    }

    /// Whether all fit, one by one; where one does not, nothing is learnt.
    pub(crate) fn all_fit(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        let mut copy = self.clone();
        let fit = given.len() == wanted.len() && given.iter().zip(wanted).all(|(one, other)| copy.unify(one, other));
        if fit {
            *self = copy;
        }
        fit
    }

    pub(crate) fn fits(&mut self, given: &Type, wanted: &Type) -> bool {
        self.all_fit(std::slice::from_ref(given), std::slice::from_ref(wanted))
    }

    /// `internalIsAssignable`.
    fn unify(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Param(index) = other {
            let (fits, is_known) = self.substitutes(one, *index);
            if fits || is_known {
                return fits;
            }
        }
        if let Type::Param(index) = one {
            return self.substitutes(other, *index).0;
        }
        match (one, other) {
            (one, other) if one.is_dyn() || other.is_dyn() => true,
            (Type::Null, other) | (other, Type::Null) => other.takes_null(),
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.unify(one, other)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.unify(key, other_key) && self.unify(value, other_value)
            }
            (Type::Kind(_), Type::Kind(_)) => true,
            (one, other) => one == other,
        }
    }

    /// Whether a type may be what a parameter stands for, and whether something is known of it.
    fn substitutes(&mut self, is: &Type, parameter: usize) -> (bool, bool) {
        if *is == Type::Param(parameter) {
            return (true, true);
        }
        if let Some(found) = self.found(parameter) {
            if *is == found {
                return (true, true);
            }
            if !self.unify(is, &found) {
                return (false, true);
            }
            let general = Type::more_general(is, &found);
            if !self.resolved(&general).holds(parameter) {
                self.set(parameter, general);
            }
            return (true, true);
        }
        let is_free = !self.resolved(is).holds(parameter);
        if is_free {
            self.set(parameter, is.clone());
        }
        (is_free, false)
    }
}
