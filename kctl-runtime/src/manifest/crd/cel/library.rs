//! The functions that rules know: those of CEL and the libraries of Kubernetes 1.36, by their declarations.

use std::{collections::HashMap, iter::Peekable, str::Chars, sync::LazyLock};

use super::types::Type;

/// One way to call a function.
pub(super) struct Overload {
    /// The first is that before the dot, if it is a method.
    pub(super) parameters: Vec<Parsed>,
    pub(super) result: Parsed,
}

/// A type as it is written below: `Type` has shared parts that cannot be kept in a static.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parsed {
    Any,
    Plain(&'static str),
    Variable(char),
    List(Box<Parsed>),
    Map(Box<Parsed>, Box<Parsed>),
    Optional(Box<Parsed>),
}

impl Parsed {
    pub(super) fn to_type(&self) -> Type {
        match self {
            Self::Any => Type::Any,
            Self::Plain(name) => Type::Plain(name),
            Self::Variable(name) => Type::Variable(*name),
            Self::List(of) => Type::list(of.to_type()),
            Self::Map(key, value) => Type::map(key.to_type(), value.to_type()),
            Self::Optional(of) => Type::optional(of.to_type()),
        }
    }
}

/// The overloads of a function; methods have a dot before their name.
pub(super) fn overloads(name: &str) -> &'static [Overload] {
    LIBRARY.get(name).map_or(&[], Vec::as_slice)
}

static LIBRARY: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut library: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in include_str!("library.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.split_whitespace();
        let (Some(name), Some(parameters), Some(result)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let parameters = if parameters == "-" { Vec::new() } else { all(parameters) };
        let Some(result) = all(result).pop() else { continue };
        library.entry(name).or_default().push(Overload { parameters, result });
    }
    library
});

/// Types between commas.
fn all(text: &'static str) -> Vec<Parsed> {
    let mut chars = text.chars().peekable();
    list(text, &mut chars)
}

fn list(text: &'static str, chars: &mut Peekable<Chars<'static>>) -> Vec<Parsed> {
    let mut types = vec![one(text, chars)];
    while chars.next_if_eq(&',').is_some() {
        types.push(one(text, chars));
    }
    types
}

fn one(text: &'static str, chars: &mut Peekable<Chars<'static>>) -> Parsed {
    let mut name = String::new();
    while let Some(char) = chars.next_if(|char| char.is_ascii_alphanumeric() || ['.', '_'].contains(char)) {
        name.push(char);
    }
    if chars.next_if_eq(&'(').is_some() {
        let mut inner = list(text, chars).into_iter();
        chars.next_if_eq(&')');
        let mut next = || Box::new(inner.next().unwrap_or(Parsed::Any));
        return match name.as_str() {
            "list" => Parsed::List(next()),
            "optional" => Parsed::Optional(next()),
            _ => Parsed::Map(next(), next()),
        };
    }
    match name.as_str() {
        "any" => Parsed::Any,
        name if name.len() == 1 => Parsed::Variable(name.chars().next().unwrap_or('T')),
        // The name is a part of the text, which is there as long as the program.
        name => text.find(name).map_or(Parsed::Any, |at| Parsed::Plain(&text[at..at + name.len()])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read() {
        assert_eq!(
            all("map(K,list(V)),string,any"),
            [
                Parsed::Map(Box::new(Parsed::Variable('K')), Box::new(Parsed::List(Box::new(Parsed::Variable('V'))))),
                Parsed::Plain("string"),
                Parsed::Any,
            ]
        );
        assert!(overloads(".startsWith").len() == 1 && overloads("size").len() == 4 && overloads("now").is_empty());
    }
}
