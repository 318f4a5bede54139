//! Tests of customizations: the invalid ones with their messages, and the script that answers each
//! operation.

use serde_json::{Value, json};

use super::Scripts;
use crate::lua::{Customization, Limits, Pool, ScriptInputs};

fn customization(name: &str, customizations: &Value) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": name},
        "spec": {"target": {"apiVersion": "example.io/v1", "kind": "Widget"}, "customizations": customizations},
    })
}

fn healthy(name: &str) -> Value {
    customization(name, &json!({"healthInterpretation": {"luaScript": "function InterpretHealth(o) return true end"}}))
}

fn unhealthy(name: &str) -> Value {
    customization(name, &json!({"healthInterpretation": {"luaScript": "function InterpretHealth(o) return false end"}}))
}

fn dependencies(name: &str, names: &[&str]) -> Value {
    let items: Vec<String> =
        names.iter().map(|name| format!("{{apiVersion='v1', kind='Secret', name='{name}'}}")).collect();
    let items = items.join(", ");
    let script = format!("function GetDependencies(o) return {{{items}}} end");
    customization(name, &json!({"dependencyInterpretation": {"luaScript": script}}))
}

fn errors(documents: &[Value]) -> Vec<String> {
    Scripts::parse(documents).err().into_iter().flatten().map(|error| error.to_string()).collect()
}

#[test]
fn mistakes_are_rejected_by_name() {
    let mut other_target = unhealthy("two");
    other_target["spec"]["target"]["kind"] = json!("Gadget");
    for (documents, expected) in [
        (vec![healthy("one")], vec![]),
        (vec![healthy("one"), unhealthy("one")], vec![]),
        (vec![healthy("one"), other_target], vec![]),
        (vec![dependencies("one", &[]), dependencies("two", &[])], vec![]),
        (vec![customization("one", &json!({"retention": {"luaScript": ""}}))], vec![]),
        (
            vec![healthy("one"), unhealthy("two")],
            vec![
                "customization \"two\": conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(one) for example.io/v1/Widget: keep one",
            ],
        ),
        (
            vec![customization("one", &json!({"retention": {"luaScript": "function Retain(d, o)\n  return d\n"}}))],
            vec![
                "customization \"one\", operation Retain: script of Retain, line 3: 'end' expected (to close 'function' at line 1) near '<eof>'",
            ],
        ),
        (
            vec![customization("", &json!({"retain": {}, "retention": {"luaScript": 1}}))],
            vec![
                "customization \"\": metadata.name: it is missing: write a string that is not empty",
                "customization \"\": spec.customizations.retain: it is not an operation: write one of statusAggregation, componentResource, dependencyInterpretation, healthInterpretation, replicaResource, statusReflection, retention, replicaRevision",
                "customization \"\": spec.customizations.retention.luaScript: it is missing: write the script as text",
            ],
        ),
        (
            vec![json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}})],
            vec![
                "object \"x\" is not a ResourceInterpreterCustomization of config.karmada.io/v1alpha1 but a Secret of v1: remove it",
            ],
        ),
    ] {
        assert_eq!(errors(&documents), expected);
    }
}

#[test]
fn first_by_name_answers_and_dependencies_add_up() {
    let parse = |document: &Value| Customization::parse(document).unwrap();
    let documents = [unhealthy("b"), healthy("a"), dependencies("b", &["x", "y"]), dependencies("a", &["y", "w"])];
    let scripts = Scripts::merge(documents.iter().map(parse));
    let pool = Pool::new(Limits::default());
    let object = json!({"apiVersion": "example.io/v1", "kind": "Widget"});
    let answer = |object: &Value, operation: &str| {
        scripts.interpret(&pool, operation, &ScriptInputs { desired: Some(object), ..ScriptInputs::default() })
    };
    assert_eq!(answer(&object, "InterpretHealth"), Some(Ok(json!({"healthy": true}))));
    let found = answer(&object, "InterpretDependency").unwrap().unwrap();
    let names: Vec<&str> = found["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|reference| reference["name"].as_str())
        .collect();
    assert_eq!(names, ["w", "x", "y"]);
    assert_eq!(answer(&object, "Retain"), None);
    assert_eq!(answer(&json!({"apiVersion": "example.io/v2", "kind": "Widget"}), "InterpretHealth"), None);
    assert!(scripts.has("example.io/v1", "Widget", "InterpretHealth"));
    assert!(!scripts.has("example.io/v1", "Widget", "Retain"));
}

#[test]
fn customization_without_a_script_leaves_scripts_empty() {
    let unscripted = customization("one", &json!({"retention": {"luaScript": ""}}));
    assert!(Scripts::parse([&unscripted]).unwrap().is_empty());
    assert!(!Scripts::parse([&healthy("one")]).unwrap().is_empty());
}

#[test]
fn failure_names_customization_operation_and_line() {
    let source = "function InterpretHealth(o)\n  return o.status.ready > 0\nend";
    let document = customization("broken", &json!({"healthInterpretation": {"luaScript": source}}));
    let scripts = Scripts::parse([&document]).unwrap();
    let object = json!({"apiVersion": "example.io/v1", "kind": "Widget"});
    let inputs = ScriptInputs { observed: Some(&object), ..ScriptInputs::default() };
    let error = scripts.interpret(&Pool::new(Limits::default()), "InterpretHealth", &inputs).unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "customization \"broken\", operation InterpretHealth: script of InterpretHealth, line 2: attempt to index field 'status' (a nil value)"
    );
}

#[test]
fn debug_output_leaves_out_script_sources() {
    let document = healthy("one");
    let customization = format!("{:?}", Customization::parse(&document).unwrap());
    let scripts = format!("{:?}", Scripts::parse([&document]).unwrap());
    for printed in [customization, scripts] {
        assert!(printed.contains("InterpretHealth"), "{printed}");
        assert!(!printed.contains("return true"), "{printed}");
    }
}
