//! Values in the parentheses of `printcolumn(…)` and `scale(…)`, and the path of `selectable`: those that API servers
//! reject, or that would make an empty column.
//!
//! | code | mistake |
//! |---|---|
//! | K0018 | a priority that is not a number from 0 |
//! | K0044 | a value without quotes |
//! | K0074 | a path that does not start at the object, or is not closed |
//! | K0083 | an unknown type or format of a column |
//!
//! `generate-crds` also checks that each path leads to a field (`kctl-runtime/src/manifest/crd/paths.rs`), because a
//! macro does not know the fields of the status.

use proc_macro2::{Ident, TokenTree};
use quote::ToTokens;
use syn::{LitInt, LitStr};

use super::nested_options::{self, NestedOption};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
};

/// Types of columns: `printerColumnDatatypes` in
/// `apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go`.
const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
/// Formats of columns: `customResourceColumnDefinitionFormats` there. API servers accept each of them with each type.
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// Types of Rust and other schemas, with the type of the column.
const OTHER_TYPES: [(&str, &str); 19] = [
    ("String", "string"),
    ("array", "string"),
    ("bool", "boolean"),
    ("datetime", "date"),
    ("double", "number"),
    ("enum", "string"),
    ("f32", "number"),
    ("f64", "number"),
    ("float", "number"),
    ("i32", "integer"),
    ("i64", "integer"),
    ("int", "integer"),
    ("object", "string"),
    ("str", "string"),
    ("text", "string"),
    ("time", "date"),
    ("timestamp", "date"),
    ("u32", "integer"),
    ("u64", "integer"),
];

/// Reports wrong values of an option. Returns `true` after an error.
pub(super) fn report_invalid(option: &str, value: &[TokenTree], errors: &mut Errors) -> bool {
    let n_errors = errors.len();
    match option {
        "printcolumn" => nested_options::read(value).iter().for_each(|nested| check_column(nested, errors)),
        "scale" => nested_options::read(value).iter().for_each(|nested| check_scale(nested, errors)),
        "selectable" => {
            if let [_, TokenTree::Literal(literal)] = value
                && let Ok(path) = syn::parse2::<LitStr>(literal.to_token_stream())
            {
                check_path("selectable", &path, errors);
            }
        }
        _ => {}
    }
    errors.len() > n_errors
}

/// Checks one option of `printcolumn(…)`.
fn check_column(NestedOption { name, value }: &NestedOption, errors: &mut Errors) {
    if name == "priority" {
        return check_priority(value, errors);
    }
    let Some(text) = string(name, value, errors) else { return };
    match name.to_string().as_str() {
        "type_" => check_word(name, &text, &TYPES, errors),
        "format" => check_word(name, &text, &FORMATS, errors),
        "json_path" => check_path("json_path", &text, errors),
        _ => {}
    }
}

/// Checks one option of `scale(…)`: API servers accept paths below `.spec` and `.status`, of plain names.
fn check_scale(NestedOption { name, value }: &NestedOption, errors: &mut Errors) {
    let Some(literal) = string(name, value, errors) else { return };
    let (roots, example): (&[&str], _) = match name.to_string().as_str() {
        "spec_replicas_path" => (&["spec"], ".spec.replicas"),
        "status_replicas_path" => (&["status"], ".status.replicas"),
        "label_selector_path" if literal.value().is_empty() => return,
        _ => (&["status", "spec"], ".status.selector"),
    };
    let text = literal.value();
    let is_below =
        |path: &str| roots.iter().any(|root| path.strip_prefix('.').is_some_and(|path| is_field_of(path, root)));
    if is_below(&text) {
        return;
    }
    let wanted: Vec<_> = roots.iter().map(|root| format!("`.{root}`")).collect();
    let fixed = format!(".{}", bare(&text));
    let written = if is_below(&fixed) { fixed.as_str() } else { example };
    let what = format!("`{text}` is not a path of field names below {}", wanted.join(" or "));
    errors.push(&literal, codes::NOT_A_PATH, &what, &format!("write `{name} = \"{written}\"`"));
}

