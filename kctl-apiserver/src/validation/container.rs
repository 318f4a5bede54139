//! Validation of init containers, containers and ephemeral containers.
//!
//! Upstream: `validateContainers`, `validateInitContainers` and `validateEphemeralContainers` in
//! `pkg/apis/core/validation/validation.go`.
//!
//! The three lists differ in the fields that they allow:
//!
//! | | probes, lifecycle | ports, resources | restart policy |
//! |---|---|---|---|
//! | containers | yes | yes | yes |
//! | init containers | only sidecars (`restartPolicy: Always`) | yes | yes |
//! | ephemeral containers | no | no | no |
//!
//! `declared` has validated the enums and tags of all containers before, at any path. For fields that upstream does not
//! validate at all, the rules here remove those errors again (`Errors::leave_out`).

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    names::NameRule,
    validation::{
        entries, environment, mounts, ports, probe,
        resources::{self, Asker},
        security,
        volume::DeclaredVolume,
    },
};

/// Maximum number of restart rules of a container.
///
/// Upstream rejects more with `FieldValueTooMany`; the items beyond the bound are still validated.
const RULES_MAX: usize = 20;
/// Maximum number of exit codes of one restart rule.
///
/// More are `FieldValueTooMany`. Exit codes are bytes, so a list of this length has nearly all of
/// them.
const CODES_MAX: usize = 255;
/// Fields of containers that are validated only where they are allowed.
///
/// Ephemeral containers may have none of them, init containers only as sidecars. If the field is
/// forbidden, its content gets no errors.
const PROBES: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

/// Iterates over all containers of a Pod, with the field that lists them and their index in it.
///
/// The order is init containers, containers, ephemeral containers; within a list it is the order of
/// the spec. Rules about a whole Pod (Windows, user namespaces, file keys) use it, since their
/// error paths need the list and the index.
pub(crate) fn all(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    lists.flat_map(move |list| entries(&spec[list]).map(move |(index, container)| (list, index, container)))
}

