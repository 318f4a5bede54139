//! The type of a kind's rules: all that differs between built-in kinds, as data and functions.
//!
//! The values are in `kinds/<group>/<kind>.rs`. A field that a kind does not name has the value of `DEFAULT`, so that
//! the kind's file states only what differs.

mod admission;
mod defaults;
mod delete;
mod managed_fields;
mod metadata;
mod quota;
mod requests;
mod storage;
mod strategy;
mod subresource;
mod table;
mod validation;

pub(crate) use self::{
    admission::Plugin,
    defaults::{Defaults, Undecoded},
    delete::{DeleteResponse, DeleteStrategy},
    managed_fields::{ManagedFields, OwnedState},
    metadata::{Generation, Metadata},
    quota::{FreesUsage, Quota},
    requests::{ConnectTarget, Requests, Review, SelectedValue},
    storage::{SharedTable, StorageVersion},
    strategy::{Allocator, Environment, NewStatus, Others, Part, RequestContext, Strategy},
    subresource::Subresource,
    table::{Cell, Printer, TableColumns},
    validation::{Grants, Validation},
};
use super::Resource;
use crate::status::GroupResource;

/// Paths of fields, each as the names from the object down.
pub(crate) type Paths = &'static [&'static [&'static str]];

/// The rules of one kind, in the order in which a write uses them. A field that has a name in kube-apiserver cites it.
#[expect(clippy::struct_field_names, reason = "`kind` is how Kubernetes names the field")]
pub(crate) struct Kind {
    /// The API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The plural name, as in a path.
    pub(crate) resource: &'static str,
    /// The kind in `CamelCase`, as in objects.
    pub(crate) kind: &'static str,
    /// The rules of the metadata.
    pub(crate) metadata: Metadata,
    /// The requests that the kind supports.
    pub(crate) requests: Requests,
    /// The admission plugins that handle writes of the kind, in the order in which they run.
    pub(crate) admission: &'static [Plugin],
    /// The defaults of fields that were left out.
    pub(crate) defaults: Defaults,
    /// Changes by the server to created and updated objects.
    pub(crate) strategy: Strategy,
    /// The validation of created and updated objects.
    pub(crate) validation: Validation,
    /// Exceptions in the computation of `metadata.managedFields`.
    pub(crate) managed_fields: ManagedFields,
    /// The strategy for deletions.
    pub(crate) delete: DeleteStrategy,
    /// The rows of the kind in tables.
    pub(crate) table: TableColumns,
    /// The way in which quotas count objects of the kind.
    pub(crate) quota: Quota,
    /// The version in which objects are stored, for a kind whose versions have different fields.
    pub(crate) storage: Option<&'static StorageVersion>,
    /// The table that the kind shares with another kind, such as Events of both groups.
    pub(crate) shared_table: Option<&'static SharedTable>,
}

impl Kind {
    /// Fields of the metadata that clients write.
    pub(crate) const CLIENT_METADATA: &'static [&'static str] =
        &["ownerReferences", "labels", "annotations", "finalizers"];

    /// A kind with these rules has no validation, no defaults, and a name that is a DNS subdomain.
    pub(crate) const DEFAULT: Self = Self {
        group: "",
        resource: "",
        kind: "",
        metadata: Metadata::DEFAULT,
        requests: Requests::DEFAULT,
        admission: &[],
        defaults: Defaults::DEFAULT,
        strategy: Strategy::DEFAULT,
        validation: Validation::DEFAULT,
        managed_fields: ManagedFields::DEFAULT,
        delete: DeleteStrategy::DEFAULT,
        table: TableColumns::DEFAULT,
        quota: Quota::DEFAULT,
        storage: None,
        shared_table: None,
    };

    /// Returns a kind that is answered and never stored. It does not count in quotas, and admission policies do not see
    /// it.
    pub(crate) const fn review(
        group: &'static str,
        resource: &'static str,
        kind: &'static str,
        review: Review,
    ) -> Self {
        Self {
            group,
            resource,
            kind,
            requests: Requests { is_exempt_from_policies: true, review: Some(review), ..Requests::DEFAULT },
            quota: Quota::NOT_COUNTED,
            ..Self::DEFAULT
        }
    }

    /// The rules of custom resources.
    pub(crate) const CUSTOM: Self = Self {
        metadata: Metadata { finalizers_without_domain: true, ..Metadata::COUNTED },
        strategy: Strategy::CONDITIONAL,
        managed_fields: ManagedFields {
            reset_fields: &[(Subresource::Status, ManagedFields::ALL_BUT_STATUS)],
            ..ManagedFields::DEFAULT
        },
        ..Self::DEFAULT
    };

    /// Returns `true` if no webhook sees the objects: the reviews of access and tokens
    /// (`admission/exclusion/resources.go`).
    pub(crate) fn is_exempt_from_webhooks(&self) -> bool {
        self.requests.review.is_some_and(|review| review != Review::Binding)
    }

    /// Returns `true` if the `OpenAPI` document says that a delete returns the object and not a `Status`.
    pub(crate) fn returns_deleted_object(&self) -> bool {
        self.delete.response == DeleteResponse::Object
    }

    /// Returns the kind that shares a table with this one.
    pub(crate) fn shared_table_kind(&self) -> Option<&'static Self> {
        let shared = self.shared_table?;
        Some(if std::ptr::eq(shared.owner, self) { shared.other } else { shared.owner })
    }

    /// Returns the group and resource.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.group, self.resource)
    }

    /// Returns `true` if the rules belong to this group and resource.
    pub(crate) fn is_of(&self, resource: &GroupResource) -> bool {
        resource.resource == self.resource && resource.group == self.group
    }
}

impl Resource {
    /// Returns the part of the object that a subresource writes, such as `ephemeralcontainers` and `resize` of Pods.
    pub(crate) fn part(&self, subresource: Subresource) -> Option<&'static Part> {
        self.kind.strategy.parts.iter().find(|part| part.subresource == subresource)
    }
}
