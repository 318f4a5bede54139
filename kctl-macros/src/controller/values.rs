//! Values of options: texts, numbers, durations and lists.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, Lit};

use super::{
    check::{Model, no_parentheses},
    parse::{Argument, Entry, Value},
};
use crate::{codes, diagnostics::Errors};

pub(super) fn entry_value<'a>(entry: &'a Entry, errors: &mut Errors) -> Option<&'a Expr> {
    let name = &entry.name;
    if let Some(Value::Expr(value)) = &entry.value {
        no_parentheses(entry, &format!("write `{name} = …`"), errors);
        return Some(value);
    }
    errors.push(name, codes::MISSING_VALUE, &format!("`{name}` needs a value"), &format!("write `{name} = …`"));
    None
}

pub(super) fn text(entry: &Entry, name: &str, model: &mut Model, errors: &mut Errors) {
    let Some(value) = entry_value(entry, errors) else { return };
    if let Expr::Lit(literal) = value
        && !matches!(literal.lit, Lit::Str(_))
    {
        errors.push(
            literal,
            codes::STRING_OR_FUNCTION,
            &format!("`{name}` takes a string"),
            &format!("write `{name} = \"…\"`"),
        );
        return;
    }
    if let Expr::Lit(literal) = value
        && let Lit::Str(text) = &literal.lit
        && name == "finalizer"
        && !is_qualified_name(&text.value())
    {
        let what = format!("`{}` is not a valid finalizer name", text.value());
        let help =
            "write `finalizer = \"example.com/name\"`: letters, digits, `-`, `_` and `.`, 63 at most, after a domain";
        errors.push(text, codes::INVALID_FINALIZER, &what, help);
        return;
    }
    if name == "finalizer" {
        model.finalizer = Some(entry.name.clone());
        model.calls.push(quote!(.finalizer(#value)));
    } else {
        model.calls.push(quote!(.named(#value)));
    }
}

/// Whether API servers take a name as a finalizer (`k8s.io/apimachinery`, `IsQualifiedName`). One without a domain is a warning at the
/// start of the app: which kinds take it is not known here.
fn is_qualified_name(text: &str) -> bool {
    let ends_well = |name: &str, max: usize| {
        let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        name.len() <= max && is_end(name.chars().next()) && is_end(name.chars().next_back())
    };
    let is_label = |label: &str| {
        ends_well(label, 253) && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_label))
        && ends_well(name, 63)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

pub(super) fn number(entry: &Entry, name: &str, model: &mut Model, errors: &mut Errors) {
    let Some(value) = entry_value(entry, errors) else { return };
    if let Expr::Lit(literal) = value {
        match &literal.lit {
            Lit::Int(number) if name == "concurrency" && number.base10_digits() == "0" => {
                errors.push(
                    number,
                    codes::INVALID_NUMBER,
                    "`concurrency` is at least 1: nothing would be reconciled",
                    "write `concurrency = 1`",
                );
            }
            Lit::Int(_) => {}
            other => errors.push(
                other,
                codes::INVALID_NUMBER,
                &format!("`{name}` is a number"),
                &format!("write `{name} = 4`"),
            ),
        }
    }
    if matches!(value, Expr::Unary(_)) {
        errors.push(value, codes::INVALID_NUMBER, &format!("`{name}` is not negative"), &format!("write `{name} = 4`"));
        return;
    }
    let call = &entry.name;
    model.calls.push(quote!(.#call(#value)));
}

pub(super) fn namespaces(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let Some(value) = entry_value(entry, errors) else { return };
    if let Expr::Lit(literal) = value {
        let help = format!("write `namespaces = [{}]`", literal.to_token_stream());
        errors.push(literal, codes::NAMESPACES_NOT_A_LIST, "`namespaces` is a list", &help);
        return;
    }
    model.calls.push(quote!(.namespaces(#value)));
}

pub(super) fn backoff(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let form = "write `backoff(\"5ms\", max = \"1000s\")`";
    if entry.value.is_some() {
        errors.push(&entry.name, codes::INVALID_BACKOFF, "`backoff` takes its waits in parentheses", form);
        return;
    }
    let mut is_given = false;
    let (mut base, mut max) = (None, quote!(__p::millis(1_000_000)));
    for argument in &entry.arguments {
        match argument {
            Argument::Expr(expr) => {
                is_given = true;
                base = duration(expr, errors);
            }
            Argument::Option(name, value) if name == "max" => max = duration(value, errors).unwrap_or(max),
            Argument::Option(name, _) | Argument::Word(name) | Argument::Nested(name, _) => {
                errors.push(name, codes::INVALID_BACKOFF, "not an option of `backoff`", form);
            }
            Argument::As(word, _) => errors.push(word, codes::INVALID_BACKOFF, "not an option of `backoff`", form),
            Argument::Everything(star) => errors.push(star, codes::INVALID_BACKOFF, "not an option of `backoff`", form),
        }
    }
    match base {
        Some(base) => model.calls.push(quote!(.backoff(#base, #max))),
        None if is_given => {}
        None => errors.push(&entry.name, codes::INVALID_BACKOFF, "`backoff` needs its first wait", form),
    }
}

/// A literal like `"1m30s"` as a number of milliseconds; any other expression is a `Duration` as it stands.
pub(super) fn duration(value: &Expr, errors: &mut Errors) -> Option<TokenStream> {
    let Expr::Lit(literal) = value else { return Some(value.to_token_stream()) };
    let Lit::Str(text) = &literal.lit else {
        errors.push(value, codes::INVALID_DURATION, "a duration is a string with units", "write for example `\"30s\"`");
        return None;
    };
    if let Some(millis) = milliseconds(&text.value()).map(Literal::u64_unsuffixed) {
        return Some(quote!(__p::millis(#millis)));
    }
    errors.push(
        text,
        codes::INVALID_DURATION,
        &format!("`{}` is not a duration", text.value()),
        "write for example `\"500ms\"`, `\"30s\"`, `\"1h30m\"`",
    );
    None
}

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
