//! Validation of Pod statuses: the values that a kubelet may report, and the transitions that it may not undo.
//!
//! Behaviour: `ValidatePodStatusUpdate` in `pkg/apis/core/validation/validation.go`.
//!
//! A kubelet writes the status through `pods/<name>/status`. Phase and reasons are not validated; this file
//! rejects contradictions.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{address, entries},
};

/// Longest message about the health of a device, in bytes (`ResourceHealthMessageMaxLength`).
const HEALTH_MESSAGE_LEN_MAX: usize = 1024;
/// Largest ID of a Linux user or group, 31 bits; the smallest is 0.
const ID_MAX: i64 = 2_147_483_647;
/// Lists of container statuses, each with the list of the containers that they are about.
const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

/// Validates a new Pod status against the stored one.
///
/// The QoS class is immutable: it is computed from the spec when the Pod is created.
///
/// | field | rule |
/// |---|---|
/// | `qosClass` | immutable |
/// | `nominatedNodeName` | not for a Pod that has a node |
/// | `containerStatuses` and the like | a terminated container that is not restarted stays terminated |
/// | `podIPs`, `hostIPs` | valid addresses, at most one of each IP family |
/// | `resourceClaimStatuses` | unique names of claims in the spec |
/// | `observedGeneration` | not negative |
///
/// Phases, reasons and messages are not validated.
pub(crate) fn status(old: &Value, new: &Value, errors: &mut Errors) {
    let (before, status) = (&old["status"], &new["status"]);
    conditions(&status["conditions"], errors);
    nominated(old, status, errors);
    errors.not_negative("status.observedGeneration", &status["observedGeneration"]);
    if text(&before["qosClass"]) != text(&status["qosClass"]) {
        errors.invalid("status.qosClass", &text(&status["qosClass"]).into(), "field is immutable");
    }
    for (list, containers) in LISTS {
        stays_ended(&old["spec"], containers, &before[list], &status[list], &format!("status.{list}"), errors);
    }
    claims(&status["resourceClaimStatuses"], &new["spec"]["resourceClaims"], errors);
    extended(&status["extendedResourceClaimStatus"], &new["spec"], errors);
    pod_addresses(before, status, errors);
    host_addresses(before, status, errors);
    for (list, _) in LISTS {
        users(&status[list], &format!("status.{list}"), text(&new["spec"]["os"]["name"]), errors);
    }
    for (list, containers) in LISTS {
        devices(&status[list], &new["spec"][containers], &format!("status.{list}"), errors);
    }
}

/// Validates conditions: no negative generation, and a qualified name as type, apart from the
/// oldest types.
///
/// The path has `Type` in upper case, as in kube-apiserver.
fn conditions(list: &Value, errors: &mut Errors) {
    for (index, condition) in entries(list) {
        let path = format!("status.conditions[{index}]");
        errors.not_negative(&format!("{path}.observedGeneration"), &condition["observedGeneration"]);
        let kind = text(&condition["type"]);
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind) {
            errors.qualified_name(&format!("{path}.Type"), kind);
        }
    }
}

/// Validates `nominatedNodeName`, which a Pod that is bound to a node may not get.
///
/// An unchanged value is not validated, so a Pod may keep it after it has been bound.
fn nominated(old: &Value, status: &Value, errors: &mut Errors) {
    let (path, node) = ("status.nominatedNodeName", &status["nominatedNodeName"]);
    if text(node).is_empty() || *node == old["status"]["nominatedNodeName"] {
        return;
    }
    errors.name(path, node, NameRule::Subdomain);
    if !text(&old["spec"]["nodeName"]).is_empty() {
        errors.forbidden(path, "may not be set on pods that are already bound to a node");
    }
}

/// Validates that terminated containers that are not restarted stay terminated.
///
/// Ephemeral containers are never restarted. A container without a new status is not reported. A container that is not
/// in the spec counts as not restarted.
fn stays_ended(spec: &Value, containers: &str, before: &Value, now: &Value, path: &str, errors: &mut Errors) {
    let is_ephemeral = containers == "ephemeralContainers";
    if !is_ephemeral && may_all_start_again(spec) {
        return;
    }
    for (index, was) in entries(before) {
        let ended = &was["state"]["terminated"];
        let is = entries(now).map(|(_, is)| is).find(|is| is["name"] == was["name"]);
        if ended.is_null() || is.is_none_or(|is| !is["state"]["terminated"].is_null()) {
            continue;
        }
        let container = entries(&spec[containers]).map(|(_, item)| item).find(|item| item["name"] == was["name"]);
        let code = ended["exitCode"].as_i64().unwrap_or(0);
        if is_ephemeral || container.is_none_or(|container| !starts_again(container, spec, code)) {
            errors.forbidden(&format!("{path}[{index}].state"), "may not be transitioned to non-terminated state");
        }
    }
}

