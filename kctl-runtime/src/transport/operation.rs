//! The operation of a request: the part of an error that says what was tried.

use std::{fmt, sync::Arc};

use crate::{key::ObjectKey, object::Kind};

/// The operation of a request: a verb, and the kind and the object that the request was about.
///
/// It begins the message of each [`ApiError`](super::ApiError): `patch Deployment shop/web`, or
/// `patch Deployment shop/web on edge` for another cluster. Requests without an
/// object, such as discovery or the renewal of a Lease, have a description instead of kind and key.
///
/// ```
/// use kctl_runtime::writer::{ApiError, Operation};
///
/// let error = ApiError::rejected("discover apps/v1", 403, None, "");
/// assert_eq!(error.operation(), &Operation::from("discover apps/v1"));
/// assert_eq!(error.operation().key(), None);
/// ```
///
/// Clones share their content.
#[derive(Clone, PartialEq, Eq)]
pub struct Operation(Arc<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    /// The verb, or the description of an operation without a kind.
    verb: String,
    /// Cluster and kind.
    kind: Option<(String, Kind)>,
    /// `None` for requests about all objects of a kind.
    key: Option<ObjectKey>,
    is_on_subresource: bool,
}

impl Operation {
    pub(crate) fn on_object(verb: impl Into<String>, cluster: &str, kind: &Kind, key: ObjectKey) -> Self {
        let kind = Some((cluster.to_owned(), kind.clone()));
        Self(Arc::new(Parts { verb: verb.into(), kind, key: Some(key), is_on_subresource: false }))
    }

    /// Returns an operation on the objects of a kind, such as a list.
    pub(crate) fn on_kind(verb: &str, cluster: &str, kind: &Kind) -> Self {
        let kind = Some((cluster.to_owned(), kind.clone()));
        Self(Arc::new(Parts { verb: verb.to_owned(), kind, key: None, is_on_subresource: false }))
    }

    /// Marks an operation on a subresource of the object, such as its status.
    #[must_use]
    pub(crate) fn on_subresource(self) -> Self {
        Self(Arc::new(Parts { is_on_subresource: true, ..Parts::clone(&self.0) }))
    }

    /// Returns `true` for a subresource. Its 404 does not prove that the object is gone: for a custom resource without the
    /// subresource, the response names the object as well (`apiextensions-apiserver`, `customresource_handler.go`).
    pub(crate) fn is_on_subresource(&self) -> bool {
        self.0.is_on_subresource
    }

    /// Returns the verb, for example `patch`, or the description of an operation without a kind.
    pub fn verb(&self) -> &str {
        &self.0.verb
    }

    /// Returns the kind that the request was about.
    pub fn kind(&self) -> Option<&Kind> {
        self.0.kind.as_ref().map(|(_, kind)| kind)
    }

    /// Returns the name of the cluster. It is empty for the cluster that the program was started against, and for an
    /// operation without a kind.
    pub fn cluster(&self) -> &str {
        self.0.kind.as_ref().map_or("", |(cluster, _)| cluster)
    }

    /// Returns the key of the object that the request was about.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.0.key.as_ref()
    }

    /// Returns why the key can't be a part of a URL, or `None` if it can. An API server splits the path after it has
    /// decoded the escapes, so `a/b` names a subresource. client-go rejects the same names (`rest/request.go`,
    /// `IsValidPathSegmentName`).
    pub(super) fn invalid_path_segment(&self) -> Option<String> {
        let key = self.key()?;
        let parts = [("namespace", key.namespace.as_deref().unwrap_or_default()), ("name", &*key.name)];
        let is_invalid = |text: &str| [".", ".."].contains(&text) || text.contains(['/', '%']);
        let (part, text) = parts.into_iter().find(|(_part, text)| is_invalid(text))?;
        Some(format!("`{text}` is not a valid {part}; it must not be `.` or `..`, or contain `/` or `%`"))
    }

    /// Returns `true` if the request was about this object.
    pub(crate) fn is_on(&self, cluster: &str, kind: &Kind, key: &ObjectKey) -> bool {
        self.cluster() == cluster && self.kind() == Some(kind) && self.key() == Some(key)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())?;
        match (self.kind(), self.key()) {
            (Some(kind), Some(key)) => write!(f, " {kind} {key}")?,
            (Some(kind), None) => write!(f, " {}", kind.plural)?,
            (None, _) => {}
        }
        match self.cluster() {
            "" => Ok(()),
            cluster => write!(f, " on {cluster}"),
        }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl From<String> for Operation {
    fn from(text: String) -> Self {
        Self(Arc::new(Parts { verb: text, kind: None, key: None, is_on_subresource: false }))
    }
}

impl From<&str> for Operation {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&Self> for Operation {
    fn from(operation: &Self) -> Self {
        operation.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_is_on_one_object_of_one_cluster() {
        let kind = |group: &str| Kind {
            group: group.into(),
            version: "v1".into(),
            kind: "Service".into(),
            plural: "services".into(),
        };
        let (core, key) = (kind(""), ObjectKey::new(Some("shop"), "web"));
        let patch = Operation::on_object("patch", "edge", &core, key.clone());
        assert_eq!(patch.to_string(), "patch Service shop/web on edge");
        assert_eq!(Operation::on_kind("list", "edge", &core).to_string(), "list services on edge");
        assert_eq!(Operation::on_kind("list", "", &core).to_string(), "list services");
        assert!(patch.is_on("edge", &core, &key));
        assert!(!patch.is_on("", &core, &key), "another cluster");
        assert!(!patch.is_on("edge", &kind("serving.knative.dev"), &key), "another group");
        assert!(!patch.is_on("edge", &core, &ObjectKey::new(Some("shop"), "w")), "another object");
        assert!(!Operation::from("patch Service shop/web").is_on("edge", &core, &key), "only a description");
    }
}
