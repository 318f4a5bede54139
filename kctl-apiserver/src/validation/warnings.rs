//! Warnings about accepted objects that several kinds share.
//!
//! Behaviour: `k8s.io/kubernetes/pkg/api/pod/warnings.go`, and `util.go` of `pkg/api/node` and
//! `pkg/api/persistentvolumeclaim`.
//!
//! A warning is a header `Warning: 299 - "…"` of a successful response; kubectl prints it. Each
//! string begins with the path of the field, then a colon and the reason. The file of a kind has the warnings of this
//! kind only.

mod files;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use crate::{field_errors::text, json_path::entries, limits::WARNINGS_MAX, quantity, registry::Resource};

/// Deprecated volume sources.
const DEPRECATED: &[&str] =
    &["photonPersistentDisk", "gitRepo", "scaleIO", "flocker", "storageos", "quobyte", "glusterfs", "cephfs", "rbd"];

/// Lists of Pod affinity terms, each with the path from an item to its term.
const TERMS: &[(&str, &str)] = &[
    ("requiredDuringSchedulingIgnoredDuringExecution", ""),
    ("preferredDuringSchedulingIgnoredDuringExecution", ".podAffinityTerm"),
];

/// The reason for a null selector in affinity and topology spread, which many users expect to match all Pods.
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Returns the warnings about an accepted object. `old` is its state before.
///
/// Kinds with `warns_once_per_generation` warn only when a write changes the generation. A controller that updates
/// labels would otherwise see the warnings of the user's spec each time.
pub(crate) fn warnings(resource: &Resource, old: Option<&Value>, object: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    if resource.kind.validation.warns_once_per_generation
        && old.is_some_and(|old| generation(old) == generation(object))
    {
        return texts;
    }
    (resource.kind.validation.warn)(old, object, &mut texts);
    texts
}

/// Warns about the Pod template of a workload. The signature is required by `Validation::warn`.
pub(crate) fn warn_about_template(_: Option<&Value>, object: &Value, texts: &mut Vec<String>) {
    template(&object["spec"]["template"], "spec.template.", texts);
}

/// The prefix of annotations that name the `AppArmor` profile of a container; the container's name follows.
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The annotation with the seccomp profile of a Pod, before 1.19.
pub(crate) const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix of annotations with seccomp profiles of containers, before 1.19.
pub(crate) const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Returns the profile that an annotation names, as a value of the field (`ApparmorFieldForAnnotation`). `None` for an
/// unknown value and for `localhost/` without a name.
pub(crate) fn profile_of(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({ "type": "Unconfined" })),
        "runtime/default" => Some(json!({ "type": "RuntimeDefault" })),
        other => {
            let name = other.strip_prefix("localhost/").filter(|name| !name.is_empty())?;
            Some(json!({ "type": "Localhost", "localhostProfile": name }))
        }
    }
}

/// Returns the warning about an `AppArmor` annotation; `path` is the field path of the annotation.
pub(crate) fn old_profile(path: &str) -> String {
    format!("{path}: deprecated since v1.30; use the \"appArmorProfile\" field instead")
}

/// Warns about seccomp and AppArmor profiles that only annotations of a template name. `path` is empty for a Pod, whose
/// `AppArmor` annotations become fields, with a warning there.
fn warn_about_profiles(template: &Value, path: &str, texts: &mut Vec<String>) {
    let (annotations, spec) = (&template["metadata"]["annotations"], &template["spec"]);
    let annotations_path = format!("{path}metadata.annotations");
    let mut seccomp = |context: &Value, key: &str| {
        if context["seccompProfile"].is_null() && annotations.get(key).is_some() {
            let why = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
            texts.push(format!("{annotations_path}[{key}]: {why}"));
        }
    };
    seccomp(&spec["securityContext"], SECCOMP_OF_POD);
    for (_, _, container) in containers(spec) {
        seccomp(&container["securityContext"], &format!("{SECCOMP}{}", text(&container["name"])));
    }
    let pod_profile = &spec["securityContext"]["appArmorProfile"];
    for (_, _, container) in containers(spec).filter(|_| !path.is_empty()) {
        let key = format!("{APP_ARMOR}{}", text(&container["name"]));
        let Some(annotation) = annotations[&key].as_str() else { continue };
        let is_named = container["securityContext"]["appArmorProfile"].is_object();
        if !is_named && (pod_profile.is_null() || profile_of(annotation).as_ref() != Some(pod_profile)) {
            texts.push(old_profile(&format!("{annotations_path}[{key}]")));
        }
    }
}

