//! A Pod as the checks see it: its containers of all types, and how messages name them.

use std::collections::BTreeSet;

use serde_json::Value;

/// A pod, and the version of the rules that it is judged by.
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
    /// The minor version of Kubernetes.
    pub(super) minor: u32,
}

impl<'a> Pod<'a> {
    /// Iterates over all containers.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        lists.flat_map(move |list| items(&spec[list]))
    }

    /// Returns the security context of the Pod.
    pub(super) fn context(&self) -> &'a Value {
        &self.spec["securityContext"]
    }

    /// The names of containers that have something wrong.
    pub(super) fn names_of(&self, is_wrong: impl FnMut(&&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(is_wrong).map(|container| text(&container["name"])).collect()
    }

    /// Windows knows none of what containers are asked for, since these rules say so.
    pub(super) fn is_exempt_windows(&self) -> bool {
        self.minor >= 25 && self.spec["os"]["name"] == "windows"
    }

    /// Returns `true` for a Pod in a user namespace, where root is not root on the node. Relaxes checks since 1.35.
    pub(super) fn is_in_user_namespace(&self) -> bool {
        self.minor >= 35 && self.spec["hostUsers"] == false
    }
}

/// Iterates over a list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns a string, or the empty one.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `container "a"`, `containers "a", "b"`.
pub(super) fn counted(one: &str, several: &str, names: &[&str]) -> String {
    format!("{} {}", if names.len() == 1 { one } else { several }, quoted(names))
}

/// The same of containers.
pub(super) fn containers(names: &[&str]) -> String {
    counted("container", "containers", names)
}

/// Joins quoted names.
pub(super) fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

/// Returns who sets a forbidden value: the Pod, some containers, or both.
pub(super) fn setters(pod_does: bool, names: &[&str]) -> Option<String> {
    let pod = pod_does.then(|| "pod".to_owned());
    let of_containers = (!names.is_empty()).then(|| containers(names));
    let setters: Vec<String> = pod.into_iter().chain(of_containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// Values in order, each once.
pub(super) fn sorted<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    values.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}
