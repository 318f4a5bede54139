//! Values of options: strings, numbers, durations and lists.
//!
//! | option | literals | code |
//! |---|---|---|
//! | `name` | a string of 1 to 128 bytes | K0026 |
//! | `finalizer` | a qualified name, such as `"example.com/name"` | K0017, K0026 |
//! | `concurrency`, `retries` | a number: at least 1, at least 0 | K0018 |
//! | `resync`, `timeout` | `"10m"` | K0020 |
//! | `backoff` | `("5ms", max = "1000s")` | K0019, K0020, K0022 |
//! | `namespaces` | a list | K0027 |
//!
//! A literal is checked here, and any other expression is left to rustc: `concurrency = WORKERS` is emitted as it is.

use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label, is_qualified_name};
use quote::ToTokens;
use syn::{Expr, ExprArray, ExprLit, Lit, UnOp};

use super::{
    super::{
        model::{Duration, Setting},
        parse::{Argument, Entry, Value},
    },
    no_parentheses,
};
use crate::{codes, diagnostics::Errors};

/// The longest wait of `backoff` without `max`: the default of `SpecBuilder` in the runtime.
const BACKOFF_MAX_MILLIS: u64 = 1_000_000;

/// Bytes in the name of a controller, which is the `reportingInstance` of its Events: `ReportingInstanceLengthLimit` in
/// the validation of Kubernetes. `declaration_problem` in the runtime has the same limit.
const NAME_LEN_MAX: usize = 128;

/// Returns the value of an option. Reports K0010 if it is missing, K0025 for parentheses after it.
pub(super) fn entry_value<'a>(entry: &'a Entry, errors: &mut Errors) -> Option<&'a Expr> {
    let name = &entry.name;
    if let Some(Value::Expr(value)) = &entry.value {
        no_parentheses(entry, &format!("write `{name} = …`"), errors);
        return Some(value);
    }
    errors.push(name, codes::MISSING_VALUE, &format!("`{name}` needs a value"), &format!("write `{name} = …`"));
    None
}

/// Reads `name = "…"`, or an expression. K0026 for a literal that can't be the `reportingInstance` of an `Event`.
pub(super) fn name(entry: &Entry, errors: &mut Errors) -> Option<Expr> {
    let value = string(entry, errors)?;
    if let Expr::Lit(literal) = value
        && let Lit::Str(text) = &literal.lit
        && !(1..=NAME_LEN_MAX).contains(&text.value().len())
    {
        let what = format!("`name` has 1 to {NAME_LEN_MAX} bytes: API servers reject its Events otherwise");
        let help = "write a shorter name, or remove the option: the default is the name of the controller";
        let help = if text.value().is_empty() { "write a name, or remove the option" } else { help };
        errors.push(text, codes::STRING_OR_FUNCTION, &what, help);
        return None;
    }
    Some(value.clone())
}

/// Reads `finalizer = "…"`, or an expression. K0017 for a literal that API servers reject.
pub(super) fn finalizer(entry: &Entry, errors: &mut Errors) -> Option<Expr> {
    let value = string(entry, errors)?;
    if let Expr::Lit(literal) = value
        && let Lit::Str(text) = &literal.lit
        && !is_qualified_name(&text.value())
    {
        let what = format!("`{}` is not a valid finalizer name", text.value());
        let help =
            "write `finalizer = \"example.com/name\"`: letters, digits, `-`, `_` and `.`, 63 at most, after a domain";
        errors.push(text, codes::INVALID_FINALIZER, &what, help);
        return None;
    }
    Some(value.clone())
}

/// Reads a value that is not a literal of another type than a string. K0026 otherwise.
fn string<'a>(entry: &'a Entry, errors: &mut Errors) -> Option<&'a Expr> {
    let (name, value) = (&entry.name, entry_value(entry, errors)?);
    if let Expr::Lit(literal) = value
        && !matches!(literal.lit, Lit::Str(_))
    {
        let (what, help) = (format!("`{name}` takes a string"), format!("write `{name} = \"…\"`"));
        errors.push(literal, codes::STRING_OR_FUNCTION, &what, &help);
        return None;
    }
    Some(value)
}

