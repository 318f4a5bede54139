//! Generates the writes of a seed from the grammar of a kind.

use serde::Deserialize;
use serde_json::{Value, json};

use super::grammar::{Use, make};
use crate::{case::Step, rng::Rng};

/// Number of writes after the create.
const WRITES: usize = 10;
const MANAGERS: &[&str] = &["one", "two", "three"];

/// The grammar of a kind, an entry of `kinds` in `grammar.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Kind {
    #[serde(rename = "kind")]
    pub(crate) name: String,
    api_version: String,
    path: String,
    /// Fields that every object of the kind has.
    base: Value,
    /// The grammar of an object.
    parts: Value,
    /// The grammar of changes, if some fields of `parts` are immutable.
    #[serde(default)]
    changes: Option<Value>,
    #[serde(default)]
    status: Option<Value>,
    #[serde(default)]
    scales: bool,
}

/// One write of a sequence.
pub(crate) enum Write {
    Request(Step),
    /// Reads the object, applies a merge patch locally and writes it with its `resourceVersion`, as clients do.
    Edit(Step),
}

impl Write {
    /// Returns the request; for an edit, its body is the patch.
    pub(crate) fn step(&self) -> &Step {
        let (Self::Request(step) | Self::Edit(step)) = self;
        step
    }

    /// Returns the request and its body as one line; for an edit, the patch.
    pub(crate) fn text(&self) -> String {
        let step = self.step();
        let edit = if matches!(self, Self::Edit(_)) { "edit " } else { "" };
        format!("{edit}{} {}", step.request, step.body)
    }
}

/// Returns the writes of a seed to one object.
pub(crate) fn writes_of(kind: &Kind, seed: u64) -> Vec<Write> {
    let mut writer = Writer { kind, rng: Rng::new(seed) };
    let mut writes = vec![writer.create()];
    writes.extend((0..WRITES).map(|_| writer.write()));
    writes
}

/// Returns the path of the object.
pub(crate) fn path_of(kind: &Kind) -> String {
    format!("{}/a", kind.path)
}

struct Writer<'a> {
    kind: &'a Kind,
    rng: Rng,
}

