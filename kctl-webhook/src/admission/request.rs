//! What a function learns of the request, and what it says beside yes and no.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::options::Operation;

/// Maximum number of warnings in one response; further ones are dropped. API servers cut them at 4096 bytes in total.
pub const WARNINGS_LEN_MAX: usize = 32;
/// So many annotations of one call go into the audit log.
pub const AUDIT_LEN_MAX: usize = 32;

/// The user that sent the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct User {
    /// The name, such as `system:serviceaccount:default:web`.
    #[serde(default, rename = "username")]
    pub name: String,
    /// Its uid, where the authenticator knows one.
    #[serde(default)]
    pub uid: String,
    /// Its groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Additional attributes from the authenticator.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A request that an API server is about to carry out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Admission<K> {
    /// The operation of the request.
    pub operation: Operation,
    /// The name of the object; empty for a new one whose name is generated.
    pub name: String,
    /// Its namespace, where its kind has such.
    pub namespace: Option<String>,
    /// The subresource that is asked for, where it is one: `status`, for example.
    pub subresource: Option<String>,
    /// The user that sent the request.
    pub user: User,
    /// Whether nothing will be stored: whatever a function does beside answering, it must not do now.
    pub dry_run: bool,
    /// The object as it is stored, before an update or a delete.
    pub old: Option<K>,
    /// The object as it was sent, also where it is of another kind: the options of `kubectl exec`, for example.
    pub object: Value,
    /// The options of the request, such as `CreateOptions` with the field manager.
    pub options: Value,
    notes: Mutex<Notes>,
}

/// What is said beside the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    pub(super) warnings: Vec<String>,
    pub(super) audit: BTreeMap<String, String>,
}

impl<K> Admission<K> {
    pub(super) fn new(request: &super::review::Request, operation: Operation, old: Option<K>) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            operation,
            name: request.name.clone(),
            namespace: some(&request.namespace),
            subresource: some(&request.sub_resource),
            user: request.user_info.clone(),
            dry_run: request.dry_run.unwrap_or_default(),
            old,
            object: request.object.clone(),
            options: request.options.clone(),
            notes: Mutex::default(),
        }
    }

    /// Tells the client something, whatever becomes of the request: kubectl prints it as `Warning: …`. Keep it below 120
    /// characters; after [`WARNINGS_LEN_MAX`] the next ones are left out.
    pub fn warn(&self, text: impl Into<String>) {
        let mut notes = self.notes.lock();
        if notes.warnings.len() < WARNINGS_LEN_MAX {
            notes.warnings.push(text.into());
        }
    }

    /// Puts an annotation into the audit log of the API server, under `<name of the webhook>/<key>`. After [`AUDIT_LEN_MAX`]
    /// the next keys are left out.
    pub fn audit(&self, key: impl Into<String>, value: impl Into<String>) {
        let mut notes = self.notes.lock();
        let key = key.into();
        if notes.audit.len() < AUDIT_LEN_MAX || notes.audit.contains_key(&key) {
            notes.audit.insert(key, value.into());
        }
    }

    pub(super) fn take_notes(&self) -> Notes {
        std::mem::take(&mut self.notes.lock())
    }
}
