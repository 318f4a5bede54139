//! `#[view(of = Kind)]`: a struct with some fields of a kind. Check → emit, and recover when there are errors.
//!
//! A cache of views holds these fields instead of whole objects. Each field names its place in the kind by a path,
//! which the compiler checks against the Rust type of the kind.

mod check;
mod emit;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Fields, Item};

/// Expands `#[view(of = Kind)]` on a struct. After a mistake the struct is emitted without its paths and without
/// `impl View`. A use as a view would be a second error, which rustc reports with K0071.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    match check::check(options, item) {
        Ok(model) => emit::emit(&model),
        Err(errors) => {
            let (item, errors) = (without_paths(item), errors.to_compile_error());
            quote!(#[allow(dead_code, reason = "its attribute has mistakes")] #item #errors)
        }
    }
}

/// Returns the user's item without the `#[view(…)]` of its fields, which rustc would not know.
fn without_paths(item: &TokenStream) -> TokenStream {
    let Ok(Item::Struct(mut item)) = syn::parse2(item.clone()) else { return item.clone() };
    if let Fields::Named(fields) = &mut item.fields {
        fields.named.iter_mut().for_each(|field| field.attrs.retain(|attr| !attr.path().is_ident("view")));
    }
    item.into_token_stream()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::Expander;

    fn check(options: &str, item: &str, expected: &str) {
        let text = expand(options.parse().unwrap(), &item.parse().unwrap()).to_string();
        assert!(text.contains(expected), "{expected} is not in {text}");
        assert!(!text.contains("# [view"), "{text}");
    }

    #[test]
    fn wrong_options_and_fields_get_help() {
        let cases = [
            ("", "struct A { #[view(spec.a)] a: i32 }", "write `#[view(of = Kind)]`"),
            (
                "of = Pod, crate = [u8]",
                "struct A { #[view(spec.a)] a: i32 }",
                "`crate` must be a path\\nhelp: write `crate = path`\\n",
            ),
            ("off = Pod", "struct A { #[view(spec.a)] a: i32 }", "write `#[view(of = Kind)]`"),
            ("of = Pod", "struct A { a: i32 }", "write `#[view(spec.a)]` above it"),
            ("of = Pod", "struct A { #[view(spec.a)] #[view(spec.b)] a: i32 }", "is at one place"),
            ("of = Pod", "struct A { #[view(\"spec.a\")] a: i32 }", "write the fields with points between them"),
            ("of = Pod", "struct A { #[view(spec.a())] a: i32 }", "write the fields with points between them"),
            ("of = Pod", "struct A { #[view] a: i32 }", "write the fields with points between them"),
            ("of = Pod", "struct A { #[view(spec.a[0])] a: i32 }", "brackets contain the key of a map"),
            ("of = Pod", "struct A { #[view(metadata)] metadata: i32 }", "a view always has `metadata`"),
            ("of = Pod", "struct A<T> { #[view(spec.a)] a: T }", "can't be generic"),
            ("of = Pod", "struct A(i32);", "has named fields"),
            ("of = Pod", "struct A;", "has named fields"),
            ("of = Pod", "enum A {}", "must be applied to a struct"),
        ];
        for (options, item, expected) in cases {
            check(options, item, expected);
        }
    }

    #[test]
    fn view_expands_as_recorded() {
        Expander { attribute: "view", expand }.check("view");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let item = quote!(
            struct A {
                a: i32,
                #[view(3)]
                b: i32,
            }
        );
        assert_eq!(expand(quote!(), &item).to_string().matches("compile_error").count(), 3);
    }

    #[test]
    fn cfg_raw_names_and_where_clauses_are_kept() {
        let item = "struct A where String: Clone { #[cfg(test)] #[view(spec.r#type)] r#type: i32 }";
        let text = expand(quote!(of = Site), &item.parse().unwrap()).to_string();
        assert_eq!(text.matches("# [cfg (test)]").count(), 3, "{text}");
        assert!(text.contains("struct A where String : Clone {"), "{text}");
        assert!(text.contains("field (\"type\" , | __it | & __it . r#type)"), "{text}");
    }
}