/// Adds the warnings about a Pod or Pod template. `path` is the prefix of all paths, empty for a Pod and ending with a
/// dot for a template. Validation accepts a negative grace period for compatibility.
pub(crate) fn template(template: &Value, path: &str, texts: &mut Vec<String>) {
    let critical = "scheduler.alpha.kubernetes.io/critical-pod";
    if template["metadata"]["annotations"].get(critical).is_some() {
        let why = "non-functional in v1.16+; use the \"priorityClassName\" field instead";
        texts.push(format!("{path}metadata.annotations[{critical}]: {why}"));
    }
    warn_about_profiles(template, path, texts);
    if template["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        texts.push(format!("{path}spec.terminationGracePeriodSeconds: {why}"));
    }
    pod(&template["spec"], &format!("{path}spec"), texts);
}

/// Deprecated node labels, each with the version that deprecated it and the new label. An update may replace one by the
/// other in the node affinity of a `PersistentVolume`.
pub(crate) const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "1.17", "topology.kubernetes.io/zone"),
    ("beta.kubernetes.io/instance-type", "1.17", "node.kubernetes.io/instance-type"),
];

/// Returns the warning about a deprecated node label, without the path and the label, whose form depends on where the
/// label is used. `None` for other labels.
pub(crate) fn old_label(label: &str) -> Option<String> {
    let (_, since, instead) = OLD_LABELS.iter().find(|(old, ..)| *old == label)?;
    Some(format!("deprecated since v{since}; use {instead:?} instead"))
}

/// Adds warnings about deprecated labels in node selector terms. `PersistentVolume`s use it for node affinity.
pub(crate) fn old_labels_of_terms(terms: &Value, path: &str, texts: &mut Vec<String>) {
    for (index, term) in entries(terms) {
        old_labels_of_term(term, &format!("{path}[{index}]"), texts);
    }
}

/// Adds warnings about deprecated labels in the keys of one term's expressions. `matchFields` has no labels.
fn old_labels_of_term(term: &Value, path: &str, texts: &mut Vec<String>) {
    for (index, expression) in entries(&term["matchExpressions"]) {
        let key = text(&expression["key"]);
        texts.extend(old_label(key).map(|why| format!("{path}.matchExpressions[{index}].key: {key} is {why}")));
    }
}

/// Adds warnings about deprecated node labels in the node selector and the node affinity of a Pod.
fn warn_about_node_labels(spec: &Value, path: &str, texts: &mut Vec<String>) {
    for label in spec["nodeSelector"].as_object().into_iter().flatten().map(|(label, _)| label) {
        texts.extend(old_label(label).map(|why| format!("{path}.nodeSelector[{label}]: {why}")));
    }
    let (affinity, path) = (&spec["affinity"]["nodeAffinity"], format!("{path}.affinity.nodeAffinity"));
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms_path = format!("{path}.{required}.nodeSelectorTerms");
    old_labels_of_terms(&affinity[required]["nodeSelectorTerms"], &terms_path, texts);
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in entries(&affinity[preferred]) {
        old_labels_of_term(&term["preference"], &format!("{path}.{preferred}[{index}].preference"), texts);
    }
}

