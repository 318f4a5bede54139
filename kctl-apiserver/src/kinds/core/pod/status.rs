//! Validation of Pod statuses: the values that a kubelet may report, and the transitions that it may not undo.
//!
//! A kubelet writes the status through `pods/<name>/status`. Phase and reasons are not validated; this file rejects
//! contradictions.
//! Behaviour: `ValidatePodStatusUpdate` in `pkg/apis/core/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::{by_name, entries},
    names::NameRule,
    validation::{address, security},
};

/// Longest message about the health of a device, in bytes (`ResourceHealthMessageMaxLength`).
const HEALTH_MESSAGE_LEN_MAX: usize = 1024;
/// Lists of container statuses, each with the list of the containers that they are about.
const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

/// Validates a new Pod status against the stored one. The QoS class is immutable: it is computed from the spec when the
/// Pod is created.
pub(crate) fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    let (before, status) = (&old["status"], Field::new(&new["status"], "status", errors));
    validate_conditions(&status.at("conditions"));
    validate_nominated_node(old, &status.at("nominatedNodeName"));
    status.at("observedGeneration").not_negative();
    let class = status.at("qosClass");
    class.invalid_if(text(&before["qosClass"]) != class.text(), "field is immutable");
    validate_claims(&status.at("resourceClaimStatuses"), &new["spec"]["resourceClaims"]);
    validate_extended_resources(&status.at("extendedResourceClaimStatus"), &new["spec"]);
    validate_pod_addresses(before, &status);
    validate_host_addresses(before, &status);
    for (name, containers) in LISTS {
        let list = status.at(name);
        validate_ended_containers(&old["spec"], containers, &before[name], &list);
        validate_users(&list, text(&new["spec"]["os"]["name"]));
        if containers == "ephemeralContainers" {
            for allocated in list.items().map(|status| status.at("allocatedResourcesStatus")) {
                allocated.forbidden_if(!allocated.is_empty(), "must not be specified in container status");
            }
        } else {
            validate_devices(&list, &new["spec"][containers]);
        }
    }
}

/// Validates conditions: no negative generation, and a qualified name as type, apart from the oldest types. The path
/// has `Type` in upper case, as in kube-apiserver.
fn validate_conditions(list: &Field<'_>) {
    for condition in list.items() {
        condition.at("observedGeneration").not_negative();
        let kind = condition.at_with("Type", &condition["type"]);
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind.text()) {
            kind.qualified_name();
        }
    }
}

/// Validates `nominatedNodeName`, which a Pod that is bound to a node may not get. An unchanged value is not validated,
/// so a Pod may keep it after it has been bound.
fn validate_nominated_node(old: &Value, node: &Field<'_>) {
    if **node == old["status"]["nominatedNodeName"] {
        return;
    }
    node.name_if_set(NameRule::Subdomain);
    let is_bound = !text(&old["spec"]["nodeName"]).is_empty() && !node.is_empty();
    node.forbidden_if(is_bound, "may not be set on pods that are already bound to a node");
}

/// Validates that terminated containers that are not restarted remain terminated. Ephemeral containers are never
/// restarted. A container without a new status is not reported. A container that is not in the spec counts as not
/// restarted. The error has the index of the old status.
fn validate_ended_containers(spec: &Value, containers: &str, before: &Value, list: &Field<'_>) {
    let is_ephemeral = containers == "ephemeralContainers";
    if !is_ephemeral && may_restart_all(spec) {
        return;
    }
    let (statuses, declared) = (by_name(list), by_name(&spec[containers]));
    for (index, was) in entries(before) {
        let (name, ended) = (text(&was["name"]), &was["state"]["terminated"]);
        let is = statuses.get(name);
        if ended.is_null() || is.is_none_or(|is| !is["state"]["terminated"].is_null()) {
            continue;
        }
        let code = ended["exitCode"].as_i64().unwrap_or(0);
        if is_ephemeral || declared.get(name).is_none_or(|container| !is_restarted(container, spec, code)) {
            let state = list.index(index).at("state");
            state.forbidden("may not be transitioned to non-terminated state");
        }
    }
}

