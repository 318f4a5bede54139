//! `PodSecurity`: rejects Pods that violate the standard of their namespace, and warns about workloads that would
//! create such Pods.
//!
//! Upstream: `Plugin.Validate` in `plugin/pkg/admission/security/podsecurity/admission.go`, which calls
//! `Admission.Validate` in `k8s.io/pod-security-admission/admission/admission.go`.
//!
//! Labels of the namespace name a level and a version for each mode: `enforce` rejects, `audit` annotates the audit
//! event, `warn` adds a warning. The standards themselves are in `pod_security`.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::rejection;
use crate::{
    admission::Attributes,
    field_errors::text,
    kinds::core::{namespace, pod},
    pod_security::{Level, PREFIX, Policy, Standard, in_detail, summarize, violations},
    registry::kind::Subresource,
    request::Operation,
    status::StatusError,
    store::Store,
};

/// Maximum number of Pods that are checked when a namespace becomes stricter (`defaultNamespaceMaxPodsToCheck`). If
/// there are more, a warning says that the check is incomplete.
const PODS_LEN_MAX: usize = 3000;
/// Subresources that cannot change anything that the standards check. `ephemeralcontainers` and `resize` are not among
/// them.
const OTHER_SUBRESOURCES: &[Subresource] = &[
    Subresource::Exec,
    Subresource::Attach,
    Subresource::Binding,
    Subresource::Eviction,
    Subresource::Log,
    Subresource::PortForward,
    Subresource::Proxy,
    Subresource::Status,
];

/// Checks the Pod template of a workload. Workloads are never rejected, only their Pods.
pub(super) fn validate_template(
    store: &Store,
    attributes: &Attributes<'_>,
    template: Option<&Value>,
) -> Result<(), StatusError> {
    let info = attributes.info;
    if let Some(template) = template.filter(|template| info.subresource.is_main() && template.is_object()) {
        report_violations(attributes, &policy_of(store, &info.namespace), template);
    }
    Ok(())
}

/// Returns the policy in the labels of a namespace. A namespace that does not exist has the default policy,
/// `privileged`.
fn policy_of(store: &Store, namespace: &str) -> Policy {
    let namespace = store.object(&namespace::KIND, "", namespace);
    Policy::from_labels(namespace.as_deref().map_or(&Value::Null, |namespace| &namespace["metadata"]["labels"]))
}

/// Adds an annotation to the audit event. Keys start with `pod-security.kubernetes.io/`.
fn annotate(attributes: &Attributes<'_>, key: &str, value: &str) {
    attributes.info.round.annotate(&format!("{PREFIX}{key}"), value);
}

/// Adds audit annotations and warnings for violations that do not reject the request. Each mode is evaluated by its own
/// standard.
fn report_violations(attributes: &Attributes<'_>, policy: &Policy, template: &Value) {
    let message = |standard: Standard| {
        let found = violations(standard, template);
        (!found.is_empty()).then(|| format!("would violate PodSecurity \"{standard}\": {}", in_detail(&found)))
    };
    if let Some(message) = message(policy.audit) {
        annotate(attributes, "audit-violations", &message);
    }
    attributes.info.round.warn_all(message(policy.warn));
}

/// Checks a Pod against the enforced standard. An update without new images is allowed, so that a stricter policy does
/// not block existing Pods.
pub(super) fn validate_pod(store: &Store, attributes: &Attributes<'_>, pod: &Value) -> Result<(), StatusError> {
    if OTHER_SUBRESOURCES.contains(&attributes.info.subresource) {
        return Ok(());
    }
    let policy = policy_of(store, &attributes.info.namespace);
    if attributes.old.as_ref().is_some_and(|old| !runs_other_images(old, pod)) {
        return Ok(());
    }
    annotate(attributes, "enforce-policy", &policy.enforce.to_string());
    let found = violations(policy.enforce, pod);
    if !found.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, in_detail(&found));
        return Err(rejection(attributes, &why));
    }
    report_violations(attributes, &policy, pod);
    Ok(())
}

/// Returns `true` if an update changes an image. Nothing else that is checked can change in a Pod
/// (`isSignificantPodUpdate`). A removed ephemeral container does not count; none can be removed.
fn runs_other_images(old: &Value, pod: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<Value> {
        pod["spec"][list].as_array().into_iter().flatten().map(|container| container["image"].clone()).collect()
    };
    let temporary = |pod: &Value| -> BTreeMap<String, Value> {
        let list = pod["spec"]["ephemeralContainers"].as_array().into_iter().flatten();
        list.map(|container| (text(&container["name"]).to_owned(), container["image"].clone())).collect()
    };
    let existing = temporary(old);
    ["containers", "initContainers"].iter().any(|list| images(old, list) != images(pod, list))
        || temporary(pod).iter().any(|(name, image)| existing.get(name) != Some(image))
}

/// Validates the labels of a namespace, and warns about existing Pods that violate a stricter standard. Invalid labels
/// that existed before are accepted. Updates that raise the level or change the version cause warnings.
pub(super) fn validate_namespace(
    store: &Store,
    attributes: &Attributes<'_>,
    namespace: &Value,
) -> Result<(), StatusError> {
    if !attributes.info.subresource.is_main() {
        return Ok(());
    }
    let policy = Policy::from_labels(&namespace["metadata"]["labels"]);
    let before = attributes.old.as_ref().map(|old| Policy::from_labels(&old["metadata"]["labels"]));
    let was_wrong = before.as_ref().is_some_and(|before| before.errors == policy.errors);
    if !policy.errors.is_empty() && !was_wrong {
        return Err(StatusError::invalid("", namespace::KIND.kind, &attributes.name, &policy.errors));
    }
    let Some(before) = before.filter(|_| attributes.operation == Operation::Update) else { return Ok(()) };
    let (was, is) = (before.enforce, policy.enforce);
    let is_stricter = was != is && is.level != Level::Privileged && (is.minor != was.minor || is.level > was.level);
    if is_stricter {
        attributes.info.round.warn_all(warnings_of_pods(store, &attributes.name, is));
    }
    Ok(())
}

/// Returns the warnings about existing Pods. Pods with the same violations share a warning. At most `PODS_LEN_MAX` Pods
/// are checked. A line about the namespace comes first, then one per set of violations.
fn warnings_of_pods(store: &Store, namespace: &str, standard: Standard) -> Vec<String> {
    let pods: Vec<Arc<Value>> = store.objects_of(&pod::KIND, Some(namespace)).collect();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in pods.iter().take(PODS_LEN_MAX) {
        let violations = violations(standard, pod);
        if !violations.is_empty() {
            found.entry(summarize(&violations)).or_default().push(text(&pod["metadata"]["name"]).to_owned());
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > PODS_LEN_MAX {
        let n_all = pods.len();
        warnings
            .push(format!("PodSecurity level only checked against the first {PODS_LEN_MAX} of {n_all} existing pods"));
    }
    if !found.is_empty() {
        let reason = "violate the new PodSecurity enforce level";
        warnings.push(format!("existing pods in namespace {namespace:?} {reason} \"{standard}\""));
    }
    warnings.extend(found.iter().map(|(why, names)| pods_warning(names, why)));
    warnings
}

/// Returns a warning about these Pods. Names the first Pod by name and counts the others.
fn pods_warning(names: &[String], why: &str) -> String {
    let first = names.iter().min().map_or("", String::as_str);
    match names.len() {
        1 => format!("{first}: {why}"),
        all => format!("{first} (and {} more): {why}", all - 1),
    }
}
