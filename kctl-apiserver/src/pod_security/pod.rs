//! A Pod in the form that the checks read, and its parts.

use std::ops::Deref;

use serde_json::Value;

use crate::field_errors::text;

/// A Pod, and the version of the rules that it is checked against.
pub(super) struct Pod<'a> {
    /// The metadata, but checks read only annotations.
    pub(super) metadata: &'a Value,
    /// The spec of the Pod or Pod template.
    pub(super) spec: &'a Value,
    /// The minor version of Kubernetes. Invariant: at most `NEWEST`, because a later version has no other checks.
    pub(super) minor: u32,
}

impl<'a> Pod<'a> {
    /// Returns the spec, and the containers of all lists.
    pub(super) fn parts(&'a self) -> Vec<Part<'a>> {
        debug_assert!(self.minor <= super::NEWEST, "`violations` limits the version");
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        let containers = lists.flat_map(|list| items(&self.spec[list]));
        std::iter::once(self.spec).chain(containers).map(|value| Part { pod: self, value }).collect()
    }

    /// Returns the security context of the pod itself.
    pub(super) fn context(&self) -> &Value {
        &self.spec["securityContext"]
    }

    /// Returns `true` for a Windows Pod if the policy version (1.25 or later) exempts it from checks of Linux settings.
    pub(super) fn is_exempt_windows(&self) -> bool {
        self.minor >= 25 && self.spec["os"]["name"] == "windows"
    }

    /// Returns `true` if root in a container is not root on the node, and the policy version is at least 1.35. Since
    /// then, `baseline` allows any `procMount` there, and `restricted` allows root.
    pub(super) fn is_in_user_namespace(&self) -> bool {
        self.minor >= 35 && self.spec["hostUsers"] == false
    }
}

/// The spec of a Pod, or a container. It dereferences to its value.
pub(super) struct Part<'a> {
    pub(super) pod: &'a Pod<'a>,
    value: &'a Value,
}

impl Deref for Part<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value
    }
}

impl Part<'_> {
    /// Returns `true` for the spec of the Pod.
    pub(super) fn is_pod_spec(&self) -> bool {
        std::ptr::eq(self.value, self.pod.spec)
    }

    /// Returns `pod` or `container NAME`.
    pub(super) fn name(&self) -> String {
        if self.is_pod_spec() { "pod".to_owned() } else { format!("container {}", text(&self["name"])) }
    }

    /// Returns the security context of the Pod or of the container.
    pub(super) fn context(&self) -> &Value {
        &self["securityContext"]
    }
}

/// Iterates over a list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