/// Returns `true` if the exit of one container may restart all (`AllContainersCouldRestart`).
fn may_all_start_again(spec: &Value) -> bool {
    let all = entries(&spec["initContainers"]).chain(entries(&spec["containers"]));
    let mut rules = all.flat_map(|(_, container)| entries(&container["restartPolicyRules"]));
    rules.any(|(_, rule)| rule["action"] == "RestartAllContainers")
}

/// Returns `true` if a container with this exit code is restarted (`ContainerShouldRestart`).
///
/// A container's own policy, with its rules about exit codes, takes precedence over that of the Pod.
fn starts_again(container: &Value, spec: &Value, code: i64) -> bool {
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
/// (`FieldValueDuplicate`).
///
/// `of_pod` is `spec.resourceClaims`. A status without `resourceClaimName` means that no claim was
/// needed.
fn claims(list: &Value, of_pod: &Value, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, status) in entries(list) {
        let path_of = |field: &str| format!("status.resourceClaimStatuses[{index}].{field}");
        let name = text(&status["name"]);
        if !entries(of_pod).any(|(_, claim)| text(&claim["name"]) == name) {
            errors.invalid(&path_of("name"), &name.into(), "must match the name of an entry in `spec.resourceClaims`");
        }
        if seen.contains(&name) {
            errors.duplicate(&path_of("name"));
        }
        seen.push(name);
        if !status["resourceClaimName"].is_null() {
            errors.name(&path_of("resourceClaimName"), &status["resourceClaimName"], NameRule::Subdomain);
        }
    }
}

/// Validates `extendedResourceClaimStatus`: at least one mapping, and each names a container with a request for the
/// resource.
///
/// A mapping connects a request of an extended resource, such as `example.com/gpu: 1`, with a
/// request of the generated `ResourceClaim`. Errors about `requestName` have no index, as in
/// kube-apiserver.
fn extended(status: &Value, spec: &Value, errors: &mut Errors) {
    const AT: &str = "status.extendedResourceClaimStatus";
    if status.is_null() {
        return;
    }
    let mappings = &status["requestMappings"];
    if entries(mappings).next().is_none() {
        errors.required(&format!("{AT}.requestMappings"), "at least one request mapping is required");
    }
    let mut seen: Vec<[&str; 3]> = Vec::new();
    for (index, mapping) in entries(mappings) {
        let path_of = |field: &str| format!("{AT}.requestMappings[{index}].{field}");
        let fields = ["containerName", "resourceName", "requestName"];
        let [container, resource, request] = fields.map(|field| text(&mapping[field]));
        let mut all = entries(&spec["containers"]).chain(entries(&spec["initContainers"]));
        match all.find(|(_, item)| text(&item["name"]) == container) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.invalid(&path_of("containerName"), &container.into(), detail);
            }
            Some((_, item)) if item["resources"]["requests"][resource].is_null() => {
                let detail = "must match the extended resource name of an entry in spec.initContainers.resources.requests or \
                              spec.containers.resources.requests";
                errors.invalid(&path_of("resourceName"), &resource.into(), detail);
            }
            Some(_) => {}
        }
        errors.name(&format!("{AT}.requestName"), &request.into(), NameRule::Label);
        if seen.contains(&[container, resource, request]) {
            for field in fields {
                errors.duplicate(&path_of(field));
            }
        }
        seen.push([container, resource, request]);
    }
    errors.required_name(&format!("{AT}.resourceClaimName"), &status["resourceClaimName"], NameRule::Subdomain);
}

/// Validates `podIPs`, the first of which is not empty.
///
/// The message is about `podIP`, because internally the first address of the list is `podIP`.
fn pod_addresses(before: &Value, status: &Value, errors: &mut Errors) {
    addresses(before, status, "podIPs", errors);
    if entries(&status["podIPs"]).next().is_some_and(|(_, first)| text(&first["ip"]).is_empty()) {
        let detail = "podIP and podIPs must either both be set or both be unset";
        errors.invalid("status.podIPs", &status["podIPs"], detail);
    }
}

/// Validates `hostIPs`, the first of which equals `hostIP`.
fn host_addresses(before: &Value, status: &Value, errors: &mut Errors) {
    let Some((_, first)) = entries(&status["hostIPs"]).next() else { return };
    if text(&first["ip"]) != text(&status["hostIP"]) {
        errors.invalid("status.hostIPs[0].ip", &text(&first["ip"]).into(), "must be equal to `hostIP`");
    }
    addresses(before, status, "hostIPs", errors);
}

