//! The format of the files in `cases/`: topics, cases and steps. Reads a topic and completes its steps from their
//! bases.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Short names of API groups in relative paths. All other relative paths belong to the core group.
const GROUPS: &[(&str, &str)] = &[
    ("apps", "apps/v1"),
    ("autoscaling", "autoscaling/v2"),
    ("batch", "batch/v1"),
    ("certificates", "certificates.k8s.io/v1"),
    ("coordination", "coordination.k8s.io/v1"),
    ("custom", "$GROUP/v1"),
    ("discovery", "discovery.k8s.io/v1"),
    ("newevents", "events.k8s.io/v1"),
    ("networking", "networking.k8s.io/v1"),
    ("policy", "policy/v1"),
    ("rbac", "rbac.authorization.k8s.io/v1"),
];

/// A file of cases.
///
/// Requests that differ only a little share a base: a case names it with `like`, and each step changes fields of its
/// body with `with`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    #[serde(skip)]
    pub(crate) name: String,
    /// Requests that are sent once before the cases. Each must succeed; the responses are not compared.
    #[serde(default)]
    pub(crate) setup: Vec<Step>,
    /// The base requests, by name.
    #[serde(default)]
    bases: BTreeMap<String, Step>,
    pub(crate) cases: Vec<Case>,
}

impl Topic {
    /// Returns a topic without cases, for suites that generate their requests.
    pub(crate) fn of_setup(name: &str, setup: Vec<Step>) -> Self {
        Self { name: name.into(), setup, bases: BTreeMap::new(), cases: Vec::new() }
    }

    pub(crate) fn read(name: &str, picked: &str) -> Self {
        let file = crate::folder().join(format!("cases/{name}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // Without strict booleans, YAML's plain `y` would be read as `true`.
        let options = serde_saphyr::options! { strict_booleans: true };
        let read = serde_saphyr::from_str_with_options(&text, options);
        let mut topic: Self = read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        topic.name = name.into();
        let Self { bases, cases, .. } = &mut topic;
        for case in cases {
            for step in &mut case.steps {
                step.complete(case.like.as_deref(), bases);
            }
        }
        topic.cases.retain(|case| case.name.contains(picked));
        topic
    }
}

/// Requests that build on each other. Each case has a separate namespace, `$NS`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    #[serde(rename = "case")]
    pub(crate) name: String,
    /// The base of the steps without `do`.
    #[serde(default)]
    like: Option<String>,
    pub(crate) steps: Vec<Step>,
}

impl Case {
    /// Returns the index of the response to the step with this name. A watch and each step in its `meanwhile` have
    /// separate responses.
    pub(crate) fn response_index(&self, name: &str) -> Option<usize> {
        let with_meanwhile = |step: &'_ Step| std::iter::once(step.clone()).chain(step.meanwhile.clone());
        self.steps.iter().flat_map(with_meanwhile).position(|step| step.name == name)
    }
}

/// One request of a case.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path: `POST apps/deployments`. In addition to HTTP's methods, `JSON`, `MERGE`, `STRATEGIC` and
    /// `APPLY` send patches, and `WATCH` opens a watch. `SEEN reviews` returns the reviews that the webhook received.
    #[serde(rename = "do", default)]
    pub(crate) request: String,
    /// The name that `differences` uses for the step; most steps have none.
    #[serde(default)]
    name: String,
    /// Values to set in the body of the base, by JSON pointer; null removes the field.
    #[serde(default)]
    with: BTreeMap<String, Value>,
    /// The request body. A string is sent unchanged, any other value as JSON.
    #[serde(default)]
    pub(crate) body: Value,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Values of the response body to save, variable name to JSON pointer: later steps use them as `$name`.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// Repeats the request until the response has this status code.
    #[serde(default)]
    pub(crate) until: Option<u16>,
    /// Repeats the request until the body has these values, by JSON pointer, because controllers write with a delay. A
    /// string is a part of the value: no case may depend on the wording of a whole message.
    #[serde(default)]
    pub(crate) awaits: BTreeMap<String, Value>,
    /// Requests to send while the watch is open. The comparison includes whether the watch ended early or at its
    /// timeout.
    #[serde(default)]
    pub(crate) meanwhile: Vec<Step>,
    /// JSON pointers to the parts of the body to compare; empty for the whole body.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// JSON pointers to parts of the body that are compared by digest. A pointer that ends with `/*` digests each
    /// child.
    #[serde(default)]
    pub(crate) digest: Vec<String>,
}

impl Step {
    /// Takes the request and the body from the base, unless the step has a request.
    fn complete(&mut self, like: Option<&str>, bases: &BTreeMap<String, Self>) {
        if !self.request.is_empty() {
            return;
        }
        let base = like.unwrap_or_else(|| panic!("a step has neither a request nor a base: {:?}", self.with));
        let base = bases.get(base).unwrap_or_else(|| panic!("no base {base:?}")).clone();
        let with = std::mem::take(&mut self.with);
        let name = std::mem::take(&mut self.name);
        *self = Self { name, save: std::mem::take(&mut self.save), only: std::mem::take(&mut self.only), ..base };
        for (pointer, value) in with {
            set(&mut self.body, &pointer, value);
        }
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.request.starts_with("WATCH ") || self.request.contains("watch=true") || self.request.contains("/watch/")
    }

    /// Returns the HTTP method, the path with its query, and the content type.
    pub(crate) fn request(&self) -> (&str, String, &'static str) {
        let (word, path) = self.request.split_once(' ').unwrap_or_else(|| panic!("{}: no path", self.request));
        let mut path = whole(path);
        let (method, media_type) = match word {
            "JSON" => ("PATCH", "application/json-patch+json"),
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            "WATCH" => ("GET", "application/json"),
            other => (other, "application/json"),
        };
        if word == "WATCH" {
            path += if path.contains('?') { "&" } else { "?" };
            let seconds = if self.meanwhile.is_empty() { "1" } else { "$LIFE" };
            path += &format!("watch=true&timeoutSeconds={seconds}");
        }
        (method, path, media_type)
    }
}

fn whole(path: &str) -> String {
    if path.starts_with('/') {
        return path.into();
    }
    let group_path = path.split_once('/').and_then(|(word, rest)| {
        let (_, group) = GROUPS.iter().find(|(known, _)| *known == word)?;
        Some(format!("/apis/{group}/namespaces/$NS/{rest}"))
    });
    group_path.unwrap_or_else(|| format!("/api/v1/namespaces/$NS/{path}"))
}

/// Sets the value at a JSON pointer, and creates missing parents. Null removes the field of an object.
fn set(mut body: &mut Value, pointer: &str, value: Value) {
    let mut steps: Vec<String> =
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let last = steps.pop().unwrap_or_else(|| panic!("{pointer:?} leads nowhere"));
    for step in &steps {
        body = entry(body, step);
    }
    if let (true, Value::Object(fields)) = (value.is_null(), &mut *body) {
        fields.remove(&last);
    } else {
        *entry(body, &last) = value;
    }
}

fn entry<'a>(body: &'a mut Value, step: &str) -> &'a mut Value {
    match body {
        Value::Array(items) => {
            let index: usize = step.parse().unwrap_or_else(|_| panic!("{step:?} is not an index"));
            if items.len() == index {
                items.push(Value::Null);
            }
            &mut items[index]
        }
        other => &mut other[step],
    }
}
