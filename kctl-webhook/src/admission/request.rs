//! The request that an admission function sees, and what it can add to the response.

use std::collections::BTreeMap;

use kctl_apimachinery::validation::is_qualified_name;
use parking_lot::Mutex;
use serde_json::Value;

use super::{options::Operation, user::User};

/// Maximum number of warnings in one response; further ones are dropped. API servers shorten them after
/// 4096 characters in total (`AddWarning` in `k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
pub const WARNINGS_LEN_MAX: usize = 32;
/// Maximum number of audit annotations of one response; further keys are dropped.
pub const AUDIT_LEN_MAX: usize = 32;

/// A request that an API server is about to carry out: the second parameter of an admission
/// function.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Namespace;
/// use kctl_webhook::{FunctionInfo, admission::{Action, Admission, Denial, Operation, Options, Webhook}};
///
/// /// Rejects the deletion of namespaces, except by the on-call group.
/// async fn keep(request: Arc<Admission<Namespace>>) -> Result<(), Denial> {
///     if request.user.groups.iter().any(|group| group == "on-call") {
///         request.audit("deleted-by", request.user.name.clone());
///         request.warn(format!("{} and everything in it will be deleted", request.name));
///         return Ok(());
///     }
///     Err(Denial::because("only the engineer on call deletes namespaces"))
/// }
///
/// let mut options = Options::new(Action::Validate);
/// options.operations = vec![Operation::Delete];
/// let webhook = Webhook::request(FunctionInfo::new("keep", file!(), line!()), options, keep);
/// assert_eq!(webhook.path(), "/validate--v1-namespace");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Admission<K> {
    /// The operation of the request.
    pub operation: Operation,
    /// The name of the object; empty for a new object with `generateName`.
    pub name: String,
    /// The namespace; `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The subresource of the request, such as `status`.
    pub subresource: Option<String>,
    /// The user that sent the request.
    pub user: User,
    /// Set for a dry run: nothing is stored, and a function must not have side effects.
    pub dry_run: bool,
    /// The stored object, for an update or a delete.
    pub old: Option<K>,
    /// The object as it was sent. For some subresources it is of another kind, such as
    /// `PodExecOptions`.
    pub object: Value,
    /// The options of the request, such as `CreateOptions` with the field manager.
    pub options: Value,
    notes: Mutex<Notes>,
}

/// Warnings and audit annotations of a response.
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

    /// Adds a warning to the response, also to a rejection: kubectl prints it as `Warning: …`.
    ///
    /// Keep it below 120 characters. Its lines are joined by spaces, because API servers drop a warning with a control
    /// character (`NewWarningHeader` in `k8s.io/apimachinery/pkg/util/net/http.go`). At most [`WARNINGS_LEN_MAX`] are
    /// sent.
    pub fn warn(&self, text: impl Into<String>) {
        let text = join_lines(&text.into());
        let mut notes = self.notes.lock();
        if notes.warnings.len() < WARNINGS_LEN_MAX {
            notes.warnings.push(text);
        }
    }

    /// Adds an annotation to the audit log of the API server, under `<name of the webhook>/<key>` (`callAttrMutatingHook` in
    /// `k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go`).
    ///
    /// The key is a name without a prefix: up to 63 letters, digits, `-`, `_` and `.`. Any other one is logged here and
    /// not sent, because API servers drop it (`checkKeyFormat` in `k8s.io/apiserver/pkg/admission/attributes.go`).
    ///
    /// At most [`AUDIT_LEN_MAX`] keys are sent. A key that is set again is replaced.
    pub fn audit(&self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        if key.contains('/') || !is_qualified_name(&key) {
            tracing::warn!(%key, "an audit annotation is not sent: its key must be a name such as `deleted-by`");
            return;
        }
        let mut notes = self.notes.lock();
        if notes.audit.len() < AUDIT_LEN_MAX || notes.audit.contains_key(&key) {
            notes.audit.insert(key, value.into());
        }
    }

    pub(super) fn take_notes(&self) -> Notes {
        std::mem::take(&mut self.notes.lock())
    }
}

/// Returns the text in one line: a space in place of line breaks and other control characters.
fn join_lines(text: &str) -> String {
    let lines: Vec<_> = text.split(char::is_control).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{super::review::Request, *};

    fn notes(add: impl FnOnce(&Admission<()>)) -> Notes {
        let request = Admission::new(&Request::default(), Operation::Create, None);
        add(&request);
        request.take_notes()
    }

    /// API servers drop a warning with a control character.
    #[test]
    fn lines_of_a_warning_are_joined() {
        let notes = notes(|request| {
            request.warn("spec.port is deprecated");
            request.warn("line 2: bad key\r\n\tport: 80\n");
        });
        assert_eq!(notes.warnings, ["spec.port is deprecated", "line 2: bad key port: 80"]);
    }

    /// API servers drop an annotation if `<name of the webhook>/<key>` is not a qualified name.
    #[test]
    fn invalid_audit_keys_are_not_sent() {
        let notes = notes(|request| {
            for key in ["deleted-by", "a.b_C", "example.com/by", "deleted by", "-by", "", &"k".repeat(64)] {
                request.audit(key, "ann");
            }
        });
        assert_eq!(notes.audit.into_keys().collect::<Vec<_>>(), ["a.b_C", "deleted-by"]);
    }
}
