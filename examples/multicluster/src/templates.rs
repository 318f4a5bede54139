//! Templates: objects of the control plane that are distributed to members. Policies name their kinds.

use kctl::{k8s::api::rbac::v1::PolicyRule, karmada::kind::Gvk, object::Stored, prelude::*};
use serde_json::{Value, json};

use crate::kinds::{ResourceBinding, ResourceRef, ResourceSelector};

/// API group of this program's own kinds, which are never distributed.
const OWN_GROUP: &str = "fleet.example.com";

/// Returns the rule for reading templates. A policy may name any kind, so the rule covers all kinds.
pub(crate) fn reading() -> PolicyRule {
    any("*", &["list", "watch"])
}

/// Returns the rule for patching the status of templates. The program writes no other part of a template.
pub(crate) fn patching_status() -> PolicyRule {
    any("*/status", &["patch"])
}

/// Returns a `PolicyRule` for all API groups.
pub(crate) fn any(resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec!["*".into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    }
}

impl ResourceSelector {
    /// Returns the kind that the selector names.
    pub(crate) fn gvk(&self) -> Gvk {
        gvk(&self.api_version, &self.kind)
    }

    /// Returns `true` if kind, name and labels match the template. An empty name matches all names.
    fn selects(&self, template: &Value) -> bool {
        let metadata = &template["metadata"];
        let named = self.name.is_empty() || metadata["name"] == *self.name;
        let labelled = self.labels.iter().all(|(key, value)| metadata["labels"][key] == **value);
        template["apiVersion"] == *self.api_version && template["kind"] == *self.kind && named && labelled
    }
}

impl ResourceRef {
    /// Returns the kind of the object.
    pub(crate) fn gvk(&self) -> Gvk {
        gvk(&self.api_version, &self.kind)
    }

    /// Returns the name of the object's binding.
    pub(crate) fn binding(&self) -> String {
        binding_name(&self.gvk(), &self.name)
    }
}

/// Parses `apiVersion` and `kind`.
fn gvk(api_version: &str, kind: &str) -> Gvk {
    Gvk::from_object(&json!({ "apiVersion": api_version, "kind": kind }))
}

/// Returns `true` if objects of a kind can be distributed.
pub(crate) fn may_propagate(kind: &Gvk) -> bool {
    kind.group != OWN_GROUP
}

/// Returns the name of a template's binding. It contains the API group, because two groups may have kinds of the same
/// name.
pub(crate) fn binding_name(kind: &Gvk, name: &str) -> String {
    let of = kind.kind.to_lowercase();
    if kind.group.contains('.') { format!("{of}.{}-{name}", kind.group) } else { format!("{of}-{name}") }
}

/// Returns the key of a template's binding.
pub(crate) fn binding_of(kind: &Gvk, template: &Stored) -> Option<Key<ResourceBinding>> {
    let meta = template.meta();
    Some(Key::namespaced(meta.namespace()?, &binding_name(kind, meta.name())))
}

/// Returns `true` if any of the selectors matches a template.
pub(crate) fn is_selected(selectors: &[ResourceSelector], template: &Value) -> bool {
    selectors.iter().any(|selector| selector.selects(template))
}
