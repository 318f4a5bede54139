//! `#[view(of = Kind)]`: a struct with some fields of a kind: parse → check → emit, and recover when there are errors.

mod check;
mod emit;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Fields, Item};

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    match check::check(options, item) {
        Ok(model) => emit::emit(&model),
        Err(errors) => {
            let (item, errors) = (without_paths(item), errors.to_compile_error());
            quote!(#[allow(dead_code, reason = "its attribute has mistakes")] #item #errors)
        }
    }
}

/// The user's item, without the attributes of its fields, which nobody else knows.
fn without_paths(item: &TokenStream) -> TokenStream {
    let Ok(Item::Struct(mut item)) = syn::parse2(item.clone()) else { return item.clone() };
    if let Fields::Named(fields) = &mut item.fields {
        fields.named.iter_mut().for_each(|field| field.attrs.retain(|attr| !attr.path().is_ident("view")));
    }
    item.into_token_stream()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use syn::Meta;

    use super::*;

    fn check(options: &str, item: &str, expected: &str) {
        let text = expand(options.parse().unwrap(), &item.parse().unwrap()).to_string();
        assert!(text.contains(expected), "{expected} is not in {text}");
        assert!(!text.contains("# [view"), "{text}");
    }

    #[test]
    fn mistakes_of_options_and_fields_say_what_to_write() {
        let cases = [
            ("", "struct A { #[view(spec.a)] a: i32 }", "write `#[view(of = Kind)]`"),
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
            ("of = Pod", "enum A {}", "goes on a struct"),
        ];
        for (options, item, expected) in cases {
            check(options, item, expected);
        }
    }

    /// `tests/expand/view.rs` becomes `view.expanded.rs`; `TRYBUILD=overwrite` writes it anew.
    #[test]
    fn struct_is_read_from_the_paths_of_its_fields() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/expand");
        let file = syn::parse_file(&fs::read_to_string(folder.join("view.rs")).unwrap()).unwrap();
        let Some(Item::Struct(mut item)) = file.items.into_iter().find(|item| matches!(item, Item::Struct(_))) else {
            panic!("a struct")
        };
        let Meta::List(attribute) = item.attrs.remove(0).meta else { panic!("an attribute with options") };
        let expanded = expand(attribute.tokens, &item.into_token_stream());
        let text = prettyplease::unparse(&syn::parse2(expanded).unwrap());
        let (golden, text) = (folder.join("view.expanded.rs"), format!("//! What `view.rs` expands to.\n{text}"));
        if std::env::var("TRYBUILD").is_ok_and(|mode| mode == "overwrite") {
            fs::write(&golden, &text).unwrap();
        }
        let known = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(text, known, "view.expanded.rs is not what it was: read the difference");
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
}