/// Reads `concurrency = 4`. K0018 for 0, with which no worker would run.
pub(super) fn concurrency(entry: &Entry, errors: &mut Errors) -> Option<Expr> {
    let value = number(entry, errors)?;
    if let Expr::Lit(literal) = &value
        && let Lit::Int(number) = &literal.lit
        && number.base10_digits() == "0"
    {
        let what = "`concurrency` is at least 1: nothing would be reconciled";
        errors.push(number, codes::INVALID_NUMBER, what, "write `concurrency = 1`");
        return None;
    }
    Some(value)
}

/// Reads a number that is not negative, or an expression. K0018 for another literal. The help has the number in quotes.
pub(super) fn number(entry: &Entry, errors: &mut Errors) -> Option<Expr> {
    let (name, value) = (&entry.name, entry_value(entry, errors)?);
    let quoted = match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value().trim().parse::<u32>().ok(),
        _ => None,
    };
    let valid = quoted.filter(|number| *number > 0 || name == "retries");
    let help = format!("write `{name} = {}`", valid.unwrap_or(4));
    match value {
        Expr::Lit(literal) if !matches!(literal.lit, Lit::Int(_)) => {
            errors.push(&literal.lit, codes::INVALID_NUMBER, &format!("`{name}` is a number"), &help);
            None
        }
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            errors.push(value, codes::INVALID_NUMBER, &format!("`{name}` is not negative"), &help);
            None
        }
        _ => Some(value.clone()),
    }
}

/// Reads `namespaces = […]`, or an expression. K0027 for one namespace without brackets, an empty list, and for names
/// that are invalid or repeated. `App` checks the value of an expression when it starts.
pub(super) fn namespaces(entry: &Entry, errors: &mut Errors) -> Option<Expr> {
    let value = entry_value(entry, errors)?;
    if let Expr::Lit(ExprLit { lit, .. }) = value {
        errors.push(lit, codes::NAMESPACES_NOT_A_LIST, "`namespaces` is a list", &list_help(lit));
        return None;
    }
    if let Expr::Array(list) = value {
        check_namespaces(list, errors);
    }
    Some(value.clone())
}

/// The help for `*` and an empty string, which mean all namespaces in other tools.
const ALL_NAMESPACES: &str = "remove `namespaces`: without it, all namespaces are watched";

/// Returns the help for a literal in the place of a list: the names in it, which are separated by commas.
fn list_help(literal: &Lit) -> String {
    let Lit::Str(text) = literal else { return "write `namespaces = [\"default\"]`".to_owned() };
    let text = text.value();
    let names: Vec<_> = text.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "*").collect();
    if names.is_empty() {
        return ALL_NAMESPACES.to_owned();
    }
    format!("write `namespaces = [\"{}\"]`", names.join("\", \""))
}

/// Reports K0027 for a list that would be all namespaces, and for names in it that no namespace can have.
fn check_namespaces(list: &ExprArray, errors: &mut Errors) {
    let mut names: Vec<String> = Vec::new();
    if list.elems.is_empty() {
        let what = "`namespaces` is empty: no namespace is named";
        errors.push(list, codes::NAMESPACES_NOT_A_LIST, what, "remove it for all namespaces, or name some");
    }
    for element in &list.elems {
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = element else { continue };
        let name = text.value();
        if !is_dns1123_label(&name) {
            let what = format!("`{name}` is not the name of a namespace");
            let help = format!("write lower-case letters, digits and `-`, at most {LABEL_LEN_MAX} of them");
            let help = if name.is_empty() || name == "*" { ALL_NAMESPACES.to_owned() } else { help };
            errors.push(text, codes::NAMESPACES_NOT_A_LIST, &what, &help);
        } else if names.contains(&name) {
            let what = format!("the namespace `{name}` is given twice");
            errors.push(text, codes::NAMESPACES_NOT_A_LIST, &what, "remove one of them");
        }
        names.push(name);
    }
}

