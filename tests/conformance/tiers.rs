//! The two tiers of a comparison: the meaning of a response is asserted, and its wording is only reported.
//!
//! Asserted are the HTTP status code, headers, reason, the set of (field path, error type), the number of warnings,
//! stored objects with their managedFields, and watch events. Reported are messages, also of
//! conditions, explanations of reviews, warnings, and the order and repetition of field errors. A message that a client
//! wrote is not wording of the server: it is asserted like any other stored value.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::{case::Step, normal};

/// Placeholder of a message of the server: its presence is asserted, its wording is not.
const TEXT: &str = "(text)";
/// The beginning of each warning in the `Warning` header.
const WARNING: &str = "299 - \"";
/// Fields with an explanation in words: errors of reviews, and messages of conditions.
static EXPLANATIONS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^body/status/(error|evaluationError)$|/status/conditions/(\*|\d+)/message$")
        .expect("the pattern is right")
});
/// The explanation of an access review. In a status without `allowed`, the field is a word for programs.
const REASON_OF_REVIEW: &str = "body/status/reason";

/// The strings in the request bodies of a case. A server must return them unchanged, also as the message of a
/// condition. A string with a variable, such as `$NS`, is not recognized in a response.
#[derive(Default)]
pub(crate) struct ClientStrings(BTreeSet<String>);

impl ClientStrings {
    /// Collects the strings that the steps send, also those in `meanwhile`.
    pub(crate) fn collect<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut strings = Self::default();
        steps.into_iter().for_each(|step| strings.add_step(step));
        strings
    }

    fn add_step(&mut self, step: &Step) {
        match &step.body {
            // A body that is sent as text. Many of them are malformed on purpose, and no YAML among them has a message.
            Value::String(text) => self.add(&serde_json::from_str(text).unwrap_or_default()),
            body => self.add(body),
        }
        step.meanwhile.iter().for_each(|step| self.add_step(step));
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.0.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => fields.values().for_each(|value| self.add(value)),
            _ => {}
        }
    }

    fn contains(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.0.contains(text))
    }
}

/// The lines in which the responses of a case differ.
#[derive(Default)]
pub(crate) struct Differences {
    /// Differences in meaning, which fail the test.
    pub(crate) asserted: Vec<String>,
    /// Differences in wording, which are reported.
    pub(crate) wording: Vec<String>,
}

/// Compares the responses of a case, one by one. `client` has the strings of its requests.
pub(crate) fn compare(expected: &[Value], found: &[Value], client: &ClientStrings) -> Differences {
    let mut differences = Differences::default();
    let (expected_meanings, found_meanings) = (meanings(expected, client), meanings(found, client));
    for index in 0..expected.len().max(found.len()) {
        let nothing = Value::Null;
        let (one, other) = (expected.get(index).unwrap_or(&nothing), found.get(index).unwrap_or(&nothing));
        let at = format!("/{index}");
        let before = differences.asserted.len();
        let (meant, found_meant) = (expected_meanings.get(index), found_meanings.get(index));
        let [meant, found_meant] = [meant, found_meant].map(|meaning| meaning.unwrap_or(&nothing));
        normal::compare(meant, found_meant, &at, &mut differences.asserted);
        if differences.asserted.len() == before {
            normal::compare(one, other, &at, &mut differences.wording);
        } else {
            let messages = [one, other].map(message);
            if messages[0] != messages[1] {
                let [expected, found] = messages;
                differences.asserted.push(format!("{at}: expected {expected}\n         found {found}"));
            }
        }
    }
    differences
}

/// Returns responses without their wording. UIDs are numbered again, because a UID may occur first in a message.
fn meanings(responses: &[Value], client: &ClientStrings) -> Vec<Value> {
    static UID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"UID\d+").expect("the pattern is right"));
    let text = Value::Array(responses.iter().map(|response| meaning(response, client)).collect()).to_string();
    let mut known: Vec<String> = Vec::new();
    let text = UID.replace_all(&text, |found: &regex::Captures<'_>| {
        let number = known.iter().position(|uid| *uid == found[0]).unwrap_or_else(|| {
            known.push(found[0].to_owned());
            known.len() - 1
        });
        format!("UID{number}")
    });
    serde_json::from_str(&text).expect("only numbers were changed")
}

/// Returns a response without its wording.
fn meaning(response: &Value, client: &ClientStrings) -> Value {
    let is_error = response["code"].as_u64().is_some_and(|code| code >= 400);
    let mut response = response.clone();
    if let Some(Value::String(warnings)) = response.get_mut("warning") {
        *warnings = format!("{} warnings", warnings.matches(WARNING).count());
    }
    if let Some(body) = response.get_mut("body") {
        if let Value::String(text) = body {
            *body = parse_yaml(text, is_error);
        }
        strip(body, "body", if is_error { Within::Status } else { Within::Object }, client);
    }
    response
}

/// Returns a YAML body as JSON, so that the order of keys and the style of strings do not matter.
fn parse_yaml(text: &str, is_error: bool) -> Value {
    match serde_saphyr::from_str(text) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        _ if is_error => TEXT.into(),
        _ => text.into(),
    }
}

