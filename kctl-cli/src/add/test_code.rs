//! Recognizes code that only tests compile.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Meta};

/// Returns `true` for code behind `#[cfg(test)]`, where an app is not the one of the program.
///
/// Code behind `#[cfg(not(test))]` belongs to the program.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(cfg) => cfg.path.is_ident("cfg") && names_test(cfg.tokens.clone()),
        _ => false,
    })
}

/// Returns `true` if a predicate of `cfg` names `test`, or a feature such as `testing`, outside of `not(…)`.
fn names_test(predicate: TokenStream) -> bool {
    let mut follows_not = false;
    for token in predicate {
        let is_found = match &token {
            TokenTree::Group(group) => !follows_not && names_test(group.stream()),
            other => other.to_string().contains("test"),
        };
        if is_found {
            return true;
        }
        follows_not = matches!(&token, TokenTree::Ident(name) if name == "not");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negated_test_is_code_of_the_program() {
        for (attribute, expected) in [
            ("cfg(test)", true),
            ("cfg(any(test, feature = \"a\"))", true),
            ("cfg(feature = \"testing\")", true),
            ("cfg(all(test, not(windows)))", true),
            ("cfg(not(test))", false),
            ("cfg(all(unix, not(any(test, windows))))", false),
            ("doc = \"a test\"", false),
        ] {
            let item: syn::ItemFn = syn::parse_str(&format!("#[{attribute}] fn f() {{}}")).unwrap();
            assert_eq!(is_test(&item.attrs), expected, "{attribute}");
        }
    }
}
