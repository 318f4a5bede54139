//! What the real server refuses of a text with clauses (`'%d'.format([…])`): reads the text and the types of what goes into it.
//!
//! Upstream: `cel-go/ext/formatting_v2.go`.

use crate::{
    Issue, Type, Why,
    check::Checker,
    tree::{Item, Node, Part},
};

/// What a clause takes, by the names of types; with the words of its refusal.
const CLAUSES: [(&str, &str, &[&str]); 5] = [
    ("d", "decimal clause can only be used on integers", &["int", "uint"]),
    ("f", "fixed-point clause can only be used on doubles", &["double", "string"]),
    ("e", "scientific clause can only be used on doubles", &["double", "string"]),
    ("o", "octal clause can only be used on integers", &["int", "uint"]),
    ("b", "only integers and bools can be formatted as binary", &["int", "uint", "bool"]),
];
const HEX: (&str, &[&str]) =
    ("only integers, byte buffers, and strings can be formatted as hex", &["int", "uint", "bytes", "string"]);
const STRING: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                      and timestamps";

/// Adds what is wrong with a call of `format` at this place.
pub(crate) fn check(at: usize, target: &Node, list: &Node, types: &Checker<'_>, errors: &mut Vec<Issue>) {
    let (Part::Text(format), Part::List(items)) = (&target.is, &list.is) else { return };
    let wrong = match clauses(format, items, types) {
        Err(Wrong::Here(why)) => (at, why),
        Err(Wrong::At(place, why)) => (place, format!("error during formatting: {why}")),
        Ok(n_clauses) if n_clauses < items.len() => {
            let n_items = items.len();
            (at, format!("too many arguments supplied to string.format (expected {n_clauses}, got {n_items})"))
        }
        Ok(_) => return,
    };
    errors.push(Issue { at: wrong.0, why: Why::Other(wrong.1) });
}

enum Wrong {
    /// With the text.
    Here(String),
    /// With what goes into it.
    At(usize, String),
}

/// How many clauses there are.
fn clauses(format: &str, items: &[Item], types: &Checker<'_>) -> Result<usize, Wrong> {
    let mut n_clauses = 0;
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let after = precision(after)?;
        let Some(clause) = after.chars().next() else { return Err(Wrong::Here("unexpected end of string".into())) };
        if !"sdfexXob".contains(clause) {
            let why = format!("could not parse formatting clause: unrecognized formatting clause \"{clause}\"");
            return Err(Wrong::Here(why));
        }
        let Some(item) = items.get(n_clauses) else {
            return Err(Wrong::Here(format!("index {n_clauses} out of range")));
        };
        if let Some((place, why)) = unfit(clause, &item.node, types) {
            return Err(Wrong::At(place, why));
        }
        n_clauses += 1;
        rest = &after[clause.len_utf8()..];
    }
    Ok(n_clauses)
}

/// What stands after a point and its digits.
fn precision(text: &str) -> Result<&str, Wrong> {
    let Some(digits) = text.strip_prefix('.') else { return Ok(text) };
    let after = digits.trim_start_matches(|one: char| one.is_ascii_digit());
    let why = match (after.is_empty(), after.len() == digits.len()) {
        (true, _) => "could not find end of precision specifier",
        (false, true) => "error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax",
        (false, false) => return Ok(after),
    };
    Err(Wrong::Here(format!("could not parse formatting clause: error while parsing precision: {why}")))
}

/// Why a clause does not take a value, and where that is.
fn unfit(clause: char, node: &Node, types: &Checker<'_>) -> Option<(usize, String)> {
    if clause == 's' {
        return no_string(node, types);
    }
    let given = types.type_of(node).runtime_name()?;
    let known = CLAUSES.iter().find(|(known, ..)| known.starts_with(clause));
    let (wanted, fit) = known.map_or(HEX, |(_, wanted, fit)| (*wanted, *fit));
    (!fit.contains(&given.as_str())).then(|| (node.at, format!("{wanted}, was given {given}")))
}

/// The same of the clause that takes nearly all; it looks into lists and maps that are written there.
fn no_string(node: &Node, types: &Checker<'_>) -> Option<(usize, String)> {
    match (&node.is, types.type_of(node)) {
        (Part::List(items), _) => items.iter().find_map(|item| no_string(&item.node, types)),
        (Part::Map(entries), _) => {
            let all = entries.iter().flat_map(|(key, value)| [&key.node, &value.node]);
            all.into_iter().find_map(|node| no_string(node, types))
        }
        (_, is @ (Type::Optional(_) | Type::Object(_))) => {
            Some((node.at, format!("{STRING}, was given {}", is.runtime_name().unwrap_or_default())))
        }
        _ => None,
    }
}
