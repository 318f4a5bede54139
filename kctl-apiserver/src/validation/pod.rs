//! Validation of Pods and of Pod templates.
//!
//! Upstream: `ValidatePodSpec` and `ValidatePodTemplateSpec` in `pkg/apis/core/validation/validation.go`. The parts of the
//! spec have a module each.
//!
//! The entry points differ by what is validated:
//!
//! | function | used for | extra rules |
//! |---|---|---|
//! | `pod` | create and update of a Pod | token volumes, image names |
//! | `new_pod` | create of a Pod | no ephemeral containers, no gated Pod on a Node |
//! | `template` | workloads, `PodTemplate` | no ephemeral containers |
//!
//! A template is more lenient because objects with such templates exist; their Pods are rejected
//! instead. An update of a Pod also runs the rules of `kinds/core/pod/validation.rs`, which compare
//! old and new.

use serde_json::{Value, json};

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{affinity, container, dns, entries, environment, ports, resources, security, volume, windows},
};

/// Validates the spec of a Pod, its projected tokens and its image names. The last two rules skip templates.
///
/// The name of the Pod matters for its ephemeral volumes, whose claims are named after it.
pub(crate) fn pod(object: &Value, errors: &mut Errors) {
    let pod = &object["spec"];
    spec(pod, text(&object["metadata"]["name"]), "spec", ports::HostPorts::Required, errors);
    volume::tokens(pod, "spec", errors);
    container::images(pod, "spec", errors);
}

/// Rejects fields that a new Pod may not have.
///
/// Ephemeral containers are only added through the subresource `ephemeralcontainers`. A Pod with
/// scheduling gates may not name a Node, since it would skip the scheduler and with it the gates.
/// Both are `FieldValueForbidden`.
pub(crate) fn new_pod(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if entries(&spec["ephemeralContainers"]).next().is_some() {
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if !text(&spec["nodeName"]).is_empty() && entries(&spec["schedulingGates"]).next().is_some() {
        errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
    }
}

/// Validates a template at a path such as `spec.template`: labels, annotations and spec. Ephemeral containers are
/// `FieldValueForbidden`.
///
/// The ephemeral containers are still validated, so a template can have both kinds of errors.
pub(crate) fn template(template: &Value, path: &str, errors: &mut Errors) {
    metadata_of_template(template, path, errors);
    spec(&template["spec"], "", &format!("{path}.spec"), ports::HostPorts::Optional, errors);
    if entries(&template["spec"]["ephemeralContainers"]).next().is_some() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.forbidden(&format!("{path}.spec.ephemeralContainers"), detail);
    }
}

/// Validates the labels and annotations of a template; its other metadata is ignored.
///
/// Names, finalizers and owner references of a template are never copied to a Pod, so upstream
/// leaves them alone.
pub(crate) fn metadata_of_template(template: &Value, path: &str, errors: &mut Errors) {
    let meta = &template["metadata"];
    errors.labels(&format!("{path}.labels"), &meta["labels"]);
    errors.annotations(&format!("{path}.annotations"), &meta["annotations"]);
}

/// Validates a Pod spec. `name` is the name of the Pod, empty for a template.
///
/// `path` is `spec` or, for example, `spec.template.spec`. Overhead is validated like the limits of a
/// container. Volumes and resource claims come first, because containers refer to them by name.
fn spec(spec: &Value, name: &str, path: &str, host_ports: ports::HostPorts, errors: &mut Errors) {
    let field = |name: &str| format!("{path}.{name}");
    let volumes = volume::volumes(&spec["volumes"], name, &field("volumes"), errors);
    let claims = claims(&spec["resourceClaims"], &field("resourceClaims"), errors);
    container::containers(spec, path, &volumes, &claims, errors);
    resources::of_pod(spec, path, &claims, errors);
    ports::on_host(spec, path, host_ports, errors);
    errors.labels(&field("nodeSelector"), &spec["nodeSelector"]);
    security::of_pod(spec, path, errors);
    affinity::affinity(&spec["affinity"], &field("affinity"), errors);
    dns::config(spec, &field("dnsConfig"), errors);
    gates(spec, path, errors);
    affinity::spread(&spec["topologySpreadConstraints"], &field("topologySpreadConstraints"), errors);
    windows::host_processes(spec, path, errors);
    host_users(spec, path, errors);
    dns::host_name(spec, path, errors);
    names_and_times(spec, path, errors);
    affinity::tolerations(&spec["tolerations"], &field("tolerations"), errors);
    dns::aliases(&spec["hostAliases"], &field("hostAliases"), errors);
    // Only `runtimeClassName` is a pointer in Go, so an empty `priorityClassName` counts as unset.
    if !text(&spec["priorityClassName"]).is_empty() {
        errors.name(&field("priorityClassName"), &spec["priorityClassName"], NameRule::Subdomain);
    }
    if spec["runtimeClassName"].is_string() {
        errors.name(&field("runtimeClassName"), &spec["runtimeClassName"], NameRule::Subdomain);
    }
    if spec["preemptionPolicy"] == "" {
        errors.required(&field("preemptionPolicy"), "");
    }
    let overhead = json!({ "limits": spec["overhead"] });
    if spec["overhead"].is_object() {
        resources::resources(&overhead, &field("overhead"), resources::Asker::Container, &[], errors);
    }
    security::of_system(spec, path, errors);
    environment::files(spec, path, errors);
}

