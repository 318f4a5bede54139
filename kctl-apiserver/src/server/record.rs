//! Records of requests and changes, for tests and for observers.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::{
    metrics::Answered,
    request::Call,
    status::GroupResource,
    store::{Acting, Event, State},
    verbs::{self, Answer, Payload},
};

/// Requests that are remembered.
const REQUESTS_LEN_MAX: usize = 100_000;

/// An answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// The name of the user that sent it.
    pub user: String,
    /// The process that sent it, if it runs [under faults](crate::faults::Connection::client).
    pub client: Option<String>,
    /// The RBAC verb: `get`, `list`, …
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource with its subresource, such as `pods/status`.
    pub resource: String,
    /// The namespace; empty for cluster-scoped resources and for requests across all namespaces.
    pub namespace: String,
    /// The name; empty if the request is about several objects.
    pub name: String,
    /// The HTTP status of the response.
    pub code: u16,
    /// `true` for a dry run.
    pub dry_run: bool,
    /// The trace id of the `traceparent` header; empty without one.
    pub trace: String,
}

impl RequestRecord {
    /// Returns `true` for a write that the server accepted, also if it changed nothing. Access reviews such as
    /// `SelfSubjectAccessReview` do not count: they are `create` requests that store no object.
    pub fn is_accepted_write(&self) -> bool {
        let asks = ["authorization.k8s.io", "authentication.k8s.io"].contains(&self.group.as_str());
        !["get", "list", "watch"].contains(&self.verb) && !asks && self.code < 400 && !self.dry_run
    }
}

/// One change of a stored object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The client of the request ([`Connection::client`](crate::faults::Connection::client)), or else its user; empty
    /// for changes by the server itself.
    pub by: String,
    /// The trace id of the request's `traceparent` header; empty without one.
    pub trace: String,
    /// The revision of the change, as in `metadata.resourceVersion`.
    pub revision: u64,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, such as `pods`.
    pub resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The object before the change; `None` if the change created it.
    pub before: Option<Arc<Value>>,
    /// The object after the change; `None` if the change deleted it.
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
    let dry_run = verbs::is_dry_run(call);
    state.counts.add(Answered { call, code, dry_run });
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
        dry_run,
        trace: trace(call).into(),
    };
    for observer in &state.observers {
        observer(&record);
    }
    state.requests.push_back(record);
}
