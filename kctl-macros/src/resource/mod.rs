//! `#[resource(…)]` and `#[schema]`: check → model → emit.
//!
//! Both attributes put the derives of serde and schemars on the user's type, and for a kind kube's. All paths lead into
//! kctl: the user's crate depends on none of the three. `#[kctl(…)]` on the type, its fields and its variants adds to
//! the schema what neither serde nor schemars can express: bounds, CEL rules, list types.
//!
//! | file | task | codes |
//! |---|---|---|
//! | `check` | the user's tokens → `Model`; calls the files below | K0029, K0121 |
//! | `kube_options` | options of kube's derive | K0024, K0028, K0043–K0045, K0117 |
//! | `nested_options`, `nested_values` | the parentheses of `printcolumn(…)` and `scale(…)` | K0018, K0025, K0044, K0045, K0074, K0083 |
//! | `option_values` | options that take `true`, `false` or one of a few words | K0044, K0083 |
//! | `crate_option` | `crate = path` | K0010, K0022 |
//! | `crd_options` | options of the CRD that kube's derive does not have | K0018, K0022, K0045, K0089, K0106 |
//! | `markers` | `#[kctl(…)]`, and the options of `#[resource]` that are markers of the object as a whole | K0022, K0024, K0080–K0086 |
//! | `marker` | a marker, and the markers of one place, as data | |
//! | `bounds` | markers of one place that contradict each other | K0087, K0088 |
//! | `derive_order` | a derive above the attribute, which does not see it | K0022 |
//! | `flattened` | the parts of a struct with `#[serde(flatten)]`, for a check of the schema | |
//! | `generics` | parameters of a kind or a part | K0004 |
//! | `inner_markers` | markers of items or values that the field does not have | K0028 |
//! | `skip_serializing_if` | a field that is left out of the JSON and required by the CRD | K0087 |
//! | `none_policy` | `None` of an `Option` field | |
//! | `json_names` | two fields with one name in JSON | K0022 |
//! | `missing_schema` | a field's type in the same file lacks `#[schema]` | K0090 |
//! | `two_names` | a field or a variant that serde writes by another name than it reads | K0087 |
//! | `unreadable` | a marker lets the CRD accept what the field's type can't read | K0087 |
//! | `unstorable` | a field's type can't be stored, such as `Instant` | K0118 |
//! | `emit` | `Model` → code | |
//!
//! After a mistake the type is still emitted, with valid options in place of the wrong ones. Otherwise each use of the
//! type would be one more error.

mod bounds;
mod check;
mod crate_option;
mod crd_options;
mod derive_order;
mod emit;
mod flattened;
mod generics;
mod inner_markers;
mod json;
mod json_names;
mod kube_options;
mod marker;
mod markers;
mod meta_option;
mod missing_schema;
mod model;
mod nested_options;
mod nested_values;
mod none_policy;
mod option_values;
mod skip_serializing_if;
#[cfg(test)]
mod test_field;
mod two_names;
mod unreadable;
mod unstorable;

use proc_macro2::TokenStream;
use quote::quote;

use self::model::Model;
pub(crate) use self::{derive_order::derived_traits, emit::stub_traits, missing_schema::contains_word};

/// Expands `#[resource(…)]` on the spec of a kind.
pub(crate) fn expand_resource(options: &TokenStream, item: &TokenStream) -> TokenStream {
    expand(check::resource(options, item), item)
}

/// Expands `#[schema]` on a part of a kind: a status, or the type of a field.
pub(crate) fn expand_schema(options: &TokenStream, item: &TokenStream) -> TokenStream {
    expand(check::schema(options, item), item)
}

/// Emits the model. Without one, the item is emitted as it was written, so that its name still exists.
fn expand(model: syn::Result<Model>, item: &TokenStream) -> TokenStream {
    match model {
        Ok(model) => emit::emit(model),
        Err(errors) => {
            let errors = errors.to_compile_error();
            quote! { #item #errors }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::Expander;

    #[test]
    fn resource_expands_as_recorded() {
        let expand = |options: TokenStream, item: &TokenStream| expand_resource(&options, item);
        Expander { attribute: "resource", expand }.check("resource");
    }

    #[test]
    fn fields_are_camel_case_unless_serde_renames_them() {
        for (attribute, is_added) in [
            (quote!(), true),
            (quote!(#[serde(default = "rename_all_fields")]), true),
            (quote!(#[serde(default, rename_all = "snake_case")]), false),
            (quote!(#[serde(rename_all(serialize = "snake_case"))]), false),
        ] {
            let text = expand_schema(&TokenStream::new(), &quote!(#attribute struct Web { foo_bar: i32 })).to_string();
            assert_eq!(text.contains("rename_all = \"camelCase\""), is_added, "{text}");
        }
    }

    #[test]
    fn documented_choices_are_one_list() {
        for (item, is_marked) in [
            (
                quote!(
                    enum Mode {
                        #[doc = "By day."]
                        Light,
                        Dark,
                    }
                ),
                true,
            ),
            (
                quote!(
                    enum Mode {
                        Light,
                        Dark,
                    }
                ),
                false,
            ),
            (
                quote!(
                    enum Mode {
                        #[doc = "By day."]
                        Light,
                        Dark(u8),
                    }
                ),
                false,
            ),
            (
                quote!(
                    struct Mode {
                        #[doc = "By day."]
                        light: u8,
                    }
                ),
                false,
            ),
        ] {
            let text = expand_schema(&TokenStream::new(), &item).to_string();
            assert_eq!(text.contains("choices"), is_marked, "{text}");
        }
    }

    #[test]
    fn added_partial_eq_needs_no_eq() {
        for (derive, is_allowed) in [(quote!(Default), true), (quote!(Default, PartialEq), false)] {
            let item = quote!(
                #[derive(#derive)]
                struct Web {
                    foo_bar: i32,
                }
            );
            let text = expand_schema(&TokenStream::new(), &item).to_string();
            assert_eq!(text.contains("clippy :: derive_partial_eq_without_eq"), is_allowed, "{text}");
        }
    }

    #[test]
    fn paths_lead_into_the_given_crate() {
        let options = quote!(
            group = "a.b",
            version = "v1",
            kind = "Web",
            rule("true"),
            status_subresource = false,
            crate = ::other
        );
        let item = quote!(
            struct WebSpec {
                #[kctl(min_length = 1)]
                host: Option<String>,
                #[serde(flatten)]
                size: Size,
                since: Instant,
            }
        );
        for text in [expand_resource(&options, &item), expand_schema(&quote!(crate = ::other), &item)] {
            let text = text.to_string().replace("kctl::k8s::apimachinery", "");
            assert!(text.contains("\"::other::__private_0_1::serde\"") && !text.contains("kctl"), "{text}");
        }
    }
}