/// Returns the reason why an amount is not a number of whole bytes. `100m` bytes is the usual mistake: the suffix means
/// thousandths, though `M` was intended.
fn fraction(amount: &Value) -> Option<String> {
    let amount = text(amount);
    let is_part = quantity::amount(amount).is_some_and(|thousandths| thousandths % 1000 != 0);
    is_part.then(|| format!("fractional byte value {amount:?} is invalid, must be an integer"))
}

/// Adds warnings about the storage amounts of a claim's spec at the field path `path`.
pub(crate) fn claim(spec: &Value, path: &str, texts: &mut Vec<String>) {
    for amounts in ["requests", "limits"] {
        let fraction = fraction(&spec["resources"][amounts]["storage"]);
        texts.extend(fraction.map(|why| format!("{path}.resources.{amounts}[storage]: {why}")));
    }
}

/// Adds the warnings about a Pod spec (`warningsForPodSpecAndMeta`). `path` is the field path of the spec.
fn pod(spec: &Value, path: &str, texts: &mut Vec<String>) {
    warn_about_node_labels(spec, path, texts);
    for (index, constraint) in entries(&spec["topologySpreadConstraints"]) {
        let key = text(&constraint["topologyKey"]);
        let key_path = format!("{path}.topologySpreadConstraints[{index}].topologyKey");
        texts.extend(old_label(key).map(|why| format!("{key_path}: {key} is {why}")));
        if constraint["labelSelector"].is_null() {
            texts.push(format!("{path}.topologySpreadConstraints[{index}].labelSelector: {NO_SELECTOR}"));
        }
    }
    for (index, volume) in entries(&spec["volumes"]) {
        for source in DEPRECATED.iter().filter(|source| volume[*source].is_object()) {
            let remedy = if *source == "gitRepo" { "clone in an init container" } else { "use a CSI driver" };
            texts.push(format!("{path}.volumes[{index}].{source}: deprecated, {remedy}"));
        }
        let claim_spec = &volume["ephemeral"]["volumeClaimTemplate"]["spec"];
        claim(claim_spec, &format!("{path}.volumes[{index}].ephemeral.volumeClaimTemplate.spec"), texts);
    }
    files::warn_about_overlaps(spec, texts);
    warn_about_duplicates(&spec["hostAliases"], "ip", &format!("{path}.hostAliases"), texts);
    warn_about_duplicates(&spec["imagePullSecrets"], "name", &format!("{path}.imagePullSecrets"), texts);
    for (index, secret) in entries(&spec["imagePullSecrets"]) {
        if text(&secret["name"]).is_empty() {
            texts.push(format!("{path}.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
    for (list, index, container) in containers(spec) {
        warn_about_container(container, &format!("{path}.{list}[{index}]"), texts);
    }
    warn_about_ports(spec, path, texts);
    for kind in ["podAffinity", "podAntiAffinity"] {
        warn_about_affinity_terms(&spec["affinity"][kind], &format!("{path}.affinity.{kind}"), texts);
    }
}

/// Adds a warning for each affinity term without a label selector, which matches no Pod.
fn warn_about_affinity_terms(affinity: &Value, path: &str, texts: &mut Vec<String>) {
    for (name, term_path) in TERMS {
        for (index, term) in entries(&affinity[*name]) {
            let term = if term_path.is_empty() { term } else { &term["podAffinityTerm"] };
            if term["labelSelector"].is_null() {
                texts.push(format!("{path}.{name}[{index}]{term_path}.labelSelector: {NO_SELECTOR}"));
            }
        }
    }
}

/// Iterates over init containers and containers. Upstream skips ephemeral containers for all of these warnings.
fn containers(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    let lists = ["initContainers", "containers"].into_iter();
    lists.flat_map(move |list| entries(&spec[list]).map(move |(index, container)| (list, index, container)))
}

/// Adds a warning for each item whose `field` equals the field of an earlier item.
fn warn_about_duplicates(list: &Value, field: &str, path: &str, texts: &mut Vec<String>) {
    let mut values = HashSet::new();
    for (index, item) in entries(list) {
        let value = text(&item[field]);
        if !values.insert(value) {
            texts.push(format!("{path}[{index}].{field}: duplicate {field} {value:?}"));
        }
    }
}

/// Adds warnings about fractions of bytes, and about variables that hide an earlier one of the same name: kubectl apply
/// merges variables by name and may drop one of the two.
fn warn_about_container(container: &Value, path: &str, texts: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        for part in ["limits", "requests"] {
            let fraction = fraction(&container["resources"][part][name]);
            texts.extend(fraction.map(|why| format!("{path}.resources.{part}[{name}]: {why}")));
        }
    }
    let mut names = HashSet::new();
    for (index, variable) in entries(&container["env"]) {
        let (name, value) = (text(&variable["name"]), text(&variable["value"]));
        let reference = format!("$({name})");
        // A variable that appends to its earlier value does not hide it.
        let adds = variable["valueFrom"].is_null() && value != reference && value.contains(&reference);
        if !names.insert(name) && !adds {
            let why = format!("hides previous definition of {name:?}, which may be dropped when using apply");
            texts.push(format!("{path}.env[{index}]: {why}"));
        }
    }
}

/// The number of ports of one number and protocol that each further one is compared with.
const PORTS_COMPARED_MAX: usize = 100;

/// Adds warnings about ports of a Pod that collide: by number and protocol, and by name.
///
/// Pairs are compared across all containers of the Pod. Ports of one number and protocol collide unless both are bound
/// to the host, at different host ports or at different host IPs. A host IP without a host port has its own warning.
fn warn_about_ports(spec: &Value, path: &str, texts: &mut Vec<String>) {
    let number = |port: &Value, field: &str| port[field].as_i64().unwrap_or(0);
    let mut ports_by_number: BTreeMap<(i64, &str), Vec<(String, &Value)>> = BTreeMap::new();
    let mut names = HashSet::new();
    for (list, index, container) in containers(spec) {
        for (nth, port) in entries(&container["ports"]) {
            if texts.len() > WARNINGS_MAX {
                return;
            }
            let path = format!("{path}.{list}[{index}].ports[{nth}]");
            let (host, ip, name) = (number(port, "hostPort"), text(&port["hostIP"]), text(&port["name"]));
            if !ip.is_empty() && host == 0 {
                texts.push(format!("{path}: hostIP {ip} has no effect without a hostPort"));
            }
            let others = ports_by_number.entry((number(port, "containerPort"), text(&port["protocol"]))).or_default();
            for (other_path, other) in others.iter().take(PORTS_COMPARED_MAX) {
                let (other_host, other_ip) = (number(other, "hostPort"), text(&other["hostIP"]));
                let is_same_address = host == other_host && (ip == other_ip || ip.is_empty() || other_ip.is_empty());
                if host == 0 || other_host == 0 || is_same_address {
                    texts.push(format!("{path}: this port collides with {other_path}"));
                }
            }
            if !name.is_empty() && !names.insert(name) {
                texts.push(format!("{path}: an earlier port has the same name, so {name:?} selects only that port"));
            }
            others.push((path, port));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes hours and fills the memory if all pairs are reported.
    #[test]
    fn many_collisions_in_a_pod_have_few_warnings() {
        let many = |item: Value| Value::from(vec![item; 50_000]);
        for spec in [
            json!({ "containers": [{ "name": "c", "ports": many(json!({ "containerPort": 1 })) }] }),
            json!({ "containers": [{ "name": "c", "env": many(json!({ "name": "A", "value": "x" })) }] }),
            json!({ "volumes": [{ "name": "v", "configMap": { "items": many(json!({ "key": "k", "path": "p" })) } }] }),
        ] {
            let mut texts = Vec::new();
            pod(&spec, "spec", &mut texts);
            assert!((WARNINGS_MAX..50_000).contains(&texts.len()), "{}", texts.len());
        }
    }
}
