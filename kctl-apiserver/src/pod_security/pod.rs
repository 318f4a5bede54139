//! A Pod in the form that the checks read, and the places in it that break a rule.

use serde_json::Value;

use crate::field_errors::text;

/// A Pod, and the version of the rules that it is checked against.
pub(super) struct Pod<'a> {
    /// The metadata, of which checks read only annotations.
    pub(super) metadata: &'a Value,
    /// The spec of the Pod or Pod template.
    pub(super) spec: &'a Value,
    /// The minor version of Kubernetes.
    ///
    /// It is at most `NEWEST`.
    pub(super) minor: u32,
}

impl Pod<'_> {
    /// Returns the containers of all lists that break a rule.
    ///
    /// The places are `container NAME`; an unset name is empty.
    pub(super) fn containers(&self, breaks_rule: impl Fn(&Value) -> bool) -> Vec<String> {
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        let containers = lists.flat_map(|list| items(&self.spec[list])).filter(|container| breaks_rule(container));
        containers.map(|container| format!("container {}", text(&container["name"]))).collect()
    }

    /// Returns the pod and the containers whose security context breaks a rule.
    ///
    /// The Pod comes first.
    pub(super) fn contexts(&self, breaks_rule: impl Fn(&Value) -> bool) -> Vec<String> {
        let pod = breaks_rule(self.context()).then(|| "pod".to_owned());
        pod.into_iter().chain(self.containers(|container| breaks_rule(&container["securityContext"]))).collect()
    }

    /// Returns the volumes that break a rule, as `volume NAME`.
    pub(super) fn volumes(&self, breaks_rule: impl Fn(&Value) -> bool) -> Vec<String> {
        let volumes = items(&self.spec["volumes"]).filter(|volume| breaks_rule(volume));
        volumes.map(|volume| format!("volume {}", text(&volume["name"]))).collect()
    }

    /// Returns the security context of the pod itself.
    pub(super) fn context(&self) -> &Value {
        &self.spec["securityContext"]
    }

    /// Returns `true` for a Pod on Windows, if the version exempts it: these settings do not exist on Windows.
    pub(super) fn is_exempt_windows(&self) -> bool {
        self.minor >= 25 && self.spec["os"]["name"] == "windows"
    }

    /// Returns `true` if root in a container is not root on the node.
    ///
    /// Since 1.35, `baseline` allows any `procMount` there, and `restricted` allows root.
    pub(super) fn is_in_user_namespace(&self) -> bool {
        self.minor >= 35 && self.spec["hostUsers"] == false
    }
}

/// Iterates over a list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
