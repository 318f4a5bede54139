//! Compares the built-in interpreters with cases recorded from Karmada.
//!
//! Each line of `cases/*.jsonl` is one case: its inputs, and Karmada's answer. Lists that a case names as `unordered`
//! are compared as sets, quantities by value and errors by class.

use std::collections::BTreeMap;

use kctl_interpreter::{
    division,
    native::{self, NativeError},
    operation::{Inputs, Operation},
    quantity::Quantity,
};
use serde_json::{Map, Value};

fn cases(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn input_object(inputs: &Value, name: &str) -> Option<Value> {
    inputs.get(name).filter(|value| !value.is_null()).cloned()
}

fn inputs(case: &Value) -> Inputs {
    let inputs = &case["inputs"];
    Inputs {
        desired: input_object(inputs, "desiredObj"),
        observed: input_object(inputs, "observedObj"),
        replicas: inputs["replicas"].as_i64(),
        status_items: Some(
            input_object(inputs, "statusItems").map_or_else(Vec::new, |items| serde_json::from_value(items).unwrap()),
        ),
    }
}

/// Returns the kind of failure that a message of Karmada describes.
fn class_of(message: &str) -> &'static str {
    let is = |part: &str| message.contains(part);
    if is("default interpreter for operation") {
        "dependency interpreter not found"
    } else if is("not found") {
        "interpreter not found"
    } else if is("missing required") || is("can not leave name") || is("a valid label must be") {
        "dependency invalid"
    } else if is("strconv.ParseInt") {
        "annotation invalid"
    } else if is("accessor error") {
        "field of another type"
    } else if is("json: cannot unmarshal") {
        "member status invalid"
    } else if is("quantities must match") || is("cannot convert") || is("cannot restore") || is("unrecognized type") {
        "object invalid"
    } else {
        "unknown"
    }
}

fn class(error: &NativeError) -> &'static str {
    match error {
        NativeError::InterpreterNotFound { .. } => "interpreter not found",
        NativeError::DependencyInterpreterNotFound { .. } => "dependency interpreter not found",
        NativeError::ObjectInvalid { .. } => "object invalid",
        NativeError::MemberStatusInvalid { .. } => "member status invalid",
        NativeError::FieldOfOtherType { .. } => "field of another type",
        NativeError::AnnotationNotNumber { .. } => "annotation invalid",
        NativeError::InvalidDependency(_) => "dependency invalid",
        _ => "other",
    }
}

/// Normalizes an answer for comparison.
fn comparable(answer: &Value, case: &Value) -> Value {
    let mut answer = answer.clone();
    for name in case["unordered"].as_array().into_iter().flatten() {
        if let Some(list) = name.as_str().and_then(|name| answer.get_mut(name)).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
    for path in case["volatile"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        remove(&mut answer, &path.split('.').collect::<Vec<_>>());
    }
    if let Some(request) = answer.pointer_mut("/requires/resourceRequest").and_then(Value::as_object_mut) {
        by_value(request);
    }
    answer
}

fn by_value(quantities: &mut Map<String, Value>) {
    for quantity in quantities.values_mut() {
        let parsed: Quantity = quantity.as_str().unwrap().parse().unwrap();
        *quantity = format!("{} {}", parsed.value(), parsed.milli_value()).into();
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    match (path, value) {
        ([last], Value::Object(map)) => _ = map.remove(*last),
        ([first, rest @ ..], value) => {
            let inner = first.parse::<usize>().ok().and_then(|idx| value.get_mut(idx)).map(|inner| remove(inner, rest));
            if inner.is_none()
                && let Some(inner) = value.get_mut(*first)
            {
                remove(inner, rest);
            }
        }
        ([], _) => {}
    }
}

#[test]
fn built_in_interpreters_answer_as_karmada_does() {
    // The first file is a sample of all operations. The second covers the fields and edge cases of each kind. The third
    // has variations of both, with fields that are missing, null, of another type or out of range.
    let files = [
        include_str!("cases/native.jsonl"),
        include_str!("cases/native-more.jsonl"),
        include_str!("cases/native-varied.jsonl"),
    ];
    let cases = files.map(cases).concat();
    assert_eq!(cases.len(), 246 + 143);
    let failures = differences(&cases);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn differences(cases: &[Value]) -> Vec<String> {
    let mut failures = Vec::new();
    for case in cases {
        let operation: Operation = case["operation"].as_str().unwrap().parse().unwrap();
        let answer = native::interpret(operation, &inputs(case));
        let is_same = match (&answer, case["error"].as_str()) {
            (Ok(answer), None) => comparable(answer, case) == comparable(&case["expected"], case),
            (Err(error), Some(message)) => class(error) == class_of(message),
            _ => false,
        };
        if !is_same {
            let answer = answer.map_or_else(|error| format!("error: {error}"), |answer| answer.to_string());
            let expected =
                case["error"].as_str().map_or_else(|| case["expected"].to_string(), |text| format!("error: {text}"));
            failures.push(format!("{} {}\n  expected {expected}\n  got      {answer}", case["id"], case["name"]));
        }
    }
    failures
}

#[test]
fn replicas_are_divided_by_weight_as_karmada_does() {
    let cases = cases(include_str!("cases/division.jsonl"));
    assert_eq!(cases.len(), 120);
    for case in &cases {
        let inputs = &case["inputs"];
        let weights = serde_json::from_value(inputs["weights"].clone()).unwrap();
        let initial: BTreeMap<_, _> = input_object(inputs, "initial")
            .map_or_else(BTreeMap::new, |initial| serde_json::from_value(initial).unwrap());
        let replicas = i32::try_from(inputs["replicas"].as_i64().unwrap()).unwrap();
        let divided = division::divide(replicas, &weights, &initial, inputs["resourceUID"].as_str().unwrap());
        let divided: Map<_, _> = divided.into_iter().map(|cluster| (cluster.name, cluster.replicas.into())).collect();
        assert_eq!(Value::Object(divided), case["expected"], "{}", case["id"]);
    }
}