/// Returns `true` if the exit of one container may restart all (`AllContainersCouldRestart`).
fn may_restart_all(spec: &Value) -> bool {
    let all = entries(&spec["initContainers"]).chain(entries(&spec["containers"]));
    let mut rules = all.flat_map(|(_, container)| entries(&container["restartPolicyRules"]));
    rules.any(|(_, rule)| rule["action"] == "RestartAllContainers")
}

/// Returns `true` if a container with this exit code is restarted (`ContainerShouldRestart`). A container's own policy,
/// with its rules about exit codes, takes precedence over the Pod's policy.
fn is_restarted(container: &Value, spec: &Value, code: i64) -> bool {
    let by = |policy: &Value| match text(policy) {
        "OnFailure" => code != 0,
        policy => policy != "Never",
    };
    if container["restartPolicy"].is_null() {
        return by(&spec["restartPolicy"]);
    }
    let fits = |rule: &Value| {
        let codes = &rule["exitCodes"];
        let is_listed = entries(&codes["values"]).any(|(_, listed)| listed.as_i64() == Some(code));
        !codes.is_null() && is_listed == (codes["operator"] == "In")
    };
    entries(&container["restartPolicyRules"]).any(|(_, rule)| fits(rule)) || by(&container["restartPolicy"])
}

/// Validates `resourceClaimStatuses`: each names a claim of the spec (`FieldValueInvalid`), once
/// (`FieldValueDuplicate`). `of_pod` is `spec.resourceClaims`. A status without `resourceClaimName` means that no claim
/// was needed.
fn validate_claims(list: &Field<'_>, of_pod: &Value) {
    list.unique_at("name");
    let declared = by_name(of_pod);
    for status in list.items() {
        let (name, claim) = (status.at("name"), status.at("resourceClaimName"));
        let is_declared = declared.contains_key(name.text());
        name.invalid_if(!is_declared, "must match the name of an entry in `spec.resourceClaims`");
        claim.when_present(|claim| claim.name(NameRule::Subdomain));
    }
}

/// Validates `extendedResourceClaimStatus`: at least one mapping, and each names a container with a request for the
/// resource. A mapping connects a request of an extended resource, such as `example.com/gpu: 1`, with a request of the
/// generated `ResourceClaim`. Errors about `requestName` have no index, as in kube-apiserver.
fn validate_extended_resources(status: &Field<'_>, spec: &Value) {
    if status.is_null() {
        return;
    }
    status.require_children(&["requestMappings"]);
    let containers = ["containers", "initContainers"].map(|list| by_name(&spec[list]));
    let mut seen = BTreeSet::new();
    for mapping in status.at("requestMappings").items() {
        let fields = ["containerName", "resourceName", "requestName"].map(|field| mapping.at(field));
        let [container, resource, request] = &fields;
        match containers.iter().find_map(|list| list.get(container.text())) {
            None => container.invalid("must be the name of an init container or container of the spec"),
            Some(item) => {
                let is_missing = item["resources"]["requests"][resource.text()].is_null();
                resource.invalid_if(is_missing, "must be an extended resource that the container requests");
            }
        }
        status.at_with("requestName", request).name(NameRule::Label);
        if !seen.insert(fields.each_ref().map(Field::text)) {
            fields.iter().for_each(Field::duplicate);
        }
    }
    status.at("resourceClaimName").required_name(NameRule::Subdomain);
}

/// Validates `podIPs`. The first one must not be empty. The message is about `podIP`, because internally the first
/// address of the list is `podIP`.
fn validate_pod_addresses(before: &Value, status: &Field<'_>) {
    let list = status.at("podIPs");
    validate_addresses(&before["podIPs"], &list);
    let is_without = list.items().next().is_some_and(|first| first.at("ip").is_empty());
    list.invalid_if(is_without, "podIP and podIPs must either both be set or both be unset");
}

