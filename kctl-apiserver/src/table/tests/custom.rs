//! Cells of a custom kind, as kube-apiserver returned them for these objects and columns.

use serde_json::{Value, json};

use super::{CREATED, Include, custom_table, now};

fn cell(object: &Value, path: &str, kind: &str) -> Value {
    let column = json!({"name": "X", "jsonPath": path, "type": kind});
    let table = custom_table(&[column], std::slice::from_ref(object), now(), Include::None, json!({}));
    table["rows"][0]["cells"][1].clone()
}

/// Compares the cells of `columns.json`, which has a scenario and an object with a path, type and cell per line.
#[test]
fn recorded_cells_are_reproduced_for_custom_columns() {
    type Scenario<'a> = (&'a str, Value, Vec<(String, &'a str, Value)>);
    let scenarios: Vec<Scenario> = serde_json::from_str(include_str!("columns.json")).unwrap();
    assert!(scenarios.iter().map(|(_, _, columns)| columns.len()).sum::<usize>() >= 100);
    for (scenario, object, columns) in scenarios {
        for (path, kind, expected) in columns {
            assert_eq!(cell(&object, &path, kind), expected, "{scenario}: {path} as {kind}");
        }
    }
}

#[test]
fn without_columns_there_is_the_age() {
    let object = json!({"metadata": {"name": "one", "creationTimestamp": CREATED}});
    let table = custom_table(&[], &[object], now(), Include::None, json!({}));
    assert_eq!(table["rows"][0]["cells"], json!(["one", "59s"]));
    let age = &table["columnDefinitions"][1];
    assert_eq!((&age["name"], &age["type"], &age["priority"]), (&json!("Age"), &json!("date"), &json!(0)));
    assert!(age["description"].as_str().unwrap().starts_with("CreationTimestamp is a timestamp"));
}

#[test]
fn column_has_a_description_and_keeps_its_own() {
    let columns = [
        json!({
            "name": "S", "jsonPath": ".spec.s", "type": "string", "format": "byte", "description": "the s", "priority": 1,
        }),
        json!({"name": "I", "jsonPath": ".spec.i", "type": "integer"}),
    ];
    let table = custom_table(&columns, &[], now(), Include::None, json!({}));
    let described = "Custom resource definition column (in JSONPath format): .spec.i";
    let expected = [
        json!({"name": "S", "type": "string", "format": "byte", "description": "the s", "priority": 1}),
        json!({"name": "I", "type": "integer", "format": "", "description": described, "priority": 0}),
    ];
    assert_eq!(table["columnDefinitions"].as_array().unwrap()[1..], expected);
}

#[test]
fn columns_after_unsupported_json_path_are_omitted() {
    let columns =
        [".kind", ".spec[\"o\"].x", ".spec.s"].map(|path| json!({"name": path, "jsonPath": path, "type": "string"}));
    let object = json!({"kind": "Foo", "metadata": {"name": "a"}});
    let table = custom_table(&columns, &[object], now(), Include::None, json!({}));
    assert_eq!(table["rows"][0]["cells"], json!(["a", "Foo"]));
    assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), 2);
}

#[test]
fn missing_value_is_null_in_every_type() {
    let object = json!({"metadata": {"name": "a"}});
    for kind in ["string", "integer", "number", "boolean", "date"] {
        assert_eq!(cell(&object, ".spec.x.y", kind), Value::Null, "{kind}");
    }
}

#[test]
fn cells_have_a_bound_together() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"x": "y".repeat(1 << 20)}});
    let columns = vec![json!({"name": "X", "jsonPath": ".spec", "type": "string"}); 100];
    let table = custom_table(&columns, &[object.clone(), object], now(), Include::None, json!({}));
    let rows = table["rows"].as_array().unwrap();
    let cells = rows.iter().flat_map(|row| row["cells"].as_array().unwrap());
    let n_large = cells.clone().filter(|cell| **cell == "<too large>").count();
    assert_eq!((n_large, cells.count()), (137, 202));
}
