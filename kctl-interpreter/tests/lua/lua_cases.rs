//! Compares the answers of scripts with those recorded from Karmada. Volatile paths are skipped, unordered lists are
//! compared as sets, quantities by value and errors by class.

use kctl_interpreter::lua::{ErrorClass, Limits, Pool, Script, ScriptError, ScriptInputs};
use serde_json::Value;

const CASES: &str = include_str!("../cases/lua.jsonl");
const MORE: &str = include_str!("../cases/lua-more.jsonl");

#[test]
fn scripts_answer_as_in_karmada() {
    assert_same(CASES);
}

/// Covers unusual inputs and results of each operation, and library functions in which gopher-lua differs from C Lua.
#[test]
fn odd_values_and_patterns_are_as_in_karmada() {
    assert_eq!(MORE.lines().count(), 71);
    assert_same(MORE);
}

fn assert_same(cases: &str) {
    let pool = Pool::new(Limits::default());
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        if let Err(difference) = check(&pool, &case) {
            wrong.push(format!("{} {}: {difference}", case["id"], case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.lines().count(), wrong.join("\n"));
}

fn check(pool: &Pool, case: &Value) -> Result<(), String> {
    let got = run(pool, case);
    match (got, case.get("error").and_then(Value::as_str)) {
        (Err(error), Some(expected)) if error.class() == class_of(expected) => Ok(()),
        (Err(error), Some(expected)) => Err(format!("{:?} {error}\n  expected {expected}", error.class())),
        (Ok(got), Some(expected)) => Err(format!("{got}\n  expected the error {expected}")),
        (Err(error), None) => Err(format!("the error {error}\n  expected {}", case["expected"])),
        (Ok(mut got), None) => {
            let mut expected = case["expected"].clone();
            for path in case["volatile"].as_array().into_iter().flatten() {
                let pointer = format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"));
                for value in [&mut got, &mut expected] {
                    value.pointer_mut(&pointer).map(Value::take);
                }
            }
            for path in case["unordered"].as_array().into_iter().flatten() {
                let pointer = format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"));
                for value in [&mut got, &mut expected] {
                    let list = value.pointer_mut(&pointer).and_then(Value::as_array_mut);
                    if let Some(list) = list {
                        list.sort_by_key(ToString::to_string);
                    }
                }
            }
            if is_same(&got, &expected) { Ok(()) } else { Err(format!("{got}\n  expected {expected}")) }
        }
    }
}

fn run(pool: &Pool, case: &Value) -> Result<Value, ScriptError> {
    let text = |name: &str| case[name].as_str().expect("a case names its parts");
    let script = Script::compile(text("luaScript"), text("function"))?;
    let inputs = &case["inputs"];
    let inputs = ScriptInputs {
        desired: inputs.get("desiredObj"),
        observed: inputs.get("observedObj"),
        status_items: inputs.get("statusItems"),
        replicas: inputs.get("replicas").and_then(Value::as_i64),
    };
    pool.interpret(text("operation"), &script, &inputs)
}

/// Compares numbers as `f64`, because Lua numbers are doubles.
fn is_same(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Number(got), Value::Number(expected)) => got.as_f64() == expected.as_f64(),
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| is_same(got, expected))
        }
        (Value::Object(got), Value::Object(expected)) => {
            got.len() == expected.len()
                && got.iter().all(|(key, got)| expected.get(key).is_some_and(|expected| is_same(got, expected)))
        }
        _ => got == expected,
    }
}

fn class_of(error: &str) -> ErrorClass {
    if error.contains("syntax error") {
        ErrorClass::Syntax
    } else if error.contains("context deadline exceeded") {
        ErrorClass::Timeout
    } else if error.starts_with("<string>:") || error.contains("function ReflectStatus") {
        ErrorClass::Runtime
    } else {
        ErrorClass::WrongResult
    }
}