/// Validates `hostIPs`. The first one must equal `hostIP`.
fn validate_host_addresses(before: &Value, status: &Field<'_>) {
    let list = status.at("hostIPs");
    if let Some(first) = list.items().next() {
        first.at("ip").invalid_if(text(&first["ip"]) != text(&status["hostIP"]), "must be equal to `hostIP`");
    }
    validate_addresses(&before["hostIPs"], &list);
}

/// Validates addresses that are new in the list, and at most one of each IP family in it. Two addresses must be one
/// IPv4 and one IPv6 address. In a list with other addresses, an invalid one is also an `InternalError` of the list,
/// because its family is unknown.
fn validate_addresses(before: &Value, list: &Field<'_>) {
    for address in list.items() {
        let ip = address.at("ip").text();
        if !entries(before).any(|(_, existing)| text(&existing["ip"]) == ip) {
            address.with(&ip.into()).check(address::validate_legacy_ip);
        }
    }
    let is_v4 = |address: Field<'_>| Some(address::parse(text(&address["ip"]))?.is_ipv4());
    let families: Vec<Option<bool>> = list.items().map(is_v4).collect();
    if families.len() < 2 {
        return;
    }
    let is_unknown = families.contains(&None);
    if is_unknown {
        list.with_errors(|errors, path| errors.internal(path, "failed to check for dual stack: invalid IP"));
    }
    let is_invalid = is_unknown || families.len() > 2 || families[0] == families[1];
    list.invalid_if(is_invalid, "may specify no more than one IP for each IP family");
}

/// Validates the Linux users of container statuses: IDs of 31 bits, and none in a Windows Pod (`FieldValueForbidden`).
fn validate_users(list: &Field<'_>, system: &str) {
    for user in list.items().map(|status| status.at("user").at("linux")).filter(|user| !user.is_null()) {
        if system == "windows" {
            user.forbidden("cannot be set for a windows pod");
            continue;
        }
        user.check_children(&["uid", "gid"], security::validate_id);
        user.at("supplementalGroups").items().for_each(|group| security::validate_id(&group));
    }
}

/// Validates the health of allocated devices: each resource is one that the container requests. A resource is either
/// the name of an extended resource or `claim:<name>/<request>`.
fn validate_devices(list: &Field<'_>, containers: &Value) {
    let requested = entries(containers).map(|(_, container)| (text(&container["name"]), requested_names(container)));
    let requested: BTreeMap<&str, BTreeSet<String>> = requested.collect();
    for status in list.items() {
        let known = requested.get(text(&status["name"]));
        for resource in status.at("allocatedResourcesStatus").items() {
            let name = resource.at("name");
            let is_unknown = known.is_some_and(|known| !known.contains(name.text()));
            name.invalid_if(is_unknown, "must be a resource or 'claim:<name>/<request>' that the container requests");
            validate_healths(&resource.at("resources"));
        }
    }
}

/// Returns the names of the resources that a container requests, and `claim:<name>/<request>` for each claim.
fn requested_names(container: &Value) -> BTreeSet<String> {
    let resources = &container["resources"];
    let amounts = resources["requests"].as_object().into_iter().flatten();
    let claims = entries(&resources["claims"]).map(|(_, claim)| match text(&claim["request"]) {
        "" => format!("claim:{}", text(&claim["name"])),
        request => format!("claim:{}/{request}", text(&claim["name"])),
    });
    amounts.map(|(name, _)| name.clone()).chain(claims).collect()
}

/// Validates device healths: unique IDs, a known health, and a message that is not empty.
fn validate_healths(list: &Field<'_>) {
    list.unique_at("resourceID");
    for health in list.items() {
        health.at("health").always_one_of(&["Healthy", "Unhealthy", "Unknown"]);
        let message = health.at("message");
        message.required_if(*message == "");
        message.max_bytes(HEALTH_MESSAGE_LEN_MAX);
    }
}
