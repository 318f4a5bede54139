//! Tests parsing, encoding and combining sets of paths.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::clock::Rng;

fn fields() -> Value {
    json!({
        "f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}}},
        "f:spec": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}, "i:1": {}},
    })
}

#[test]
fn fields_v1_is_written_as_it_was_read() {
    assert_eq!(FieldSet::decode(&fields()).encode(), fields());
}

#[test]
fn removing_a_path_removes_its_children() {
    let encoded = |set: FieldSet| set.encode();
    let set = || FieldSet::decode(&fields());
    let (metadata, spec) = (json!({"f:metadata": fields()["f:metadata"]}), json!({"f:spec": fields()["f:spec"]}));
    assert_eq!(encoded(set().without(&["spec"])), metadata);
    assert_eq!(encoded(set().without(&["metadata", "finalizers"])), spec, "what leads to it goes as well");
    assert_eq!(encoded(set().without(&["metadata", "labels"])), fields());
    assert_eq!(encoded(set().without(&["status"])), fields());
}

#[test]
fn steps_that_are_not_understood_are_left_out() {
    assert_eq!(FieldSet::decode(&json!({"x:y": {}, "k:{": {}, "f:a": {}})).encode(), json!({"f:a": {}}));
    assert!(FieldSet::decode(&json!([1])).is_empty());
}

/// Takes minutes if each element is inserted at its position.
#[test]
fn elements_in_any_order_are_sorted() {
    let n = 200_000;
    let fields: Map<String, Value> =
        (0..n).map(|i| (format!("k:{{\"z\":{},\"a\":{}}}", n + i, 2 * n - i), json!({}))).collect();
    let set = FieldSet::decode(&Value::Object(fields));
    assert_eq!(set.entries.len(), n);
    assert_eq!(set.entries[0].element.as_str(), format!("k:{{\"a\":{},\"z\":{}}}", n + 1, 2 * n - 1));
    let twice = FieldSet::decode(&json!({"v:1": {"f:a": {}}, "v:1.0": {}}));
    assert_eq!(twice.encode(), json!({"v:1": {".": {}, "f:a": {}}}));
}

/// Takes minutes if all entries are visited for each element.
#[test]
fn paths_below_many_elements_are_replaced() {
    let fields: Map<String, Value> = (0..200_000).map(|i| (format!("f:{i}"), json!({"f:a": {}}))).collect();
    let mut set = FieldSet::decode(&Value::Object(fields));
    let elements: Vec<PathElement> = set.children().map(|(element, _)| element.clone()).collect();
    for element in &elements[1..] {
        set.replace_below(element, FieldSet::decode(&json!({"f:b": {}})));
    }
    set.replace_below(&elements[0], FieldSet::default());
    assert_eq!(set.entries.len(), elements.len() - 1);
    assert!(set.children().all(|(_, below)| below.encode() == json!({"f:b": {}})));
}

#[test]
fn paths_read_as_in_messages() {
    let texts: Vec<String> = FieldSet::decode(&fields()).paths().iter().map(|path| path_text(path)).collect();
    let expected = [
        ".metadata.finalizers",
        ".metadata.finalizers[=\"a/b\"]",
        ".spec[1]",
        ".spec.ports[containerPort=80,protocol=\"TCP\"]",
        ".spec.ports[containerPort=80,protocol=\"TCP\"].name",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn numbers_that_are_equal_are_one_step() {
    assert_eq!(PathElement::value(&json!(1.0)), PathElement::value(&json!(1)));
    for (text, expected) in [
        (r#"k:{"b":1,"a":2}"#, Some(r#"k:{"a":2,"b":1}"#)),
        (r#"k:{"a":"\u0062"}"#, Some(r#"k:{"a":"b"}"#)),
        (r#"k:{"a": "b"}"#, Some(r#"k:{"a":"b"}"#)),
        (r#"k:{"a":"b"}"#, Some(r#"k:{"a":"b"}"#)),
        (r#"k:{"a":"b","c":"d"}"#, Some(r#"k:{"a":"b","c":"d"}"#)),
        (r#"k:{"a":"b"c"}"#, None),
        ("k:{\"a\":\"\n\"}", None),
    ] {
        assert_eq!(PathElement::decode(text).as_ref().map(PathElement::as_str), expected, "{text}");
    }
}

/// Returns a random subset of the two-step paths over a few elements.
fn some(rng: &mut Rng) -> FieldSet {
    let mut set = FieldSet::default();
    for first in ["a", "b", "c"].map(PathElement::field) {
        if rng.next().is_multiple_of(2) {
            set.insert(std::slice::from_ref(&first));
        }
        for second in [PathElement::field("x"), PathElement::index(1), PathElement::value(&json!("v"))] {
            if rng.next().is_multiple_of(3) {
                set.insert(&[first.clone(), second]);
            }
        }
    }
    set
}

#[test]
fn sets_are_combined_as_sets_of_their_paths() {
    let mut rng = Rng::new(3);
    for _ in 0..5_000 {
        let (left, right) = (some(&mut rng), some(&mut rng));
        let paths = |set: &FieldSet| set.paths().into_iter().collect::<BTreeSet<_>>();
        let (left_paths, right_paths) = (paths(&left), paths(&right));
        assert_eq!(paths(&left.union(&right)), &left_paths | &right_paths);
        assert_eq!(paths(&left.difference(&right)), &left_paths - &right_paths);
        assert_eq!(paths(&left.intersection(&right)), &left_paths & &right_paths);
        assert_eq!(left.is_subset(&right), left_paths.is_subset(&right_paths));
        assert_eq!(left.is_disjoint(&right), left_paths.is_disjoint(&right_paths));
        assert_eq!(left == right, left_paths == right_paths);
        assert_eq!(FieldSet::decode(&left.encode()), left);
        assert!(left.paths().iter().all(|path| left.contains(path)));
    }
}