impl Writer<'_> {
    fn create(&mut self) -> Write {
        let (body, query) = (self.full_object(), self.managed().replace("&dryRun=All", ""));
        if self.rng.one_in(3) {
            return self.request("APPLY", "", &body, query);
        }
        step("POST", &format!("{}?{query}", self.kind.path), &body)
    }

    fn write(&mut self) -> Write {
        let changes = self.kind.changes.as_ref().unwrap_or(&self.kind.parts);
        let query = self.managed();
        match self.rng.below(20) {
            0..4 => self.request_with("MERGE", "", changes, Use::Merged, query),
            4..7 if !self.kind.path.starts_with("custom/") => {
                self.request_with("STRATEGIC", "", changes, Use::Strategic, query)
            }
            4..9 => {
                let body = self.json_patch(changes);
                self.request("JSON", "", &body, query)
            }
            9..11 => {
                let mut body = self.full_object();
                if self.rng.one_in(8) {
                    body["metadata"]["managedFields"] = self.rng.pick(&[&json!([]), &json!([{}])]).clone();
                }
                self.request("PUT", "", &body, query)
            }
            11..16 => self.apply(query),
            16 => {
                let changed = make(&mut self.rng, changes, Use::Merged);
                Write::Edit(request_step(&format!("PUT {}/a?{query}", self.kind.path), &changed))
            }
            17 if self.kind.scales => self.scale(query),
            _ => self.status(query),
        }
    }

    /// Returns the query with a field manager. In some cases the user agent names the manager instead, or the write is
    /// a dry run.
    fn managed(&mut self) -> String {
        let mut query =
            if self.rng.one_in(8) { String::new() } else { format!("fieldManager={}", self.rng.pick(MANAGERS)) };
        if self.rng.one_in(16) {
            query += "&dryRun=All";
        }
        query
    }

    fn apply(&mut self, mut query: String) -> Write {
        if !query.contains("fieldManager") {
            query += "&fieldManager=one";
        }
        if self.rng.one_in(2) {
            query += "&force=true";
        }
        let mut body = if self.rng.one_in(3) {
            self.full_object()
        } else {
            let grammar = self.kind.changes.as_ref().unwrap_or(&self.kind.parts);
            make(&mut self.rng, grammar, Use::Applied)
        };
        self.name(&mut body);
        self.request("APPLY", "", &body, query)
    }

    fn status(&mut self, query: String) -> Write {
        let Some(grammar) = &self.kind.status else { return self.apply(query) };
        let (verb, used) = match self.rng.below(4) {
            0 => ("MERGE", Use::Merged),
            1 => ("APPLY", Use::Applied),
            2 if self.kind.path.starts_with("custom/") => ("MERGE", Use::Merged),
            2 => ("STRATEGIC", Use::Strategic),
            _ => ("PUT", Use::Whole),
        };
        let mut body = json!({ "status": make(&mut self.rng, grammar, used) });
        match verb {
            "APPLY" => self.name(&mut body),
            "PUT" => {
                let status = body["status"].take();
                body = self.full_object();
                body["status"] = status;
            }
            _ => {}
        }
        let force = if verb == "APPLY" { "&fieldManager=two&force=true" } else { "" };
        let query = if force.is_empty() { query } else { query.replace("fieldManager=", "x=") + force };
        self.request(verb, "/status", &body, query)
    }

    fn scale(&mut self, query: String) -> Write {
        let replicas = self.rng.below(4);
        let scale = json!({ "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": { "name": "a", "namespace": "$NS" }, "spec": { "replicas": replicas } });
        match self.rng.below(3) {
            0 => self.request("MERGE", "/scale", &json!({ "spec": { "replicas": replicas } }), query),
            // The real server fails an apply to the scale of a custom resource.
            1 if !self.kind.path.starts_with("custom/") => self.request(
                "APPLY",
                "/scale",
                &scale,
                query.replace("fieldManager=", "x=") + "&fieldManager=two&force=true",
            ),
            _ => self.request("PUT", "/scale", &scale, query),
        }
    }

    /// Returns a JSON patch with operations at paths that the grammar has.
    fn json_patch(&mut self, grammar: &Value) -> Value {
        let mut operations = Vec::new();
        for _ in 0..=self.rng.below(3) {
            let mut value = make(&mut self.rng, grammar, Use::Whole);
            let mut path = String::new();
            // The servers word the error for duplicate owner references differently.
            while !path_ends(&value, &path, &mut self.rng) && !path.contains("/ownerReferences") {
                value = match value {
                    Value::Object(fields) => {
                        let index = self.rng.below(fields.len());
                        let (name, value) = fields.into_iter().nth(index).expect("it has a field");
                        path += &format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                        value
                    }
                    Value::Array(items) => {
                        let index = self.rng.below(items.len());
                        path += if self.rng.one_in(2) { "/-" } else { "/0" };
                        items.into_iter().nth(index).expect("it has an item")
                    }
                    scalar => scalar,
                };
            }
            operations.push(match self.rng.below(5) {
                0 => json!({ "op": "remove", "path": path.replace("/-", "/0") }),
                1 | 2 => json!({ "op": "replace", "path": path.replace("/-", "/0"), "value": value }),
                _ => json!({ "op": "add", "path": path, "value": value }),
            });
        }
        operations.into()
    }

    /// Returns an object for a create or a PUT.
    fn full_object(&mut self) -> Value {
        let mut whole = self.kind.base.clone();
        let made = make(&mut self.rng, &self.kind.parts, Use::Whole);
        merge(&mut whole, &made);
        self.name(&mut whole);
        whole
    }

    fn name(&self, object: &mut Value) {
        object["apiVersion"] = self.kind.api_version.as_str().into();
        object["kind"] = self.kind.name.as_str().into();
        object["metadata"]["name"] = "a".into();
    }

    fn request_with(&mut self, verb: &str, part: &str, grammar: &Value, used: Use, query: String) -> Write {
        let body = make(&mut self.rng, grammar, used);
        self.request(verb, part, &body, query)
    }

    fn request(&mut self, verb: &str, part: &str, body: &Value, mut query: String) -> Write {
        if verb == "APPLY" && !query.contains("fieldManager") {
            query += "&fieldManager=one";
        }
        step(verb, &format!("{}/a{part}?{query}", self.kind.path), body)
    }
}

/// Returns `true` if an operation uses this path: always at a leaf, sometimes above.
fn path_ends(value: &Value, path: &str, rng: &mut Rng) -> bool {
    let is_leaf = match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    !path.is_empty() && (is_leaf || (path.matches('/').count() > 1 && rng.one_in(3)))
}

/// Merges another value into an object. Nulls and empty lists in the other value replace nothing.
pub(super) fn merge(object: &mut Value, other: &Value) {
    match (object, other) {
        (Value::Object(object), Value::Object(other)) => {
            for (name, value) in other {
                match object.get_mut(name) {
                    Some(known) if !value.is_null() => merge(known, value),
                    Some(_) => {}
                    None => drop(object.insert(name.clone(), value.clone())),
                }
            }
        }
        (Value::Array(_), Value::Array(items)) if items.is_empty() => {}
        (object, other) => other.clone_into(object),
    }
}

fn step(verb: &str, path: &str, body: &Value) -> Write {
    Write::Request(request_step(&format!("{verb} {path}"), body))
}

fn request_step(request: &str, body: &Value) -> Step {
    serde_json::from_value(json!({ "do": request, "body": body })).expect("a step has these fields")
}