/// The kind of object to which a value belongs.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Status,
    Object,
}

/// Removes the wording below a value, except for strings of the client. The keys of a body that a step's `only` selected
/// are JSON pointers, like `/details/causes`.
fn strip(value: &mut Value, at: &str, within: Within, client: &ClientStrings) {
    let within = if value["kind"] == "Status" { Within::Status } else { within };
    let is_review = value["allowed"].is_boolean();
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let at = format!("{at}/{}", key.trim_start_matches('/'));
                let is_message = within == Within::Status && at.ends_with("/message");
                let is_reason = is_review && at == REASON_OF_REVIEW;
                let is_explanation = is_message || is_reason || EXPLANATIONS.is_match(&at);
                if is_explanation && value.is_string() && value != "" && !client.contains(value) {
                    *value = TEXT.into();
                } else if within == Within::Status && at.ends_with("details/causes") {
                    *value = field_errors(value);
                } else {
                    strip(value, &at, within, client);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, &format!("{at}/*"), within, client)),
        _ => {}
    }
}

/// Returns the set of (field path, error type).
fn field_errors(causes: &Value) -> Value {
    let Some(causes) = causes.as_array() else { return causes.clone() };
    let meant = |cause: &Value| {
        let has_message = cause["message"].as_str().is_some_and(|message| !message.is_empty());
        json!([cause["field"], cause["reason"], has_message]).to_string()
    };
    let all: BTreeSet<String> = causes.iter().map(meant).collect();
    // Errors are keys of an object, so that one missing error is a single difference.
    Value::Object(all.into_iter().map(|one| (one, Value::Null)).collect::<Map<_, _>>())
}

/// Returns the message of a response, for the report of a failure.
fn message(response: &Value) -> String {
    let message = &response["body"]["message"];
    format!("{} {}", response["code"], if message.is_null() { &response["body"]["/message"] } else { message })
}

