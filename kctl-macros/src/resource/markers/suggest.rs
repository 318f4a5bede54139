//! The help for a name that is not a marker: the name of the marker, with the value that the user wrote.
//!
//! | written | help |
//! |---|---|
//! | `min = 0` | write `minimum = 0` |
//! | `MaxItems = 3` | write `max_items = 3` |
//! | `one_of = ["a", "b"]` | write `allowed("a", "b")` |
//! | `email` | write `format = "email"` |
//! | `rename = "a"` | it is an option of serde |
//! | `minimun = 1` | write `minimum = 1` |
//!
//! People come from kubebuilder (`+kubebuilder:validation:MinLength`), JSON schema (`minLength`), and validators of other
//! languages (`min`, `regex`, `email`). The help for
//! `#[kctl(range(min = 0, max = 5))]` is to write `minimum = 0, maximum = 5`.

use proc_macro2::{Ident, TokenStream};

use super::{FORMS, Form, marker_form};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
    function::source_text,
};

/// Names that other validators and JSON schemas use for a marker, with the marker. `suggest_name` handles those that need more
/// than another name.
const OTHER_NAMES: [(&str, &str); 24] = [
    ("choices", "allowed"),
    ("enum", "allowed"),
    ("gt", "exclusive_minimum"),
    ("gte", "minimum"),
    ("len_max", "max_length"),
    ("len_min", "min_length"),
    ("lt", "exclusive_maximum"),
    ("lte", "maximum"),
    ("matches", "pattern"),
    ("max", "maximum"),
    ("max_len", "max_length"),
    ("max_props", "max_properties"),
    ("max_value", "maximum"),
    ("min", "minimum"),
    ("min_len", "min_length"),
    ("min_props", "min_properties"),
    ("min_value", "minimum"),
    ("one_of", "allowed"),
    ("preserve_unknown_fields", "preserve_unknown"),
    ("regex", "pattern"),
    ("regexp", "pattern"),
    ("ty", "type_"),
    ("type", "type_"),
    ("values_of", "allowed"),
];

/// Reports K0080 for a name that is not a marker.
pub(super) fn report_unknown(name: &Ident, text: &str, value: &TokenStream, errors: &mut Errors) {
    let what = format!("`#[kctl(…)]` has no option `{text}`");
    errors.push(name, codes::UNKNOWN_MARKER, &what, &suggest_name(&snake_case(text), value));
}

/// Returns the help for a name in snake case. A name that needs more than another spelling is answered here; the rest by
/// `OTHER_NAMES`, then by the marker that is spelled alike.
fn suggest_name(text: &str, value: &TokenStream) -> String {
    let markers: Vec<&str> = FORMS.iter().map(|(marker, _)| *marker).collect();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == text).map(|(_, marker)| *marker);
    let same = markers.iter().find(|marker| **marker == text).copied();
    match text {
        "range" => return bounds_within(value, "minimum", "maximum", ["1", "10"]),
        "length" | "len" => return bounds_within(value, "min_length", "max_length", ["1", "63"]),
        "list_type" | "list_map_key" | "list_map_keys" | "keys" => {
            return "write `list = atomic`, `list = set` or `list = map(\"name\")`".into();
        }
        "map_type" | "struct_type" => return "write `map = atomic` or `map = granular`".into(),
        "required" | "optional" => return "a field of type `Option<T>` is optional, any other one is required".into(),
        "unique" | "unique_items" => return "write `list = set`: API servers reject `uniqueItems`".into(),
        "validation" | "validate" | "cel" | "x_kubernetes_validations" => {
            return "write `rule(\"self.min <= self.max\", message = \"…\")`".into();
        }
        "email" | "uri" | "url" | "ipv4" | "ipv6" | "uuid" | "hostname" | "date" => {
            let format = if text == "url" { "uri" } else { text };
            return format!("write `format = \"{format}\"`");
        }
        "description" => return "write it as a doc comment above the field: `/// …`".into(),
        "rename" | "skip" | "flatten" | "rename_all" => {
            return format!("it is an option of serde: write `#[serde({})]`", with_value(text, value));
        }
        "read_only" | "readonly" => return "write `immutable`".into(),
        "not_empty" | "non_empty" => return "write `min_length = 1` for a string, `min_items = 1` for a list".into(),
        _ => {}
    }
    match other.or(same).or_else(|| closest_match(text, &markers)) {
        Some(marker) => format!("write `{}`", with_marker(marker, value)),
        None => format!("the options are {}", markers.join(", ")),
    }
}

