//! Answers of kube-apiserver 1.36 to strategic merge patches of a Deployment.

use serde_json::json;

use super::*;

fn deployment() -> Value {
    let pod = json!({
        "containers": [
            {"name": "a", "image": "i", "args": ["1", "2"],
             "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
             "ports": [{"containerPort": 80, "name": "x"}, {"containerPort": 81, "name": "y", "protocol": "UDP"}]},
            {"name": "b", "image": "i"},
            {"name": "c", "image": "i"}
        ],
        "tolerations": [{"key": "a"}, {"key": "b"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "cm"}}],
    });
    json!({
        "metadata": {"name": "d", "finalizers": ["a/a", "a/b", "a/c"], "labels": {"k": "v", "l": "w"}},
        "spec": {"replicas": 0, "template": {"spec": pod},
                 "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}
    })
}

fn patched(patch: &Value) -> Merge<Value> {
    let mut object = deployment();
    strategic_merge(Schema::built_in("apps/v1", "Deployment"), &mut object, patch).map(|()| object)
}

#[track_caller]
fn check(pointer: &str, patch: &Value, expected: &Value) {
    let object = patched(patch).unwrap();
    assert_eq!(object.pointer(pointer).unwrap_or(&Value::Null), expected);
}

fn pod(spec: &Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

#[track_caller]
fn check_pod(field: &str, patch: &Value, expected: &Value) {
    check(&format!("/spec/template/spec/{field}"), &pod(patch), expected);
}

#[track_caller]
fn check_names(patch: &Value, expected: &[&str]) {
    let object = patched(&pod(patch)).unwrap();
    let containers = object.pointer("/spec/template/spec/containers").unwrap();
    let names: Vec<_> = containers.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, expected);
}

#[track_caller]
fn check_finalizers(patch: &Value, expected: &[&str]) {
    check("/metadata/finalizers", &json!({"metadata": patch}), &json!(expected));
}

#[track_caller]
fn check_rejected(patch: &Value) {
    let error = patched(patch).unwrap_err();
    assert!(matches!(error, StrategicMergeError::Rejected(_)), "{error:?}");
}

#[test]
fn null_deletes_a_field() {
    check("/metadata/labels", &json!({"metadata": {"labels": {"k": null, "z": "1"}}}), &json!({"l": "w", "z": "1"}));
    check("/spec/replicas", &json!({"spec": {"replicas": null}}), &Value::Null);
}

#[test]
fn null_that_meets_nothing_is_dropped() {
    check_pod("nodeSelector", &json!({"nodeSelector": {"a": null, "b": "c"}}), &json!({"b": "c"}));
    check_pod("affinity", &json!({"affinity": {"nodeAffinity": null}}), &json!({}));
}

#[test]
fn empty_patch_list_changes_nothing() {
    check_names(&json!({"containers": []}), &["a", "b", "c"]);
}

#[test]
fn new_items_go_first() {
    check_names(&json!({"containers": [{"name": "d"}]}), &["d", "a", "b", "c"]);
    check_names(&json!({"containers": [{"name": "d"}, {"name": "b"}, {"name": "e"}]}), &["d", "a", "b", "e", "c"]);
}

#[test]
fn items_of_the_patch_keep_its_order() {
    check_names(&json!({"containers": [{"name": "c"}, {"name": "a"}]}), &["b", "c", "a"]);
}

#[test]
fn items_with_the_same_key_are_merged() {
    let patch = json!({"containers": [
        {"name": "z", "ports": [{"containerPort": 1}, {"containerPort": 2}]},
        {"name": "z", "image": "j", "ports": [{"containerPort": 3}]}
    ]});
    let object = patched(&pod(&patch)).unwrap();
    assert_eq!(
        object.pointer("/spec/template/spec/containers/0").unwrap(),
        &json!({"name": "z", "image": "j", "ports": [{"containerPort": 3}, {"containerPort": 1}, {"containerPort": 2}]})
    );
}

#[test]
fn lists_without_strategy_are_replaced() {
    check_pod("containers/0/args", &json!({"containers": [{"name": "a", "args": ["9"]}]}), &json!(["9"]));
    check_pod("tolerations", &json!({"tolerations": [{"key": "c"}]}), &json!([{"key": "c"}]));
}

#[test]
fn delete_directive_removes_an_item() {
    check_names(&json!({"containers": [{"name": "b", "$patch": "delete"}]}), &["a", "c"]);
    check_names(&json!({"containers": [{"name": "zzz", "$patch": "delete"}]}), &["a", "b", "c"]);
}

#[test]
fn replace_directive_anywhere_in_a_list_replaces_it() {
    check_names(&json!({"containers": [{"$patch": "replace"}, {"name": "n"}]}), &["n"]);
    check_names(&json!({"containers": [{"name": "n"}, {"$patch": "replace"}]}), &["n"]);
    // The item that holds the directive is lost.
    check_names(&json!({"containers": [{"name": "b", "$patch": "replace", "image": "r"}]}), &[]);
}

#[test]
fn unusable_directives_in_lists_are_errors() {
    let list = |item: Value| pod(&json!({"containers": [item]}));
    check_rejected(&list(json!({"$patch": "delete"})));
    check_rejected(&list(json!({"name": "b", "$patch": "merge"})));
    check_rejected(&list(json!({"name": "b", "$patch": "bogus", "image": "r"})));
}

#[test]
fn items_of_different_types_are_an_error() {
    check_rejected(&json!({"metadata": {"finalizers": [null]}}));
    check_rejected(&json!({"metadata": {"finalizers": [1]}}));
}

