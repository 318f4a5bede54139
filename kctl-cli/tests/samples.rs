//! Cases that were recorded from Karmada, from the command line: what `kctl interpret` prints is what Karmada answered.
//!
//! The cases are those of `kctl-interpreter/tests/cases`; `KARMADA_CASES` names a folder with more of the same form.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kctl_interpreter::{lua, quantity::Quantity};
use serde_json::{Value, json};

/// The folders with cases.
fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kctl-interpreter/tests/cases");
    std::iter::once(own).chain(std::env::var_os("KARMADA_CASES").map(PathBuf::from)).collect()
}

/// Where a case's files are.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn write(&self, name: &str, value: &Value) -> String {
        let path = self.folder.join(name);
        fs::write(&path, value.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn interpret(case: &Value, files: &Files) -> Output {
    let text = |name: &str| case[name].as_str().unwrap_or_default();
    let operation = text("operation");
    let mut arguments = vec!["interpret".to_owned(), "--operation".into(), operation.into()];
    let inputs = &case["inputs"];
    for (input, option) in
        [("desiredObj", "--desired"), ("observedObj", "--observed"), ("statusItems", "--status-items")]
    {
        match inputs.get(input) {
            Some(value) if option == "--status-items" || !value.is_null() => {
                arguments.extend([option.into(), files.write(input, value)]);
            }
            _ => {}
        }
    }
    // Without the option there are no items; that there is no list at all, which only scripts can tell, is said by a file.
    if case.get("luaScript").is_some() && operation == "AggregateStatus" && inputs.get("statusItems").is_none() {
        arguments.extend(["--status-items".into(), files.write("statusItems", &Value::Null)]);
    }
    if let Some(replicas) = inputs["replicas"].as_i64() {
        arguments.extend(["--replicas".into(), replicas.to_string()]);
    }
    if case.get("luaScript").is_some() {
        let of = lua::OPERATIONS.into_iter().find(|known| known.name == operation).unwrap();
        let customization = json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterCustomization",
            "metadata": { "name": "case" },
            "spec": {
                "target": { "apiVersion": case["apiVersion"], "kind": case["kind"] },
                "customizations": { of.field: { "luaScript": case["luaScript"] } },
            },
        });
        arguments.extend(["--customization".into(), files.write("customization", &customization)]);
    }
    Command::new(env!("CARGO_BIN_EXE_kctl")).args(arguments).output().unwrap()
}

/// Brings an answer to the form that comparisons are made in: sets sorted, times left out, quantities by value.
fn comparable(mut answer: Value, case: &Value) -> Value {
    let paths = |name: &str| {
        let paths = case[name].as_array().cloned().unwrap_or_default();
        paths.into_iter().map(|path| format!("/{}", path.as_str().unwrap().replace('.', "/"))).collect::<Vec<_>>()
    };
    for path in paths("volatile") {
        answer.pointer_mut(&path).map(Value::take);
    }
    for path in paths("unordered") {
        if let Some(list) = answer.pointer_mut(&path).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
    if let Some(request) = answer.pointer_mut("/requires/resourceRequest").and_then(Value::as_object_mut) {
        for quantity in request.values_mut() {
            let parsed: Quantity = quantity.as_str().unwrap().parse().unwrap();
            *quantity = parsed.milli_value().into();
        }
    }
    as_doubles(&answer)
}

/// Numbers were doubles in Lua.
fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(as_doubles).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), as_doubles(field))).collect(),
        other => other.clone(),
    }
}

fn check(case: &Value, files: &Files) -> Result<(), String> {
    let Output { status, stdout, stderr } = interpret(case, files);
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let is_error = case.get("error").is_some_and(|error| !error.is_null());
    match (status.code(), is_error) {
        (Some(0), false) => {
            let answer: Value = serde_json::from_str(&stdout).map_err(|error| format!("{error}: {stdout}"))?;
            let (answer, expected) = (comparable(answer, case), comparable(case["expected"].clone(), case));
            if answer == expected { Ok(()) } else { Err(format!("{answer}\n  expected {expected}")) }
        }
        (Some(1), true) if stderr.starts_with("kctl: ") && stdout.is_empty() => Ok(()),
        (code, _) => {
            Err(format!("ended with {code:?}: {stdout}{stderr}\n  expected {}{}", case["expected"], case["error"]))
        }
    }
}

#[test]
fn the_command_line_answers_every_recorded_case_as_karmada_did() {
    let files = Files { folder: std::env::temp_dir().join(format!("kctl-samples-{}", std::process::id())) };
    fs::create_dir_all(&files.folder).unwrap();
    let (mut wrong, mut n_cases) = (Vec::new(), 0);
    for folder in folders() {
        for name in ["lua.jsonl", "native.jsonl", "native-more.jsonl"] {
            // The last one is not everywhere.
            let Ok(text) = fs::read_to_string(folder.join(name)) else {
                assert_eq!(name, "native-more.jsonl", "{}", folder.display());
                continue;
            };
            for line in text.lines() {
                let case: Value = serde_json::from_str(line).unwrap();
                n_cases += 1;
                if let Err(difference) = check(&case, &files) {
                    wrong.push(format!("{} {}: {difference}", case["id"], case["operation"]));
                }
            }
        }
    }
    fs::remove_dir_all(&files.folder).unwrap();
    assert!(wrong.is_empty(), "{} of {n_cases} differ:\n{}", wrong.len(), wrong.join("\n"));
}
