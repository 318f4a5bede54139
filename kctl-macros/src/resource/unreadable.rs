//! Markers that let the CRD accept values which the type of their field can't read.
//!
//! An API server stores such a value, and then the program can't read the object at all: it disappears from the cache,
//! and with a finalizer its deletion hangs. `#[kctl(nullable = true)]` on a `String` is an example.

use syn::{Attribute, Field, GenericArgument, PathArguments, Type};

use super::{json::Json, marker::Markers, meta_option::MetaOption, none_policy::is_plain};
use crate::{
    codes,
    diagnostics::Errors,
    function::{generic_argument, last_name, type_text},
};

/// The type of Kubernetes for a number or a string.
const INT_OR_STRING: &str = "kctl::k8s::apimachinery::pkg::util::intstr::IntOrString";
/// Options of serde on a field that read it in another way, or not at all.
const FIELD_READERS: [&str; 5] = ["with", "deserialize_with", "skip", "skip_deserializing", "flatten"];
/// Options of serde on a type that read another type in its place.
const TYPE_READERS: [&str; 3] = ["from", "try_from", "with"];

/// Standard types with the types of JSON schema that they read.
const READ_TYPES: [(&[&str], &[&str]); 6] = [
    (&["String", "char"], &["string"]),
    (&["bool"], &["boolean"]),
    (&["i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize"], &["integer"]),
    (&["f32", "f64"], &["integer", "number"]),
    (&["Vec"], &["array"]),
    (&["BTreeMap", "HashMap"], &["object"]),
];

/// Reports K0087 for `nullable = true`, `int_or_string`, another `type_` and no schema at all on a field of a standard
/// type, which reads one JSON type.
///
/// Any other name may be an alias of a type that reads both. Options under `cfg_attr` are not known here, so they are
/// left alone.
pub(super) fn check(field: &Field, container: &[Attribute], markers: &Markers, errors: &mut Errors) {
    let is_conditional = |attributes: &[Attribute]| attributes.iter().any(|one| one.path().is_ident("cfg_attr"));
    let has = |attributes: &[Attribute], names: &[&str]| {
        MetaOption::collect(attributes, "serde").iter().any(|option| names.contains(&option.name.as_str()))
    };
    if is_conditional(&field.attrs) || is_conditional(container) {
        return;
    }
    if has(&field.attrs, &FIELD_READERS) || has(container, &TYPE_READERS) {
        return;
    }
    check_type(&field.ty, markers, errors);
}

/// Checks the markers of one type, and the markers in `items(…)` and `values(…)` on the types within it.
fn check_type(ty: &Type, markers: &Markers, errors: &mut Errors) {
    if markers.get("nullable") == Some(&Json::Bool(true)) && is_plain(ty) {
        let ty = type_text(ty);
        let what = format!("`nullable` lets the CRD accept null, and `{ty}` can't read it");
        let help = format!("write `Option<{ty}>`, or remove `nullable`");
        errors.push(markers.get_ident("nullable"), codes::CONTRADICTING_MARKERS, &what, &help);
    }
    let value = generic_argument(ty, "Option").unwrap_or(ty);
    if markers.has("int_or_string") && is_plain(value) {
        let ty = type_text(value);
        let what = format!("`int_or_string` lets the CRD accept numbers and strings, and `{ty}` can't read both");
        let help = format!("write `{INT_OR_STRING}` in the place of `{ty}`, and remove `int_or_string`");
        errors.push(markers.get_ident("int_or_string"), codes::CONTRADICTING_MARKERS, &what, &help);
    }
    check_scalar(value, markers, errors);
    if let Some(Json::Text(name)) = markers.get("type_")
        && read_types(value).is_some_and(|types| !types.contains(&name.as_str()))
    {
        let ty = type_text(value);
        let what = format!("`type_` lets the CRD accept values of type {name}, and `{ty}` can't read them");
        let help = format!("remove `type_`, or write the Rust type of such a value in the place of `{ty}`");
        errors.push(markers.get_ident("type_"), codes::CONTRADICTING_MARKERS, &what, &help);
    }
    for (marker, of) in [("items", "array"), ("values", "object")] {
        if read_types(value).is_some_and(|types| types.contains(&of))
            && let (Some(marker), Some(inner_type)) = (markers.find(marker), inner_type(value))
        {
            check_type(inner_type, &marker.inner, errors);
        }
    }
}

