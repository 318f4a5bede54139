//! Values of options of `#[resource(…)]` that take one of a few words: `served = false`, `schema = "manual"`.
//!
//! kube's derive says only which kind of expression it did not expect.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::LitStr;

use crate::{
    codes,
    diagnostics::{Errors, closest_match},
};

/// Options that are `true` or `false`. Without a value they are `true`.
const SWITCHES: [&str; 5] = ["cel", "namespaced", "no_spec", "served", "storage"];
/// The values of `schema`, as in kube's derive.
const SCHEMAS: [&str; 3] = ["derived", "disabled", "manual"];
/// Words that people write for `false` and for `true`.
const WORDS: [(&str, &str); 10] = [
    ("0", "false"),
    ("1", "true"),
    ("disabled", "false"),
    ("enabled", "true"),
    ("false", "false"),
    ("no", "false"),
    ("off", "false"),
    ("on", "true"),
    ("true", "true"),
    ("yes", "true"),
];

/// Reports K0083 or K0044 for a wrong value. Returns `true` after an error.
pub(super) fn report_invalid(name: &Ident, value: &[TokenTree], errors: &mut Errors) -> bool {
    match name.to_string().as_str() {
        "deprecated" => report_deprecated(value, errors),
        "schema" => report_schema(value, errors),
        text if SWITCHES.contains(&text) => switch(name, value, errors).is_none(),
        _ => false,
    }
}

/// Returns the value of an option that is `true` or `false`. `None` after K0083 for any other value.
pub(super) fn switch(name: &Ident, value: &[TokenTree], errors: &mut Errors) -> Option<bool> {
    let text = value.get(1).map(ToString::to_string).unwrap_or_default();
    match (value.len(), text.trim_matches('"')) {
        (0, _) | (2, "true") => return Some(true),
        (2, "false") => return Some(false),
        _ => {}
    }
    let written: String = value.iter().skip(1).map(ToString::to_string).collect();
    let word = written.trim_matches('"').to_ascii_lowercase();
    let help = match WORDS.iter().find(|(other, _)| *other == word) {
        Some((_, meant)) => format!("write `{name} = {meant}`"),
        None => format!("write `{name} = true` or `{name} = false`"),
    };
    let at: TokenStream = value.iter().skip(1).cloned().collect();
    let at = if at.is_empty() { name.to_token_stream() } else { at };
    let what = if written.is_empty() {
        format!("`{name}` is `true` or `false`")
    } else {
        format!("`{name}` is `true` or `false`, not `{written}`")
    };
    errors.push(at, codes::UNKNOWN_WORD, &what, &help);
    None
}

/// Reports K0044 for a word or a number in the place of the warning: `deprecated = true`.
fn report_deprecated(value: &[TokenTree], errors: &mut Errors) -> bool {
    let [_, written] = value else { return false };
    let is_wrong = string(written).is_none();
    if is_wrong {
        let help = "write `deprecated`, or `deprecated = \"use v1\"` with a warning for clients";
        errors.push(written, codes::NOT_A_STRING, "`deprecated` takes no value or a string", help);
    }
    is_wrong
}

/// Reports K0044 for a word without quotes, and K0083 for an unknown one.
fn report_schema(value: &[TokenTree], errors: &mut Errors) -> bool {
    let [_, written] = value else { return false };
    let text = string(written);
    if text.as_ref().is_some_and(|text| SCHEMAS.contains(&text.as_str())) {
        return false;
    }
    let word = text.clone().unwrap_or_else(|| written.to_string());
    let help = match closest_match(&word.to_ascii_lowercase(), &SCHEMAS) {
        Some(near) => format!("write `schema = \"{near}\"`"),
        None => format!("write one of {}", SCHEMAS.map(|word| format!("`schema = \"{word}\"`")).join(", ")),
    };
    match text {
        None => errors.push(written, codes::NOT_A_STRING, "`schema` takes a string", &help),
        Some(_) => errors.push(written, codes::UNKNOWN_WORD, &format!("`{word}` is not a source of schemas"), &help),
    }
    true
}

/// Returns the contents of a string literal.
fn string(token: &TokenTree) -> Option<String> {
    syn::parse2::<LitStr>(token.to_token_stream()).ok().map(|text| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message about an option as it is written in the attribute.
    fn reported(option: &str) -> String {
        let mut tokens = option.parse::<TokenStream>().unwrap().into_iter();
        let Some(TokenTree::Ident(name)) = tokens.next() else { panic!("an option has a name") };
        let value: Vec<TokenTree> = tokens.collect();
        let mut errors = Errors::default();
        let is_reported = report_invalid(&name, &value, &mut errors);
        let text = errors.into_result(()).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(is_reported, !text.is_empty(), "{text}");
        text.replace('\n', " / ")
    }

    #[test]
    fn other_values_get_the_allowed_ones() {
        for (option, expected) in [
            ("served = no", "`served` is `true` or `false`, not `no` / help: write `served = false`"),
            ("storage = \"off\"", "not `\"off\"` / help: write `storage = false`"),
            ("namespaced = 1", "not `1` / help: write `namespaced = true`"),
            ("served = maybe", "not `maybe` / help: write `served = true` or `served = false`"),
            ("served = -1", "not `-1` / help: write `served = true` or `served = false`"),
            ("served =", "`served` is `true` or `false` / help: write `served = true` or `served = false`"),
            (
                "deprecated = true",
                "takes no value or a string / help: write `deprecated`, or `deprecated = \"use v1\"`",
            ),
            ("schema = manual", "`schema` takes a string / help: write `schema = \"manual\"`"),
            ("schema = \"Manual\"", "is not a source of schemas / help: write `schema = \"manual\"`"),
            ("schema = \"none\"", "help: write one of `schema = \"derived\"`, `schema = \"disabled\"`"),
        ] {
            let found = reported(option);
            assert!(found.contains(expected), "{option}: {found}");
        }
    }

    #[test]
    fn allowed_values_are_accepted() {
        for option in [
            "served",
            "served = false",
            "storage = \"true\"",
            "namespaced",
            "deprecated",
            "deprecated = \"use v1\"",
            "schema = \"disabled\"",
            "plural = no",
        ] {
            assert_eq!(reported(option), "", "{option}");
        }
    }
}
