//! A `#[derive(…)]` above `#[resource]` or `#[schema]`. rustc expands it first and removes it, so the attribute does
//! not see it and derives the same traits once more.
//!
//! rustc reports E0119 for each of them, at code that the user can't see. So the item is looked up in its file, where
//! the derive is still above the attribute.

use proc_macro2::Span;
use syn::{Attribute, DeriveInput, Ident, Item, punctuated::Punctuated};

use super::model::Derive;
use crate::{
    codes,
    diagnostics::Errors,
    source_file::{definitions_of, has_name, items_of},
};

/// Reports K0022 for traits that a derive above `attribute` has and the attribute adds. Returns them: they are not
/// derived again, so that the mistake is one error. kube's derive above `#[resource]` reports that it lacks `#[kube]`.
pub(super) fn check(input: &DeriveInput, attribute: &str, file: Option<&str>, errors: &mut Errors) -> Vec<Derive> {
    let Some(text) = file.filter(|text| may_be_above(text, &input.ident, attribute)) else { return Vec::new() };
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let items = items_of(&file);
    let mut found = items.iter().filter_map(|item| derives_above(item, &input.ident, attribute));
    // Two types of one name in two modules: only one of them may have the mistake.
    let (Some(names), None) = (found.next(), found.next()) else { return Vec::new() };
    let is_above = |derive: &Derive| names.iter().any(|name| name == derive.name());
    let twice: Vec<Derive> = Derive::SCHEMA_DERIVES.into_iter().filter(is_above).collect();
    if !twice.is_empty() {
        let names: Vec<_> = twice.iter().map(|derive| format!("`{}`", derive.name())).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let what = format!(
            "{} {verb} derived twice: `#[{attribute}]` does not see the `#[derive(…)]` above it",
            names.join(", ")
        );
        let help = format!("move `#[{attribute}]` above each `#[derive(…)]`");
        errors.push_at(Span::call_site(), codes::DUPLICATE, &what, &help);
    }
    twice
}

/// Returns `true` if a derive may be between the previous item and the attribute of this type. Most files need no
/// parser.
fn may_be_above(text: &str, name: &Ident, attribute: &str) -> bool {
    definitions_of(text, name).any(|start| {
        let head = &text[..start];
        let attributes = head.rfind("}\n").max(head.rfind(";\n")).map_or(head, |end| &head[end..]);
        let derive = attributes.find("derive(");
        derive.is_some_and(|derive| attributes[derive..].contains(attribute))
    })
}

/// Returns the traits of all derives above the attribute of a type. `None` for another item.
fn derives_above(item: &Item, name: &Ident, attribute: &str) -> Option<Vec<String>> {
    let (ident, attributes): (&Ident, &[Attribute]) = match item {
        Item::Struct(item) => (&item.ident, item.attrs.as_slice()),
        Item::Enum(item) => (&item.ident, item.attrs.as_slice()),
        _ => return None,
    };
    let at = attributes.iter().position(|candidate| has_name(candidate, &[attribute]))?;
    (ident == name).then(|| derived_traits(&attributes[..at]))
}

/// Returns the names of the traits that an item derives: deriving one twice would be an error in code that the user can't see.
pub(crate) fn derived_traits(attributes: &[Attribute]) -> Vec<String> {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let parse =
        |attribute: &Attribute| attribute.parse_args_with(Punctuated::<syn::Path, syn::Token![,]>::parse_terminated);
    let paths = derives.filter_map(|attribute| parse(attribute).ok()).flatten();
    paths.filter_map(|path| path.segments.last().map(|segment| segment.ident.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message about the struct `Web` of this file.
    fn reported(file: &str) -> String {
        let input: DeriveInput = syn::parse_str("struct Web { port: u16 }").unwrap();
        let mut errors = Errors::default();
        let twice = check(&input, "schema", Some(file), &mut errors);
        let text = errors.into_result(()).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(twice.is_empty(), text.is_empty(), "{text}");
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn derives_above_the_attribute_are_reported() {
        for (attributes, expected) in [
            ("#[derive(Clone)]\n#[schema]", "`Clone` is derived twice"),
            ("#[derive(Clone)]\n#[derive(Debug, Default)]\n#[kctl::schema]", "`Clone`, `Debug` are derived twice"),
            ("#[derive(serde::Serialize, Eq)]\n/// Docs.\n#[schema]", "`Serialize` is derived twice"),
            ("#[derive(Default, Eq)]\n#[schema]", ""),
            ("#[schema]\n#[derive(Clone)]", ""),
            ("/// Not `derive(Clone)`, but schema.\n#[schema]", ""),
        ] {
            let found = reported(&format!("use kctl::prelude::*;\n{attributes}\npub struct Web {{ port: u16 }}"));
            assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{attributes}: {found}");
        }
    }

    #[test]
    fn types_of_one_name_are_not_judged() {
        let file = "#[derive(Clone)]\n#[schema]\nstruct Web { port: u16 }";
        assert_ne!(reported(file), "");
        assert_eq!(reported(&format!("{file}\nmod other {{ #[schema] struct Web {{ port: u16 }} }}")), "");
    }
}
