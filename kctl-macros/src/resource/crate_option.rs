//! The option `crate = path` of `#[resource]` and `#[schema]`.
//!
//! It is taken out before the others are read: kube's derive has no such option, and receives the path in `crates(…)`.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Ident, Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use crate::{codes, crate_path::CratePath, diagnostics::Errors};

/// Returns the path of kctl and the other options. Reports K0010 for a value that is not a path, and K0022 for a second
/// `crate`.
pub(super) fn take(options: &TokenStream, errors: &mut Errors) -> (CratePath, TokenStream) {
    let (mut krate, mut rest, mut option) = (None, TokenStream::new(), Vec::new());
    for token in options.clone() {
        let is_comma = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
        option.push(token);
        if is_comma {
            end(std::mem::take(&mut option), &mut krate, &mut rest, errors);
        }
    }
    end(option, &mut krate, &mut rest, errors);
    (krate.unwrap_or_default(), rest)
}

/// Sorts one option with its comma: into the path of kctl, or among the other options.
fn end(option: Vec<TokenTree>, krate: &mut Option<CratePath>, rest: &mut TokenStream, errors: &mut Errors) {
    let Some(TokenTree::Ident(name)) = option.first().filter(|name| name.to_string() == "crate").cloned() else {
        rest.extend(option);
        return;
    };
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    let option: TokenStream = option.into_iter().filter(|token| !is_comma(token)).collect();
    let path = |input: ParseStream| -> syn::Result<Path> {
        input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        input.parse()
    };
    if krate.is_some() {
        errors.push_duplicate(&name);
        return;
    }
    *krate = Some(path.parse2(option.clone()).map_or_else(
        |_| {
            let value: TokenStream = option.into_iter().skip(2).collect();
            let at = if value.is_empty() { name.to_token_stream() } else { value };
            errors.push(at, codes::MISSING_VALUE, "`crate` must be a path", "write `crate = path`");
            CratePath::default()
        },
        CratePath::from,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path, the other options and the messages.
    fn taken(options: &str) -> (String, String, String) {
        let mut errors = Errors::default();
        let (krate, rest) = take(&options.parse().unwrap(), &mut errors);
        let text = errors.into_result(()).err().map(|error| error.to_string()).unwrap_or_default();
        let without_spaces = |tokens: TokenStream| tokens.to_string().replace(' ', "");
        (without_spaces(krate.to_token_stream()), without_spaces(rest), text.replace('\n', " / "))
    }

    #[test]
    fn path_is_taken_out_of_the_options() {
        for (options, krate, rest) in [
            ("kind = \"Web\", crate = self::other, scale(a = \"b\")", "self::other", "kind=\"Web\",scale(a=\"b\")"),
            ("crate = ::other::kctl", "::other::kctl", ""),
            ("namespaced, crate = crate::kctl,", "crate::kctl", "namespaced,"),
            ("namespaced", "::kctl", "namespaced"),
        ] {
            assert_eq!(taken(options), (krate.to_owned(), rest.to_owned(), String::new()), "{options}");
        }
    }

    #[test]
    fn wrong_and_second_paths_are_reported() {
        for (options, message) in [
            ("crate = \"kctl\", namespaced", "`crate` must be a path / help: write `crate = path`"),
            ("crate, namespaced", "`crate` must be a path / "),
            ("crate =", "`crate` must be a path / "),
            ("crate = a, crate = b", "`crate` is given twice / "),
        ] {
            let (_, _, text) = taken(options);
            assert!(text.starts_with(message), "{options}: {text}");
        }
    }
}
