//! The metadata that the loop reads of each object, kept beside its JSON; what many objects have alike is kept once.

use std::{borrow::Cow, num::NonZeroI64, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Labels, Time, Uid, Version};
use crate::key::ObjectKey;

/// One owner reference, as far as the loop reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner: what makes it that owner and not a later one of the same name.
    pub uid: Uid,
    /// Whether this owner is the one that manages the object.
    #[serde(default, skip_serializing_if = "is_false")]
    pub controller: bool,
    /// Whether a deletion of the owner in the foreground waits for the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Owner {
    /// The API group of the owner, without the version.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }
}

/// The metadata that handlers, indexes and write-through read. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Identity across re-creation under the same name.
    pub uid: Uid,
    /// Opaque but, since Kubernetes 1.35, comparable as a number.
    pub resource_version: Version,
    /// API servers begin at one, and leave out a zero.
    generation: Option<NonZeroI64>,
    /// When the object was made.
    pub creation_timestamp: Option<Time>,
    /// All labels.
    pub labels: Labels,
    /// All owners.
    pub owner_references: Arc<Vec<Owner>>,
    /// What most objects have nothing of.
    end: Option<Arc<End>>,
}

/// What is about the end of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct End {
    deletion_timestamp: Option<Time>,
    finalizers: Vec<String>,
}

impl Meta {
    /// The name, empty never, once accepted.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// The namespace, absent for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace.as_deref()
    }

    /// Grows with each change of the spec.
    pub fn generation(&self) -> Option<i64> {
        self.generation.map(NonZeroI64::get)
    }

    /// Set once deletion was asked for.
    pub fn deletion_timestamp(&self) -> Option<&Time> {
        self.end.as_ref()?.deletion_timestamp.as_ref()
    }

    /// Returns `metadata.finalizers`.
    pub fn finalizers(&self) -> &[String] {
        self.end.as_ref().map_or(&[], |end| &end.finalizers)
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// The resourceVersion as a number, if it is one.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version.number()
    }

    /// Its members as JSON, without the braces.
    pub(super) fn members(&self) -> String {
        let json = serde_json::to_string(&Members::of(self)).unwrap_or_default();
        debug_assert!(json.len() >= 2, "texts and numbers can be written as JSON");
        json.get(1..json.len().saturating_sub(1)).unwrap_or_default().into()
    }

    /// Whether a reader sees the same: all but the version, which counts what nobody sees as well.
    pub(super) fn looks_as(&self, other: &Self) -> bool {
        Members { resource_version: &other.resource_version, ..Members::of(self) } == Members::of(other)
    }
}

/// The metadata as it is on the wire.
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
    fn of(meta: &'a Meta) -> Self {
        // A member that is added to the metadata is written as well, or this does not compile.
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

/// What is read of an object in one pass over its JSON; everything else is only looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    /// Items of lists of built-in kinds have none.
    #[serde(borrow)]
    pub(super) api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) metadata: Option<HeadMeta<'a>>,
}

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
    fn from(head: HeadMeta<'_>) -> Self {
        let deletion_timestamp = head.deletion_timestamp.as_deref().map(Time::from);
        let end = End { deletion_timestamp, finalizers: head.finalizers };
        Self {
            key: ObjectKey::new(head.namespace.as_deref(), &head.name),
            uid: (&*head.uid).into(),
            resource_version: (&*head.resource_version).into(),
            generation: head.generation.and_then(NonZeroI64::new),
            creation_timestamp: head.creation_timestamp.as_deref().map(Time::from),
            labels: head.labels,
            owner_references: Arc::new(head.owner_references),
            end: (end != End::default()).then(|| Arc::new(end)),
        }
    }
}
