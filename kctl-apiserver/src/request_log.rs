//! The log of answered requests, for tests and observers.

use std::collections::VecDeque;

/// Maximum number of records. Beyond it the oldest record is dropped.
const REQUESTS_LEN_MAX: usize = 100_000;

/// A request that the server has answered, as its log has it. Tests compare records to see what a program sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// The name; empty for a request about several objects, and for a rejected create.
    pub name: String,
    /// The name in the body of a rejected create, or `PREFIX*` for a `generateName`; otherwise empty.
    pub rejected_name: String,
    /// The HTTP status of the response.
    pub code: u16,
    /// `true` for a dry run.
    pub dry_run: bool,
    /// The trace id of the `traceparent` header; empty without one.
    pub trace: String,
}

impl RequestRecord {
    /// Returns `true` for a write that the server accepted, even if it changed nothing. Access reviews such as
    /// `SelfSubjectAccessReview` do not count: they are `create` requests that store no object.
    pub fn is_accepted_write(&self) -> bool {
        let asks = ["authorization.k8s.io", "authentication.k8s.io"].contains(&self.group.as_str());
        !["get", "list", "watch"].contains(&self.verb) && !asks && self.code < 400 && !self.dry_run
    }
}

/// Receives each answered request.
type Observer = Box<dyn Fn(&RequestRecord) + Send>;

/// The answered requests of a server.
#[derive(Default)]
pub(crate) struct RequestLog {
    /// The oldest first. Invariant: at most [`REQUESTS_LEN_MAX`].
    records: VecDeque<RequestRecord>,
    observers: Vec<Observer>,
}

impl RequestLog {
    /// Adds an observer, which is called after those that were added before.
    pub(crate) fn observe(&mut self, observer: impl Fn(&RequestRecord) + Send + 'static) {
        self.observers.push(Box::new(observer));
    }

    /// Adds a record, and calls the observers.
    pub(crate) fn push(&mut self, record: RequestRecord) {
        if self.records.len() >= REQUESTS_LEN_MAX {
            self.records.pop_front();
        }
        for observer in &self.observers {
            observer(&record);
        }
        self.records.push_back(record);
        debug_assert!(self.records.len() <= REQUESTS_LEN_MAX, "the oldest record is dropped at the bound");
    }

    /// Returns the records, oldest first.
    pub(crate) fn records(&self) -> impl Iterator<Item = &RequestRecord> {
        self.records.iter()
    }
}
