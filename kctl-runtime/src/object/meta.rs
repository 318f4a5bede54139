//! The metadata that the control loop reads of each object, kept next to its JSON.

use std::{borrow::Cow, num::NonZeroI64, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Labels, Time, Uid, Version};
use crate::key::ObjectKey;

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Owner {
    /// Group and version of the owner, for example `apps/v1`.
    pub api_version: String,
    /// Kind of the owner, for example `ReplicaSet`.
    pub kind: String,
    /// Name of the owner. Its namespace is the object's, or it has none.
    pub name: String,
    /// Uid of the owner. A later object of the same name has another uid and does not own this one.
    pub uid: Uid,
    /// `true` for the controller reference. API servers accept at most one per object.
    #[serde(default, skip_serializing_if = "is_false")]
    pub controller: bool,
    /// `Some(true)` if foreground deletion of the owner waits for this object. `None` counts as `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Owner {
    /// Returns the API group of the owner, empty for the core group.
    ///
    /// ```
    /// use kctl_runtime::object::Owner;
    ///
    /// let reference = r#"{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true}"#;
    /// let owner: Owner = serde_json::from_str(reference)?;
    /// assert_eq!(owner.group(), "apps");
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }
}

/// The metadata that event handlers, indexes and writes read.
///
/// It is parsed once per state and cheap to clone: strings that many objects share are stored once.
/// Annotations are not a part of it. Read them from the decoded object, or name one in a
/// [`View`](super::View).
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kctl_runtime::object::{Kind, Stored};
/// let pod = r#"{"metadata": {
///     "name": "web-0", "namespace": "shop", "generation": 3,
///     "finalizers": ["example.com/volume"],
///     "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true}]
/// }}"#;
/// let stored = Stored::accept(&Kind::of::<Pod>(), pod)?;
/// let meta = stored.meta();
/// assert_eq!(meta.generation(), Some(3));
/// assert_eq!(meta.controller().map(|owner| owner.name.as_str()), Some("web"));
/// assert!(meta.deletion_timestamp().is_none() && meta.finalizers() == ["example.com/volume"]);
/// # Ok::<(), kctl_runtime::object::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity of the object: a new object under the same name has another uid.
    ///
    /// Empty if the JSON had none, as for objects that a test writes.
    pub uid: Uid,
    /// `metadata.resourceVersion`. Opaque in general; since Kubernetes 1.35 it is an ordered number
    /// (KEP-5504), which [`revision`](Self::revision) returns.
    pub resource_version: Version,
    /// API servers count from one and omit a zero, so the optional number takes no extra space.
    generation: Option<NonZeroI64>,
    /// Time at which the API server created the object, in whole seconds.
    pub creation_timestamp: Option<Time>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.ownerReferences`, shared with other objects of the same owners.
    pub owner_references: Arc<Vec<Owner>>,
    /// `None` for the many objects without a finalizer or a deletion timestamp.
    end: Option<Arc<DeletionMeta>>,
}

/// Deletion timestamp and finalizers, out of line because most objects have neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DeletionMeta {
    deletion_timestamp: Option<Time>,
    finalizers: Vec<String>,
}

impl Meta {
    /// Returns `metadata.name`, which is never empty in an accepted object.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// Returns the namespace, `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace.as_deref()
    }

    /// Returns `metadata.generation`, which the API server increments with each change of `spec`.
    ///
    /// `None` for kinds that have no generation, such as `ConfigMap`.
    pub fn generation(&self) -> Option<i64> {
        self.generation.map(NonZeroI64::get)
    }

    /// Returns `metadata.deletionTimestamp`: the time of the delete request plus the grace period. `None` without a
    /// delete request.
    ///
    /// An object with it is terminating: it disappears once its finalizers are removed and its grace
    /// period is over.
    pub fn deletion_timestamp(&self) -> Option<&Time> {
        self.end.as_ref()?.deletion_timestamp.as_ref()
    }

    /// Returns `metadata.finalizers`.
    pub fn finalizers(&self) -> &[String] {
        self.end.as_ref().map_or(&[], |end| &end.finalizers)
    }

    /// Returns `true` if the object has this finalizer.
    pub(crate) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers().iter().any(|present| present == finalizer)
    }

    /// Returns the finalizers of other controllers, in their order.
    pub(crate) fn finalizers_without(&self, finalizer: &str) -> Vec<String> {
        self.finalizers().iter().filter(|present| *present != finalizer).cloned().collect()
    }

    /// Returns the controller reference: the owner with `controller: true`.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Returns the resourceVersion as a number, `None` if it is not a decimal `u64`.
    ///
    /// Two revisions of one kind can be ordered. Stores use that to drop a watch event that is older than
    /// the response to a write.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version.number()
    }

    /// Returns the metadata as JSON members, without the surrounding braces.
    pub(super) fn members(&self) -> String {
        let json = serde_json::to_string(&Members::new(self)).unwrap_or_default();
        debug_assert!(json.len() >= 2, "strings and numbers can be written as JSON");
        json.get(1..json.len().saturating_sub(1)).unwrap_or_default().into()
    }

    /// Returns `true` if all but the resourceVersion is equal.
    ///
    /// The version also counts changes of fields that this cache does not keep.
    pub(super) fn equals_except_version(&self, other: &Self) -> bool {
        Members { resource_version: &other.resource_version, ..Members::new(self) } == Members::new(other)
    }
}

