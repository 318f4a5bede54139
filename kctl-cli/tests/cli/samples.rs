//! Compares `kctl interpret` with cases recorded from Karmada: output and errors are equal. `REWORDED` lists the errors
//! with a different message, and why.
//!
//! The cases are in `kctl-interpreter/tests/cases`; `KARMADA_CASES` names a folder with more cases in the same format.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kctl_interpreter::lua;
use serde_json::{Value, json};

/// Returns the folders with cases.
fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kctl-interpreter/tests/cases");
    std::iter::once(own).chain(std::env::var_os("KARMADA_CASES").map(PathBuf::from)).collect()
}

/// The folder for the input files of a case.
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
    // The recorder of the built-in kinds left out empty lists. Without the option the command would get no list at all.
    if case.get("luaScript").is_none() && operation == "AggregateStatus" && inputs.get("statusItems").is_none() {
        arguments.extend(["--status-items".into(), files.write("statusItems", &json!([]))]);
    }
    if let Some(replicas) = inputs["replicas"].as_i64() {
        arguments.extend(["--replicas".into(), replicas.to_string()]);
    }
    if case.get("luaScript").is_some() {
        let of = lua::SCRIPT_FUNCTIONS.into_iter().find(|known| known.name == operation).unwrap();
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

/// Normalizes an answer for comparison: removes the case's `volatile` fields and sorts its `unordered` lists.
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
    answer
}

/// An error whose message differs from Karmada's.
struct Reworded {
    /// A part of Karmada's messages for this error.
    recorded: &'static str,
    /// Parts of our message, in order.
    ours: &'static [&'static str],
    why: &'static str,
}

/// All errors whose message differs. All other messages are equal to Karmada's.
const REWORDED: [Reworded; 16] = [
    Reworded {
        recorded: "Object 'Kind' is missing in '",
        ours: &["Object 'Kind' is missing in the answer for ", ": return the object with its `kind`"],
        why: "the object, which may be a Secret",
    },
    Reworded {
        recorded: "attempt to index a non-table object(",
        ours: &["attempt to index ", " (a nil value)"],
        why: "the message of gopher-lua; Lua 5.1 names the variable",
    },
    Reworded {
        recorded: "attempt to call a non-function object",
        ours: &["attempt to call ", " (a nil value)"],
        why: "the message of gopher-lua; Lua 5.1 names the variable",
    },
    Reworded {
        recorded: "syntax error",
        ours: &["line 1: unexpected symbol near 'end'"],
        why: "the message of gopher-lua; Lua 5.1 says what is wrong",
    },
    Reworded {
        recorded: "json: error calling MarshalJSON for type json.jsonValue: ",
        ours: &["encode lua result to json failed: cannot encode "],
        why: "a prefix of Go's encoder for each level of the table",
    },
    Reworded {
        recorded: "string.rep is not supported by Karmada",
        ours: &["line 2: The Lua function string.rep is not supported: write a loop over"],
        why: "it asks for an issue in Karmada's tracker",
    },
    Reworded {
        recorded: "fail to convert lua value &lua.LTable{",
        ours: &["line 2: accuratePodRequirements: the pod template is invalid: ", "json: cannot unmarshal string"],
        why: "Go's memory of the table",
    },
    Reworded {
        recorded: "int approximation unexpectedly returned a negative value: resource.Quantity{",
        ours: &["line 2: getResourceQuantity: -1 is negative"],
        why: "Go's memory of the quantity",
    },
    Reworded {
        recorded: "json: cannot unmarshal object into Go value of type []",
        ours: &["json unmarshal obj failed: the value is not a list"],
        why: "a type of Go",
    },
    Reworded {
        recorded: "json unmarshal obj failed: json: cannot unmarshal ",
        ours: &["json unmarshal obj failed: "],
        why: "types of Go; ours says what was expected",
    },
    Reworded {
        recorded: "into Go value of type ",
        ours: &["status of cluster ", ": json: cannot unmarshal ", " into a field of type "],
        why: "a type of Go",
    },
    Reworded {
        recorded: " into Go struct field ",
        ours: &["status of cluster ", ": json: cannot unmarshal ", " into a field of type "],
        why: "a type of Go; ours has the cluster and the path",
    },
    Reworded {
        recorded: " accessor error: ",
        ours: &[" accessor error: ", " is of the type ", ", expected "],
        why: "the value is shown as JSON, which tells a string from a number and from null",
    },
    Reworded {
        recorded: "regex used for validation is ",
        ours: &["a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"],
        why: "the expression says the same again",
    },
    Reworded {
        recorded: "failed to convert clusterPod from unstructured object: ",
        ours: &["failed to convert Pod from unstructured object: "],
        why: "a variable of Karmada's code",
    },
    Reworded {
        recorded: " from map[string]interface{}: ",
        ours: &["failed to convert ", " from unstructured object: "],
        why: "a type of Go",
    },
];

