//! Validation of downward API references, in environment variables and in files.
//!
//! Both places accept `fieldRef` (a string from metadata, spec or status) and `resourceFieldRef` (a quantity, divided
//! by a divisor). They differ in the allowed paths. A file can be updated while the Pod runs and may hold all labels. A
//! variable is fixed when the container starts and may hold status.
//!
//! Upstream: `validateObjectFieldSelector` and `validateContainerResourceFieldSelector` in
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::field_errors::{Errors, text};

/// Paths that variables may have, besides single labels and annotations.
///
/// Sorted, because the error lists them (`validEnvDownwardAPIFieldPathExpressions`). A single label
/// is `metadata.labels['key']`.
pub(crate) const OF_VARIABLES: &[&str] = &[
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

/// Paths that files may have, besides single labels and annotations.
///
/// Sorted (`validVolumeDownwardAPIFieldPathExpressions`). Labels and annotations as a whole only
/// work here.
pub(crate) const OF_FILES: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Paths that the API converts (`ConvertDownwardAPIFieldLabel`).
///
/// A path that is not among them fails the conversion, with another message than one that is known
/// but not allowed at this place.
const KNOWN: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];

/// Resources of a container that a `resourceFieldRef` may name. Huge pages of any size are also allowed.
const AMOUNTS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Divisors for resources in bytes.
///
/// An amount is divided by its divisor and rounded up. `0` and an absent divisor mean 1.
const BYTES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates a `fieldRef` whose path is one of `allowed` or a single label or annotation.
///
/// `field_path` is the field path of the reference. At most one error is reported:
///
/// | case | error | field |
/// |---|---|---|
/// | no `apiVersion` or `fieldPath` | `FieldValueRequired` | that field |
/// | a version other than `v1` | `FieldValueInvalid` | `fieldPath` |
/// | a subscript on another path | `FieldValueInvalid` | `fieldPath` |
/// | an unknown path | `FieldValueInvalid` | `fieldPath` |
/// | a path that is not allowed here | `FieldValueNotSupported` | `fieldPath` |
/// | a label or annotation key that is malformed | `FieldValueInvalid` | the reference |
///
/// Annotation keys are compared in lower case, as in metadata.
pub(crate) fn field(reference: &Value, field_path: &str, allowed: &[&str], errors: &mut Errors) {
    let path = &reference["fieldPath"];
    let (name, path_field, version) = (text(path), format!("{field_path}.fieldPath"), text(&reference["apiVersion"]));
    if version.is_empty() {
        return errors.required(&format!("{field_path}.apiVersion"), "");
    }
    if name.is_empty() {
        return errors.required(&path_field, "");
    }
    let subscripted = name.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscripted {
        _ if version != "v1" => errors.invalid(&path_field, path, "the apiVersion must be v1"),
        Some(("metadata.labels", key)) => errors.qualified_name(field_path, key),
        Some(("metadata.annotations", key)) => errors.qualified_name(field_path, &key.to_lowercase()),
        Some(_) => errors.invalid(&path_field, path, "only metadata.labels and metadata.annotations have keys"),
        None if !KNOWN.contains(&name) => errors.invalid(&path_field, path, "must be a field of a Pod"),
        None => errors.one_of(&path_field, path, allowed),
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

/// Validates a `resourceFieldRef`. In a file it must name a container (`FieldValueRequired`), since a
/// volume belongs to all containers.
///
/// CPU takes the divisors `1m` and `1`, the other resources those of `BYTES` (`FieldValueInvalid` at `divisor`).
/// The existence of the container is not validated.
pub(crate) fn amount(reference: &Value, path: &str, target: Target, errors: &mut Errors) {
    let name = text(&reference["resource"]);
    let of_pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if target == Target::File && text(&reference["containerName"]).is_empty() {
        errors.required(&format!("{path}.containerName"), "");
    } else if name.is_empty() {
        errors.required(&format!("{path}.resource"), "");
    } else if !of_pages {
        errors.one_of(&format!("{path}.resource"), &reference["resource"], AMOUNTS);
    }
    let divisor = text(&reference["divisor"]);
    let units: &[&str] = match name {
        _ if ["", "0"].contains(&divisor) => return,
        "limits.cpu" | "requests.cpu" => &["1m", "1"],
        "limits.memory" | "requests.memory" | "limits.ephemeral-storage" | "requests.ephemeral-storage" => BYTES,
        _ if of_pages => BYTES,
        _ => return,
    };
    if !units.contains(&divisor) {
        let detail = format!("must be one of {units:?} for {name}");
        errors.invalid(&format!("{path}.divisor"), &reference["divisor"], &detail);
    }
}
