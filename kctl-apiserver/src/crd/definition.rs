//! The defaults of a `CustomResourceDefinition`.

use serde_json::{Map, Value, json};

use super::normalize;

/// Fills in the defaults that kube-apiserver sets when a CRD is created: `singular`, `listKind`, the conversion
/// strategy `None`, and the status with the storage version. Does not accept the names: see [`super::accept_names`].
pub(crate) fn default_definition(object: &mut Value) {
    if object["spec"].is_null() {
        object["spec"] = json!({});
    }
    default_definition_spec(object);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    // If there are several storage versions, which validation rejects later, the first one is recorded.
    let mut versions = versions.filter(|version| version["storage"] == true);
    let stored = versions.next().map(|version| Value::from(version["name"].as_str().unwrap_or_default()));
    let Some(object) = object.as_object_mut() else { return };
    match object.get_mut("status").and_then(Value::as_object_mut) {
        None => {
            let (names, stored) = (json!({"plural": "", "kind": ""}), Vec::from_iter(stored));
            let status = json!({"conditions": null, "acceptedNames": names, "storedVersions": stored});
            object.insert("status".to_owned(), status);
        }
        Some(status) => {
            let versions = status.entry("storedVersions").or_insert_with(|| json!([]));
            if let (Some(versions), Some(stored)) = (versions.as_array_mut(), stored)
                && !versions.contains(&stored)
            {
                versions.push(stored);
            }
        }
    }
}

/// Sets the defaults that kube-apiserver sets whenever it decodes a CRD (`SetDefaults_CustomResourceDefinitionSpec`),
/// and drops fields that it never encodes.
pub(crate) fn default_definition_spec(object: &mut Value) {
    normalize::definition(object);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            set_if_empty(names, "singular", &kind.to_lowercase());
            set_if_empty(names, "listKind", &format!("{kind}List"));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// Sets a string field that is missing or empty.
fn set_if_empty(names: &mut Map<String, Value>, name: &str, text: &str) {
    if names.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
        names.insert(name.to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_conversion_and_stored_versions_are_filled_in() {
        let version = json!({"name": "v1", "served": true, "storage": true});
        let mut object = json!({"spec": {"names": {"plural": "things", "kind": "Thing"}, "versions": [version]}});
        default_definition(&mut object);
        let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
        assert_eq!(object["spec"]["names"], names);
        assert_eq!(object["spec"]["conversion"], json!({"strategy": "None"}));
        let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]});
        assert_eq!(object["status"], status);
        let filled_in = object.clone();
        default_definition(&mut object);
        assert_eq!(object, filled_in);
    }

    #[test]
    fn names_without_a_kind_remain_empty() {
        let mut object = json!({"spec": {"names": {"plural": "things", "kind": ""}}});
        default_definition(&mut object);
        assert_eq!(object["spec"]["names"], json!({"plural": "things", "kind": ""}));
    }
}
