//! The offline check accepts and rejects the same CRDs as the real API server: cases are in `schemas/*.yaml`, verdicts
//! in `recorded.json`.
//!
//! The ignored test sends the cases to the server of `KUBECONFIG`. With `RECORD=1`, its verdicts are recorded.

use std::{collections::BTreeMap, fs, path::PathBuf};

use kctl::{
    Json, from_yaml, json,
    kube::{Client, Error},
};
use kctl_apiserver::ApiServer;
use kctl_runtime::manifest::check;

/// Minimum number of cases.
const CASES_MIN: usize = 600;

struct Case {
    name: String,
    crd: Json,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

fn cases() -> Vec<Case> {
    let mut files: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "yaml")) {
        let all: Vec<Json> = from_yaml(&fs::read_to_string(file).unwrap()).unwrap();
        cases.extend(all.iter().map(case));
    }
    cases
}

fn case(case: &Json) -> Case {
    let mut root = json!({ "type": "object", "properties": { "spec": fields(), "status": {
        "type": "object", "properties": { "replicas": { "type": "integer" }, "selector": { "type": "string" } },
    } } });
    if case["spec"].is_object() {
        root["properties"]["spec"] = case["spec"].clone();
    }
    if case["root"].is_object() {
        root = case["root"].clone();
    }
    let rule = &case["rule"];
    if !rule.is_null() {
        let rule = if rule.is_string() { json!({ "rule": rule }) } else { rule.clone() };
        root["properties"]["spec"]["x-kubernetes-validations"] = json!([rule]);
    }
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "webs.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "webs", "kind": "Web" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": root } }],
        },
    });
    merge(&mut crd["spec"]["versions"][0], &case["version"]);
    merge(&mut crd, &case["definition"]);
    let name = case["case"].as_str().unwrap().to_owned();
    Case { name, crd }
}

/// Returns an object schema with a field of each type, for rules and JSON paths.
fn fields() -> Json {
    json!({
        "type": "object",
        "properties": {
            "a": { "type": "string" },
            "name": { "type": "string", "maxLength": 63 },
            "replicas": { "type": "integer" },
            "max": { "type": "integer" },
            "ratio": { "type": "number" },
            "enabled": { "type": "boolean" },
            "on": { "type": "boolean" },
            "since": { "type": "string", "format": "date-time" },
            "wait": { "type": "string", "format": "duration" },
            "either": { "x-kubernetes-int-or-string": true },
            "hosts": { "type": "array", "maxItems": 10, "items": { "type": "string", "maxLength": 63 } },
            "list": { "type": "array", "maxItems": 10, "items": { "type": "string", "maxLength": 63 } },
            "labels": { "type": "object", "maxProperties": 10, "additionalProperties": { "type": "string", "maxLength": 63 } },
            "ports": { "type": "array", "maxItems": 10, "items": {
                "type": "object",
                "properties": { "name": { "type": "string", "maxLength": 63 }, "number": { "type": "integer" } },
            } },
            "port": { "type": "object", "properties": { "number": { "type": "integer" } } },
            "in": { "type": "string", "maxLength": 63 },
            "my-name": { "type": "string", "maxLength": 63 },
            "anything": { "x-kubernetes-preserve-unknown-fields": true },
        },
    })
}

/// Applies a JSON merge patch (RFC 7386), but does not remove null fields.
fn merge(into: &mut Json, patch: &Json) {
    for (key, value) in patch.as_object().into_iter().flatten() {
        match &mut into[key] {
            known if known.is_object() && value.is_object() => merge(known, value),
            known => *known = value.clone(),
        }
    }
}

