//! Normalizes responses: replaces UIDs, times, versions and other values that differ between runs by placeholders.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is right")
}

static UID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"));
static MICRO_TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b10\.\d+\.\d+\.\d+\b"));
static REVISION: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(current: |in record \(|ResourceVersion: |resourceVersion\\?":\\?")[1-9]\d*"#));
static BODY: LazyLock<Regex> = LazyLock::new(|| regex(r#"Invalid value: "\{\\?"apiVersion.*\}": "#));
static BEGINNING: LazyLock<Regex> = LazyLock::new(|| regex(r"\(\{[^()]{0,40} \.\.\.\)"));
static AGE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^((\d+d)?(\d+h)?(\d+m)?\d+(s|ms)|\d+y(\d+d)?|\d+d(\d+h)?|\d+h(\d+m)?)$"));

/// The replacements in the responses of a case so far. Equal values get the same placeholder, and different values
/// different ones.
#[derive(Default)]
pub(crate) struct Normal {
    words: Vec<(String, &'static str)>,
    uids: HashMap<String, usize>,
    revisions: HashMap<String, usize>,
    names: Vec<(String, String)>,
}

impl Normal {
    pub(crate) fn new(namespace: &str, run: &str) -> Self {
        // `operationId` in OpenAPI documents begins each word with a capital letter.
        let capital = run.chars().take(1).flat_map(char::to_uppercase).chain(run.chars().skip(1)).collect();
        Self { words: vec![(namespace.into(), "NS"), (run.into(), "RUN"), (capital, "RUN")], ..Self::default() }
    }

    pub(crate) fn learn_hook(&mut self, url: &str, trusted: &str) {
        let host = url.trim_start_matches("https://");
        self.words.extend([(trusted.into(), "TRUSTED"), (url.into(), "HOOK"), (host.into(), "HOOKHOST")]);
    }

    pub(crate) fn normalize(&mut self, mut response: Value) -> Value {
        // The real server sends bookmarks on a timer, except for the one at the end of the initial events.
        if let Some(events) = response["body"].as_array_mut() {
            let timed =
                |event: &Value| event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null();
            events.retain(|event| !timed(event));
        }
        self.learn_names(&response);
        self.change(&mut response);
        response
    }

    fn learn_names(&mut self, value: &Value) {
        if let (Some(base), Some(name)) = (value["generateName"].as_str(), value["name"].as_str()) {
            let generated = name.starts_with(base) && name.len() == base.len() + 5;
            if generated && !self.names.iter().any(|(known, _)| known == name) {
                self.names.push((name.into(), format!("{base}GEN{}", self.names.len())));
            }
        }
        match value {
            Value::Object(map) => map.values().for_each(|value| self.learn_names(value)),
            Value::Array(items) => items.iter().for_each(|value| self.learn_names(value)),
            _ => {}
        }
    }

    fn change(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|value| self.change(value)),
            Value::Object(map) => {
                // Writes of concurrent cases increase the `resourceVersion` of lists and bookmarks.
                let shared = map
                    .get("kind")
                    .and_then(Value::as_str)
                    .is_some_and(|kind| kind.ends_with("List") || kind == "Table")
                    || map.get("type").is_some_and(|kind| kind == "BOOKMARK");
                if shared {
                    forget_revision(map);
                }
                for (key, value) in map.iter_mut() {
                    self.field(key, value);
                }
                let renamed: Map<String, Value> =
                    std::mem::take(map).into_iter().map(|(key, value)| (self.text(&key), value)).collect();
                *map = renamed;
            }
            _ => {}
        }
    }

    fn field(&mut self, key: &str, value: &mut Value) {
        match (key, value) {
            ("resourceVersion", Value::String(text)) if text.parse::<u64>().is_ok_and(|version| version > 0) => {
                let n_known = self.revisions.len();
                *text = format!("RV{}", self.revisions.entry(text.clone()).or_insert(n_known));
            }
            // The hash covers the group, whose name differs in each run.
            ("storageVersionHash", Value::String(text)) => *text = "HASH".into(),
            ("continue", Value::String(text)) if !text.is_empty() => *text = "CONTINUE".into(),
            (_, value) => self.change(value),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, replacement) in &self.names {
            text = text.replace(name, replacement);
        }
        for (word, replacement) in self.words.iter().filter(|(word, _)| !word.is_empty()) {
            text = text.replace(word, replacement);
        }
        // A message may end with a diff of Go's internal types.
        if let Some((message, _)) = text.split_once("\n@@ ") {
            text = message.into();
        }
        if AGE.is_match(&text) {
            return "AGE".into();
        }
        let uids = &mut self.uids;
        let text = UID.replace_all(&text, |found: &regex::Captures<'_>| {
            let n_known = uids.len();
            format!("UID{}", uids.entry(found[0].to_owned()).or_insert(n_known))
        });
        let text = MICRO_TIME.replace_all(&text, "MICROTIME");
        let text = TIME.replace_all(&text, "TIME");
        let text = ADDRESS.replace_all(&text, "ADDRESS");
        // Objects in messages: the order of fields differs, and the position of a truncation depends on the lengths of
        // names.
        let text = BODY.replace_all(&text, "Invalid value: BODY: ");
        let text = BEGINNING.replace_all(&text, "(BEGINNING)");
        REVISION.replace_all(&text, "${1}RV").into_owned()
    }
}

fn forget_revision(map: &mut Map<String, Value>) {
    for pointer in ["/metadata/resourceVersion", "/object/metadata/resourceVersion"] {
        let mut steps = pointer.split('/').skip(1);
        let first = steps.next().and_then(|step| map.get_mut(step));
        let found = steps.fold(first, |value, step| value.and_then(|value| value.get_mut(step)));
        if let Some(value) = found.filter(|value| value.is_string()) {
            *value = "RV".into();
        }
    }
}

/// Sorts `managedFields` entries by operation, manager, subresource and version. The server sorts them by time in whole
/// seconds first, so their order changes if a run crosses a second.
fn by_manager(entries: &[Value]) -> Vec<Value> {
    let key = |entry: &Value| ["operation", "manager", "subresource", "apiVersion"].map(|name| entry[name].to_string());
    let mut entries = entries.to_vec();
    entries.sort_by_key(key);
    entries
}

/// Adds a line for each difference between two responses.
pub(crate) fn compare(expected: &Value, found: &Value, at: &str, differences: &mut Vec<String>) {
    match (expected, found) {
        // If the status codes differ, further differences are noise.
        (Value::Object(one), Value::Object(other))
            if at.matches('/').count() == 1 && one.get("code").is_some_and(|code| Some(code) != other.get("code")) =>
        {
            let short = |response: &Value| match &response["body"]["message"] {
                Value::Null => format!("{}", response["code"]),
                message => format!("{} {message}", response["code"]),
            };
            differences.push(format!("{at}:\n      expected {}\n         found {}", short(expected), short(found)));
        }
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                match other.get(key) {
                    Some(other) => compare(value, other, &format!("{at}/{key}"), differences),
                    None => differences.push(format!("{at}/{key}: expected {value}, found nothing")),
                }
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                differences.push(format!("{at}/{key}: expected nothing, found {value}"));
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            let (one, other) =
                if at.ends_with("/managedFields") { (&by_manager(one), &by_manager(other)) } else { (one, other) };
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(one, other, &format!("{at}/{index}"), differences);
            }
            for (index, missing) in one.iter().enumerate().skip(other.len()) {
                differences.push(format!("{at}/{index}: expected {missing}, found nothing"));
            }
            for (index, extra) in other.iter().enumerate().skip(one.len()) {
                differences.push(format!("{at}/{index}: expected nothing, found {extra}"));
            }
        }
        (one, other) if one == other => {}
        (one, other) => differences.push(format!("{at}:\n      expected {one}\n         found {other}")),
    }
}
