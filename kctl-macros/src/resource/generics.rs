//! Parameters of a kind or of a part: a kind is one type with one CRD, and an object owns its fields.
//!
//! | item | parameters | result |
//! |---|---|---|
//! | `#[resource]` | types, constants | K0004 |
//! | `#[resource]`, `#[schema]` | lifetimes | K0004, unless K0118 has reported a borrowed field |
//! | `#[schema]` | types, constants | accepted: `Page<T>` is a part wherever its `T` is one |
//!
//! After a mistake, the item has no parameters any more. rustc would report each trait that a borrowed type lacks.

use proc_macro2::{Group, Ident, Literal, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Data, DeriveInput, Field, Generics};

use crate::{codes, diagnostics::Errors};

/// Reports K0004 for a kind with parameters that are types or constants. Each of them is replaced by a type.
pub(super) fn check_kind(item: &mut DeriveInput, errors: &mut Errors) {
    if item.generics.params.len() == item.generics.lifetimes().count() {
        return;
    }
    let (what, help) = ("a kind can't be generic", "name the types");
    errors.push(&item.generics, codes::GENERIC_CONTROLLER_OR_KIND, what, help);
    remove(item);
}

/// Reports K0004 for lifetimes, and removes them. If K0118 has reported a field that borrows, the lifetimes are the same
/// mistake.
pub(super) fn check_lifetimes(item: &mut DeriveInput, reported: BorrowedFields, errors: &mut Errors) {
    if item.generics.lifetimes().next().is_none() {
        return;
    }
    if reported == BorrowedFields::Unreported {
        let what = format!("`{}` has a lifetime: an object owns its fields", item.ident);
        let help = "write owned types, such as `String` for `Cow<'_, str>`, and remove the lifetime";
        errors.push(&item.generics, codes::GENERIC_CONTROLLER_OR_KIND, &what, help);
    }
    remove(item);
}

/// The result of the check of fields, K0118.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BorrowedFields {
    Reported,
    Unreported,
}

/// Removes the parameters, and replaces them in the types of fields.
fn remove(item: &mut DeriveInput) {
    let generics = std::mem::take(&mut item.generics);
    let replace_in = |field: &mut Field| {
        if let Ok(ty) = syn::parse2(replace(field.ty.to_token_stream(), &generics)) {
            field.ty = ty;
        }
    };
    match &mut item.data {
        Data::Struct(data) => data.fields.iter_mut().for_each(replace_in),
        Data::Enum(data) => data.variants.iter_mut().flat_map(|variant| &mut variant.fields).for_each(replace_in),
        Data::Union(_) => {}
    }
}

/// Replaces lifetimes by `'static`, types by `()` and constants by 1: any of them would do, because the build fails.
fn replace(tokens: TokenStream, generics: &Generics) -> TokenStream {
    let mut replaced: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let is_lifetime = matches!(replaced.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '\'');
        replaced.push(match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replace(group.stream(), generics));
                inner.set_span(group.span());
                inner.into()
            }
            TokenTree::Ident(name) if is_lifetime => {
                let is_parameter = generics.lifetimes().any(|of| of.lifetime.ident == name);
                if is_parameter { Ident::new("static", name.span()).into() } else { name.into() }
            }
            TokenTree::Ident(name) if generics.type_params().any(|of| of.ident == name) => {
                Group::new(proc_macro2::Delimiter::Parenthesis, TokenStream::new()).into()
            }
            TokenTree::Ident(name) if generics.const_params().any(|of| of.ident == name) => {
                Literal::usize_unsuffixed(1).into()
            }
            other => other,
        });
    }
    replaced.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message and the item after one of the checks.
    fn after(source: &str, check: impl FnOnce(&mut DeriveInput, &mut Errors)) -> (String, String) {
        let (mut item, mut errors) = (syn::parse_str(source).unwrap(), Errors::default());
        check(&mut item, &mut errors);
        let text = errors.into_result(()).err().map(|error| error.to_string()).unwrap_or_default();
        (text.lines().next().unwrap_or_default().to_owned(), item.to_token_stream().to_string().replace(' ', ""))
    }

    #[test]
    fn parameters_of_a_kind_are_replaced() {
        for (source, what, expected) in [
            ("struct A<T: Clone> { a: Vec<T> }", "a kind can't be generic", "structA{a:Vec<()>}"),
            ("struct A<'a, const N: usize> { a: &'a [u8; N] }", "a kind can't be generic", "structA{a:&'static[u8;1]}"),
            ("enum A<T> where T: Eq { One(T), Two }", "a kind can't be generic", "enumA{One(()),Two}"),
            ("struct A<'a> { a: &'a str }", "", "structA<'a>{a:&'astr}"),
            ("struct A { a: i32 }", "", "structA{a:i32}"),
        ] {
            assert_eq!(after(source, check_kind), (what.to_owned(), expected.to_owned()), "{source}");
        }
    }

    #[test]
    fn lifetimes_are_reported_once() {
        let source = "struct A<'a> { a: Cow<'a, str>, b: for<'b> fn(&'b str) }";
        let expected = "structA{a:Cow<'static,str>,b:for<'b>fn(&'bstr)}";
        for (reported, what) in [
            (BorrowedFields::Unreported, "`A` has a lifetime: an object owns its fields"),
            (BorrowedFields::Reported, ""),
        ] {
            let found = after(source, |item, errors| check_lifetimes(item, reported, errors));
            assert_eq!(found, (what.to_owned(), expected.to_owned()));
        }
        let generic =
            after("struct A<T> { a: T }", |item, errors| check_lifetimes(item, BorrowedFields::Unreported, errors));
        assert_eq!(generic, (String::new(), "structA<T>{a:T}".to_owned()));
    }
}