/// Prints the differences in wording of a topic, and writes them to a file.
#[expect(clippy::print_stdout, reason = "a report of differences that fail nothing: `-- --nocapture` shows it")]
pub(crate) fn report(topic: &str, wording: &[String]) {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("wording");
    std::fs::create_dir_all(&folder).expect("the folder of reports can be written");
    let text = wording.join("\n");
    std::fs::write(folder.join(format!("{topic}.txt")), &text).expect("a report can be written");
    if !wording.is_empty() {
        println!("{topic}: {} cases differ in wording:\n{text}", wording.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected() -> Value {
        json!({ "code": 422, "warning": "299 - \"a\"; 299 - \"b\"", "body": {
            "kind": "Status", "reason": "Invalid", "code": 422, "message": "Pod \"a\" is invalid: [x, y]",
            "details": { "kind": "Pod", "causes": [
                { "reason": "FieldValueRequired", "message": "Required value", "field": "spec.a" },
                { "reason": "FieldValueInvalid", "message": "Invalid value: 1", "field": "spec.b" },
            ] },
        } })
    }

    fn stored() -> Value {
        json!({ "code": 201, "body": {
            "kind": "Pod", "metadata": { "managedFields": [{ "manager": "m", "fieldsV1": { "f:spec": {} } }] },
            "spec": { "message": "a string of the client" }, "status": { "phase": "Pending" },
        } })
    }

    fn reviewed() -> Value {
        json!({ "code": 201, "body": {
            "kind": "SubjectAccessReview", "status": { "allowed": true, "reason": "RBAC: allowed by a role" },
        } })
    }

    fn conditional() -> Value {
        json!({ "code": 200, "body": { "kind": "APIService", "status": {
            "reason": "Evicted", "conditions": [{ "type": "Available", "reason": "Local", "message": "is local" }],
        } } })
    }

    fn watched() -> Value {
        json!({ "code": 200, "body": [
            { "type": "ADDED", "object": { "kind": "Pod", "metadata": { "name": "a" } } },
            { "type": "ERROR", "object": { "kind": "Status", "code": 410, "reason": "Expired", "message": "too old" } },
        ] })
    }

    /// Returns the number of differences in meaning and in wording after a change.
    fn count_changes(response: Value, pointer: &str, value: Value) -> (usize, usize) {
        count_changes_with_client(&ClientStrings::default(), response, pointer, value)
    }

    fn count_changes_with_client(
        client: &ClientStrings,
        response: Value,
        pointer: &str,
        value: Value,
    ) -> (usize, usize) {
        let mut other = response.clone();
        *other.pointer_mut(pointer).expect("the response has this part") = value;
        let differences = compare(&[response], &[other], client);
        (differences.asserted.len(), differences.wording.len())
    }

    #[test]
    fn changed_meaning_fails() {
        let causes = |all: &[(&str, &str)]| -> Value {
            let one = |(field, reason): &(&str, &str)| json!({ "field": field, "reason": reason, "message": "m" });
            all.iter().map(one).collect()
        };
        let (a, b) = (("spec.a", "FieldValueRequired"), ("spec.b", "FieldValueInvalid"));
        let changes = [
            (rejected(), "/code", json!(400)),
            (rejected(), "/warning", json!("299 - \"a\"")),
            (rejected(), "/body/reason", json!("BadRequest")),
            (rejected(), "/body/message", json!("")),
            (rejected(), "/body/details/kind", json!("Pods")),
            (rejected(), "/body/details/causes/0/field", json!("spec.c")),
            (rejected(), "/body/details/causes/0/reason", json!("FieldValueInvalid")),
            (rejected(), "/body/details/causes/0/message", json!("")),
            (rejected(), "/body/details/causes", causes(&[a])),
            (rejected(), "/body/details/causes", causes(&[a, b, ("spec.c", "FieldValueInvalid")])),
            (stored(), "/body/spec/message", json!("another")),
            (stored(), "/body/status/phase", json!("Running")),
            (stored(), "/body/metadata/managedFields/0/manager", json!("n")),
            (stored(), "/body/metadata/managedFields/0/fieldsV1", json!({})),
            (reviewed(), "/body/status/allowed", json!(false)),
            (reviewed(), "/body/status/reason", json!("")),
            (conditional(), "/body/status/reason", json!("Preempted")),
            (conditional(), "/body/status/conditions/0/reason", json!("Passed")),
            (conditional(), "/body/status/conditions/0/message", json!("")),
            (watched(), "/body/0/type", json!("MODIFIED")),
            (watched(), "/body/0/object/metadata/name", json!("b")),
            (watched(), "/body/1/object/reason", json!("Gone")),
            (watched(), "/body", json!([])),
        ];
        for (response, pointer, value) in changes {
            let (asserted, wording) = count_changes(response, pointer, value);
            assert!(asserted > 0 && wording == 0, "{pointer}: {asserted} {wording}");
        }
        let client = &ClientStrings::default();
        assert_ne!(compare(&[rejected()], &[], client).asserted.len(), 0);
        assert_ne!(compare(&[], &[rejected()], client).asserted.len(), 0);
    }

    #[test]
    fn change_in_a_selected_part_fails() {
        let response = json!({ "code": 422, "body": {
            "/message": "m", "/details/causes": [{ "field": "a", "reason": "FieldValueInvalid", "message": "m" }],
        } });
        let causes = "/body/~1details~1causes";
        assert_eq!(count_changes(response.clone(), "/body/~1message", json!("n")), (0, 1));
        assert_eq!(count_changes(response.clone(), &format!("{causes}/0/message"), json!("n")), (0, 1));
        assert_ne!(count_changes(response.clone(), &format!("{causes}/0/field"), json!("b")).0, 0);
        assert_ne!(count_changes(response, causes, json!([])).0, 0);
    }

    #[test]
    fn changed_message_of_client_fails() {
        let put = |body: Value| -> Step {
            serde_json::from_value(json!({ "do": "PUT pods/a/status", "body": body })).expect("a step has these fields")
        };
        let body = json!({ "status": { "conditions": [{ "type": "Available", "message": "is local" }] } });
        let mut watch = put(Value::Null);
        watch.meanwhile.push(put(body.clone()));
        let message = "/body/status/conditions/0/message";
        for step in [put(body.clone()), put(body.to_string().into()), watch] {
            let client = &ClientStrings::collect([&step]);
            assert_eq!(count_changes_with_client(client, conditional(), message, json!("served here")), (1, 0));
            let mut served = conditional();
            served["body"]["status"]["conditions"][0]["message"] = json!("is ready");
            assert_eq!(count_changes_with_client(client, served, message, json!("served here")), (0, 1));
        }
    }

    #[test]
    fn changed_wording_is_reported_and_does_not_fail() {
        const SELECTED: &str = "/body/~1status~1conditions~11~1message";
        let mut reordered = rejected();
        let causes = reordered["body"]["details"]["causes"].as_array_mut().expect("causes are a list");
        causes.reverse();
        causes.push(causes[0].clone());
        let found = compare(&[rejected()], &[reordered], &ClientStrings::default());
        assert!(found.asserted.is_empty() && !found.wording.is_empty(), "{:?}", found.asserted);
        let changes = [
            (rejected(), "/body/message", json!("Pod is wrong")),
            (rejected(), "/body/details/causes/1/message", json!("Invalid value: 2")),
            (rejected(), "/warning", json!("299 - \"c\"; 299 - \"d\"")),
            (watched(), "/body/1/object/message", json!("older")),
            (json!({ "code": 200, "body": { "status": { "error": "a" } } }), "/body/status/error", json!("b")),
            (reviewed(), "/body/status/reason", json!("allowed")),
            (conditional(), "/body/status/conditions/0/message", json!("served here")),
            (json!({ "code": 200, "body": { "/status/conditions/1/message": "a" } }), SELECTED, json!("b")),
            (json!({ "code": 404, "body": "404 page not found" }), "/body", json!("no such page")),
            (json!({ "code": 406, "body": "kind: Status\ncode: 406" }), "/body", json!("code: 406\nkind: Status")),
        ];
        for (response, pointer, value) in changes {
            assert_eq!(count_changes(response, pointer, value), (0, 1), "{pointer}");
        }
    }
}
