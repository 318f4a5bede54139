//! The standard library of expressions: functions with their overloads, and types with their fields.
//!
//! `library.txt` and `fields.txt` in this folder hold them; both are parsed once per process.

use std::{collections::HashMap, sync::LazyLock};

use crate::types::Type;

/// One overload of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Parameter types; a method's receiver comes first.
    pub(crate) takes: Vec<Type>,
    /// Result type.
    pub(crate) gives: Type,
}

/// Maximum number of type parameters of an overload: `A` and `B`.
pub(crate) const PARAMETERS_MAX: usize = 2;
/// Types that `<ordered>` in `library.txt` is replaced by, one overload each.
const ORDERED: [&str; 8] = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];

/// A call with or without a receiver.
///
/// ```
/// use kctl_cel::{CallStyle, forms};
///
/// assert!(forms("size", CallStyle::Function).is_some() && forms("size", CallStyle::Method).is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStyle {
    /// `size(list)`.
    Function,
    /// `list.size()`: the first argument is the receiver.
    Method,
}

/// All overloads under one name.
#[derive(Debug, Default)]
pub(crate) struct Function {
    plain: Vec<Overload>,
    methods: Vec<Overload>,
}

impl Function {
    /// Returns the overloads for calls with or without a receiver.
    pub(crate) fn forms(&self, style: CallStyle) -> &[Overload] {
        match style {
            CallStyle::Function => &self.plain,
            CallStyle::Method => &self.methods,
        }
    }
}

/// Functions by name. A line of `library.txt` is `name | overload | …`; a leading dot marks a method.
static FUNCTIONS: LazyLock<HashMap<String, Function>> = LazyLock::new(|| {
    let mut all: HashMap<String, Function> = HashMap::new();
    let lines = include_str!("library.txt").lines().filter(|line| !line.starts_with('#'));
    for (name, forms) in lines.filter_map(|line| line.split_once(" | ")) {
        let names: &[&str] = if name == "<order>" { &["_<_", "_<=_", "_>_", "_>=_"] } else { &[name] };
        for name in names {
            let (name, is_method) = name.strip_prefix('.').map_or((*name, false), |name| (name, true));
            let function = all.entry(name.to_owned()).or_default();
            let into = if is_method { &mut function.methods } else { &mut function.plain };
            into.extend(forms.split(" | ").flat_map(read));
        }
    }
    all
});

/// Parses an overload `int, list(A): A`; `<ordered>` gives one for each ordered type.
fn read(form: &str) -> Vec<Overload> {
    if form.contains("<ordered>") {
        return ORDERED.iter().flat_map(|ordered| read(&form.replace("<ordered>", ordered))).collect();
    }
    let (takes, gives) = form.split_once(':').unwrap_or((form, "dyn"));
    let mut depth = 0;
    let types = takes.split(|letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    let takes = types.filter(|text| !text.trim().is_empty()).map(Type::read).collect();
    vec![Overload { takes, gives: Type::read(gives) }]
}

/// Returns the parameter types of each overload of a function, or `None` if it does not exist.
///
/// An error message lists them when no overload accepts the arguments. A method's first parameter is its
/// receiver.
///
/// ```
/// use kctl_cel::{CallStyle, Type};
///
/// let mut forms = kctl_cel::forms("charAt", CallStyle::Method).unwrap();
/// assert_eq!(forms.next().unwrap(), [Type::Text, Type::Int]);
/// assert!(forms.next().is_none() && kctl_cel::forms("charAt", CallStyle::Function).is_none());
/// ```
pub fn forms(name: &str, style: CallStyle) -> Option<impl Iterator<Item = &'static [Type]>> {
    let forms = function(name)?.forms(style);
    (!forms.is_empty()).then(|| forms.iter().map(|form| form.takes.as_slice()))
}

/// Returns the overloads of a name; `None` if no function or method has it.
pub(crate) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

/// Fields of named types, by the name of the type. A line of `fields.txt` is `Type name type; …`.
static FIELDS: LazyLock<HashMap<&str, HashMap<&str, Type>>> = LazyLock::new(|| {
    let lines = include_str!("fields.txt").lines().filter(|line| !line.starts_with('#'));
    let of = |fields: &'static str| {
        let pairs = fields.split("; ").filter_map(|field| field.split_once(' '));
        pairs.map(|(name, is)| (name, Type::read(is))).collect()
    };
    lines.filter_map(|line| line.split_once(' ')).map(|(name, fields)| (name, of(fields))).collect()
});

/// Returns the fields of a named type; `None` for an opaque or unknown one.
pub(crate) fn fields(type_name: &str) -> Option<&'static HashMap<&'static str, Type>> {
    FIELDS.get(type_name)
}

/// Returns the type that an identifier names. Type names are values: `type(x) == int`.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" | "bytes" | "double" | "int" | "string" | "uint" => Type::read(name),
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::kind(Type::Dyn),
        "optional_type" => Type::optional(Type::Dyn),
        // The checker accepts the short names; `program` rejects them, as cel-go's planner does.
        "google.protobuf.Duration" | "duration" => Type::Duration,
        "google.protobuf.Timestamp" | "timestamp" => Type::Timestamp,
        "net.IP" | "net.CIDR" => Type::Object(name.into()),
        _ => return None,
    })
}
