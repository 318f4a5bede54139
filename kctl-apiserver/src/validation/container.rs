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
//! validate at all, the rules here remove those errors again (`Field::discard_errors_below`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    json_path::entries,
    names::NameRule,
    validation::{environment, mounts, ports, probe, resources, security, volume::DeclaredVolumes},
};

/// Maximum number of restart rules of a container. The items beyond the bound are still validated.
const RULES_MAX: usize = 20;
/// Maximum number of exit codes of one restart rule. Exit codes are bytes, so a list of this length has nearly all of
/// them.
const CODES_MAX: usize = 255;
/// Fields of containers that are validated only where they are allowed. Ephemeral containers may have none of them,
/// init containers only as sidecars. If the field is forbidden, its content gets no errors.
const PROBES: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

/// Validates the three container lists of a Pod. `volumes` are the valid volumes and `claims` the resource claims that
/// containers may refer to.
///
/// Names must be unique across the lists. The error is at the later one of containers, init containers and ephemeral
/// containers. Host ports conflict among containers, and within one init container; init containers run one after the
/// other and may reuse the port of another.
pub(crate) fn validate_containers(spec: &Field<'_>, volumes: &DeclaredVolumes<'_>, claims: &BTreeSet<&str>) {
    let mut names = BTreeSet::new();
    spec.require_children(&["containers"]);
    discard_unvalidated_errors(spec);
    for container in spec.at("containers").items() {
        validate_common(&container, spec, volumes, claims);
        check_unique_name(&container, &mut names);
        probe::validate_probes(&container, spec);
        validate_restart_policy(&container);
    }
    ports::validate_host_ports(spec.at("containers").items());
    for container in spec.at("initContainers").items() {
        validate_common(&container, spec, volumes, claims);
        let policy = container.at("restartPolicy");
        if needs_policy(&container) {
            // An init container with rules but no policy gets this error only.
            policy.required_with("must be set when restartPolicyRules is set");
        } else {
            validate_restart_policy(&container);
        }
        check_unique_name(&container, &mut names);
        // As upstream, the error has index 0 for each of them.
        ports::validate_host_ports([spec.at_with("initContainers[0]", &container)].into_iter());
        if policy.text() == "Always" {
            probe::validate_probes(&container, spec);
        } else {
            forbid_sidecar_fields(&container);
        }
    }
    for container in spec.at("ephemeralContainers").items() {
        validate_common(&container, spec, volumes, claims);
        validate_image(&container);
        check_unique_name(&container, &mut names);
        validate_ephemeral(&container, spec);
    }
}

/// Discards errors of tags below probes and lifecycles that kube-apiserver does not validate. All containers are done
/// at once, before their rules add errors, so that the errors are searched only once.
fn discard_unvalidated_errors(spec: &Field<'_>) {
    let is_sidecar = |container: &Field<'_>| container.at("restartPolicy").text() == "Always";
    let (sidecars, others): (Vec<_>, Vec<_>) = spec.at("initContainers").items().partition(is_sidecar);
    let surplus =
        spec.at("containers").items().chain(sidecars).flat_map(|container| probe::surplus_handlers(&container));
    let never = others.into_iter().chain(spec.at("ephemeralContainers").items());
    let forbidden = never.flat_map(|container| PROBES.map(|name| container.at(name)));
    spec.discard_errors_below_each(surplus.chain(forbidden));
}

/// Rejects fields that an ephemeral container may not have: it is never restarted and gets no resources. Upstream has a
/// list of allowed fields and forbids all others. An empty list or map counts as unset; an empty string counts as set.
fn validate_ephemeral(container: &Field<'_>, spec: &Field<'_>) {
    const NEVER: [&str; 5] = ["ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"];
    let detail = "cannot be set for an Ephemeral Container";
    for field in NEVER.iter().chain(&PROBES).map(|name| container.at(name)) {
        field.forbidden_if(!field.is_empty() || field.is_string(), detail);
    }
    let target = container.at("targetContainerName");
    let mut others = ["containers", "initContainers"].into_iter().flat_map(|list| entries(&spec[list]));
    target.not_found_if(!target.is_empty() && others.all(|(_, other)| other["name"] != *target));
    for mount in container.at("volumeMounts").items() {
        mount.check_children(&["subPath", "subPathExpr"], |part| part.forbidden_if(!part.is_empty(), detail));
    }
}

