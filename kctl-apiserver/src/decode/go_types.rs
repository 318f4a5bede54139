//! The types of fields as Go names them, which errors say.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;

use super::path::Path;
use crate::schema::Schema;

#[derive(Deserialize)]
struct Named {
    name: String,
    /// Of a struct: the types of fields, but for those that their schema tells.
    #[serde(default)]
    fields: HashMap<String, String>,
    /// Of another type: the list or the map that it is.
    is: Option<String>,
}

static NAMED: LazyLock<HashMap<String, Named>> = LazyLock::new(|| {
    let named: Vec<Named> =
        serde_json::from_str(include_str!("../../data/go.json")).expect("the file is generated and tested");
    named.into_iter().map(|named| (named.name.clone(), named)).collect()
});

/// The type at the end of a way, if its schema does not tell it.
pub(super) fn at(path: &Path<'_>) -> Option<String> {
    let written = written_at(path)?;
    let named = written.trim_start_matches('*');
    Some(match named {
        // They read a JSON text and a number themselves, and errors are of that.
        "v1.Time" | "v1.MicroTime" | "v1.Duration" => "string".into(),
        "intstr.IntOrString" => "int32".into(),
        _ => named.to_owned(),
    })
}

fn written_at<'a>(path: &Path<'_>) -> Option<&'a str> {
    match *path {
        Path::Root => None,
        Path::Field(_, name, Some(of)) => Some(NAMED.get(of)?.fields.get(name)?),
        Path::Field(parent, ..) | Path::Item(parent, _) => of_items(written_at(parent)?),
    }
}

/// The type of what is in a list or in a map.
fn of_items(written: &str) -> Option<&str> {
    let written = NAMED.get(written).and_then(|named| named.is.as_deref()).unwrap_or(written);
    let (_key, items) = written.strip_prefix("map").unwrap_or(written).strip_prefix('[')?.split_once(']')?;
    Some(items)
}

/// The type of which its schema tells all.
pub(super) fn plain(schema: Schema<'_>) -> String {
    match (schema.type_name().unwrap_or_default(), schema.format().unwrap_or_default()) {
        ("integer", "") => "int64".into(),
        ("integer", format) => format.into(),
        ("number", _) => "float64".into(),
        ("boolean", _) => "bool".into(),
        ("array", _) => format!("[]{}", schema.items().map(plain).unwrap_or_default()),
        ("object", _) => "map[string]string".into(),
        (other, _) => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_no_plain_value_has_a_name() {
        let mut n_named = 0;
        for kind in ["Pod", "Service", "ReplicationController", "Node", "PersistentVolume"] {
            let mut left = vec![crate::schema::name_of("v1", kind).unwrap()];
            while let Some(of) = left.pop() {
                for (field, schema) in Schema::named(of).unwrap().properties() {
                    let is_struct = schema.type_name() == Some("object") && schema.has_properties();
                    let name = at(&Path::Field(&Path::Root, field, Some(of)));
                    assert!(!is_struct || name.is_some(), "{of}.{field}");
                    n_named += usize::from(name.is_some());
                    left.extend(schema.name().filter(|_| is_struct));
                    left.extend(schema.items().filter(Schema::has_properties).and_then(|items| items.name()));
                }
            }
        }
        assert!(n_named > 300, "{n_named}");
    }
}
