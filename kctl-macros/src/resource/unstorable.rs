//! Fields whose type no API server can store: the derives would report each trait that is missing, and never what to
//! write.
//!
//! K0118 names a type that can be stored: `Time` for an `Instant`, which is a reading of this process's clock, and an
//! owned type for a reference.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Field, Fields, GenericArgument, Ident, PathArguments, Type};

use crate::{codes, crate_path::CratePath, diagnostics::Errors, function::type_text, source_file::definitions_of};

/// The type of Kubernetes for a point in time.
const TIME: &str = "kctl::k8s::apimachinery::pkg::apis::meta::v1::Time";

/// Reports each such field, and changes it so that the derives accept it. A type of the file that is called `Instant`
/// is the user's.
pub(super) fn check(input: &mut DeriveInput, krate: &CratePath, file: Option<&str>, errors: &mut Errors) {
    let name = Ident::new("Instant", Span::call_site());
    let instant = match file.and_then(|text| definitions_of(text, &name).next()) {
        Some(_) => Instant::MayBeStorable,
        None => Instant::OfAClock,
    };
    let mut check_fields =
        |fields: &mut Fields| fields.iter_mut().for_each(|field| check_field(field, krate, instant, errors));
    match &mut input.data {
        Data::Struct(data) => check_fields(&mut data.fields),
        Data::Enum(data) => data.variants.iter_mut().for_each(|variant| check_fields(&mut variant.fields)),
        Data::Union(_) => {}
    }
}

/// The type that `Instant` names in the file of the attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instant {
    /// `std::time::Instant`, or tokio's.
    OfAClock,
    /// The file defines a type of this name.
    MayBeStorable,
}

/// Checks one field. With options of serde it is left alone: it may be skipped, or written in another way.
fn check_field(field: &mut Field, krate: &CratePath, instant: Instant, errors: &mut Errors) {
    if field.attrs.iter().any(|attribute| attribute.path().is_ident("serde")) {
        return;
    }
    if let Some(ty) = find_type(&field.ty, &|ty| is_instant(ty, instant)) {
        let what = format!("`{}` is a moment of this process's clock: no object can store it", type_text(ty));
        errors.push(ty, codes::TYPE_NOT_STORABLE, &what, &format!("write `{TIME}`"));
        let never = format!("{}::never", krate.private_module_text());
        field.attrs.push(syn::parse_quote!(#[serde(skip, default = #never)]));
        return;
    }
    if let Some(Type::Reference(reference)) = find_type(&field.ty, &|ty| matches!(ty, Type::Reference(_))) {
        let owned = type_text(&Type::Verbatim(owned_type(&reference.elem)));
        let what =
            format!("`{}` is borrowed: an object owns its fields", type_text(&Type::Reference(reference.clone())));
        errors.push(reference, codes::TYPE_NOT_STORABLE, &what, &format!("write `{owned}`"));
        replace_references(&mut field.ty);
    }
}

/// Returns the type that owns what a reference points to, as the help shows it.
fn owned_type(of: &Type) -> TokenStream {
    match of {
        Type::Path(path) if path.path.is_ident("str") => quote!(String),
        Type::Slice(slice) => {
            let item = &slice.elem;
            quote!(Vec<#item>)
        }
        Type::Reference(reference) => owned_type(&reference.elem),
        other => other.to_token_stream(),
    }
}

/// Returns `true` for `std::time::Instant` and tokio's type of the same name. A path, such as `time::Instant`, is never
/// a type of the file.
fn is_instant(ty: &Type, instant: Instant) -> bool {
    let Type::Path(path) = ty else { return false };
    if instant == Instant::MayBeStorable && path.path.get_ident().is_some() {
        return false;
    }
    path.path.segments.last().is_some_and(|last| last.ident == "Instant" && last.arguments.is_empty())
}

/// Returns the first type for which `is` holds, in a type and its type arguments.
fn find_type<'a>(ty: &'a Type, is: &dyn Fn(&Type) -> bool) -> Option<&'a Type> {
    if is(ty) {
        return Some(ty);
    }
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) => find_type(inner, is),
        _ => None,
    })
}

/// Replaces references by owned types, with full paths. The derives then accept the field, and K0118 is its only
/// error.
fn replace_references(ty: &mut Type) {
    match ty {
        Type::Reference(reference) => {
            let owned_type = match &*reference.elem {
                Type::Path(path) if path.path.is_ident("str") => quote!(::std::string::String),
                Type::Slice(slice) => {
                    let item = &slice.elem;
                    quote!(::std::vec::Vec<#item>)
                }
                other => other.to_token_stream(),
            };
            *ty = Type::Verbatim(owned_type);
        }
        Type::Path(path) => {
            let last = path.path.segments.last_mut();
            let Some(PathArguments::AngleBracketed(arguments)) = last.map(|last| &mut last.arguments) else { return };
            for argument in &mut arguments.args {
                if let GenericArgument::Type(inner) = argument {
                    replace_references(inner);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unstorable_types_get_help_with_a_storable_one() {
        for (ty, expected) in [
            ("Instant", Some("kctl::k8s::apimachinery::pkg::apis::meta::v1::Time")),
            ("std::time::Instant", Some("v1::Time")),
            ("Option<Vec<tokio::time::Instant>>", Some("v1::Time")),
            ("&'static str", Some("write `String`")),
            ("Option<&str>", Some("write `String`")),
            ("&[u8]", Some("write `Vec<u8>`")),
            ("&HashMap<String, u8>", Some("write `HashMap<String, u8>`")),
            ("String", None),
            ("Instant<u8>", None),
        ] {
            let mut input: DeriveInput = syn::parse_str(&format!("struct Spec {{ field: {ty} }}")).unwrap();
            let mut errors = Errors::default();
            check(&mut input, &CratePath::default(), None, &mut errors);
            let message = errors.into_result(()).err().map(|error| error.to_string());
            assert_eq!(message.is_some(), expected.is_some(), "{ty}");
            assert!(message.unwrap_or_default().contains(expected.unwrap_or_default()), "{ty}");
        }
    }

    #[test]
    fn field_with_serde_options_is_left_alone() {
        let text = "struct Spec { #[serde(skip)] since: Option<Instant> }";
        let mut input: DeriveInput = syn::parse_str(text).unwrap();
        let mut errors = Errors::default();
        check(&mut input, &CratePath::default(), None, &mut errors);
        assert!(errors.into_result(()).is_ok());
    }

    #[test]
    fn type_of_the_file_may_be_called_instant() {
        for (file, ty, n_errors) in [
            ("#[schema] struct Instant { seconds: i64 }", "Option<Instant>", 0),
            ("#[schema] struct Instant { seconds: i64 }", "std::time::Instant", 1),
            ("use std::time::Instant;", "Instant", 1),
        ] {
            let mut input: DeriveInput = syn::parse_str(&format!("struct Spec {{ since: {ty} }}")).unwrap();
            let mut errors = Errors::default();
            check(&mut input, &CratePath::default(), Some(file), &mut errors);
            assert_eq!(errors.len(), n_errors, "{file} {ty}");
        }
    }
}
