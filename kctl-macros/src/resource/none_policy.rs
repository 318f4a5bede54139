//! Fields of type `Option`: `None` is left out of the JSON that is written.
//!
//! | field | policy |
//! |---|---|
//! | `a: Option<String>` | `Skip` |
//! | `a: Option<Mode>`, which may be an enum | `SkipAndForbidNull` |
//! | `#[kctl(allowed("x"))] a: Option<String>` | `SkipAndForbidNull` |
//! | `#[kctl(nullable = true)] a: Option<String>` | `AsSerde` |
//! | `#[kctl(default = "a")] a: Option<String>` | `AsSerde` |
//! | `#[serde(default = "f")] a: Option<String>` | `AsSerde` |
//!
//! API servers accept null only where the schema has `nullable`, and never next to a list of allowed values. A missing
//! field means the same to serde, and every API server accepts it. So `a: Option<String>` gets
//! `#[serde(skip_serializing_if = "::core::option::Option::is_none")]`, unless the user's attributes of serde say
//! otherwise.

use syn::{Attribute, Field, Type};

use super::{json::Json, marker::Markers, meta_option::MetaOption};
use crate::function::generic_argument;

/// Types whose schema has no list of allowed values. Any other type may be an enum.
const PLAIN: [&str; 18] = [
    "String", "bool", "char", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64",
    "Vec", "BTreeMap", "HashMap",
];
/// Options of serde that let the user decide how a field is written or read.
const CUSTOM_SERDE: [&str; 7] =
    ["skip", "skip_serializing", "skip_serializing_if", "skip_deserializing", "flatten", "with", "serialize_with"];

/// The serialization of a field whose value is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NonePolicy {
    /// As serde does without further attributes: `null`.
    #[default]
    AsSerde,
    /// The field is left out.
    Skip,
    /// The field is left out, and its schema loses the `null` that schemars adds to the list of allowed values: API servers do
    /// not accept null there.
    SkipAndForbidNull,
}

impl NonePolicy {
    /// Returns the policy of a field of a type with these attributes.
    ///
    /// Fields that are not an `Option`, fields of tuples, and fields that serde handles in a custom way are left as
    /// they are. So is a field whose default is not `None`: leaving it out would turn `None` into that default.
    pub(super) fn of(field: &Field, container: &[Attribute]) -> Self {
        let Some(value) = generic_argument(&field.ty, "Option").filter(|_| field.ident.is_some()) else {
            return Self::AsSerde;
        };
        // With `#[serde(default)]` on the container, a missing field has the container's default, which may be `Some`.
        if MetaOption::collect(container, "serde")
            .iter()
            .any(|option| ["default", "transparent"].contains(&option.name.as_str()))
        {
            return Self::AsSerde;
        }
        let serde_options = MetaOption::collect(&field.attrs, "serde");
        let has = |name: &str| serde_options.iter().any(|option| option.name == name);
        let has_custom_default = serde_options.iter().any(|option| option.name == "default" && option.value.is_some());
        let must_be_present = has("deserialize_with") && !has("default");
        if CUSTOM_SERDE.iter().any(|name| has(name))
            || has_custom_default
            || must_be_present
            || is_required(&field.attrs)
        {
            return Self::AsSerde;
        }
        if is_plain(value) { Self::Skip } else { Self::SkipAndForbidNull }
    }

    /// Returns the policy of the field if it has these markers.
    ///
    /// `nullable = true` says that null differs from a missing field. With `default`, an API server would fill in the default
    /// for a field that is left out, so `None` could not be stored.
    pub(super) fn with(self, markers: &Markers) -> Self {
        let is_kept = markers.get("nullable") == Some(&Json::Bool(true)) || markers.has("default");
        match self {
            _ if is_kept => Self::AsSerde,
            Self::Skip if markers.has("allowed") => Self::SkipAndForbidNull,
            policy => policy,
        }
    }
}

/// Returns `true` for a type of the standard library whose JSON is of one type, and never null.
pub(super) fn is_plain(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| PLAIN.iter().any(|name| last.ident == name))
}

/// Returns `true` for `#[schemars(required)]`: the schema demands the field, so it must be written.
fn is_required(attributes: &[Attribute]) -> bool {
    MetaOption::collect(attributes, "schemars").iter().any(|option| option.name == "required")
}

#[cfg(test)]
mod tests {
    use syn::DeriveInput;

    use super::*;

    fn first(input: &DeriveInput) -> NonePolicy {
        let syn::Data::Struct(data) = &input.data else { panic!("a struct") };
        NonePolicy::of(data.fields.iter().next().unwrap(), &input.attrs)
    }

    #[test]
    fn none_is_skipped_unless_serde_has_custom_options() {
        for (source, expected) in [
            ("struct A { a: Option<String> }", NonePolicy::Skip),
            ("struct A { a: std::option::Option<Mode> }", NonePolicy::SkipAndForbidNull),
            ("struct A { a: String }", NonePolicy::AsSerde),
            ("struct A { a: Vec<Option<Mode>> }", NonePolicy::AsSerde),
            ("struct A(Option<Mode>);", NonePolicy::AsSerde),
            ("struct A { #[serde(default)] a: Option<Mode> }", NonePolicy::SkipAndForbidNull),
            (r#"struct A { #[serde(rename = "b", alias = "c")] a: Option<i32> }"#, NonePolicy::Skip),
            (r#"struct A { #[serde(default = "three")] a: Option<i32> }"#, NonePolicy::AsSerde),
            (r#"struct A { #[serde(with = "humantime")] a: Option<Wait> }"#, NonePolicy::AsSerde),
            (r#"struct A { #[serde(deserialize_with = "read")] a: Option<i32> }"#, NonePolicy::AsSerde),
            (r#"struct A { #[serde(default, deserialize_with = "read")] a: Option<i32> }"#, NonePolicy::Skip),
            (r#"struct A { #[serde(skip_serializing_if = "f")] a: Option<i32> }"#, NonePolicy::AsSerde),
            ("#[serde(default)] struct A { a: Option<i32> }", NonePolicy::AsSerde),
            ("struct A { #[schemars(required)] a: Option<i32> }", NonePolicy::AsSerde),
        ] {
            assert_eq!(first(&syn::parse_str(source).unwrap()), expected, "{source}");
        }
    }
}