/// Rejects fields that an init container may not have unless it is a sidecar. A sidecar keeps running with the
/// containers, so probes make sense. Other init containers must end before the next one starts.
fn forbid_sidecar_fields(container: &Field<'_>) {
    for field in PROBES.map(|name| container.at(name)).iter().filter(|field| !field.is_null()) {
        field.forbidden("may not be set for init containers without restartPolicy=Always");
    }
    for restarts in container.at("resizePolicy").items().map(|policy| policy.at("restartPolicy")) {
        let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
        restarts.invalid_if(restarts.text() == "RestartContainer", detail);
    }
}

/// Reports a container name that another container of the Pod already has, and adds a new one to `names`.
///
/// An empty name is reported elsewhere as required. Upstream records the empty name for containers and ephemeral
/// containers, but not for init containers: two nameless containers are duplicates, two nameless init containers are
/// not.
fn check_unique_name<'a>(container: &Field<'a>, names: &mut BTreeSet<&'a str>) {
    let name = container.at("name");
    if names.contains(name.text()) {
        name.duplicate();
    } else if !name.is_empty() || !name.path().contains(".initContainers[") {
        names.insert(name.text());
    }
}

/// Validates the fields that all containers share (`validateContainerCommon`).
fn validate_common(container: &Field<'_>, spec: &Field<'_>, volumes: &DeclaredVolumes<'_>, claims: &BTreeSet<&str>) {
    container.at("name").required_name(NameRule::Label);
    container.require_children(&["image"]);
    ports::validate_ports(&container.at("ports"));
    environment::validate_variables(&container.at("env"));
    environment::validate_sources(&container.at("envFrom"));
    mounts::validate_mounts(container, volumes);
    resources::validate_requirements(&container.at("resources"), resources::validate_container_resource_name, claims);
    validate_resize_policy(&container.at("resizePolicy"), &spec["restartPolicy"]);
    security::validate_container_context(&container.at("securityContext"), spec);
}

/// Validates that images have no surrounding whitespace. Upstream does not check templates, since objects with such
/// templates were accepted in the past. The Pods of such a template are rejected instead.
pub(crate) fn validate_images(spec: &Field<'_>) {
    for list in ["containers", "initContainers"] {
        spec.at(list).items().for_each(|container| validate_image(&container));
    }
}

/// Rejects whitespace around an image name. The rest of the name is not parsed, because the container runtime
/// interprets it.
pub(crate) fn validate_image(container: &Field<'_>) {
    let image = container.at("image");
    image.invalid_if(image.text().trim() != image.text(), "must not have leading or trailing whitespace");
}

/// Returns `true` for restart rules without a restart policy, which would be the default for other exit codes.
fn needs_policy(container: &Field<'_>) -> bool {
    container["restartPolicy"].is_null() && !container.at("restartPolicyRules").is_empty()
}

/// Validates the restart policy of a container and its rules (`validateContainerRestartPolicy`).
fn validate_restart_policy(container: &Field<'_>) {
    let (policy, rules) = (container.at("restartPolicy"), container.at("restartPolicyRules"));
    policy.required_if(needs_policy(container));
    policy.one_of(&["Always", "Never", "OnFailure"]);
    for rule in rules.items() {
        let codes = rule.at("exitCodes");
        rule.at("action").always_one_of(&["Restart", "RestartAllContainers"]);
        if codes.is_null() {
            codes.required();
        } else {
            codes.at("operator").always_one_of(&["In", "NotIn"]);
            codes.at("values").max_items(CODES_MAX);
        }
    }
    // After the rules, which upstream validates even if there are too many.
    rules.max_items(RULES_MAX);
}

/// Validates `resizePolicy`. All errors are at the list, without an index, apart from `FieldValueDuplicate`. `of_pod`
/// is the restart policy of the Pod: with `Never` a container cannot be restarted for a resize either.
fn validate_resize_policy(list: &Field<'_>, of_pod: &Value) {
    list.unique(|policy| &policy["resourceName"]);
    for policy in list.items() {
        let (name, restarts) = (list.with(&policy["resourceName"]), list.with(&policy["restartPolicy"]));
        name.required_one_of(&["cpu", "memory"]);
        restarts.required_one_of(&["NotRequired", "RestartContainer"]);
        let is_restarted = of_pod == "Never" && restarts.text() != "NotRequired";
        restarts.invalid_if(is_restarted, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
}