/// Returns `true` for `spec.a.b`: plain names below a field.
fn is_field_of(path: &str, root: &str) -> bool {
    let is_plain = |name: &str| !name.is_empty() && !name.contains(['[', ']', '(', ')', '{', '}', '*', '?', '@', ' ']);
    let names: Vec<_> = path.split('.').collect();
    names.len() > 1 && names[0] == root && names.iter().all(|name| is_plain(name))
}

/// Returns a path without the braces, the `$` and the dot that other tools write before it: `spec.a` for `{$.spec.a}`.
fn bare(path: &str) -> &str {
    let inner = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
    inner.trim_start_matches(['$', '.'])
}

/// Returns the string of an option. K0044 for a word or a number in its place. `None` for a macro call, too, which may
/// expand to a string.
fn string(name: &Ident, value: &[TokenTree], errors: &mut Errors) -> Option<LitStr> {
    let [token] = value else { return None };
    let literal = syn::parse2::<LitStr>(token.to_token_stream());
    if literal.is_err() {
        let quoted = token.to_string();
        let (what, help) = (format!("`{name}` takes a string"), format!("write `{name} = \"{quoted}\"`"));
        errors.push(token, codes::NOT_A_STRING, &what, &help);
    }
    literal.ok()
}

/// Reports K0083 for a type or a format that API servers don't know.
fn check_word(name: &Ident, literal: &LitStr, known: &[&str], errors: &mut Errors) {
    let text = literal.value();
    if known.contains(&text.as_str()) {
        return;
    }
    let other = OTHER_TYPES.iter().find(|(other, _)| *other == text).map(|(_, column)| *column);
    let near = other.filter(|other| known.contains(other)).or_else(|| closest_match(&text, known));
    let help = match near {
        Some(near) => format!("write `{name} = \"{near}\"`; the values are {}", known.join(", ")),
        None => format!("write one of {}", known.join(", ")),
    };
    let word = if name == "format" { "format" } else { "type" };
    errors.push(literal, codes::UNKNOWN_WORD, &format!("`{text}` is not a {word} of printer columns"), &help);
}

/// Reports K0074 for a path that does not start at the object, or whose brackets and quotes are not closed.
fn check_path(name: &str, literal: &LitStr, errors: &mut Errors) {
    let path = literal.value();
    if !path.starts_with('.') {
        let what = format!("`{path}` is not a path from the object, which starts with a dot");
        let inner = bare(&path);
        let written = if inner.is_empty() { "spec.replicas" } else { inner };
        errors.push(literal, codes::NOT_A_PATH, &what, &format!("write `{name} = \".{written}\"`"));
        return;
    }
    let count = |chars: &[char]| path.matches(chars).count();
    if count(&['[', '(', '{']) != count(&[']', ')', '}']) || count(&['\'', '"']) % 2 != 0 || path.contains("[]") {
        let what = format!("the path `{path}` is not closed");
        errors.push(
            literal,
            codes::NOT_A_PATH,
            &what,
            "close each bracket and quote, with a key or an index in brackets",
        );
    }
}

