//! Structs with `#[serde(flatten)]` on a field: a field of the part may have the name of another field.
//!
//! The macro can't see the part's fields. So it names the type of the part in a transform of the schema, which compares
//! the names when `generate-crds` runs: `kctl::__private_0_1::Flattened`.

use syn::{Data, DeriveInput, Field};

use super::{
    json_names,
    meta_option::MetaOption,
    model::{FlattenedParts, Rename},
};

/// Options of serde that write or read the part by a function, or not at all.
const WITHOUT_SCHEMA: [&str; 6] =
    ["skip", "skip_serializing", "skip_deserializing", "with", "serialize_with", "deserialize_with"];

/// Returns the flattened fields of a struct with the names of its other fields. `None` without a flattened field.
/// The names are known only if the attribute adds the `rename` that determines their spelling. Without them, parts are
/// compared with each other alone.
pub(super) fn parts(input: &DeriveInput, rename: Option<Rename>) -> Option<FlattenedParts> {
    let Data::Struct(data) = &input.data else { return None };
    let parts: Vec<Field> = data.fields.iter().filter(|field| is_part(field)).cloned().collect();
    let names = rename.map(|_| json_names::names(&data.fields)).unwrap_or_default();
    (!parts.is_empty()).then_some(FlattenedParts { names, parts })
}

/// Returns `true` for a flattened field whose schema comes from its type.
fn is_part(field: &Field) -> bool {
    let is_replaced =
        |attribute: &syn::Attribute| ["schemars", "cfg", "cfg_attr"].iter().any(|name| attribute.path().is_ident(name));
    let options = MetaOption::collect(&field.attrs, "serde");
    let has = |name: &str| options.iter().any(|option| option.name == name);
    field.ident.is_some()
        && !field.attrs.iter().any(is_replaced)
        && has("flatten")
        && !WITHOUT_SCHEMA.iter().any(|name| has(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the other fields and of the parts, or nothing without a part.
    fn found(source: &str, rename: Option<Rename>) -> String {
        let input: DeriveInput = syn::parse_str(source).unwrap();
        let Some(FlattenedParts { names, parts }) = parts(&input, rename) else { return String::new() };
        let parts: Vec<_> = parts.iter().map(|part| part.ident.as_ref().unwrap().to_string()).collect();
        format!("{} | {}", names.join(" "), parts.join(" "))
    }

    #[test]
    fn flattened_fields_are_listed_with_other_names() {
        let all = "struct A { a_b: i32, #[serde(flatten)] net: Net, #[serde(flatten)] disk: Disk }";
        assert_eq!(found(all, Some(Rename::All)), "aB | net disk");
        assert_eq!(found(all, None), " | net disk");
        for source in [
            "struct A { a: i32 }",
            "struct A { #[serde(flatten, with = \"m\")] net: Net }",
            "struct A { #[serde(flatten)] #[schemars(with = \"B\")] net: Net }",
            "struct A { #[cfg(unix)] #[serde(flatten)] net: Net }",
            "enum A { One { #[serde(flatten)] net: Net } }",
        ] {
            assert_eq!(found(source, Some(Rename::All)), "", "{source}");
        }
    }
}