/// Returns a name in snake case: JSON schemas and kubebuilder write `minLength` and `MinLength`.
pub(in crate::resource) fn snake_case(text: &str) -> String {
    let mut name = String::new();
    for char in text.chars() {
        if char.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(char.to_ascii_lowercase());
    }
    name
}

/// Returns the name with its value as the user wrote it: `name = 0`, `name(…)` or `name`.
fn with_value(name: &str, value: &TokenStream) -> String {
    let text = source_text(value);
    match text.strip_prefix('=') {
        Some(value) => format!("{name} = {value}"),
        None => format!("{name}{text}"),
    }
}

/// Returns a marker with the value of another name, in the form that the marker has: `allowed("a")` for `one_of = ["a"]`.
fn with_marker(marker: &str, value: &TokenStream) -> String {
    let text = source_text(value);
    let argument = text.trim_start_matches('=').trim();
    let within = argument.trim_start_matches(['(', '[']).trim_end_matches([')', ']']).trim();
    match marker_form(marker) {
        _ if argument.is_empty() => marker.to_owned(),
        Some(Form::Flag) => marker.to_owned(),
        Some(Form::Values | Form::Names | Form::Inner | Form::Rule | Form::Docs) => format!("{marker}({within})"),
        Some(Form::List | Form::Map) => format!("{marker} = {argument}"),
        _ => format!("{marker} = {within}"),
    }
}

/// Returns the help for `range(min = 0, max = 5)` or `length(max = 63)`: a marker for each bound. `low` and `high` are these markers,
/// `examples` their values if the user wrote none.
fn bounds_within(value: &TokenStream, low: &str, high: &str, examples: [&str; 2]) -> String {
    let text = source_text(value);
    let bound_of = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}="))?;
        let end = rest.find([',', ')']).unwrap_or(rest.len());
        Some(rest[..end].trim().to_owned())
    };
    let markers: Vec<_> = [(low, bound_of("min")), (high, bound_of("max"))]
        .into_iter()
        .filter_map(|(marker, bound)| bound.map(|bound| format!("{marker} = {bound}")))
        .collect();
    if markers.is_empty() {
        return format!("write `{low} = {}, {high} = {}`", examples[0], examples[1]);
    }
    format!("write `{}`", markers.join(", "))
}

#[cfg(test)]
mod tests {
    use syn::parse::{ParseStream, Parser};

    use super::*;

    #[test]
    fn unknown_names_get_the_marker_and_value() {
        for (written, expected) in [
            ("min = 0", "write `minimum = 0`"),
            ("max = 5", "write `maximum = 5`"),
            ("Minimum = 1", "write `minimum = 1`"),
            ("regex = \"^a$\"", "write `pattern = \"^a$\"`"),
            ("regex(\"^a$\")", "write `pattern = \"^a$\"`"),
            ("range(min = 0, max = 5)", "write `minimum = 0, maximum = 5`"),
            ("range(max = 5)", "write `maximum = 5`"),
            ("range = \"1..5\"", "write `minimum = 1, maximum = 10`"),
            ("length(min = 1)", "write `min_length = 1`"),
            ("minLength = 1", "write `min_length = 1`"),
            ("MaxItems = 3", "write `max_items = 3`"),
            ("min_len = 1", "write `min_length = 1`"),
            ("enum(\"a\", \"b\")", "write `allowed(\"a\", \"b\")`"),
            ("one_of = [\"a\", \"b\"]", "write `allowed(\"a\", \"b\")`"),
            ("email", "write `format = \"email\"`"),
            ("rename = \"a\"", "it is an option of serde: write `#[serde(rename = \"a\")]`"),
            ("minimun = 1", "write `minimum = 1`"),
            ("XValidation(\"a\")", "the options are "),
        ] {
            let mut errors = Errors::default();
            let mut markers = super::super::Markers::default();
            let parser = |input: ParseStream<'_>| super::super::list(input, &mut markers, &mut errors);
            parser.parse_str(written).unwrap();
            assert!(markers.is_empty(), "{written}");
            let text = errors.into_result(()).unwrap_err().to_string();
            assert!(text.contains(&format!("help: {expected}")), "{written}: {text}");
        }
    }
}
