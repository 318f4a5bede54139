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
fn a_failed_rule_says_its_message() {
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
    check(&range(&json!({"rule": rule})), &json!({"min": 1, "max": 1}), None, &[]);
    let number = json!({"type": "number", "nullable": true, "x-kubernetes-validations": [{"rule": "self > 1.0", "message": "n"}]});
    check(&number, &json!(0.5), None, &["Invalid spec.f"]);
    check(&number, &json!(null), None, &[]);
}

#[test]
fn items_and_values_of_maps_are_checked() {
    let small = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "small"}]});
    let expected = ["Invalid spec.f[0]", "Invalid spec.f[2]"];
    check(&json!({"type": "array", "items": small}), &json!([1, 2, 0]), None, &expected);
    let expected = ["Invalid spec.f[a.b]", "Invalid spec.f[c]"];
    check(&json!({"type": "object", "additionalProperties": small}), &json!({"a.b": 1, "c": 0}), None, &expected);
}

#[test]
fn a_rule_chooses_reason_and_field() {
    let value = json!({"min": 1});
    for reason in ["Required", "Forbidden", "Duplicate", "Invalid"] {
        let rule = json!({"rule": "false", "reason": format!("FieldValue{reason}"), "fieldPath": ".min"});
        check(&range(&rule), &value, None, &[&format!("{reason} spec.f.min")]);
    }
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}, "x-kubernetes-validations": [
        {"rule": "has(self.a)", "reason": "FieldValueRequired", "fieldPath": ".a", "message": "need a"}]});
    check(&map, &json!({"b": 1}), None, &["Required spec.f.[a]"]);
}

#[test]
fn a_rule_that_cannot_be_evaluated_fails() {
    let divided = json!({"rule": "self.min / self.max > 1", "message": "div"});
    let expected = "Invalid spec.f";
    check(&range(&divided), &json!({"min": 1, "max": 0}), None, &[expected]);
    let missing = json!({"rule": "self.min > 1", "message": "miss"});
    let expected = "Invalid spec.f";
    check(&range(&missing), &json!({}), None, &[expected]);
}

#[test]
fn transition_rules_wait_for_an_old_value() {
    let grow = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "grow"}]});
    check(&grow, &json!(1), None, &[]);
    check(&grow, &json!(6), Some(&json!(5)), &[]);
    check(&grow, &json!(4), Some(&json!(5)), &["Invalid spec.f"]);
    let optional = json!({"type": "integer", "x-kubernetes-validations": [
        {"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": true, "message": "opt"}]});
    check(&optional, &json!(1), None, &[]);
    check(&optional, &json!(2), Some(&json!(1)), &["Invalid spec.f"]);
}

#[test]
fn items_find_their_past_by_their_keys() {
    let fixed =
        json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
        {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": fixed}}});
    let old = json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]);
    let expected = ["Invalid spec.f[1].v"];
    check(&list, &json!([{"k": "b", "v": 2}, {"k": "a", "v": 3}]), Some(&old), &expected);
}

#[test]
fn rules_are_not_checked_where_the_schema_refuses() {
    let expected = ["TypeInvalid spec.f.min", "Invalid <nil>"];
    check(&range(&json!({"rule": "false"})), &json!({"min": "x"}), None, &expected);
}

#[test]
fn the_root_has_no_path() {
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

#[test]
fn set_and_map_lists_ignore_item_order() {
    let fixed = json!([{"rule": "self == oldSelf", "message": "fixed"}]);
    let text = json!({"type": "string"});
    let list = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": text, "x-kubernetes-validations": fixed});
    let (old, new) = (json!(["a", "b"]), json!(["b", "a"]));
    check(&list("set"), &new, Some(&old), &[]);
    check(&list("set"), &json!(["b", "c"]), Some(&old), &["Invalid spec.f"]);
    check(&list("atomic"), &new, Some(&old), &["Invalid spec.f"]);
    let whole = json!({"type": "array", "x-kubernetes-list-type": "set", "x-kubernetes-validations": fixed, "items":
        {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text}});
    let item_with = |number: u32| json!({"a": number.to_string(), "b": "b", "c": "c", "d": "d"});
    check(&whole, &json!([item_with(2), item_with(1)]), Some(&json!([item_with(1), item_with(2)])), &[]);
    let item = json!({"type": "object", "required": ["k"], "properties": {"k": text, "v": {"type": "integer"}}});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item,
        "x-kubernetes-validations": fixed});
    let old = json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]);
    check(&map, &json!([{"k": "b", "v": 2}, {"k": "a", "v": 1}]), Some(&old), &[]);
    let other = json!([{"k": "b", "v": 2}, {"k": "a", "v": 2}]);
    check(&map, &other, Some(&old), &["Invalid spec.f"]);
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