/// Validates names of the account, the node and the host, and that `activeDeadlineSeconds` is at least 1 and fits 32 bits.
///
/// An empty string counts as unset for all four names. Account and Node names are DNS subdomains,
/// host name and subdomain DNS labels: the latter two become parts of the DNS name of the Pod.
fn names_and_times(spec: &Value, path: &str, errors: &mut Errors) {
    let field = |name: &str| format!("{path}.{name}");
    for name in ["serviceAccountName", "nodeName"] {
        if !text(&spec[name]).is_empty() {
            errors.name(&field(name), &spec[name], NameRule::Subdomain);
        }
    }
    if spec["activeDeadlineSeconds"].is_number() {
        let most = i64::from(i32::MAX);
        errors.in_range(&field("activeDeadlineSeconds"), &spec["activeDeadlineSeconds"], 1, most);
    }
    for name in ["hostname", "subdomain"] {
        if !text(&spec[name]).is_empty() {
            errors.name(&field(name), &spec[name], NameRule::Label);
        }
    }
}

/// Validates `resourceClaims` and returns their names, which containers may refer to.
///
/// Names are required and unique (`FieldValueRequired`, `FieldValueDuplicate`). Exactly one source is set
/// (`FieldValueInvalid`).
///
/// The returned names leave out empty ones. A name with an invalid form is returned, so that a
/// container that refers to it does not get a second error.
fn claims<'a>(list: &'a Value, path: &str, errors: &mut Errors) -> Vec<&'a str> {
    const SOURCES: &[&str] = &["resourceClaimName", "resourceClaimTemplateName"];
    let mut names = Vec::new();
    for (index, claim) in entries(list) {
        let (path, name) = (format!("{path}[{index}]"), text(&claim["name"]));
        if names.contains(&name) && !name.is_empty() {
            errors.duplicate(&format!("{path}.name"));
        } else {
            errors.required_name(&format!("{path}.name"), &claim["name"], NameRule::Label);
            names.push(name);
        }
        match SOURCES.iter().filter(|source| !claim[**source].is_null()).count() {
            0 => errors.invalid(&path, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => {}
            _ => {
                let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.invalid(&path, claim, detail);
            }
        }
        for source in SOURCES.iter().filter(|source| !claim[**source].is_null()) {
            errors.name(&format!("{path}.{source}"), &claim[*source], NameRule::Subdomain);
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Validates readiness gates and scheduling gates: qualified names; scheduling gates are unique (`FieldValueDuplicate`).
///
/// A readiness gate may occur twice, which is harmless; a scheduling gate may not, because
/// controllers remove it by name.
fn gates(spec: &Value, path: &str, errors: &mut Errors) {
    for (index, gate) in entries(&spec["readinessGates"]) {
        let path = format!("{path}.readinessGates[{index}].conditionType");
        errors.qualified_name(&path, text(&gate["conditionType"]));
    }
    let mut names = Vec::new();
    for (index, gate) in entries(&spec["schedulingGates"]) {
        let (path, name) = (format!("{path}.schedulingGates[{index}]"), text(&gate["name"]));
        errors.qualified_name(&path, name);
        if names.contains(&name) {
            errors.duplicate(&path);
        }
        names.push(name);
    }
}

/// Rejects host namespaces and block devices for a Pod with a user namespace.
///
/// A user namespace (`hostUsers: false`) maps the users of the Pod to unprivileged ids of the host,
/// which the namespaces of the host and raw block devices would circumvent. All errors are
/// `FieldValueForbidden`. The paths of two of them have the spelling of the Go fields, `HostPID`
/// and `HostIPC`.
fn host_users(spec: &Value, path: &str, errors: &mut Errors) {
    if spec["hostUsers"] != false {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec[field] == true {
            errors.forbidden(&format!("{path}.{shown}"), "when `hostUsers` is false");
        }
    }
    for (list, index, container) in container::all(spec) {
        if entries(&container["volumeDevices"]).next().is_some() {
            errors.forbidden(&format!("{path}.{list}[{index}].volumeDevices"), "when `hostUsers` is false");
        }
    }
}
