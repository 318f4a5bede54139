//! Rows that a real kube-apiserver returned for the same objects.
//!
//! Ages are relative to [`NOW`], the time of the request.

use super::*;

mod custom;

const NOW: &str = "2026-11-21T06:16:46Z";
const CREATED: &str = "2026-11-21T06:15:47Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Returns the rules of a built-in kind, or the empty rules if it has none.
fn kind(group: &str, kind: &str) -> &'static Kind {
    crate::kinds::ALL.iter().find(|found| (found.group, found.kind) == (group, kind)).unwrap_or(&&Kind::DEFAULT)
}

/// Compares the cells of each row of `rows.json`, which has a scenario, group, kind, object and cells per line.
#[test]
fn recorded_rows_are_reproduced_for_built_in_kinds() {
    type Row<'a> = (&'a str, &'a str, &'a str, Value, Value);
    let rows: Vec<Row> = serde_json::from_str(include_str!("rows.json")).unwrap();
    assert!(rows.len() >= 150, "{} rows", rows.len());
    for (scenario, group, kind, mut object, cells) in rows {
        object["metadata"]["creationTimestamp"] = json!(CREATED);
        let case = format!("{scenario}: {kind} {}", object["metadata"]["name"]);
        let table = table(self::kind(group, kind), &[object], now(), Include::None, json!({}));
        assert_eq!(table["rows"][0]["cells"], cells, "{case}");
    }
}

#[test]
fn table_has_list_metadata_and_row_per_object() {
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let list_meta = json!({"resourceVersion": "7", "continue": "x", "remainingItemCount": 1});
    let response =
        |include| table(kind("", "ConfigMap"), std::slice::from_ref(&object), now(), include, list_meta.clone());

    let bare = response(Include::None);
    assert_eq!((&bare["kind"], &bare["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(bare["metadata"], list_meta);
    assert_eq!(bare["rows"], json!([{"cells": ["a", 1, "<unknown>"], "object": null}]));
    assert_eq!(response(Include::Metadata)["rows"][0]["object"], partial(&object));
    assert_eq!(response(Include::Object)["rows"][0]["object"], object);
    assert_eq!(Include::default(), Include::Metadata);
}

#[test]
fn empty_table_has_columns() {
    let table = table(kind("", "Pod"), &[], now(), Include::Metadata, json!({}));
    assert_eq!(table["rows"], json!([]));
    let names: Vec<_> = table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(
        names,
        ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"]
    );
}

#[test]
fn row_of_an_ended_pod_has_a_condition() {
    let row = |phase: &str| {
        let object = json!({"metadata": {"name": "a"}, "status": {"phase": phase}});
        table(kind("", "Pod"), &[object], now(), Include::None, json!({}))["rows"][0]["conditions"].clone()
    };
    let condition = |reason: &str, message: &str| json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]);
    assert_eq!(row("Running"), Value::Null);
    assert_eq!(row("Succeeded"), condition("Succeeded", "The pod has completed successfully."));
    assert_eq!(row("Failed"), condition("Failed", "The pod failed."));
}

#[test]
fn flow_schemas_are_in_matching_order() {
    let schema =
        |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    let objects = [schema("a", 900), schema("c", 100), schema("b", 100)];
    let table = table(kind("flowcontrol.apiserver.k8s.io", "FlowSchema"), &objects, now(), Include::None, json!({}));
    let names: Vec<_> = table["rows"].as_array().unwrap().iter().map(|row| &row["cells"][0]).collect();
    assert_eq!(names, ["b", "c", "a"]);
}

/// Objects with arbitrary fields get as many cells as the kind has columns.
#[test]
fn malformed_objects_have_complete_rows() {
    let nonsense =
        [json!(null), json!([]), json!({}), json!({"metadata": 1, "spec": "x", "status": [], "subsets": {}})];
    for ((group, kind), columns) in COLUMNS.iter() {
        let n_columns = columns.as_array().unwrap().len() + usize::from(kind == "IPAddress");
        let table = table(self::kind(group, kind), &nonsense, now(), Include::Metadata, json!({}));
        for row in table["rows"].as_array().unwrap() {
            assert_eq!(row["cells"].as_array().unwrap().len(), n_columns, "{kind}");
        }
    }
}

#[test]
fn kernel_version_is_printed_with_architecture() {
    let kernel = |info: Value| {
        let object = json!({"metadata": {"name": "n"}, "status": {"nodeInfo": info}});
        table(kind("", "Node"), &[object], now(), Include::None, json!({}))["rows"][0]["cells"][8].clone()
    };
    assert_eq!(kernel(json!({"kernelVersion": "k"})), "k");
    assert_eq!(kernel(json!({"architecture": "a"})), "<unknown> (a)");
    assert_eq!(kernel(json!({"kernelVersion": "k", "architecture": "a"})), "k (a)");
}
