//! Fields that serde leaves out when it writes an object, and requires when it reads one.
//!
//! The schema requires each field that serde requires. With `skip_serializing_if` and no `default`, an API server
//! rejects the object that the program writes, or the program can't read it again.

use syn::{Attribute, Field};

use super::{marker::Markers, meta_option::MetaOption};
use crate::{codes, diagnostics::Errors, function::generic_argument};

/// Options of serde that accept a missing field, or leave the field out of the JSON.
const WITHOUT_REQUIREMENT: [&str; 4] = ["default", "skip", "skip_deserializing", "flatten"];
/// Options of serde that make a missing `Option` an error, as it is for any other type.
const READERS: [&str; 2] = ["with", "deserialize_with"];

/// Reports K0087 for `skip_serializing_if` on a field that has no `#[serde(default)]` and needs it.
///
/// A `default` of the markers is enough: an API server fills it in before it validates. Options under `cfg_attr` are not
/// known here, so they are left alone.
pub(super) fn check(field: &Field, container: &[Attribute], markers: &Markers, errors: &mut Errors) {
    let is_conditional = |attributes: &[Attribute]| attributes.iter().any(|one| one.path().is_ident("cfg_attr"));
    if is_conditional(&field.attrs) || is_conditional(container) || markers.has("default") {
        return;
    }
    let container_options = MetaOption::collect(container, "serde");
    if container_options.iter().any(|option| ["default", "transparent"].contains(&option.name.as_str())) {
        return;
    }
    let options = MetaOption::collect(&field.attrs, "serde");
    let find = |names: &[&str]| options.iter().find(|option| names.contains(&option.name.as_str()));
    let (Some(name), Some(skip)) = (&field.ident, find(&["skip_serializing_if"])) else { return };
    let Some(written) = skip.written.as_ref().filter(|_| find(&WITHOUT_REQUIREMENT).is_none()) else { return };
    let condition = skip.string().unwrap_or_default();
    // An alias of `Option`, or a type around one, has such a method, too.
    let is_option = generic_argument(&field.ty, "Option").is_some() || condition.ends_with("is_none");
    let what = match find(&READERS) {
        Some(reader) if is_option => {
            format!("`skip_serializing_if` leaves `{name}` out, and `{}` can't read an object without it", reader.name)
        }
        _ if is_option => return,
        _ => format!("`skip_serializing_if` leaves `{name}` out, and the CRD requires it"),
    };
    let help = format!("add `default`: `#[serde(default, skip_serializing_if = \"{condition}\")]`");
    errors.push(written, codes::CONTRADICTING_MARKERS, &what, &help);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::test_field;

    fn reported(source: &str) -> String {
        test_field::collect_messages(source, check)
    }

    #[test]
    fn required_field_that_is_left_out_is_reported() {
        for (options, ty, expected) in [
            ("skip_serializing_if = \"Vec::is_empty\"", "Vec<String>", "and the CRD requires it"),
            ("rename = \"b\", skip_serializing_if = \"is_zero\"", "i32", "and the CRD requires it"),
            ("with = \"m\", skip_serializing_if = \"Option::is_none\"", "Option<T>", "`with` can't read an object"),
            ("deserialize_with = \"f\", skip_serializing_if = \"f\"", "Option<T>", "`deserialize_with` can't read"),
            ("skip_serializing_if = \"Option::is_none\"", "Option<T>", ""),
            ("skip_serializing_if = \"Maybe::is_none\"", "Maybe", ""),
            ("default, skip_serializing_if = \"Vec::is_empty\"", "Vec<String>", ""),
            ("default = \"f\", skip_serializing_if = \"Vec::is_empty\"", "Vec<String>", ""),
            ("flatten, skip_serializing_if = \"BTreeMap::is_empty\"", "BTreeMap<String, String>", ""),
            ("skip_deserializing, skip_serializing_if = \"f\"", "i32", ""),
            ("skip_serializing", "String", ""),
        ] {
            let found = reported(&format!("struct A {{ #[serde({options})] a: {ty} }}"));
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{options}: {found}");
        }
    }

    #[test]
    fn defaults_elsewhere_make_the_field_optional() {
        let field = "#[serde(skip_serializing_if = \"Vec::is_empty\")] a: Vec<String>";
        for source in [
            format!("#[serde(default)] struct A {{ {field} }}"),
            format!("struct A {{ #[kctl(default = [])] {field} }}"),
            format!("struct A {{ #[cfg_attr(unix, serde(default))] {field} }}"),
            "struct A(#[serde(skip_serializing_if = \"Vec::is_empty\")] Vec<String>);".to_owned(),
        ] {
            assert_eq!(reported(&source), "", "{source}");
        }
    }
}