/// Returns the error of a server for a CRD, or `None` if it accepts it.
pub(crate) async fn ask(client: &Client, crd: &Json) -> Option<String> {
    let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let body = serde_json::to_vec(crd).unwrap();
    let request = http::Request::post(uri).header("content-type", "application/json").body(body).unwrap();
    match client.request::<Json>(request).await {
        Ok(_) => None,
        Err(Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

fn read_recorded() -> BTreeMap<String, Option<String>> {
    serde_json::from_str(&fs::read_to_string(folder().join("recorded.json")).unwrap_or_else(|_| "{}".into())).unwrap()
}

#[test]
fn offline_check_agrees_with_the_real_server() {
    let (cases, recorded) = (cases(), read_recorded());
    assert!(cases.len() >= CASES_MIN, "{}", cases.len());
    assert_eq!(cases.len(), recorded.len(), "each case has one name, and its verdict is recorded");
    let mut differences = Vec::new();
    for case in &cases {
        let found = check(&case.crd);
        let wanted = &recorded[&case.name];
        if found.rejected.is_empty() != wanted.is_none() {
            let ours: Vec<_> = found.rejected.iter().map(ToString::to_string).collect();
            let wanted = wanted.as_deref().unwrap_or("nothing");
            differences.push(format!("{}: we say {ours:?}, the server {wanted}", case.name));
        }
    }
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), cases.len(), differences.join("\n"));
}

#[test]
fn rejected_schemas_name_the_field_and_the_fix() {
    for case in cases() {
        for problem in check(&case.crd).rejected {
            assert!(!problem.path.is_empty() && !problem.what.is_empty(), "{}: {problem}", case.name);
        }
    }
}

/// Returns the cases in which the embedded server is known to differ. A case that no longer differs must be removed
/// from the list.
fn known_differences() -> Vec<String> {
    let text = fs::read_to_string(folder().join("embedded.txt")).unwrap();
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn embedded_server_differs_only_where_known() {
    let client = Client::new(ApiServer::new().service(), "default");
    let recorded = read_recorded();
    let mut different = Vec::new();
    for case in cases() {
        if ask(&client, &case.crd).await.is_some() != recorded[&case.name].is_some() {
            different.push(case.name);
        }
    }
    assert_eq!(different, known_differences(), "schemas/embedded.txt lists what differs");
}

/// Removes the timestamp after `selfType`, the prefix of generated type names, from a message.
fn lasting(message: &str) -> String {
    let mut rest = message;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("selfType") {
        out.push_str(before);
        out.push_str("selfType");
        rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    }
    out + rest
}

/// Differences in wording are printed, not asserted. Run with `--nocapture` to see them.
#[expect(clippy::print_stdout, reason = "a report of differences that fail nothing: `-- --nocapture` shows it")]
#[tokio::test]
async fn embedded_server_rejects_the_recorded_rules() {
    let client = Client::new(ApiServer::new().service(), "default");
    let recorded = read_recorded();
    let (mut n_cases, mut differences) = (0, Vec::new());
    for case in cases() {
        // Syntax errors are worded differently, because the embedded server has another CEL parser.
        let is_about_rules = |text: &&str| text.contains("OptionalOldSelf") && !text.contains("Syntax error");
        let Some(wanted) = recorded[&case.name].as_deref().filter(is_about_rules) else { continue };
        let found = ask(&client, &case.crd).await.unwrap_or_else(|| panic!("{} is accepted", case.name));
        n_cases += 1;
        if lasting(&found) != lasting(wanted) {
            differences.push(format!("{}:\n{found}\n{wanted}", case.name));
        }
    }
    assert!(n_cases > 100, "{n_cases}");
    println!("{} of {n_cases} differ in wording:\n{}", differences.len(), differences.join("\n"));
}

#[tokio::test]
#[ignore = "needs KUBECONFIG: cargo xtask conformance"]
async fn recorded_verdicts_match_the_real_server() {
    let client = Client::try_default().await.unwrap();
    let mut responses = BTreeMap::new();
    for case in cases() {
        responses.insert(case.name, ask(&client, &case.crd).await);
    }
    if std::env::var_os("RECORD").is_some() {
        fs::write(folder().join("recorded.json"), serde_json::to_string_pretty(&responses).unwrap() + "\n").unwrap();
        return;
    }
    // The server reports the first of several errors in no fixed order, so only the verdicts are compared.
    let verdicts = |all: BTreeMap<String, Option<String>>| -> BTreeMap<String, bool> {
        all.into_iter().map(|(name, response)| (name, response.is_some())).collect()
    };
    assert_eq!(verdicts(responses), verdicts(read_recorded()));
}