/// Reports K0018 for a priority that is not a number from 0: `kubectl get` shows the column if it is 0.
fn check_priority(value: &[TokenTree], errors: &mut Errors) {
    let is_number = match value {
        [token] => syn::parse2::<LitInt>(token.to_token_stream()).is_ok_and(|n| n.base10_parse::<i32>().is_ok()),
        // Nothing at all is reported by kube's derive.
        tokens => !matches!(tokens, [TokenTree::Punct(minus), ..] if minus.as_char() == '-'),
    };
    if !is_number {
        let written: String = value.iter().map(ToString::to_string).collect();
        let tokens: proc_macro2::TokenStream = value.iter().cloned().collect();
        let what = format!("`{written}` is not a priority, which is a number from 0");
        let help = "write `priority = 1` for a column of `kubectl get -o wide`, or leave it out";
        errors.push(tokens, codes::INVALID_NUMBER, &what, help);
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use super::*;

    /// Returns the messages about the tokens after the name of an option.
    fn reported(option: &str, value: &str) -> String {
        let value: Vec<TokenTree> = value.parse::<TokenStream>().unwrap().into_iter().collect();
        let mut errors = Errors::default();
        let is_reported = report_invalid(option, &value, &mut errors);
        let text = errors.into_result(()).err().map(|error| error.to_compile_error().to_string()).unwrap_or_default();
        assert_eq!(is_reported, !text.is_empty(), "{text}");
        text.replace("\\\"", "\"")
    }

    /// Compares messages by their parts. Without parts, nothing is reported.
    fn check(option: &str, value: &str, parts: &[&str]) {
        let text = reported(option, value);
        assert_eq!(text.is_empty(), parts.is_empty(), "{value}: {text}");
        for part in parts {
            assert!(text.contains(part), "{value}: {part} is not in {text}");
        }
    }

    #[test]
    fn columns_have_known_types_and_formats() {
        for (value, parts) in [
            ("(type_ = \"int\")", ["`int` is not a type of printer columns", "write `type_ = \"integer\"`", ": K0083"]),
            ("(type_ = \"Boolean\")", ["`Boolean` is not a type", "write `type_ = \"boolean\"`", ": K0083"]),
            ("(type_ = \"quantity\")", ["`quantity` is not a type", "write one of boolean, date", ": K0083"]),
            ("(format = \"int23\")", ["`int23` is not a format", "write `format = \"int32\"`", ": K0083"]),
            ("(type_ = integer)", ["`type_` takes a string", "write `type_ = \"integer\"`", ": K0044"]),
            ("(priority = -1)", ["`-1` is not a priority", "write `priority = 1` for", ": K0018"]),
            ("(priority = \"1\")", ["is not a priority", "leave it out", ": K0018"]),
        ] {
            check("printcolumn", value, &parts);
        }
        for value in
            ["(type_ = \"date\", format = \"date-time\", priority = 1)", "(type_ = concat!(\"a\"))", "(name = )"]
        {
            check("printcolumn", value, &[]);
        }
    }

    #[test]
    fn paths_start_at_the_object_and_are_closed() {
        for (path, help) in [
            ("spec.replicas", "write `json_path = \".spec.replicas\"`"),
            ("{.spec.replicas}", "write `json_path = \".spec.replicas\"`"),
            ("$.spec.replicas", "write `json_path = \".spec.replicas\"`"),
            ("", "write `json_path = \".spec.replicas\"`"),
            (".status.conditions[?(@.type=='Ready')].status", ""),
            (".status.conditions[?(@.type=='Ready'].status", "close each bracket"),
            (".spec.hosts[]", "close each bracket"),
            (".metadata.creationTimestamp", ""),
        ] {
            let parts: Vec<_> = [help, ": K0074"].into_iter().filter(|_| !help.is_empty()).collect();
            check("printcolumn", &format!("(json_path = \"{path}\")"), &parts);
        }
        check("selectable", "= \"spec.color\"", &["write `selectable = \".spec.color\"`", ": K0074"]);
        check("selectable", "= \".spec.color\"", &[]);
    }

    #[test]
    fn scale_has_paths_below_spec_and_status() {
        for (option, path, help) in [
            ("spec_replicas_path", "spec.n", "write `spec_replicas_path = \".spec.n\"`"),
            ("spec_replicas_path", ".replicas", "write `spec_replicas_path = \".spec.replicas\"`"),
            ("spec_replicas_path", ".spec", "write `spec_replicas_path = \".spec.replicas\"`"),
            ("spec_replicas_path", ".spec.a[0]", "write `spec_replicas_path = \".spec.replicas\"`"),
            ("status_replicas_path", ".spec.replicas", "write `status_replicas_path = \".status.replicas\"`"),
            ("label_selector_path", "status.selector", "write `label_selector_path = \".status.selector\"`"),
            ("label_selector_path", ".spec.selector", ""),
            ("label_selector_path", "", ""),
            ("spec_replicas_path", ".spec.size.n", ""),
        ] {
            let parts: Vec<_> = [help, ": K0074"].into_iter().filter(|_| !help.is_empty()).collect();
            check("scale", &format!("({option} = \"{path}\")"), &parts);
        }
    }
}