/// Validates the three container lists of a Pod. At least one container is required (`FieldValueRequired`).
///
/// `volumes` are the valid volumes and `claims` the resource claims that containers may refer to.
///
/// Names must be unique across the three lists (`FieldValueDuplicate`). The lists are validated in
/// this order: containers, init containers, ephemeral containers, so the error is at the later one
/// in that order. Host ports conflict among containers, and within one init container; init
/// containers run one after the other and may reuse the port of another.
pub(crate) fn containers(
    spec: &Value,
    path: &str,
    volumes: &[DeclaredVolume<'_>],
    claims: &[&str],
    errors: &mut Errors,
) {
    let mut names: Vec<&str> = Vec::new();
    let list_path = format!("{path}.containers");
    if entries(&spec["containers"]).next().is_none() {
        errors.required(&list_path, "");
    }
    for (index, container) in entries(&spec["containers"]) {
        let path = format!("{list_path}[{index}]");
        common(container, &path, spec, volumes, claims, errors);
        named(container, &path, &mut names, errors);
        probe::of_container(&Field::new(container, &path, errors), spec);
        restarts(container, &path, errors);
    }
    let all: Vec<(usize, &Value)> = entries(&spec["containers"]).collect();
    ports::host_ports(&all, &list_path, errors);
    let list_path = format!("{path}.initContainers");
    for (index, container) in entries(&spec["initContainers"]) {
        let path = format!("{list_path}[{index}]");
        common(container, &path, spec, volumes, claims, errors);
        if container["restartPolicy"].is_null() && entries(&container["restartPolicyRules"]).next().is_some() {
            // An init container with rules but no policy gets this error only.
            errors.required(&format!("{path}.restartPolicy"), NO_POLICY);
        } else {
            restarts(container, &path, errors);
        }
        named(container, &path, &mut names, errors);
        ports::host_ports(&[(0, container)], &list_path, errors);
        if container["restartPolicy"] == "Always" {
            probe::of_container(&Field::new(container, &path, errors), spec);
        } else {
            ends_before(container, &path, errors);
        }
    }
    let list_path = format!("{path}.ephemeralContainers");
    for (index, container) in entries(&spec["ephemeralContainers"]) {
        let path = format!("{list_path}[{index}]");
        common(container, &path, spec, volumes, claims, errors);
        image(container, &path, errors);
        named(container, &path, &mut names, errors);
        ephemeral(container, &path, spec, errors);
    }
}

/// Rejects fields that an ephemeral container may not have.
///
/// Upstream has a list of allowed fields and forbids all others. `NEVER` lists the forbidden ones.
/// An empty list or map counts as unset; any other value, `false` and 0 included, as set.
///
/// - `targetContainerName` must name a container or init container of the Pod
///   (`FieldValueNotFound`).
/// - Volume mounts may not have `subPath` or `subPathExpr` (`FieldValueForbidden`).
///
/// An ephemeral container is never restarted and gets no resources, so these fields are forbidden.
fn ephemeral(container: &Value, path: &str, spec: &Value, errors: &mut Errors) {
    const NEVER: &[&str] = &[
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let forbidden = "cannot be set for an Ephemeral Container";
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    };
    for name in NEVER.iter().filter(|name| is_set(&container[**name])) {
        errors.forbidden(&format!("{path}.{name}"), forbidden);
    }
    for name in PROBES {
        errors.leave_out(&format!("{path}.{name}."));
    }
    let target = text(&container["targetContainerName"]);
    let is_there = ["containers", "initContainers"]
        .iter()
        .any(|list| entries(&spec[*list]).any(|(_, candidate)| text(&candidate["name"]) == target));
    if !target.is_empty() && !is_there {
        errors.not_found(&format!("{path}.targetContainerName"), &container["targetContainerName"]);
    }
    for (index, mount) in entries(&container["volumeMounts"]) {
        for name in ["subPath", "subPathExpr"].into_iter().filter(|name| !text(&mount[*name]).is_empty()) {
            errors.forbidden(&format!("{path}.volumeMounts[{index}].{name}"), forbidden);
        }
    }
}

/// Rejects fields that an init container may not have unless it is a sidecar.
///
/// A sidecar is an init container with `restartPolicy: Always`: it keeps running beside the
/// containers, so probes make sense. Other init containers must end before the next one starts.
/// Probes and `lifecycle` are `FieldValueForbidden`; a `resizePolicy` of `RestartContainer` is
/// `FieldValueInvalid`.
fn ends_before(container: &Value, path: &str, errors: &mut Errors) {
    for name in PROBES {
        if !container[name].is_null() {
            errors.leave_out(&format!("{path}.{name}."));
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden(&format!("{path}.{name}"), detail);
        }
    }
    for (index, policy) in entries(&container["resizePolicy"]) {
        if policy["restartPolicy"] == "RestartContainer" {
            let path = format!("{path}.resizePolicy[{index}].restartPolicy");
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.invalid(&path, &policy["restartPolicy"], detail);
        }
    }
}

/// Reports a container name that another container of the Pod already has (`FieldValueDuplicate`).
///
/// Adds the name to `names` if it is new. An empty name is reported elsewhere as required. Upstream records the empty
/// name for containers and ephemeral containers but not for init containers, hence the check of the path: two nameless
/// containers are duplicates, two nameless init containers are not.
fn named<'a>(container: &'a Value, path: &str, names: &mut Vec<&'a str>, errors: &mut Errors) {
    let name = text(&container["name"]);
    if names.contains(&name) {
        errors.duplicate(&format!("{path}.name"));
    } else if !name.is_empty() || !path.contains(".initContainers[") {
        names.push(name);
    }
}

