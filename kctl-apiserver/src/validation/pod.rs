//! Validation of Pods and of Pod templates.
//!
//! Upstream: `ValidatePodSpec` and `ValidatePodTemplateSpec` in `pkg/apis/core/validation/validation.go`. The parts of
//! the spec have a module each.
//!
//! A template is validated more leniently than a Pod because objects with such templates exist; their Pods are rejected
//! instead. `kinds/core/pod/validation.rs` has the rules for a new Pod, and rules that compare old and new.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    names::NameRule,
    validation::{affinity, all_containers, container, dns, environment, ports, resources, security, volume, windows},
};

/// Validates the spec of a Pod, its projected tokens and its image names. The name of the Pod matters for its ephemeral
/// volumes, whose claims are named after it.
pub(crate) fn pod(object: &Value, errors: &mut Errors) {
    let pod = Field::new(&object["spec"], "spec", errors);
    validate_spec(&pod, text(&object["metadata"]["name"]), ports::HostPorts::Required);
    volume::validate_tokens(&pod);
    container::validate_images(&pod);
}

/// Validates a template: labels, annotations and spec. Names, finalizers and owner references of a template are never
/// copied to a Pod, so upstream does not validate them.
pub(crate) fn validate_template(template: &Field<'_>) {
    template.at_with("labels", &template["metadata"]["labels"]).labels();
    template.at_with("annotations", &template["metadata"]["annotations"]).annotations();
    validate_spec(&template.at("spec"), "", ports::HostPorts::Optional);
    let containers = template.at("spec").at("ephemeralContainers");
    containers.forbidden_if(!containers.is_empty(), "ephemeral containers not allowed in pod template");
}

/// Validates a Pod spec. `name` is the name of the Pod, empty for a template. Volumes and resource claims come first,
/// because containers refer to them by name.
fn validate_spec(spec: &Field<'_>, name: &str, host_ports: ports::HostPorts) {
    let volumes = volume::validate_volumes(&spec.at("volumes"), name);
    let claims = claims(&spec.at("resourceClaims"));
    container::validate_containers(spec, &volumes, &claims);
    resources::validate_pod_resources(spec, &claims);
    ports::validate_ports_on_host(spec, host_ports);
    spec.at("nodeSelector").labels();
    security::validate_pod_context(spec);
    affinity::validate_affinity(&spec.at("affinity"));
    dns::validate_config(spec);
    validate_gates(spec);
    affinity::validate_topology_spread(&spec.at("topologySpreadConstraints"));
    windows::validate_host_processes(spec);
    validate_host_users(spec);
    dns::validate_host_name(spec);
    validate_names_and_times(spec);
    spec.at("tolerations").check(affinity::validate_tolerations);
    dns::validate_aliases(&spec.at("hostAliases"));
    let preemption = spec.at("preemptionPolicy");
    preemption.required_if(*preemption == "");
    resources::validate_overhead(&spec.at("overhead"));
    security::validate_os_fields(spec);
    environment::validate_files(spec);
}

/// Validates names, and that `activeDeadlineSeconds` is at least 1 and fits 32 bits. Host name and subdomain become
/// parts of the DNS name of the Pod, so they are DNS labels.
fn validate_names_and_times(spec: &Field<'_>) {
    let subdomains = ["serviceAccountName", "nodeName", "priorityClassName"];
    spec.check_children(&subdomains, |name| name.name_if_set(NameRule::Subdomain));
    spec.check_children(&["hostname", "subdomain"], |name| name.name_if_set(NameRule::Label));
    spec.at("runtimeClassName").when_present(|class| class.name(NameRule::Subdomain));
    spec.at("activeDeadlineSeconds").in_range(1, i32::MAX.into());
}

/// Validates `resourceClaims` and returns their names, which containers may refer to. A name with an invalid form is
/// returned, so that a container that refers to it does not get a second error.
fn claims<'a>(list: &Field<'a>) -> BTreeSet<&'a str> {
    const SOURCES: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
    let mut names = BTreeSet::new();
    for claim in list.items() {
        let name = claim.at("name");
        if names.contains(name.text()) {
            name.duplicate();
        } else {
            name.required_name(NameRule::Label);
            names.extend(Some(name.text()).filter(|name| !name.is_empty()));
        }
        let sources = SOURCES.map(|source| claim.at(source));
        let present: Vec<_> = sources.iter().filter(|source| !source.is_null()).collect();
        claim.invalid_if(present.len() != 1, format_args!("must specify one of {SOURCES:?}"));
        for source in present {
            source.name(NameRule::Subdomain);
        }
    }
    names
}

/// Validates readiness gates and scheduling gates. A readiness gate may occur twice, which is harmless; a scheduling
/// gate may not, because controllers remove it by name.
fn validate_gates(spec: &Field<'_>) {
    spec.at("readinessGates").items().for_each(|gate| gate.at("conditionType").qualified_name());
    let gates = spec.at("schedulingGates");
    gates.unique(|gate| &gate["name"]);
    gates.items().for_each(|gate| gate.with(&gate["name"]).qualified_name());
}

/// Rejects host namespaces and block devices for a Pod with a user namespace (`hostUsers: false`), which maps the users
/// of the Pod to unprivileged ids of the host: they would circumvent that. The paths of two errors have the spelling of
/// the Go fields, `HostPID` and `HostIPC`.
fn validate_host_users(spec: &Field<'_>) {
    const DETAIL: &str = "must not be set when `hostUsers` is false";
    if spec["hostUsers"] != false {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        spec.at(shown).forbidden_if(spec[field] == true, DETAIL);
    }
    for devices in all_containers(spec).map(|container| container.at("volumeDevices")) {
        devices.forbidden_if(!devices.is_empty(), DETAIL);
    }
}

/// Validates that a template has `restartPolicy: Always` and no `activeDeadlineSeconds`. The controllers of these kinds
/// replace terminated Pods, so a Pod that terminates by design would be created again forever.
pub(crate) fn validate_restart_always(template: &Field<'_>) {
    let [policy, deadline] = ["restartPolicy", "activeDeadlineSeconds"].map(|name| template.at("spec").at(name));
    policy.unsupported_if(!policy.is_empty() && *policy != "Always", &["Always"]);
    deadline.forbidden_if(deadline.is_number(), "must be unset, because terminated Pods are replaced");
}
