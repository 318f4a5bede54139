//! What the real server refuses of literals, where the types fit: durations, times, patterns and formats.
//!
//! Upstream: `cel-go/cel/validator.go`, `cel-go/ext/formatting_v2.go`.

use super::tree::{Node, Part, Refused};
use crate::crd::is_pattern;

/// What is wrong with the literals of an expression.
pub(super) fn check(node: &Node, errors: &mut Vec<Refused>) {
    match &node.is {
        Part::Call { target, name, arguments } => {
            literal(name, target.is_some(), arguments, errors);
            if let (Some(target), "format", [list]) = (target.as_deref(), name.as_str(), arguments.as_slice()) {
                format(node.at, target, list, errors);
            }
            for part in target.as_deref().into_iter().chain(arguments) {
                check(part, errors);
            }
        }
        Part::Select { of, .. } | Part::Has { of, .. } => check(of, errors),
        Part::List(items) => items.iter().for_each(|item| check(&item.node, errors)),
        Part::Map(entries) => {
            for (key, value) in entries {
                check(&key.node, errors);
                check(&value.node, errors);
            }
        }
        Part::Message { fields, .. } => fields.iter().for_each(|(_, item)| check(&item.node, errors)),
        Part::Loop { over, arguments, .. } => {
            check(over, errors);
            for argument in arguments {
                check(argument, errors);
            }
        }
        _ => {}
    }
}

fn literal(name: &str, is_method: bool, arguments: &[Node], errors: &mut Vec<Refused>) {
    let Some(last) = arguments.last() else { return };
    let is_right = match (name, &last.is) {
        ("matches", Part::Text(pattern)) => is_pattern(pattern),
        ("timestamp", Part::Text(text)) if !is_method => text.parse::<jiff::Timestamp>().is_ok(),
        ("duration", Part::Text(text)) if !is_method => is_duration(text),
        ("duration", Part::Int) if !is_method => false,
        _ => true,
    };
    if !is_right {
        errors.push(Refused { at: last.at, why: format!("invalid {name} argument") });
    }
}

/// A duration as Go reads it: numbers, each with its unit.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].into_iter().find(|unit| after.starts_with(unit));
        let (Some(unit), true) = (unit, number.parse::<f64>().is_ok()) else { return false };
        rest = &after[unit.len()..];
    }
    !text.trim_start_matches(['-', '+']).is_empty()
}

fn format(at: usize, target: &Node, list: &Node, errors: &mut Vec<Refused>) {
    let (Part::Text(format), Part::List(items)) = (&target.is, &list.is) else { return };
    let mut wrong = |at, why: String| errors.push(Refused { at, why });
    let mut n_clauses = 0;
    let mut rest = format.as_str();
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let after =
            after.strip_prefix('.').map_or(after, |after| after.trim_start_matches(|one: char| one.is_ascii_digit()));
        let Some(clause) = after.chars().next() else { return wrong(at, "unexpected end of string".into()) };
        if !"sdfexXob".contains(clause) {
            let why = format!("could not parse formatting clause: unrecognized formatting clause \"{clause}\"");
            return wrong(at, why);
        }
        let Some(item) = items.get(n_clauses) else { return wrong(at, format!("index {n_clauses} out of range")) };
        if let Some(why) = unfit(clause, &item.node.is) {
            return wrong(item.node.at, format!("error during formatting: {why}"));
        }
        n_clauses += 1;
        rest = &after[clause.len_utf8()..];
    }
    if n_clauses < items.len() {
        let why = format!("too many arguments supplied to string.format (expected {n_clauses}, got {})", items.len());
        wrong(at, why);
    }
}

/// Why a clause does not take a literal.
fn unfit(clause: char, literal: &Part) -> Option<String> {
    let given = match literal {
        Part::Text(_) => "string",
        Part::Int => "int",
        Part::Uint => "uint",
        Part::Double => "double",
        Part::Bool => "bool",
        Part::Bytes => "bytes",
        Part::Null => "null_type",
        _ => return None,
    };
    let (wanted, fit): (&str, &[&str]) = match clause {
        'd' => ("decimal clause can only be used on integers", &["int", "uint"]),
        'e' => ("scientific clause can only be used on doubles", &["double", "int", "uint"]),
        'b' => ("only integers and bools can be formatted as binary", &["int", "uint", "bool"]),
        'o' => ("octal clause can only be used on integers", &["int", "uint"]),
        'x' | 'X' => {
            ("only integers, byte buffers, and strings can be formatted as hex", &["int", "uint", "bytes", "string"])
        }
        _ => return None,
    };
    (!fit.contains(&given)).then(|| format!("{wanted}, was given {given}"))
}