/// Checks an error message. Returns the index in `REWORDED` if the message is one of those.
fn check_error(recorded: &str, ours: &str) -> Result<Option<usize>, String> {
    // Script errors: our message begins with `line`, and leaves out the stack traceback of the Lua VM in Go.
    let own = recorded.split("\nstack traceback:").next().unwrap_or_default().trim_end();
    let own = own.strip_prefix("<string>:").map_or(own.to_owned(), |rest| format!("line {rest}"));
    // Errors of built-in interpreters: our message has the field path between the operation and the reason.
    if in_order(ours, own.split(": ")) {
        return Ok(None);
    }
    let reworded = REWORDED.iter().position(|words| recorded.contains(words.recorded));
    match reworded.filter(|index| in_order(ours, REWORDED[*index].ours.iter().copied())) {
        Some(index) => Ok(Some(index)),
        None => Err(format!("{ours}  expected {own}")),
    }
}

fn in_order<'a>(text: &str, parts: impl Iterator<Item = &'a str>) -> bool {
    let mut rest = Some(text);
    for part in parts {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_before, after)| after);
    }
    rest.is_some()
}

fn check(case: &Value, files: &Files) -> Result<Option<usize>, String> {
    let Output { status, stdout, stderr } = interpret(case, files);
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    match (status.code(), case["error"].as_str()) {
        (Some(0), None) => {
            let answer: Value = serde_json::from_str(&stdout).map_err(|error| format!("{error}: {stdout}"))?;
            let (answer, expected) = (comparable(answer, case), comparable(case["expected"].clone(), case));
            if answer == expected { Ok(None) } else { Err(format!("{answer}\n  expected {expected}")) }
        }
        (Some(1), Some(recorded)) if stderr.starts_with("kctl: ") && stdout.is_empty() => {
            check_error(recorded, &stderr)
        }
        (code, _) => {
            Err(format!("ended with {code:?}: {stdout}{stderr}\n  expected {}{}", case["expected"], case["error"]))
        }
    }
}

/// Returns the cases about a single object, from all files of a folder.
fn cases(folder: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts =
        files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "jsonl")).map(|file| {
            let text = fs::read_to_string(file).unwrap();
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
        });
    // `kctl interpret` has no command for the division of replicas.
    texts.flatten().filter(|case| case["operation"].is_string()).collect()
}

#[test]
fn command_line_matches_karmada_in_every_recorded_case() {
    let files = Files { folder: std::env::temp_dir().join(format!("kctl-samples-{}", std::process::id())) };
    fs::create_dir_all(&files.folder).unwrap();
    let (mut wrong, mut used) = (Vec::new(), [false; REWORDED.len()]);
    let folders = folders();
    assert_eq!(cases(&folders[0]).len(), 540, "two files of scripts, and three of built-in kinds");
    let cases: Vec<Value> = folders.iter().flat_map(|folder| cases(folder)).collect();
    for case in &cases {
        match check(case, &files) {
            Ok(None) => {}
            Ok(Some(reworded)) => used[reworded] = true,
            Err(difference) => wrong.push(format!("{} {}: {difference}", case["id"], case["operation"])),
        }
    }
    fs::remove_dir_all(&files.folder).unwrap();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let unused = REWORDED.iter().zip(used).filter(|(_, used)| !used).map(|(words, _)| (words.recorded, words.why));
    assert_eq!(unused.collect::<Vec<_>>(), []);
}
