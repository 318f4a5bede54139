//! Names of fields in JSON: two fields of one name would be one field for readers, and lose a value for writers.
//!
//! The names are the same as serde's with `rename_all = "camelCase"`, which the attribute adds. With another
//! `rename_all`, or with options of serde that this file does not read, nothing is reported.

use std::collections::BTreeMap;

use proc_macro2::{Ident, Literal, TokenTree};
use syn::{Attribute, Data, DeriveInput, Field, Fields, LitStr, Meta, ext::IdentExt, meta::ParseNestedMeta};

use super::meta_option::MetaOption;
use crate::{codes, diagnostics::Errors};

/// Options of serde that leave a field without a name in JSON, or only in one direction.
const WITHOUT_NAME: [&str; 4] = ["skip", "skip_serializing", "skip_deserializing", "flatten"];

/// Reports K0022 for a field with the JSON name of an earlier one of the same struct or variant. It gets another name,
/// so that the derives add no warning.
pub(super) fn check(item: &mut DeriveInput, errors: &mut Errors) {
    match &mut item.data {
        Data::Struct(data) => check_fields(&mut data.fields, errors),
        Data::Enum(data) => {
            for variant in data.variants.iter_mut().filter(|variant| !is_renamed(&variant.attrs)) {
                check_fields(&mut variant.fields, errors);
            }
        }
        Data::Union(_) => {}
    }
}

/// Returns `true` for a variant with `rename_all`: its fields have other names than those that the attribute gives.
fn is_renamed(variant: &[Attribute]) -> bool {
    MetaOption::collect(variant, "serde").iter().any(|option| option.name == "rename_all")
}

fn check_fields(fields: &mut Fields, errors: &mut Errors) {
    let mut seen: BTreeMap<String, Ident> = BTreeMap::new();
    for field in fields {
        // Fields under `cfg` may exclude each other.
        let is_conditional = field.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
        let Some(ident) = field.ident.clone().filter(|_| !is_conditional) else { continue };
        let Some(name) = json_name(&ident, &field.attrs) else { continue };
        if let Some(first) = seen.get(&name) {
            let what = format!("`{ident}` has the JSON name of `{first}`: `{name}`");
            errors.push(&ident, codes::DUPLICATE, &what, "rename one of the fields");
            rename(&mut field.attrs, &format!("{name}Twice"));
        } else {
            seen.insert(name, ident);
        }
    }
}

/// Returns the names of all fields that have one in JSON. Fields under `cfg` are left out.
pub(super) fn names(fields: &Fields) -> Vec<String> {
    let is_conditional = |field: &&Field| field.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
    let named = fields.iter().filter(|field| !is_conditional(field));
    named.filter_map(|field| json_name(field.ident.as_ref()?, &field.attrs)).collect()
}

/// Gives a field another name in JSON: in the place of its `rename`, or by one more attribute.
fn rename(attributes: &mut Vec<Attribute>, name: &str) {
    let literal = TokenTree::from(Literal::string(name));
    for attribute in attributes.iter_mut().filter(|attribute| attribute.path().is_ident("serde")) {
        let Meta::List(list) = &mut attribute.meta else { continue };
        let mut tokens: Vec<TokenTree> = list.tokens.clone().into_iter().collect();
        let is_rename = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "rename");
        if let Some(value) = tokens.iter().position(is_rename).and_then(|at| tokens.get_mut(at + 2)) {
            *value = literal;
            list.tokens = tokens.into_iter().collect();
            return;
        }
    }
    attributes.push(syn::parse_quote!(#[serde(rename = #literal)]));
}

/// Returns the name of a field in JSON. `None` for a field without one, and for options that can't be read.
fn json_name(ident: &Ident, attributes: &[Attribute]) -> Option<String> {
    let (mut name, mut is_named) = (camel_case(&ident.unraw().to_string()), true);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let read = attribute.parse_nested_meta(|meta: ParseNestedMeta<'_>| {
            if meta.path.is_ident("rename") {
                // `rename(serialize = …, deserialize = …)` is an error here, which `two_names` reports.
                name = meta.value()?.parse::<LitStr>()?.value();
            } else if WITHOUT_NAME.iter().any(|option| meta.path.is_ident(option)) {
                is_named = false;
            } else if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
        is_named &= read.is_ok();
    }
    is_named.then_some(name)
}

/// Returns the name that serde gives a field with `camelCase`: `foo_bar` and `foo__bar` are `fooBar`.
fn camel_case(field: &str) -> String {
    let mut name = String::new();
    for word in field.split('_') {
        let mut letters = word.chars();
        let begins = name.is_empty();
        name.extend(letters.next().map(|c| if begins { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }));
        name.push_str(letters.as_str());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_one_json_name_are_reported() {
        for (item, expected) in [
            ("struct A { foo_bar: i32, foo_baz: i32 }", 0),
            ("struct A { foo_bar: i32, foo__bar: i32 }", 1),
            ("struct A { foo_bar: i32, #[serde(rename = \"fooBar\")] other: i32 }", 1),
            ("struct A { #[serde(default, rename = \"r#type\")] other: i32, r#type: i32 }", 0),
            ("struct A { #[serde(default = \"f\", rename = \"type\")] other: i32, r#type: i32 }", 1),
            ("struct A { foo_bar: i32, #[serde(rename = \"foo_bar\")] other: i32 }", 0),
            ("struct A { foo_bar: i32, #[serde(skip, rename = \"fooBar\")] other: i32 }", 0),
            ("struct A { foo_bar: i32, #[serde(rename(serialize = \"fooBar\"))] other: i32 }", 0),
            ("struct A { #[cfg(unix)] foo_bar: i32, #[cfg(not(unix))] foo__bar: i32 }", 0),
            ("enum A { One { foo_bar: i32 }, Other { foo_bar: i32, foo__bar: i32 } }", 1),
            ("enum A { #[serde(rename_all = \"snake_case\")] One { foo_bar: i32, foo__bar: i32 } }", 0),
            ("enum A { #[serde(rename = \"1\")] One { foo_bar: i32, foo__bar: i32 } }", 1),
            ("struct A(i32, i32);", 0),
        ] {
            let (mut item, mut errors) = (syn::parse_str(item).unwrap(), Errors::default());
            check(&mut item, &mut errors);
            let (text, n_errors) = (quote::quote!(#item).to_string(), errors.len());
            assert_eq!(n_errors, expected, "{text}");
            check(&mut item, &mut errors);
            assert_eq!(errors.len(), n_errors, "the names are different now: {text}");
        }
    }
}
