//! Recorded responses of the real server: one file per topic, one line per response.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::case::Topic;

/// Returns the recorded responses by case; empty if the file is missing.
pub(crate) fn read(topic: &str) -> BTreeMap<String, Vec<Value>> {
    let file = crate::folder().join(format!("recorded/{topic}.json"));
    match std::fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => panic!("{}: {error}", file.display()),
    }
}

/// Replaces the responses of these cases, and removes the responses of cases that no longer exist.
pub(crate) fn write(topic: &Topic, responses: &BTreeMap<String, Vec<Value>>) {
    let mut all = read(&topic.name);
    all.extend(responses.clone());
    let known: Vec<String> = Topic::read(&topic.name, "").cases.into_iter().map(|case| case.name).collect();
    all.retain(|case, _| known.contains(case));
    write_all(&topic.name, &all);
}

/// Replaces all responses of a topic.
pub(crate) fn write_all(topic: &str, all: &BTreeMap<String, Vec<Value>>) {
    let cases = all.iter().map(|(case, responses)| {
        let responses: Vec<String> = responses.iter().map(|response| format!("    {response}")).collect();
        format!("  {}: [\n{}\n  ]", Value::from(case.as_str()), responses.join(",\n"))
    });
    let text = format!("{{\n{}\n}}\n", cases.collect::<Vec<_>>().join(",\n"));
    let file = crate::folder().join(format!("recorded/{topic}.json"));
    std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
