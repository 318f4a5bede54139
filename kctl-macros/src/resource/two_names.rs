//! Fields and variants that serde writes by another name than it reads.
//!
//! The CRD has the name that is read, so an API server drops the field that the program writes, or rejects the variant.

use proc_macro2::{Ident, TokenStream};
use syn::{Attribute, Expr, LitStr, meta::ParseNestedMeta, token::Paren};

use super::meta_option::MetaOption;
use crate::{codes, diagnostics::Errors};

/// Options of serde that leave a field without a name in JSON, or only in one direction.
const WITHOUT_TWO_NAMES: [&str; 4] = ["skip", "skip_serializing", "skip_deserializing", "flatten"];

/// The names in `rename(serialize = "…", deserialize = "…")`.
#[derive(Default)]
struct Names {
    /// The word `rename`, for errors.
    rename: Option<Ident>,
    written: Option<String>,
    read: Option<String>,
}

/// Reports K0087 for a field or a variant that `rename(serialize = "…", deserialize = "…")` gives two names. `name` is
/// `None` for a field of a tuple struct.
///
/// A name for schemars, and options under `cfg_attr`, may change which name the CRD has, so they are left alone.
pub(super) fn check(name: Option<&Ident>, attributes: &[Attribute], errors: &mut Errors) {
    let has = |attribute: &str, names: &[&str]| {
        MetaOption::collect(attributes, attribute).iter().any(|option| names.contains(&option.name.as_str()))
    };
    let is_conditional = attributes.iter().any(|attribute| attribute.path().is_ident("cfg_attr"));
    let (Some(name), false) = (name, is_conditional) else { return };
    let Names { rename: Some(rename), written, read } = collect_names(attributes) else { return };
    if has("serde", &WITHOUT_TWO_NAMES) || has("schemars", &["rename"]) {
        return;
    }
    let what = match (&written, &read) {
        (Some(written), Some(read)) if written != read => {
            format!("`{name}` is written as `{written}` and read as `{read}`, and the CRD has only `{read}`")
        }
        (Some(written), None) => {
            format!("`{name}` is written as `{written}` and read by another name, and the CRD has only that name")
        }
        (None, Some(read)) => {
            format!("`{name}` is read as `{read}` and written by another name, and the CRD has only `{read}`")
        }
        _ => return,
    };
    let help = format!("write `rename = \"{}\"`", read.or(written).unwrap_or_default());
    errors.push(rename, codes::CONTRADICTING_MARKERS, &what, &help);
}

/// Returns the names for both directions. It returns none if an attribute can't be read, which the derive reports.
fn collect_names(attributes: &[Attribute]) -> Names {
    let mut names = Names::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let parsed = attribute.parse_nested_meta(|meta: ParseNestedMeta<'_>| {
            if meta.path.is_ident("rename") && meta.input.peek(Paren) {
                names.rename = meta.path.get_ident().cloned();
                return meta.parse_nested_meta(|direction: ParseNestedMeta<'_>| {
                    let name = direction.value()?.parse::<LitStr>()?.value();
                    if direction.path.is_ident("serialize") {
                        names.written = Some(name);
                    } else {
                        names.read = Some(name);
                    }
                    Ok(())
                });
            }
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<Expr>()?;
            } else if meta.input.peek(Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<TokenStream>()?;
            }
            Ok(())
        });
        if parsed.is_err() {
            return Names::default();
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::test_field;

    #[test]
    fn field_with_two_names_is_reported() {
        for (attributes, expected) in [
            (
                "#[serde(rename(serialize = \"a\", deserialize = \"b\"))]",
                "is written as `a` and read as `b`, and the CRD has only `b`\nhelp: write `rename = \"b\"`",
            ),
            ("#[serde(rename(serialize = \"a\"), rename(deserialize = \"b\"))]", "has only `b`"),
            ("#[serde(default = \"f\", rename(serialize = \"a\"))]", "written as `a` and read by another name"),
            ("#[serde(rename(deserialize = \"b\"), alias = \"a\")]", "read as `b` and written by another name"),
            ("#[serde(rename(serialize = \"a\", deserialize = \"a\"))]", ""),
            ("#[serde(rename = \"a\")]", ""),
            ("#[serde(default, skip_serializing, rename(deserialize = \"b\"))]", ""),
            ("#[serde(rename(serialize = \"a\", deserialize = \"b\"))] #[schemars(rename = \"a\")]", ""),
            ("#[cfg_attr(unix, serde(skip))] #[serde(rename(serialize = \"a\"))]", ""),
        ] {
            let source = format!("struct A {{ {attributes} c: i32 }}");
            let found = test_field::collect_messages(&source, |field, _, _, errors| {
                check(field.ident.as_ref(), &field.attrs, errors);
            });
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{attributes}: {found}");
        }
    }
}
