//! The options in the parentheses of `printcolumn(…)` and `scale(…)`: K0045 for an unknown one, with the one that the user
//! means, and K0025 for a path without parentheses.
//!
//! kube's derive reads the options, and says only that a field is unknown.

use proc_macro2::{Ident, Literal, TokenTree};
use quote::ToTokens;
use syn::{
    LitStr,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{
    json::{parse_comma, up_to_comma},
    markers::snake_case,
};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
};

/// The options of `printcolumn(…)`, in the order of the help.
const PRINTCOLUMN: [&str; 6] = ["name", "type_", "json_path", "description", "format", "priority"];
/// The options of `scale(…)`.
const SCALE: [&str; 3] = ["spec_replicas_path", "status_replicas_path", "label_selector_path"];

/// Reports K0045 for each unknown option within `option(…)`, and K0025 for `option = ".spec.path"`. Returns `true` after an
/// error.
///
/// Tokens that are not a list of options are left to kube's derive.
pub(super) fn report_unknown(option: &str, value: &[TokenTree], errors: &mut Errors) -> bool {
    let known: &[&str] = match option {
        "printcolumn" => &PRINTCOLUMN,
        "scale" => &SCALE,
        _ => return false,
    };
    if let [TokenTree::Punct(_), TokenTree::Literal(literal)] = value {
        return report_without_parentheses(option, literal, errors);
    }
    let mut options = read(value);
    options.retain(|NestedOption { name, .. }| known.iter().all(|known| name != known));
    for NestedOption { name, .. } in &options {
        let what = format!("`{option}` has no option `{name}`");
        errors.push(name, codes::UNKNOWN_RESOURCE_OPTION, &what, &help(&name.to_string(), known));
    }
    !options.is_empty()
}

/// One option in the parentheses: `priority = 1`.
pub(super) struct NestedOption {
    pub(super) name: Ident,
    /// The tokens after `=`.
    pub(super) value: Vec<TokenTree>,
}

/// Reads the options in the parentheses after the name of an option. Tokens that can't be read have no options.
pub(super) fn read(value: &[TokenTree]) -> Vec<NestedOption> {
    let [TokenTree::Group(group)] = value else { return Vec::new() };
    let parser = |input: ParseStream| -> syn::Result<Vec<NestedOption>> {
        let mut options = Vec::new();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            let value = up_to_comma(input)?.into_iter().skip(1).collect();
            options.push(NestedOption { name, value });
            parse_comma(input)?;
        }
        Ok(options)
    };
    parser.parse2(group.stream()).unwrap_or_default()
}

/// Reports K0025 for `printcolumn = ".spec.replicas"`. kube's derive also accepts the option as a string of JSON.
fn report_without_parentheses(option: &str, literal: &Literal, errors: &mut Errors) -> bool {
    let text = syn::parse2::<LitStr>(literal.to_token_stream());
    if text.is_ok_and(|text| text.value().trim_start().starts_with('{')) {
        return false;
    }
    let help = match option {
        "scale" => {
            "write `scale(spec_replicas_path = \".spec.replicas\", status_replicas_path = \".status.replicas\")`"
        }
        _ => "write `printcolumn(name = \"Ready\", type_ = \"integer\", json_path = \".status.ready\")`",
    };
    errors.push(literal, codes::FORM_OF_ANOTHER_OPTION, &format!("`{option}` takes its options in parentheses"), help);
    true
}

/// Returns the help for an unknown name: the nearest option, also of a name in the form of CRDs (`jsonPath`) or of
/// kubebuilder's markers (`JSONPath`).
fn help(name: &str, known: &[&str]) -> String {
    let near = [snake_case(name), name.to_ascii_lowercase()].into_iter().find_map(|name| closest_match(&name, known));
    near.map_or_else(|| format!("its options are {}", known.join(", ")), |near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use super::*;

    /// Returns the messages for the options in the parentheses.
    fn reported(option: &str, options: &str) -> String {
        reported_as_written(option, &format!("({options})"))
    }

    /// Returns the messages for the tokens after the name of an option.
    fn reported_as_written(option: &str, value: &str) -> String {
        let value: Vec<TokenTree> = value.parse::<TokenStream>().unwrap().into_iter().collect();
        let mut errors = Errors::default();
        let is_reported = report_unknown(option, &value, &mut errors);
        let text = errors.into_result(()).err().map(|error| error.to_compile_error().to_string()).unwrap_or_default();
        assert_eq!(is_reported, !text.is_empty(), "{text}");
        text
    }

    #[test]
    fn unknown_options_get_the_nearest_one() {
        for (written, expected) in [
            ("jsonPath = \".spec.a\"", "did you mean `json_path`?"),
            ("JSONPath = \".spec.a\"", "did you mean `json_path`?"),
            ("type = \"string\"", "did you mean `type_`?"),
            ("title = \"A\"", "its options are name, type_, json_path, description, format, priority"),
        ] {
            let text = reported("printcolumn", &format!("name = \"A\", {written}, priority = 1"));
            assert!(text.contains(expected), "{written}: {text}");
        }
        assert!(reported("scale", "specReplicasPath = \".spec.a\"").contains("did you mean `spec_replicas_path`?"));
    }

    #[test]
    fn known_options_and_other_forms_are_accepted() {
        for options in ["name = \"A\", type_ = \"string\", json_path = \".spec.a\"", "", "1 + 1"] {
            assert_eq!(reported("printcolumn", options), "");
        }
        assert_eq!(reported("annotation", "\"a\", \"b\""), "");
    }

    #[test]
    fn path_without_parentheses_gets_the_form() {
        for option in ["printcolumn", "scale"] {
            let text = reported_as_written(option, "= \".spec.x\"");
            assert!(text.contains(&format!("help: write `{option}(")) && text.contains(": K0025"), "{text}");
            assert_eq!(reported_as_written(option, "= r#\"{\"name\": \"A\"}\"#"), "");
            assert_eq!(reported_as_written(option, "= concat!(\"{\", \"}\")"), "");
        }
        assert_eq!(reported_as_written("selectable", "= \".spec.x\""), "");
    }
}
