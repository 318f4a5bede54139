//! Markers of items and values on a field that has none: the CRD would lack them without a word.
//!
//! `#[kctl(items(min_length = 1))]` belongs on a `Vec<String>`. A `String` has no schema of items to extend.

use syn::{Attribute, Field, Type};

use super::{
    marker::{Marker, Markers},
    unreadable::{inner_type, read_types},
};
use crate::{
    codes,
    diagnostics::Errors,
    function::{generic_argument, type_text},
};

/// The markers, each with the type of JSON schema that has such a part, its name, and the other marker with its type.
const INNER: [(&str, &str, &str, &str, &str); 2] =
    [("items", "array", "a list", "values", "object"), ("values", "object", "a map", "items", "array")];

/// Reports K0028 for `items(…)` on a standard type that is not a list, and for `values(…)` on one that is not a map.
///
/// Attributes of schemars may replace the schema of the field, and those under `cfg_attr` are not known here.
pub(super) fn check(field: &Field, markers: &Markers, errors: &mut Errors) {
    let may_replace =
        |attribute: &Attribute| ["schemars", "cfg_attr"].iter().any(|name| attribute.path().is_ident(name));
    if field.attrs.iter().any(may_replace) {
        return;
    }
    check_type(&field.ty, markers, errors);
}

/// Checks the markers of one type, and the markers in `items(…)` and `values(…)` on the types within it.
fn check_type(ty: &Type, markers: &Markers, errors: &mut Errors) {
    let value = generic_argument(ty, "Option").unwrap_or(ty);
    let Some(types) = read_types(value) else { return };
    for (marker, has_it, name, other, has_other) in INNER {
        let Some(Marker { written, inner, .. }) = markers.find(marker) else { continue };
        if types.contains(&has_it) {
            if let Some(inner_type) = inner_type(value) {
                check_type(inner_type, inner, errors);
            }
            continue;
        }
        let what = format!("`{marker}` has no effect: `{}` is not {name}", type_text(value));
        let help = if types.contains(&has_other) {
            format!("write `{other}(…)`")
        } else {
            format!("write what is in its parentheses without `{marker}`")
        };
        errors.push(written, codes::WITHOUT_EFFECT, &what, &help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::test_field;

    fn reported(field: &str) -> String {
        let source = format!("struct A {{ {field} }}");
        test_field::collect_messages(&source, |field, _container, markers, errors| check(field, markers, errors))
    }

    #[test]
    fn markers_of_missing_items_are_reported() {
        for (field, expected) in [
            ("#[kctl(items(min_length = 1))] a: String", "`String` is not a list\nhelp: write what is in its"),
            ("#[kctl(items(minimum = 1))] a: BTreeMap<String, u8>", "is not a list\nhelp: write `values(…)`"),
            ("#[kctl(values(minimum = 1))] a: Option<Vec<u8>>", "`Vec<u8>` is not a map\nhelp: write `items(…)`"),
            ("#[kctl(items(items(min_length = 1)))] a: Vec<String>", "`String` is not a list\nhelp: write what is in"),
            ("#[kctl(values(items(minimum = 1)))] a: HashMap<Vec<u8>, Option<u8>>", "`u8` is not a list\nhelp: write"),
            ("#[kctl(items(values(minimum = 1)))] a: Vec<Vec<u8>>", "`Vec<u8>` is not a map\nhelp: write `items(…)`"),
            ("#[kctl(items(minimum = 1))] a: Option<Vec<u8>>", ""),
            ("#[kctl(items(items(minimum = 1)))] a: Vec<Option<Vec<u8>>>", ""),
            ("#[kctl(values(items(minimum = 1)))] a: BTreeMap<String, Vec<u8>>", ""),
            ("#[kctl(items(items(minimum = 1)))] a: Vec<Sizes>", ""),
            ("#[kctl(values(minimum = 1))] a: HashMap<String, u8>", ""),
            ("#[kctl(items(minimum = 1))] a: Sizes", ""),
            ("#[kctl(items(min_length = 1))] #[schemars(with = \"Vec<String>\")] a: String", ""),
        ] {
            let found = reported(field);
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{field}: {found}");
        }
    }
}
