//! Validation of downward API references, in environment variables and in files.
//!
//! Both places accept `fieldRef` (a string from metadata, spec or status) and `resourceFieldRef` (a quantity, divided
//! by a divisor). They differ in the allowed paths. A file can be updated while the Pod runs and may hold all labels. A
//! variable is fixed when the container starts and may hold status.
//!
//! Upstream: `validateObjectFieldSelector` and `validateContainerResourceFieldSelector` in
//! `pkg/apis/core/validation/validation.go`.

use crate::field::Field;

/// Paths that variables may have, besides single labels and annotations such as `metadata.labels['key']`
/// (`validEnvDownwardAPIFieldPathExpressions`).
pub(crate) const ENV_FIELD_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Paths that files may have, besides single labels and annotations (`validVolumeDownwardAPIFieldPathExpressions`).
/// Labels and annotations as a whole only work here.
pub(crate) const VOLUME_FIELD_PATHS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Paths that the API converts (`ConvertDownwardAPIFieldLabel`), although they are allowed nowhere.
const CONVERTED: &[&str] = &["spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase"];

/// Resources of a container that a `resourceFieldRef` may name. Huge pages of any size are also allowed.
const AMOUNTS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Divisors for resources in bytes. An amount is divided by its divisor and rounded up. `0` and an absent divisor mean
/// 1.
const BYTES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates a `fieldRef` whose path is one of `allowed` or a single label or annotation. At most one error is
/// reported; the error about a malformed key is at the reference. Annotation keys are compared in lower case, as in
/// metadata.
pub(crate) fn validate_field(reference: &Field<'_>, allowed: &[&str]) {
    let (version, path) = (reference.at("apiVersion"), reference.at("fieldPath"));
    if !version.require_value() || !path.require_value() {
        return;
    }
    let is_v1 = version.text() == "v1";
    let is_known = || [ENV_FIELD_PATHS, VOLUME_FIELD_PATHS, CONVERTED].iter().any(|paths| paths.contains(&path.text()));
    let key_is = |key: &str| reference.with(&key.into()).qualified_name();
    match path.text().strip_suffix("']").and_then(|rest| rest.split_once("['")) {
        Some(("metadata.labels", key)) if is_v1 => key_is(key),
        Some(("metadata.annotations", key)) if is_v1 => key_is(&key.to_lowercase()),
        None if is_v1 && is_known() => path.one_of(allowed),
        _ => path.invalid("must be a field of a v1 Pod; only metadata.labels and metadata.annotations have keys"),
    }
}

/// The place of a `resourceFieldRef`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// An environment variable, whose container is the default.
    Variable,
    /// A file of a volume, which has to name a container.
    File,
}

/// Validates a `resourceFieldRef`. In a file it must name a container, since a volume belongs to all containers. The
/// existence of the container is not validated.
pub(crate) fn validate_amount(reference: &Field<'_>, target: Target) {
    let (container, resource, divisor) =
        (reference.at("containerName"), reference.at("resource"), reference.at("divisor"));
    let name = resource.text();
    let is_huge_pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    let needs_container = target == Target::File;
    if (!needs_container || container.require_value()) && resource.require_value() && !is_huge_pages {
        resource.one_of(AMOUNTS);
    }
    let units: &[&str] = match name {
        _ if ["", "0"].contains(&divisor.text()) => return,
        "limits.cpu" | "requests.cpu" => &["1m", "1"],
        _ if is_huge_pages || AMOUNTS.contains(&name) => BYTES,
        _ => return,
    };
    divisor.invalid_if(!units.contains(&divisor.text()), format_args!("must be one of {units:?} for {name}"));
}
