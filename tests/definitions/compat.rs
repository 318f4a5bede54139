//! Breaking changes of CRDs. Cases are in `compat/*.yaml`, each with the schema before and after.

use std::{fs, path::PathBuf};

use kctl::{Json, from_yaml, json};
use kctl_runtime::manifest::breaking;

fn crd(case: &Json, key: &str) -> Json {
    let mut crd = json!({
        "metadata": { "name": "webs.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "webs", "kind": "Web" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": case[key] } } },
            }],
        },
    });
    if let Some(definition) = case[key].get("definition") {
        for (name, value) in definition.as_object().unwrap() {
            crd["spec"][name] = value.clone();
        }
    }
    crd
}

#[test]
fn each_breaking_change_is_described() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compat/changes.yaml");
    let cases: Vec<Json> = from_yaml(&fs::read_to_string(file).unwrap()).unwrap();
    assert!(cases.len() > 50, "{}", cases.len());
    let mut different = Vec::new();
    for case in &cases {
        let found: Vec<String> = breaking(&crd(case, "old"), &crd(case, "new"))
            .iter()
            .map(|change| {
                assert!(!change.breaks.is_empty() && !change.migrate.is_empty(), "{change}");
                format!("{}: {}", change.path, change.what)
            })
            .collect();
        let wanted: Vec<&str> = case["breaks"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        if found != wanted {
            different.push(format!("{}\n  wanted {wanted:?}\n  found {found:?}", case["case"]));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn change_of_merging_names_the_new_owners() {
    let list = |kind: &str| json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": kind });
    let map = |kind: &str| json!({ "type": "object", "x-kubernetes-map-type": kind });
    let whole = "field managers that own single parts of spec own all of it from now on";
    for (old, new, expected) in [
        (list("set"), list("atomic"), whole),
        (map("granular"), map("atomic"), whole),
        (map("atomic"), map("granular"), "field managers that own all of spec own single fields from now on"),
    ] {
        let changes = breaking(&crd(&json!({ "old": old }), "old"), &crd(&json!({ "new": new }), "new"));
        let breaks: Vec<&str> = changes.iter().map(|change| change.breaks.as_str()).collect();
        assert_eq!(breaks, [expected]);
    }
}

#[test]
fn breaking_change_names_affected_objects_and_migration() {
    let before = json!({ "old": { "type": "object", "properties": { "host": { "type": "string" } } } });
    let after = json!({ "new": { "type": "object" } });
    let changes = breaking(&crd(&before, "old"), &crd(&after, "new"));
    assert_eq!(
        changes[0].to_string(),
        "v1 spec.host: is gone; what objects have in spec.host is dropped when they are written again; keep the field and stop \
         reading it, or add a version and convert"
    );
}