/// Reads `backoff("5ms", max = "1000s")`: the wait after the first failure, and the longest one. K0019 for another
/// form, such as a second wait without `max =`.
pub(super) fn backoff(entry: &Entry, errors: &mut Errors) -> Option<Setting> {
    let form = "write `backoff(\"5ms\", max = \"1000s\")`";
    if entry.value.is_some() {
        errors.push(&entry.name, codes::INVALID_BACKOFF, "`backoff` takes its waits in parentheses", form);
        return None;
    }
    // The expressions as they are written, which may be no durations. A second one is a mistake in any case.
    let (mut first, mut max) = (None, None);
    for argument in &entry.arguments {
        match argument {
            Argument::Expr(wait) => match first {
                None => first = Some(wait),
                Some(first) => {
                    let help =
                        format!("write `backoff({}, max = {})`", first.to_token_stream(), wait.to_token_stream());
                    errors.push(wait, codes::INVALID_BACKOFF, "`backoff` has one first wait", &help);
                }
            },
            Argument::Option(name, _) if name == "max" && max.is_some() => {
                errors.push_duplicate(name);
            }
            Argument::Option(name, wait) if name == "max" => max = Some(wait),
            Argument::Option(name, _) | Argument::Word(name) | Argument::Nested(name, _) => {
                errors.push(name, codes::INVALID_BACKOFF, "not an option of `backoff`", form);
            }
            Argument::As(word, _) => errors.push(word, codes::INVALID_BACKOFF, "not an option of `backoff`", form),
            Argument::Everything(star) => errors.push(star, codes::INVALID_BACKOFF, "not an option of `backoff`", form),
        }
    }
    if first.is_none() {
        errors.push(&entry.name, codes::INVALID_BACKOFF, "`backoff` needs its first wait", form);
    }
    let at = max.or(first);
    let first = first.and_then(|wait| duration(wait, errors));
    let max = max.and_then(|wait| duration(wait, errors));
    let longest = match &max {
        None => Some(BACKOFF_MAX_MILLIS),
        Some(Duration::Millis(longest)) => Some(*longest),
        Some(Duration::Expr(_)) => None,
    };
    if let (Some(Duration::Millis(first)), Some(longest)) = (&first, longest)
        && *first > longest
    {
        errors.push(
            at,
            codes::INVALID_BACKOFF,
            "the first wait of `backoff` is longer than `max`, 1000s by default",
            form,
        );
    }
    first.map(|first| Setting::Backoff { first, max })
}

/// Reads a literal like `"1m30s"`, or an expression of the type `Duration`. K0020 for another literal, and for zero:
/// a timeout of zero cancels each reconcile, and a resync of zero never pauses.
pub(super) fn duration(value: &Expr, errors: &mut Errors) -> Option<Duration> {
    let Expr::Lit(literal) = value else { return Some(Duration::Expr(value.clone())) };
    let Lit::Str(text) = &literal.lit else {
        errors.push(value, codes::INVALID_DURATION, "a duration is a string with units", "write for example `\"30s\"`");
        return None;
    };
    let (what, help) = match milliseconds(&text.value()) {
        Some(0) => ("is zero: a duration is at least 1 ms", "write a longer one, or remove the option"),
        Some(millis) => return Some(Duration::Millis(millis)),
        None => ("is not a duration", "write for example `\"500ms\"`, `\"30s\"`, `\"1h30m\"`"),
    };
    errors.push(text, codes::INVALID_DURATION, &format!("`{}` {what}", text.value()), help);
    None
}

/// Returns the milliseconds of a duration in Go's notation, without fractions: `1h30m`. `None` for an empty string,
/// another unit, or more than `u64::MAX` milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|character: char| character.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(total)
}
