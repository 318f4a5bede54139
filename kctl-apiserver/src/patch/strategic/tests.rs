//! Answers of kube-apiserver to strategic merge patches of a Deployment.

use serde_json::json;

use super::*;

/// Returns the value at a JSON pointer; for `list/*/field`, the values of this field in all items of the list.
fn at(object: &Value, pointer: &str) -> Value {
    let Some((list, field)) = pointer.split_once("/*/") else {
        return object.pointer(pointer).cloned().unwrap_or_default();
    };
    let items = object.pointer(list).and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item[field].clone()).collect()
}

/// Checks each line of `cases.json` after its Deployment: a scenario, a patch, and the expected result. The result is
/// the variant of the error, or values of the patched object at JSON pointers (`null` for none).
#[test]
fn patches_have_the_results_of_kube_apiserver() {
    let (deployment, cases): (Value, Vec<(&str, Value, Value)>) =
        serde_json::from_str(include_str!("cases.json")).unwrap();
    assert_eq!(cases.len(), 54);
    for (scenario, patch, expected) in cases {
        let mut object = deployment.clone();
        let merged = strategic_merge(Schema::built_in("apps/v1", "Deployment"), &mut object, &patch);
        let found: Value = match (merged, &expected) {
            (Ok(()), Value::Object(expected)) => expected.keys().map(|key| (key.clone(), at(&object, key))).collect(),
            (Ok(()), _) => object,
            (Err(StrategicMergeError::BadRetainKeys), _) => "BadRetainKeys".into(),
            (Err(StrategicMergeError::Rejected(_)), _) => "Rejected".into(),
        };
        assert_eq!(found, expected, "{scenario}: {patch}");
    }
}

/// Follows `mergeSlice` upstream, which arranges a list also after `$patch: replace`.
#[test]
fn replaced_list_moves_items_of_one_key_together() {
    let with_ports =
        |ports: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "ports": ports}]}}}});
    let schema = || Schema::built_in("apps/v1", "Deployment");
    let mut object = with_ports(json!([{"containerPort": 1}]));
    let (udp, tcp) = (json!({"containerPort": 53, "protocol": "UDP"}), json!({"containerPort": 53, "protocol": "TCP"}));
    let patch = with_ports(json!([{"$patch": "replace"}, udp, {"containerPort": 80}, tcp]));
    strategic_merge(schema(), &mut object, &patch).unwrap();
    assert_eq!(object, with_ports(json!([udp, tcp, {"containerPort": 80}])));
    let patch = with_ports(json!([{"$patch": "replace"}, {"protocol": "TCP"}]));
    let found = strategic_merge(schema(), &mut object, &patch);
    assert!(matches!(found, Err(StrategicMergeError::Rejected(_))), "{found:?}");
}

#[test]
fn lists_are_replaced_where_nothing_is_known() {
    let mut object = json!({"a": {"b": 1}, "l": [{"name": "x"}]});
    strategic_merge(None, &mut object, &json!({"a": {"c": 2}, "l": [{"name": "y"}]})).unwrap();
    assert_eq!(object, json!({"a": {"b": 1, "c": 2}, "l": [{"name": "y"}]}));
}

/// Takes minutes if each item is searched in the whole list.
#[test]
fn long_lists_are_merged_in_any_order() {
    let with_env =
        |env: Vec<Value>| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": env}]}}}});
    let schema = Schema::built_in("apps/v1", "Deployment");
    let named = |value: &str, n: usize| json!({"name": format!("n{n}"), "value": value});
    let mut object = with_env((0..40_000).map(|n| named("old", n)).collect());
    let patch = with_env((20_000..60_000).rev().map(|n| named("new", n)).collect());
    strategic_merge(schema, &mut object, &patch).unwrap();
    let env = object.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array).unwrap();
    let n_new = env.iter().filter(|item| item["value"] == "new").count();
    assert_eq!((env.len(), n_new), (60_000, 40_000));
}

/// Takes minutes if each field is searched in the whole list.
#[test]
fn many_keys_are_retained() {
    let keys: Vec<String> = (0..100_000).map(|n| format!("k{n}")).collect();
    let fields: Fields = keys.iter().map(|key| (key.clone(), json!("old"))).collect();
    let mut object = json!({"a": fields});
    object["a"]["other"] = json!("old");
    strategic_merge(None, &mut object, &json!({"a": {"$retainKeys": keys}})).unwrap();
    assert!(object == json!({"a": fields}));
}

/// Takes minutes if each item is inserted into a list.
#[test]
fn long_lists_without_positions_are_ordered() {
    let ordered = |items, server: &[Value]| order::order_items(items, &[], server, Identity::Itself).unwrap();
    let items: Vec<Value> = (0..200_000_u32).map(Value::from).collect();
    assert!(ordered(items.clone(), &[]).iter().eq(items.iter().rev()));
    let server: Vec<Value> = (1..9_u32).map(Value::from).collect();
    let items = [90, 5, 7, 3, 80, 1, 5_u32].map(Value::from).to_vec();
    assert_eq!(json!(ordered(items, &server)), json!([1, 80, 3, 5, 5, 7, 90]));
}
