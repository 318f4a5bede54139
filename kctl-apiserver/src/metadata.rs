//! Validates `metadata` of an object.
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`, `ValidateObjectMetaAccessor`.
//!
//! Built-in kinds and custom resources share these rules; only the rule for names differs. Fields that the server sets,
//! such as `uid` and `creationTimestamp`, are not validated here.

use serde_json::Value;

pub(crate) use super::names::NameRule;
use crate::field_errors::{Errors, pairs, text};

/// Maximum number of bytes of all keys and values of the annotations (`TotalAnnotationSizeLimitB`). Labels have no such
/// limit, because each of their values has at most 63 characters.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The scope of a kind, `scope` of a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Objects are in a namespace.
    Namespaced,
    /// Objects are in no namespace.
    Cluster,
}

/// Validates the metadata of an object before it is stored, after its namespace is set and its name generated.
/// `namespaced` is the scope of the kind. The paths of the errors begin with `metadata`.
pub(crate) fn validate_metadata(meta: &Value, scope: Scope, name_rule: NameRule) -> Errors {
    let mut errors = Errors::default();
    validate_name(meta, name_rule, &mut errors);
    validate_namespace(text(&meta["namespace"]), scope, &mut errors);
    validate_generation(meta, &mut errors);
    errors.extend(validate_texts(meta));
    validate_owner_references(meta, &mut errors);
    validate_finalizers(meta, &mut errors);
    errors
}

/// Validates labels and annotations only. Used by the conversion of custom objects, where a webhook may not change any
/// other metadata.
pub(crate) fn validate_texts(meta: &Value) -> Errors {
    let mut errors = Errors::default();
    errors.labels("metadata.labels", &meta["labels"]);
    validate_annotations(meta, &mut errors);
    errors
}

/// Validates metadata of an object within another, whose kind is unknown: any name is valid, and the name may be
/// absent. This is for fields with `x-kubernetes-embedded-resource`. The paths of its errors begin with `metadata` too;
/// the caller replaces that by the path of the field.
pub(crate) fn validate_embedded(meta: &Value) -> Errors {
    let mut errors = Errors::default();
    let namespace = text(&meta["namespace"]);
    let scope = if namespace.is_empty() { Scope::Cluster } else { Scope::Namespaced };
    validate_namespace(namespace, scope, &mut errors);
    validate_generation(meta, &mut errors);
    errors.extend(validate_texts(meta));
    validate_owner_references(meta, &mut errors);
    for name in meta["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        errors.qualified_name("metadata.finalizers", name);
    }
    errors.extend(validate_managed_fields(meta));
    errors
}

/// Returns the errors of `metadata.managedFields` (`ValidateManagedFields` of `k8s.io/apimachinery`).
pub(crate) fn validate_managed_fields(meta: &Value) -> Errors {
    let mut errors = Errors::default();
    let managed = meta["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, entry) in managed.iter().enumerate() {
        let path = format!("metadata.managedFields[{index}]");
        match text(&entry["operation"]) {
            "" => errors.required(&format!("{path}.operation"), "must not be empty"),
            "Apply" | "Update" => {}
            other => errors.unsupported(&format!("{path}.operation"), &other.into(), &["Apply", "Update"]),
        }
        if !matches!(text(&entry["fieldsType"]), "" | "FieldsV1") {
            errors.invalid(&format!("{path}.fieldsType"), &entry["fieldsType"], "must be FieldsV1");
        }
    }
    errors
}

/// Returns `true` if an update changes only owner references and finalizers (`IsOnlyMutatingGCFields`). The garbage
/// collector makes such updates without the rights that others need. Fields that are null count as absent on both
/// sides.
pub(crate) fn only_mutates_gc_fields(old: &Value, object: &Value) -> bool {
    let without_end = |object: &Value| {
        let mut rest = object.clone();
        // `null` is an empty list of rules.
        if let Some(fields) = rest.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
        if let Some(meta) = rest["metadata"].as_object_mut() {
            for name in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                meta.remove(name);
            }
        }
        rest
    };
    without_end(old) == without_end(object)
}

/// Rejects a negative generation. Only a client can cause it, since the server counts up from 1.
fn validate_generation(meta: &Value, errors: &mut Errors) {
    if let Some(generation) = meta["generation"].as_i64().filter(|generation| *generation < 0) {
        errors.invalid("metadata.generation", &generation.into(), "must be greater than or equal to 0");
    }
}

/// Validates `name` and `generateName`. If both are given, both have to be valid, although only the name is used.
fn validate_name(meta: &Value, rule: NameRule, errors: &mut Errors) {
    let (name, prefix) = (text(&meta["name"]), text(&meta["generateName"]));
    if let Some(message) = rule.check_prefix(prefix).filter(|_| !prefix.is_empty()) {
        errors.invalid("metadata.generateName", &prefix.into(), message);
    }
    if !name.is_empty() {
        errors.name("metadata.name", &meta["name"], rule);
    } else if prefix.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    }
}

/// Validates that a namespace is present exactly for a namespaced kind. A namespace is a DNS label, of at most 63
/// characters.
fn validate_namespace(namespace: &str, scope: Scope, errors: &mut Errors) {
    let field = "metadata.namespace";
    match (scope, namespace.is_empty()) {
        (Scope::Namespaced, true) => errors.required(field, ""),
        (Scope::Namespaced, false) => errors.name(field, &namespace.into(), NameRule::Label),
        (Scope::Cluster, true) => {}
        (Scope::Cluster, false) => errors.forbidden(field, "not allowed on this type"),
    }
}

/// Validates keys of annotations and their total size (`ValidateAnnotations`). Values may have any contents: only the
/// size counts.
fn validate_annotations(meta: &Value, errors: &mut Errors) {
    let field = "metadata.annotations";
    errors.annotations(field, &meta["annotations"]);
    let n_bytes: usize = pairs(&meta["annotations"]).map(|(key, value)| key.len() + text(value).len()).sum();
    if n_bytes > ANNOTATIONS_BYTES_MAX {
        errors.too_long(field, ANNOTATIONS_BYTES_MAX);
    }
}

/// Validates the owner references: at most one is a controller (`ValidateOwnerReferences`).
fn validate_owner_references(meta: &Value, errors: &mut Errors) {
    let field = "metadata.ownerReferences";
    let references = meta["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, reference) in references.iter().enumerate() {
        validate_owner_reference(reference, &format!("{field}[{index}]"), errors);
    }
    if references.iter().filter(|reference| reference["controller"] == true).count() > 1 {
        errors.invalid(field, &meta["ownerReferences"], "only one owner may be the controller");
    }
}

/// Validates one owner reference. An `apiVersion` with two slashes has no version. Events are forbidden as owners
/// (`BannedOwners`).
fn validate_owner_reference(reference: &Value, field: &str, errors: &mut Errors) {
    let api_version = text(&reference["apiVersion"]);
    let (group, version) = match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => ("", ""),
        Some(parts) => parts,
        None => ("", api_version),
    };
    if !api_version.is_empty() && version.is_empty() {
        errors.invalid(&format!("{field}.apiVersion"), &api_version.into(), "must be <group>/<version> or <version>");
    }
    for key in ["apiVersion", "kind", "name", "uid"] {
        if text(&reference[key]).is_empty() {
            errors.required(&format!("{field}.{key}"), "must not be empty");
        }
    }
    if (group, version, text(&reference["kind"])) == ("", "v1", "Event") {
        errors.invalid(field, reference, "an Event must not be an owner");
    }
}

/// The fields of metadata, in the order of the Go struct `ObjectMeta`.
pub(crate) const FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The fields that only the server sets (`rest.WipeObjectMetaSystemFields`). The generation is not among them: a new
/// object of a kind without generations keeps the client's.
pub(crate) const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Returns `metadata.generation`; 0 without one.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// Sets the generation that follows the stored one.
pub(crate) fn increment_generation(object: &mut Value, stored: i64) {
    object["metadata"]["generation"] = (stored + 1).into();
}

/// Returns the name that errors show for an object whose name may not be generated yet (`extractResourceName`).
/// `Unknown` if the object has neither a name nor a prefix.
pub(crate) fn name_in_errors(object: &Value) -> &str {
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    text("name").or_else(|| text("generateName")).unwrap_or("Unknown")
}

/// Validates the finalizers (`ValidateFinalizers`). The two of the garbage collector exclude each other, because they
/// have opposite effects on dependents.
fn validate_finalizers(meta: &Value, errors: &mut Errors) {
    let (field, list) = ("metadata.finalizers", &meta["finalizers"]);
    let names: Vec<&str> = list.as_array().into_iter().flatten().map(text).collect();
    for name in &names {
        errors.qualified_name(field, name);
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        errors.invalid(field, list, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

/// Validates that the finalizers have domains.
pub(crate) fn validate_finalizer_domains(meta: &Value, errors: &mut Errors) {
    for (index, name) in meta["finalizers"].as_array().into_iter().flatten().enumerate() {
        if !has_domain(text(name)) {
            errors.invalid(&format!("metadata.finalizers[{index}]"), name, DOMAIN_RULE);
        }
    }
}

/// The rule for finalizers that [`has_domain`] checks.
pub(crate) const DOMAIN_RULE: &str = "must have a domain, such as example.com/name";

/// Returns `true` for a finalizer with a domain, and for the three that Kubernetes itself uses.
pub(crate) fn has_domain(finalizer: &str) -> bool {
    finalizer.contains('/') || ["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer)
}

#[cfg(test)]
mod tests;
