//! Computes the usage of an object in a quota, by the rules of its kind.
//!
//! Upstream: `pkg/quota/v1/evaluator/core`, and `generic/evaluator.go` of `k8s.io/apiserver`.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    amounts::Amounts,
    field_errors::text,
    quantity,
    registry::{
        Resource,
        kind::{Quota, Subresource},
    },
    request::Operation,
    status::GroupResource,
};

/// Counts the objects of one resource.
#[derive(Clone)]
pub(crate) struct Counter {
    /// The resource whose objects are counted.
    group_resource: GroupResource,
    /// `count/deployments.apps`.
    by_count: String,
    /// The way in which quotas count objects of the kind.
    pub(super) quota: &'static Quota,
}

impl Counter {
    /// Returns `None` for resources that are never counted.
    pub(crate) fn for_resource(resource: &Resource) -> Option<Self> {
        let (group_resource, quota) = (&resource.id, &resource.kind.quota);
        quota.is_counted.then(|| Self {
            group_resource: group_resource.clone(),
            by_count: format!("count/{group_resource}"),
            quota,
        })
    }

    /// Returns the resource that is counted.
    pub(crate) fn resource(&self) -> &GroupResource {
        &self.group_resource
    }

    /// Returns `true` if a write may change the usage. A delete never needs a check: it only frees.
    pub(crate) fn handles(
        &self,
        operation: Operation,
        subresource: Subresource,
        old: Option<&Value>,
        new: &Value,
    ) -> bool {
        match (operation, old) {
            (Operation::Create, _) => subresource.is_main(),
            (Operation::Update, Some(old)) => (self.quota.changes_usage)(subresource, old, new),
            _ => false,
        }
    }

    /// Returns `true` if a name in a quota is about these objects.
    pub(crate) fn counts(&self, name: &str) -> bool {
        name == self.by_count || (self.quota.counts)(name)
    }

    /// Returns the usage of an object. The count is 1 for each object, in addition to the usage that the kind computes.
    pub(super) fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        let mut usage = Amounts::from([(self.by_count.clone(), quantity::count(1))]);
        usage.extend((self.quota.usage)(object, now));
        usage
    }

    /// Returns `true` if an object is in all scopes of a quota. Only Pods and `PersistentVolumeClaims` can be in a
    /// scope. A quota without scopes applies to all objects. `scopes` are the short form of the operator `Exists`.
    pub(super) fn is_in_scopes(&self, quota: &Value, object: &Value) -> bool {
        let (scopes, selected) = (&quota["spec"]["scopes"], &quota["spec"]["scopeSelector"]["matchExpressions"]);
        let is_in = |scope: &Value, operator: &str, values: &Value| {
            (self.quota.is_in_scope)(object, text(scope), operator, values)
        };
        scopes.as_array().into_iter().flatten().all(|scope| is_in(scope, "Exists", &Value::Null))
            && selected.as_array().into_iter().flatten().all(|requirement| {
                is_in(&requirement["scopeName"], text(&requirement["operator"]), &requirement["values"])
            })
    }
}
