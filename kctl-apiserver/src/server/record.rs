//! What is told of requests and of changes: records for tests, and for those who observe.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::{
    request::Call,
    status::GroupResource,
    store::{Acting, Event, State},
    verbs::{self, Answer, Payload},
};

/// Requests that are remembered.
const REQUESTS_LEN_MAX: usize = 100_000;

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Who sent it.
    pub user: String,
    /// Which process, where it is one [under faults](crate::faults::Connection::client).
    pub client: Option<String>,
    /// In the words of RBAC: `get`, `list`, …
    pub verb: &'static str,
    /// The group; empty for the core.
    pub group: String,
    /// The resource, with its subresource: `pods/status`.
    pub resource: String,
    /// Empty for the cluster.
    pub namespace: String,
    /// Empty for several objects.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether nothing was to be kept of what it does.
    pub dry_run: bool,
    /// The id of the trace that it names in `traceparent`; empty without one.
    pub trace: String,
}

impl RequestRecord {
    /// Whether it is a write that the server has accepted, also one that changed nothing. Questions that are asked by a create,
    /// such as reviews of access, are none.
    pub fn is_accepted_write(&self) -> bool {
        let asks = ["authorization.k8s.io", "authentication.k8s.io"].contains(&self.group.as_str());
        !["get", "list", "watch"].contains(&self.verb) && !asks && self.code < 400 && !self.dry_run
    }
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The client of a request ([`Connection::client`](crate::faults::Connection::client)) or else the user; empty for what
    /// the server does by itself.
    pub by: String,
    /// The id of the trace that the request names in `traceparent`; empty without one.
    pub trace: String,
    /// The revision of the change.
    pub revision: u64,
    /// The group; empty for the core.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// Empty for the cluster.
    pub namespace: String,
    /// The object.
    pub name: String,
    /// The state before; there is none of a new object.
    pub before: Option<Arc<Value>>,
    /// The state from now on; there is none of an object that is gone.
    pub after: Option<Arc<Value>>,
}

impl Change {
    pub(crate) fn new(acting: &Acting, of: &GroupResource, event: &Event) -> Self {
        let (namespace, name) = event.key.clone();
        Self {
            by: acting.by.clone(),
            trace: acting.trace.clone(),
            revision: event.revision,
            group: of.group.clone(),
            resource: of.resource.clone(),
            namespace,
            name,
            before: event.before.as_ref().map(|before| before.value()),
            after: (!event.deleted).then(|| event.object.value()),
        }
    }
}

/// The id of the trace that a request names.
pub(super) fn trace(call: &Call) -> &str {
    call.header("traceparent").split('-').nth(1).unwrap_or_default()
}

/// Remembers a request that is answered, and tells of it.
pub(super) fn record(
    state: &mut State,
    call: &Call,
    client: Option<String>,
    code: StatusCode,
    answer: Option<&Answer>,
) {
    state.counts.add(call, code);
    let mut resource = call.resource.of.resource.clone();
    if !call.subresource.is_empty() {
        resource += &format!("/{}", call.subresource);
    }
    if state.requests.len() >= REQUESTS_LEN_MAX {
        state.requests.pop_front();
    }
    // A new object with a generated name has it in the answer.
    let generated = match answer {
        Some(Answer { payload: Payload::Json(object), .. }) if call.name.is_empty() => {
            object["metadata"]["name"].as_str().unwrap_or_default()
        }
        Some(Answer { payload: Payload::Text { name, .. }, .. }) if call.name.is_empty() => name,
        _ => "",
    };
    let record = RequestRecord {
        user: call.caller.user.name.clone(),
        client,
        verb: call.verb.name(),
        group: call.resource.of.group.clone(),
        resource,
        namespace: call.namespace.clone(),
        name: if call.name.is_empty() { generated.into() } else { call.name.clone() },
        code: code.as_u16(),
        dry_run: verbs::is_dry_run(call),
        trace: trace(call).into(),
    };
    for observer in &state.observers {
        observer(&record);
    }
    state.requests.push_back(record);
}