#[test]
fn element_order_arranges_the_list() {
    let order = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    check_names(&json!({"$setElementOrder/containers": order(&["c", "b", "a"])}), &["c", "b", "a"]);
    let patch = json!({"$setElementOrder/containers": order(&["c", "d", "a"]), "containers": [{"name": "d"}]});
    check_names(&patch, &["b", "c", "d", "a"]);
    let deletion = json!([{"name": "b", "$patch": "delete"}]);
    check_names(&json!({"$setElementOrder/containers": order(&["b"]), "containers": deletion}), &["a", "c"]);
    check_names(&json!({"$setElementOrder/containers": order(&["a"]), "containers": deletion}), &["a", "c"]);
}

#[test]
fn element_order_arranges_replaced_scalars() {
    let args = |mut fields: Value| {
        fields["name"] = "a".into();
        json!({"containers": [fields]})
    };
    check_pod("containers/0/args", &args(json!({"$setElementOrder/args": ["2", "1"]})), &json!(["2", "1"]));
    let patch = args(json!({"$setElementOrder/args": ["3", "1"], "args": ["3"]}));
    check_pod("containers/0/args", &patch, &json!(["3"]));
}

#[test]
fn set_element_order_contradicting_the_patch_fails() {
    let order = json!([{"name": "d"}, {"name": "e"}]);
    check_rejected(&pod(&json!({"$setElementOrder/containers": order, "containers": [{"name": "e"}, {"name": "d"}]})));
    check_rejected(&json!({"metadata": {"$setElementOrder/finalizers": ["a/c"], "finalizers": ["a/d"]}}));
}

#[test]
fn set_element_order_of_wrong_type_fails() {
    for order in [json!("a"), json!(null), json!(["a"]), json!([{"x": "a"}])] {
        check_rejected(&pod(&json!({"$setElementOrder/containers": order})));
    }
    check_rejected(&json!({"metadata": {"$setElementOrder/labels": [1]}}));
}

#[test]
fn scalars_with_merge_strategy_are_united() {
    check_finalizers(&json!({"finalizers": ["a/c", "a/d"]}), &["a/a", "a/b", "a/c", "a/d"]);
    check_finalizers(&json!({"finalizers": ["a/d", "a/a"]}), &["a/d", "a/a", "a/b", "a/c"]);
    check_finalizers(&json!({"finalizers": ["a/d", "a/d"]}), &["a/d", "a/a", "a/b", "a/c"]);
    check_finalizers(&json!({"finalizers": []}), &["a/a", "a/b", "a/c"]);
}

#[test]
fn deletion_list_of_a_wrong_type_changes_nothing() {
    check_finalizers(&json!({"$deleteFromPrimitiveList/finalizers": "a/a"}), &["a/a", "a/b", "a/c"]);
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/labels": ["k"]}});
    check("/metadata/labels", &patch, &json!({"k": "v", "l": "w"}));
    check("/metadata/finalizers", &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": null}}), &Value::Null);
}

#[test]
fn element_order_arranges_united_scalars() {
    check_finalizers(&json!({"$setElementOrder/finalizers": ["a/c", "a/b"]}), &["a/a", "a/c", "a/b"]);
    check_finalizers(&json!({"$setElementOrder/finalizers": ["a/c", "a/b", "a/a"]}), &["a/c", "a/b", "a/a"]);
    let patch = json!({"$setElementOrder/finalizers": ["a/c", "a/d", "a/a"], "finalizers": ["a/d"]});
    check_finalizers(&patch, &["a/b", "a/c", "a/d", "a/a"]);
}

#[test]
fn maps_with_a_directive_are_not_added_anew() {
    check_pod("affinity", &json!({"affinity": {"$patch": "replace", "nodeAffinity": {}}}), &Value::Null);
    check_pod("initContainers", &json!({"initContainers": [{"$patch": "merge", "name": "i"}]}), &json!([]));
    let patch = json!({"initContainers": [{"$patch": "replace"}, {"name": "i"}]});
    check_pod("initContainers", &patch, &json!([{"name": "i"}]));
}

#[test]
fn directives_in_new_list_item_are_ordinary_fields() {
    let env = json!([{"name": "A", "value": "1"}, {"name": "Q", "$patch": "delete"}]);
    let item = json!({"name": "z", "env": env, "$setElementOrder/env": [{"name": "A"}]});
    check_pod("containers/0", &json!({"containers": [item]}), &item);
}

#[test]
fn retained_keys_clear_the_others() {
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    check("/spec/strategy", &patch, &json!({"type": "Recreate"}));
    let patch = json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "q"}}]});
    check_pod("volumes/0", &patch, &json!({"name": "v", "configMap": {"name": "q"}}));
    check("/metadata/labels", &json!({"metadata": {"labels": {"$retainKeys": ["k"]}}}), &json!({"k": "v"}));
}

#[test]
fn retain_keys_missing_a_patch_field_fails() {
    let strategy = |strategy: Value| json!({"spec": {"strategy": strategy}});
    for malformed in [json!({"$retainKeys": ["type"], "rollingUpdate": {}}), json!({"$retainKeys": "type"})] {
        let error = patched(&strategy(malformed)).unwrap_err();
        assert!(matches!(error, StrategicMergeError::BadRetainKeys), "{error:?}");
    }
    let patch = strategy(json!({"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": null}));
    check("/spec/strategy", &patch, &json!({"type": "Recreate"}));
}

#[test]
fn lists_are_replaced_where_nothing_is_known() {
    let mut object = json!({"a": {"b": 1}, "l": [{"name": "x"}]});
    strategic_merge(None, &mut object, &json!({"a": {"c": 2}, "l": [{"name": "y"}]})).unwrap();
    assert_eq!(object, json!({"a": {"b": 1, "c": 2}, "l": [{"name": "y"}]}));
}