/// Reports K0087 for `schemaless` and `embedded` on a number, a string or a boolean. On a list or a map, `schemaless` ends
/// the schema of a type that contains itself.
fn check_scalar(value: &Type, markers: &Markers, errors: &mut Errors) {
    let is_scalar = |types: &[&str]| !types.contains(&"array") && !types.contains(&"object");
    if !read_types(value).is_some_and(is_scalar) {
        return;
    }
    for (marker, accepted) in [("schemaless", "any value"), ("embedded", "objects")] {
        let Some(word) = markers.get_ident(marker) else { continue };
        let ty = type_text(value);
        let what = format!("`{marker}` lets the CRD accept {accepted}, and `{ty}` can't read that");
        let help = format!("write `kctl::Json` in the place of `{ty}`, or remove `{marker}`");
        errors.push(word, codes::CONTRADICTING_MARKERS, &what, &help);
    }
}

/// Returns the types of JSON schema that a standard type reads. `None` for any other type.
pub(super) fn read_types(ty: &Type) -> Option<&'static [&'static str]> {
    let name = last_name(ty)?;
    READ_TYPES.iter().find(|(types, _)| types.iter().any(|known| name == known)).map(|(_, read)| *read)
}

/// Returns the type of the items of a standard list, or of the values of a standard map.
pub(super) fn inner_type(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    });
    // The first type of a map is its key.
    types.nth(usize::from(last_name(ty)? != "Vec"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::test_field;

    fn reported(source: &str) -> String {
        test_field::collect_messages(source, check)
    }

    #[test]
    fn markers_beyond_the_type_are_reported() {
        for (field, expected) in [
            ("#[kctl(nullable = true)] a: String", "write `Option<String>`, or remove `nullable`"),
            ("#[kctl(nullable = true)] #[serde(default)] a: Vec<u8>", "write `Option<Vec<u8>>`, or remove"),
            ("#[kctl(nullable = true)] a: Option<String>", ""),
            ("#[kctl(nullable = false)] a: String", ""),
            ("#[kctl(nullable = true)] a: Maybe", ""),
            ("#[kctl(nullable = true)] #[serde(deserialize_with = \"f\")] a: String", ""),
            ("#[kctl(nullable = true)] #[cfg_attr(unix, serde(with = \"m\"))] a: String", ""),
            ("#[kctl(int_or_string)] a: i32", "IntOrString` in the place of `i32`"),
            ("#[kctl(int_or_string)] a: Option<String>", "IntOrString` in the place of `String`"),
            ("#[kctl(int_or_string)] a: Json", ""),
            ("#[kctl(int_or_string)] #[serde(with = \"m\")] a: String", ""),
            ("#[kctl(type_ = \"string\")] a: i32", "accept values of type string, and `i32` can't read them"),
            ("#[kctl(type_ = \"number\")] a: Option<u8>", "of type number, and `u8` can't"),
            ("#[kctl(type_ = \"object\")] a: Vec<String>", "`Vec<String>` can't read them"),
            ("#[kctl(schemaless)] a: String", "accept any value, and `String` can't read that"),
            ("#[kctl(embedded)] a: Option<i32>", "write `kctl::Json` in the place of `i32`, or remove `embedded`"),
            ("#[kctl(schemaless)] a: Vec<Tree>", ""),
            ("#[kctl(schemaless)] a: Json", ""),
            ("#[kctl(type_ = \"integer\")] a: f64", ""),
            ("#[kctl(type_ = \"string\")] a: String", ""),
            ("#[kctl(type_ = \"string\")] a: Json", ""),
            ("#[kctl(type_ = \"string\")] #[serde(with = \"m\")] a: u64", ""),
            ("#[kctl(min_length = 1)] a: String", ""),
            ("#[kctl(items(nullable = true))] a: Vec<String>", "write `Option<String>`, or remove `nullable`"),
            ("#[kctl(items(items(nullable = true)))] a: Option<Vec<Vec<u8>>>", "accept null, and `u8` can't read it"),
            ("#[kctl(values(int_or_string))] a: BTreeMap<String, i32>", "IntOrString` in the place of `i32`"),
            ("#[kctl(values(schemaless))] a: HashMap<String, String>", "any value, and `String` can't read that"),
            ("#[kctl(items(type_ = \"string\"))] a: Vec<i32>", "of type string, and `i32` can't read them"),
            ("#[kctl(items(nullable = true))] a: Vec<Option<String>>", ""),
            ("#[kctl(values(nullable = true))] a: BTreeMap<String, Maybe>", ""),
            ("#[kctl(items(nullable = true))] #[serde(with = \"m\")] a: Vec<String>", ""),
            ("#[kctl(items(nullable = true))] a: Names", ""),
        ] {
            let found = reported(&format!("struct A {{ {field} }}"));
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{field}: {found}");
        }
        assert_eq!(reported("#[serde(try_from = \"B\")] struct A { #[kctl(nullable = true)] a: String }"), "");
        assert!(reported("struct A(#[kctl(nullable = true)] String);").contains("can't read it"));
    }
}