/// Validates the fields that all containers share (`validateContainerCommon`).
///
/// `path` is the field path of the container, `spec` the spec of its Pod: the restart policy and
/// `hostUsers` of the Pod affect fields of the container. Errors are added in this order:
///
/// - name (a DNS label) and image, both required;
/// - ports, variables, variable sources, mounts and devices;
/// - resources, resize policies and the security context.
fn common(
    container: &Value,
    path: &str,
    spec: &Value,
    volumes: &[DeclaredVolume<'_>],
    claims: &[&str],
    errors: &mut Errors,
) {
    let field = |name: &str| format!("{path}.{name}");
    errors.required_name(&field("name"), &container["name"], NameRule::Label);
    if text(&container["image"]).is_empty() {
        errors.required(&field("image"), "");
    }
    ports::of_container(&container["ports"], &field("ports"), errors);
    environment::variables(&container["env"], &field("env"), errors);
    environment::sources(&container["envFrom"], &field("envFrom"), errors);
    mounts::of_container(&Field::new(container, path, errors), volumes);
    resources::resources(&container["resources"], &field("resources"), Asker::Container, claims, errors);
    resizes(&container["resizePolicy"], &field("resizePolicy"), &spec["restartPolicy"], errors);
    security::of_container(&container["securityContext"], &field("securityContext"), spec, errors);
}

/// Validates that images have no surrounding whitespace. Only Pods are checked, not templates.
///
/// Upstream does not check templates, since objects with such templates were accepted in the past.
/// The Pods of such a template are rejected instead. Ephemeral containers are checked on their own.
pub(crate) fn images(spec: &Value, path: &str, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        for (index, container) in entries(&spec[list]) {
            image(container, &format!("{path}.{list}[{index}]"), errors);
        }
    }
}

/// Rejects whitespace around an image name (`FieldValueInvalid`). The rest of the name is not parsed, because the
/// container runtime interprets it.
fn image(container: &Value, path: &str, errors: &mut Errors) {
    let image = text(&container["image"]);
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&format!("{path}.image"), &container["image"], detail);
    }
}

/// The error for restart rules without a restart policy, which would be the default for other exit
/// codes.
const NO_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// Validates the restart policy of a container and its rules: a policy is required beside rules, and lists have
/// maximum lengths (`FieldValueTooMany`).
///
/// The policies are `Always`, `Never` and `OnFailure`. Each rule needs the action `Restart` or
/// `RestartAllContainers`, and `exitCodes` with the operator `In` or `NotIn`. Upstream:
/// `validateContainerRestartPolicy`.
fn restarts(container: &Value, path: &str, errors: &mut Errors) {
    let (policy, rules) = (&container["restartPolicy"], &container["restartPolicyRules"]);
    let (policy_path, rules_path) = (format!("{path}.restartPolicy"), format!("{path}.restartPolicyRules"));
    let n_rules = entries(rules).count();
    if policy.is_null() && n_rules > 0 {
        errors.required(&policy_path, NO_POLICY);
    }
    errors.one_of(&policy_path, policy, &["Always", "Never", "OnFailure"]);
    if n_rules > RULES_MAX {
        errors.too_many(&rules_path, n_rules, RULES_MAX);
    }
    for (index, rule) in entries(rules) {
        let (path, codes) = (format!("{rules_path}[{index}]"), &rule["exitCodes"]);
        errors.always_one_of(&format!("{path}.action"), &rule["action"], &["Restart", "RestartAllContainers"]);
        if codes.is_null() {
            errors.required(&format!("{path}.exitCodes"), "must be specified");
            continue;
        }
        errors.always_one_of(&format!("{path}.exitCodes.operator"), &codes["operator"], &["In", "NotIn"]);
        let n_codes = entries(&codes["values"]).count();
        if n_codes > CODES_MAX {
            errors.too_many(&format!("{path}.exitCodes.values"), n_codes, CODES_MAX);
        }
    }
}

/// Validates `resizePolicy`: unique resources, `cpu` and `memory` only. A Pod that never restarts needs `NotRequired`.
///
/// All errors are at the list, without an index, apart from `FieldValueDuplicate`. `of_pod` is the
/// restart policy of the Pod: with `Never` a container cannot be restarted for a resize either.
fn resizes(list: &Value, path: &str, of_pod: &Value, errors: &mut Errors) {
    let mut names = Vec::new();
    for (index, policy) in entries(list) {
        let (name, restarts) = (&policy["resourceName"], &policy["restartPolicy"]);
        if names.contains(&name) {
            errors.duplicate(&format!("{path}[{index}]"));
        }
        names.push(name);
        errors.required_one_of(path, name, &["cpu", "memory"]);
        errors.required_one_of(path, restarts, &["NotRequired", "RestartContainer"]);
        if of_pod == "Never" && restarts != "NotRequired" {
            errors.invalid(path, restarts, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}