/// The metadata in the order and spelling of the wire, for writing it back as JSON.
#[derive(Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Uid::is_empty")]
    uid: &'a Uid,
    #[serde(skip_serializing_if = "Version::is_empty")]
    resource_version: &'a Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: &'a Labels,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    finalizers: &'a [String],
    #[serde(skip_serializing_if = "<[Owner]>::is_empty")]
    owner_references: &'a [Owner],
}

impl<'a> Members<'a> {
    fn new(meta: &'a Meta) -> Self {
        // Without `..`, so that a new field of `Meta` does not compile until it is written here or ignored.
        let Meta { key, uid, resource_version, generation: _, creation_timestamp, labels, owner_references, end: _ } =
            meta;
        Self {
            name: &key.name,
            namespace: key.namespace.as_deref(),
            uid,
            resource_version,
            generation: meta.generation(),
            creation_timestamp: creation_timestamp.as_ref(),
            deletion_timestamp: meta.deletion_timestamp(),
            labels,
            finalizers: meta.finalizers(),
            owner_references,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants this signature")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The fields that one pass over an object's JSON reads; the rest is skipped without allocation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    /// `None` in items of a list of a built-in kind.
    #[serde(borrow)]
    pub(super) api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) metadata: Option<HeadMeta<'a>>,
}

/// `metadata` as it is on the wire, borrowed where no character is escaped.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HeadMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    generation: Option<i64>,
    #[serde(borrow)]
    creation_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    deletion_timestamp: Option<Cow<'a, str>>,
    labels: Labels,
    finalizers: Vec<String>,
    owner_references: Vec<Owner>,
    #[serde(borrow)]
    pub(super) managed_fields: Option<&'a RawValue>,
}

impl From<HeadMeta<'_>> for Meta {
    fn from(mut head: HeadMeta<'_>) -> Self {
        // A vector of one item that grew has room for four.
        head.owner_references.shrink_to_fit();
        let deletion_timestamp = head.deletion_timestamp.as_deref().map(Time::from);
        let end = DeletionMeta { deletion_timestamp, finalizers: head.finalizers };
        Self {
            key: ObjectKey::new(head.namespace.as_deref(), &head.name),
            uid: (&*head.uid).into(),
            resource_version: (&*head.resource_version).into(),
            generation: head.generation.and_then(NonZeroI64::new),
            creation_timestamp: head.creation_timestamp.as_deref().map(Time::from),
            labels: head.labels,
            owner_references: Arc::new(head.owner_references),
            end: (end != DeletionMeta::default()).then(|| Arc::new(end)),
        }
    }
}
