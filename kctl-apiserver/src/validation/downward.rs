//! Validation of downward API references, in environment variables and in files.

use serde_json::Value;

use crate::field_errors::{Errors, text};

/// Paths that variables may have, besides single labels and annotations.
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
pub(crate) const OF_FILES: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Paths that the API knows (`ConvertDownwardAPIFieldLabel`).
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

const AMOUNTS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Divisors for resources in bytes.
const BYTES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// A `fieldRef` with one of some paths.
pub(crate) fn field(reference: &Value, at: &str, allowed: &[&str], errors: &mut Errors) {
    let path = &reference["fieldPath"];
    let (name, path_at, version) = (text(path), format!("{at}.fieldPath"), text(&reference["apiVersion"]));
    if version.is_empty() {
        return errors.required(&format!("{at}.apiVersion"), "");
    }
    if name.is_empty() {
        return errors.required(&path_at, "");
    }
    let wrong = |why: String| format!("error converting fieldPath: {why}");
    if version != "v1" {
        return errors.invalid(&path_at, path, &wrong(format!("unsupported pod version: {version}")));
    }
    let subscripted = name.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscripted {
        Some(("metadata.labels", key)) => errors.qualified_name(at, key),
        Some(("metadata.annotations", key)) => errors.qualified_name(at, &key.to_lowercase()),
        Some(_) => errors.invalid(&path_at, path, &wrong(format!("field label does not support subscript: {name}"))),
        None if !KNOWN.contains(&name) => {
            errors.invalid(&path_at, path, &wrong(format!("field label not supported: {name}")));
        }
        None => errors.one_of(&path_at, path, allowed),
    }
}

/// A `resourceFieldRef`; a file has to name the container that it is about.
pub(crate) fn amount(reference: &Value, at: &str, of_file: bool, errors: &mut Errors) {
    let name = text(&reference["resource"]);
    let of_pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if of_file && text(&reference["containerName"]).is_empty() {
        errors.required(&format!("{at}.containerName"), "");
    } else if name.is_empty() {
        errors.required(&format!("{at}.resource"), "");
    } else if !of_pages {
        errors.one_of(&format!("{at}.resource"), &reference["resource"], AMOUNTS);
    }
    let divisor = text(&reference["divisor"]);
    let (units, what): (&[&str], &str) = match name {
        _ if ["", "0"].contains(&divisor) => return,
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (BYTES, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (BYTES, "local ephemeral storage"),
        _ if of_pages => (BYTES, "hugepages"),
        _ => return,
    };
    if !units.contains(&divisor) {
        let shown = if what == "cpu" { "1m and 1".to_owned() } else { units.join(", ") };
        let detail = format!("only divisor's values {shown} are supported with the {what} resource");
        errors.invalid(&format!("{at}.divisor"), &name.into(), &detail);
    }
}
