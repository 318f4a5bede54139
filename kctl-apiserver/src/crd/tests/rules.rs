//! CEL rules.

use serde_json::{Value, json};

use super::{super::Rules, Schema, validate};
use crate::field_errors::Errors;

fn check(field: &Value, value: &Value, old: Option<&Value>, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}});
    let schema = Schema::structural(&schema);
    let object = json!({"spec": {"f": value}});
    let old = old.map(|old| json!({"spec": {"f": old}}));
    let mut errors = validate(schema, &object, old.as_ref());
    Rules::compile(schema).validate(schema, &object, old.as_ref(), &mut errors);
    super::check_errors(&errors, expected, &format!("{field} {value}"));
}

fn range(rule: &Value) -> Value {
    let integer = json!({"type": "integer"});
    json!({"type": "object", "properties": {"min": integer, "max": integer}, "x-kubernetes-validations": [rule]})
}

#[test]
fn failed_rule_reports_its_message() {
    let says = |rule: &Value| {
        let schema = range(rule);
        let schema = Schema::structural(&schema);
        let mut errors = Errors::default();
        Rules::compile(schema).validate(schema, &json!({"min": 2, "max": 1}), None, &mut errors);
        errors[0].message.clone()
    };
    let rule = "self.min <= self.max";
    assert!(says(&json!({"rule": rule})).contains(rule));
    assert_eq!(says(&json!({"rule": rule, "message": "m"})), "m");
    let expression = json!({"rule": rule, "message": "m", "messageExpression": "self.min > 5 ? 'big' : 'low'"});
    assert_eq!(says(&expression), "low");
}

/// Compares the errors of each line of `rules.json`: a scenario, the schema of the field `spec.f`, a value of it, its
/// old value or `null`, and the errors.
#[test]
fn rules_have_the_errors_of_kube_apiserver() {
    let cases: Vec<(&str, Value, Value, Value, Vec<&str>)> = serde_json::from_str(include_str!("rules.json")).unwrap();
    assert_eq!(cases.len(), 25);
    for (scenario, field, value, old, errors) in cases {
        eprintln!("{scenario}");
        check(&field, &value, Some(&old).filter(|old| !old.is_null()), &errors);
    }
}

#[test]
fn rule_at_root_reports_empty_path() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name == 'y'", "message": "name"},
            {"rule": "false", "fieldPath": ".spec.a", "message": "fp"},
            {"rule": "self.spec.a > 1", "message": "ev"}]});
    let mut errors = Errors::default();
    let schema = Schema::structural(&schema);
    Rules::compile(schema).validate(schema, &json!({"metadata": {"name": "x"}, "spec": {}}), None, &mut errors);
    super::check_errors(&errors, &["Invalid <nil>", "Invalid spec.a"], "the root");
}

#[test]
fn cel_rule_over_step_limit_fails_validation() {
    let list = |rule: &str| {
        let rules = json!([{"rule": rule}]);
        json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules})
    };
    let numbers: Vec<u32> = (0..150).collect();
    let thrice = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
    let dear = "Invalid spec.f";
    check(&list(thrice), &json!(numbers), None, &[dear]);
    check(&list("self.all(a, self.all(b, a + b >= 0))"), &json!(numbers), None, &[]);
    check(&list(thrice), &json!(numbers[..9]), None, &[]);
    check(&list("self.filter(a, a > 0).all(b, [1, 2].exists(c, b >= c))"), &json!(numbers), None, &[]);
}

/// A list of 100,000 items would take gigabytes for its errors without a bound.
#[test]
fn errors_below_long_keys_are_bounded() {
    let key = "k".repeat(1_000_000);
    let count = |items: &Value, value: &Value| {
        let list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": items});
        let schema = json!({"type": "object", "additionalProperties": list});
        let schema = Schema::structural(&schema);
        let object = json!({ key.clone(): value });
        let mut errors = validate(schema, &object, None);
        Rules::compile(schema).validate(schema, &object, None, &mut errors);
        errors.len()
    };
    let pairs: Vec<usize> = (0..100).flat_map(|n| [n, n]).collect();
    let rule = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 500"}]});
    assert_eq!(count(&json!({"type": "integer"}), &json!(pairs)), 11, "duplicates");
    assert_eq!(count(&json!({"type": "integer", "minimum": 500}), &json!([1])), 1);
    assert_eq!(count(&json!({"type": "integer", "minimum": 500}), &json!(pairs)), 11, "numbers");
    assert_eq!(count(&rule, &json!((0..100).collect::<Vec<_>>())), 11, "rules");
}

/// Takes minutes if the whole list is compared for each item.
#[test]
fn many_unchanged_items_are_ratcheted() {
    let item = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]});
    let (list, ones) = (json!({"type": "array", "items": item}), json!(vec![1; 100_000]));
    check(&list, &ones, Some(&ones), &[]);
    check(&list, &json!([7, 1]), Some(&ones), &["Invalid spec.f[1]"]);
}

#[test]
fn too_expensive_functions_are_not_called() {
    let rules = |rule: &str| {
        let rules = json!([{"rule": rule}]);
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rules})
    };
    let dear = "Invalid spec.f";
    let texts: Vec<String> = (0..2_000).map(|n| format!("{n:0>10}")).collect();
    for rule in [
        "self.distinct().size() > 0",
        "sets.contains(self, self)",
        "lists.range(9223372036854775807).size() > 0",
        "self.join('').replace('', self.join('')).size() > 0",
        "self.join(self.join('')).size() > 0",
        "self.join('').matches(self.join('').replace('0', '.'))",
        "'%.1000f'.format([1.0]).replace('0', self.join('')).size() > 0",
    ] {
        check(&rules(rule), &json!(texts), None, &[dear]);
    }
    let twice = ["self"; 9].join(" + ");
    let doubled = format!("optional.of({twice}).optMap(a, {}).value().size() > 0", ["a"; 60].join(" + "));
    check(&rules(&doubled), &json!(texts), None, &[dear]);
    check(&rules("self.distinct().size() == 9"), &json!(texts[..9]), None, &[]);
}

/// Recorded from kube-apiserver 1.36.3: a field with a reserved name can be read by that name and by the escaped name.
#[test]
fn fields_with_reserved_names_have_values() {
    for word in ["namespace", "package", "for", "if", "in", "as", "while"] {
        for name in [word.to_owned(), format!("__{word}__")] {
            let rule = json!({ "rule": format!("!has(self.{name}) || self.{name} != 'bad'"), "message": "bad" });
            let string = json!({ "type": "string" });
            let field = json!({ "type": "object", "properties": { word: string }, "x-kubernetes-validations": [rule] });
            // `in` is an operator: CEL reads it as a field only in its escaped form.
            if name == "in" {
                continue;
            }
            check(&field, &json!({ word: "bad" }), None, &["Invalid spec.f"]);
            check(&field, &json!({ word: "good" }), None, &[]);
            check(&field, &json!({}), None, &[]);
        }
    }
}

/// Takes quadratic time if each item is compared with each old item.
#[test]
fn items_of_long_map_list_find_old_values() {
    let integer = json!({"type": "integer"});
    let item = json!({"type": "object", "required": ["k"], "properties": {"k": integer, "n": integer},
        "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n"}]});
    let field = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"]});
    let old: Value = (0..20_000).map(|key| json!({"k": key, "n": 1})).collect();
    check(&field, &old, Some(&old), &[]);
    let mut new = old.clone();
    new[19_999]["n"] = 0.into();
    check(&field, &new, Some(&old), &["Invalid spec.f[19999]"]);
}
