//! Templates: the objects of the control plane that go to members. Their kinds are those that policies name.

use kctl::{k8s::api::rbac::v1::PolicyRule, karmada::kind::Gvk, object::Stored, prelude::*};
use serde_json::{Value, json};

use crate::kinds::{ResourceBinding, ResourceRef, ResourceSelector};

/// The kinds of this program stay in the control plane.
const OWN_GROUP: &str = "fleet.example.com";

/// What is read: any kind may be named, so that the role can't say which. Nothing of it may be written but statuses.
pub(crate) fn reading() -> PolicyRule {
    any("*", &["list", "watch"])
}

/// Statuses of templates.
pub(crate) fn telling() -> PolicyRule {
    any("*/status", &["patch"])
}

/// A rule about all kinds.
pub(crate) fn any(resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec!["*".into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    }
}

impl ResourceSelector {
    /// The kind that it names.
    pub(crate) fn gvk(&self) -> Gvk {
        gvk(&self.api_version, &self.kind)
    }

    fn selects(&self, template: &Value) -> bool {
        let metadata = &template["metadata"];
        let named = self.name.is_empty() || metadata["name"] == *self.name;
        let labelled = self.labels.iter().all(|(key, value)| metadata["labels"][key] == **value);
        template["apiVersion"] == *self.api_version && template["kind"] == *self.kind && named && labelled
    }
}

impl ResourceRef {
    /// The kind of the object.
    pub(crate) fn gvk(&self) -> Gvk {
        gvk(&self.api_version, &self.kind)
    }

    /// The name of the binding of the object.
    pub(crate) fn binding(&self) -> String {
        binding_name(&self.gvk(), &self.name)
    }
}

fn gvk(api_version: &str, kind: &str) -> Gvk {
    Gvk::of(&json!({ "apiVersion": api_version, "kind": kind }))
}

/// Whether objects of a kind can go to members.
pub(crate) fn may_leave(kind: &Gvk) -> bool {
    kind.group != OWN_GROUP
}

/// The name of the binding of a template. Kinds of the same name in other groups are other kinds.
pub(crate) fn binding_name(kind: &Gvk, name: &str) -> String {
    let of = kind.kind.to_lowercase();
    if kind.group.contains('.') { format!("{of}.{}-{name}", kind.group) } else { format!("{of}-{name}") }
}

/// The key of the binding of a template.
pub(crate) fn binding_of(kind: &Gvk, template: &Stored) -> Option<Key<ResourceBinding>> {
    let meta = template.meta();
    Some(Key::namespaced(meta.namespace()?, &binding_name(kind, meta.name())))
}

/// Whether one of the selectors names the template.
pub(crate) fn is_selected(selectors: &[ResourceSelector], template: &Value) -> bool {
    selectors.iter().any(|selector| selector.selects(template))
}