/// Validates addresses that are new in the list, and at most one of each IP family in it.
///
/// Two addresses must be one IPv4 and one IPv6 address. Beside other addresses, an invalid one is
/// also an `InternalError` of the list, because its family is unknown.
fn addresses(before: &Value, status: &Value, list: &str, errors: &mut Errors) {
    let path = format!("status.{list}");
    let all: Vec<&str> = entries(&status[list]).map(|(_, address)| text(&address["ip"])).collect();
    for (index, ip) in all.iter().enumerate() {
        if !entries(&before[list]).any(|(_, existing)| text(&existing["ip"]) == *ip) {
            address::legacy(&(*ip).into(), &format!("{path}[{index}]"), errors);
        }
    }
    if all.len() < 2 {
        return;
    }
    let families: Vec<Option<bool>> = all.iter().map(|ip| Some(address::parse(ip)?.is_ipv4())).collect();
    let unknown = families.iter().position(Option::is_none);
    if let Some(index) = unknown {
        let why = format!("failed to check for dual stack with error:invalid IP[{index}]: {}", all[index]);
        errors.internal(&path, &why);
    }
    if unknown.is_some() || all.len() > 2 || families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid(&path, &status[list], detail);
    }
}

/// Validates the Linux users of container statuses: IDs of 31 bits, and none in a Windows Pod (`FieldValueForbidden`).
fn users(list: &Value, path: &str, system: &str, errors: &mut Errors) {
    for (index, status) in entries(list) {
        let (user, path) = (&status["user"]["linux"], format!("{path}[{index}].user.linux"));
        if user.is_null() {
            continue;
        }
        if system == "windows" {
            errors.forbidden(&path, "cannot be set for a windows pod");
            continue;
        }
        errors.in_range(&format!("{path}.uid"), &user["uid"], 0, ID_MAX);
        errors.in_range(&format!("{path}.gid"), &user["gid"], 0, ID_MAX);
        for (index, group) in entries(&user["supplementalGroups"]) {
            errors.in_range(&format!("{path}.supplementalGroups[{index}]"), group, 0, ID_MAX);
        }
    }
}

/// Validates the health of allocated devices: each resource is one that the container requests. Ephemeral containers
/// have none (`FieldValueForbidden`).
///
/// A resource is either the name of an extended resource or `claim:<name>/<request>`.
fn devices(list: &Value, containers: &Value, path: &str, errors: &mut Errors) {
    for (index, status) in entries(list) {
        let path = format!("{path}[{index}].allocatedResourcesStatus");
        let allocated = &status["allocatedResourcesStatus"];
        if path.starts_with("status.ephemeral") {
            if entries(allocated).next().is_some() {
                errors.forbidden(&path, "must not be specified in container status");
            }
            continue;
        }
        let container = entries(containers).map(|(_, item)| item).find(|item| item["name"] == status["name"]);
        for (index, resource) in entries(allocated) {
            let path = format!("{path}[{index}]");
            if let Some(why) = container.and_then(|container| unasked(text(&resource["name"]), container)) {
                errors.invalid(&format!("{path}.name"), &resource["name"], why);
            }
            healths(&resource["resources"], &format!("{path}.resources"), errors);
        }
    }
}

/// Returns the error about a resource or claim that the container does not request.
fn unasked(name: &str, container: &Value) -> Option<&'static str> {
    let requested = &container["resources"];
    let Some(claim) = name.strip_prefix("claim:") else {
        return requested["requests"][name].is_null().then_some("must match one of the container's resource requests");
    };
    let whole = |claim: &Value| match text(&claim["request"]) {
        "" => text(&claim["name"]).to_owned(),
        request => format!("{}/{request}", text(&claim["name"])),
    };
    (!entries(&requested["claims"]).any(|(_, declared)| whole(declared) == claim)).then_some(
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if \
         request is empty",
    )
}

/// Validates device healths: unique IDs, a known health, and a message that is not empty.
///
/// A device has one of the healths `Healthy`, `Unhealthy` and `Unknown`.
fn healths(list: &Value, path: &str, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, resource_health) in entries(list) {
        let (path, id, message) =
            (format!("{path}[{index}]"), text(&resource_health["resourceID"]), &resource_health["message"]);
        let health = &text(&resource_health["health"]).into();
        errors.always_one_of(&format!("{path}.health"), health, &["Healthy", "Unhealthy", "Unknown"]);
        if message == "" {
            errors.required(&format!("{path}.message"), "must be non-empty if specified");
        } else if text(message).len() > HEALTH_MESSAGE_LEN_MAX {
            errors.too_long(&format!("{path}.message"), HEALTH_MESSAGE_LEN_MAX);
        }
        if seen.contains(&id) {
            errors.duplicate(&format!("{path}.resourceID"));
        }
        seen.push(id);
    }
}
