//! Checks calls of `format` on literals: `'%d'.format([…])`.
//!
//! Upstream: `cel-go/ext/formatting_v2.go`.

use crate::{
    Issue, Type, Why,
    check::Checker,
    tree::{Expr, Item, Node},
};

/// Clauses with the message for a wrong argument, and the run-time types that they accept.
const CLAUSES: [(&str, &str, &[&str]); 5] = [
    ("d", "decimal clause can only be used on integers", &["int", "uint"]),
    ("f", "fixed-point clause can only be used on doubles", &["double", "string"]),
    ("e", "scientific clause can only be used on doubles", &["double", "string"]),
    ("o", "octal clause can only be used on integers", &["int", "uint"]),
    ("b", "only integers and bools can be formatted as binary", &["int", "uint", "bool"]),
];
/// The message and the types of `%x` and `%X`.
const HEX: (&str, &[&str]) =
    ("only integers, byte buffers, and strings can be formatted as hex", &["int", "uint", "bytes", "string"]);
/// The message of `%s`, which accepts nearly all types.
const STRING: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                      and timestamps";

/// Adds the first error of a `format` call, unless string and list are computed at evaluation.
pub(crate) fn check(at: usize, target: &Node, list: &Node, types: &Checker<'_>, errors: &mut Vec<Issue>) {
    let (Expr::Text(format), Expr::List(items)) = (&target.is, &list.is) else { return };
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

/// The position and message of an error.
enum Wrong {
    /// In the format string: reported at the call.
    Here(String),
    /// In an argument: reported at its position.
    At(usize, String),
}

/// Returns the number of clauses in a format string, after checking each with its argument.
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
        if let Some((place, why)) = rejected(clause, &item.node, types) {
            return Err(Wrong::At(place, why));
        }
        n_clauses += 1;
        rest = &after[clause.len_utf8()..];
    }
    Ok(n_clauses)
}

/// Skips the precision of a clause: `.2` in `%.2f`.
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

/// Returns position and message if a clause does not accept an argument.
fn rejected(clause: char, node: &Node, types: &Checker<'_>) -> Option<(usize, String)> {
    if clause == 's' {
        return not_printable(node, types);
    }
    let given = types.type_of(node).runtime_name()?;
    let known = CLAUSES.iter().find(|(known, ..)| known.starts_with(clause));
    let (wanted, fit) = known.map_or(HEX, |(_, wanted, fit)| (*wanted, *fit));
    (!fit.contains(&given.as_str())).then(|| (node.at, format!("{wanted}, was given {given}")))
}

/// The same for `%s`. It looks into list and map literals, whose items are formatted one by one.
fn not_printable(node: &Node, types: &Checker<'_>) -> Option<(usize, String)> {
    match (&node.is, types.type_of(node)) {
        (Expr::List(items), _) => items.iter().find_map(|item| not_printable(&item.node, types)),
        (Expr::Map(entries), _) => {
            let all = entries.iter().flat_map(|(key, value)| [&key.node, &value.node]);
            all.into_iter().find_map(|node| not_printable(node, types))
        }
        (_, is @ (Type::Optional(_) | Type::Object(_))) => {
            Some((node.at, format!("{STRING}, was given {}", is.runtime_name().unwrap_or_default())))
        }
        _ => None,
    }
}
