//! Validates `metadata` of an object.
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`, `ValidateObjectMetaAccessor`.
//!
//! Built-in kinds and custom resources share these rules; only the rule for names differs. Fields that the server sets,
//! such as `uid` and `creationTimestamp`, are not validated here.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, pairs, text},
    json_path::entries,
    names::NameRule,
};

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
/// The paths of the errors begin with `metadata`.
pub(crate) fn validate_metadata(meta: &Value, scope: Scope, name_rule: NameRule) -> Errors {
    collect(meta, |meta| {
        name(meta, name_rule);
        namespace(&meta.at("namespace"), scope);
        meta.at("generation").not_negative();
        validate_labels(meta);
        owner_references(&meta.at("ownerReferences"));
        finalizers(&meta.at("finalizers"));
    })
}

/// Returns the errors of rules of the metadata.
fn collect(meta: &Value, rules: impl FnOnce(&Field<'_>)) -> Errors {
    Errors::collect(|errors| rules(&Field::new(meta, "metadata", errors)))
}

/// Validates labels and annotations only. Used by the conversion of custom objects, where a webhook may not change any
/// other metadata.
pub(crate) fn validate_labels_and_annotations(meta: &Value) -> Errors {
    collect(meta, validate_labels)
}

/// Validates metadata of an object within another, whose kind is unknown: any name is valid, and the name may be
/// absent. This is for fields with `x-kubernetes-embedded-resource`. The paths of its errors begin with `metadata` too;
/// the caller replaces that by the path of the field.
pub(crate) fn validate_embedded(meta: &Value) -> Errors {
    collect(meta, |meta| {
        meta.at("namespace").name_if_set(NameRule::Label);
        meta.at("generation").not_negative();
        validate_labels(meta);
        owner_references(&meta.at("ownerReferences"));
        qualified_names(&meta.at("finalizers"));
        managed_fields(meta);
    })
}

/// Returns the errors of `metadata.managedFields` (`ValidateManagedFields` of `k8s.io/apimachinery`).
pub(crate) fn validate_managed_fields(meta: &Value) -> Errors {
    collect(meta, managed_fields)
}

/// Validates the managed fields.
fn managed_fields(meta: &Field<'_>) {
    for entry in meta.at("managedFields").items() {
        entry.at("operation").required_one_of(&["Apply", "Update"]);
        let fields_type = entry.at("fieldsType");
        fields_type.invalid_if(!matches!(fields_type.text(), "" | "FieldsV1"), "must be FieldsV1");
    }
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

/// Validates `name` and `generateName`. If both are given, both have to be valid, although only the name is used.
fn name(meta: &Field<'_>, rule: NameRule) {
    let (name, prefix) = (meta.at("name"), meta.at("generateName"));
    if let Some(message) = rule.check_prefix(prefix.text()).filter(|_| !prefix.is_empty()) {
        prefix.invalid(message);
    }
    name.required_with_if(name.is_empty() && prefix.is_empty(), "name or generateName is required");
    name.name_if_set(rule);
}

/// Validates that a namespace is present exactly for a namespaced kind. A namespace is a DNS label, of at most 63
/// characters.
fn namespace(namespace: &Field<'_>, scope: Scope) {
    match scope {
        Scope::Namespaced => namespace.required_name(NameRule::Label),
        Scope::Cluster => namespace.forbidden_if(!namespace.is_empty(), "not allowed on this type"),
    }
}

/// Validates labels, and keys of annotations and their total size (`ValidateAnnotations`). Values of annotations may
/// have any contents: only the size counts.
fn validate_labels(meta: &Field<'_>) {
    meta.at("labels").labels();
    let annotations = meta.at("annotations");
    annotations.annotations();
    let n_bytes: usize = pairs(&annotations).map(|(key, value)| key.len() + text(value).len()).sum();
    if n_bytes > ANNOTATIONS_BYTES_MAX {
        annotations.too_long(ANNOTATIONS_BYTES_MAX);
    }
}

/// Validates the owner references: at most one is a controller (`ValidateOwnerReferences`).
fn owner_references(references: &Field<'_>) {
    references.items().for_each(|reference| owner_reference(&reference));
    let n_controllers = entries(references).filter(|(_, reference)| reference["controller"] == true).count();
    references.invalid_if(n_controllers > 1, "only one owner may be the controller");
}

/// Validates one owner reference. An `apiVersion` with two slashes has no version. Events are forbidden as owners
/// (`BannedOwners`).
fn owner_reference(reference: &Field<'_>) {
    let api_version = reference.at("apiVersion");
    let (group, version) = match api_version.text().split_once('/') {
        Some((_, version)) if version.contains('/') => ("", ""),
        Some(parts) => parts,
        None => ("", api_version.text()),
    };
    let has_no_version = !api_version.is_empty() && version.is_empty();
    api_version.invalid_if(has_no_version, "must be <group>/<version> or <version>");
    reference.require_children(&["apiVersion", "kind", "name", "uid"]);
    let is_event = (group, version, text(&reference["kind"])) == ("", "v1", "Event");
    reference.invalid_if(is_event, "an Event must not be an owner");
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

/// Sets the generation that follows the stored one. It wraps as in Go: a client may choose the generation of a new
/// object of a kind that does not count generations, and a delete then increments it.
pub(crate) fn increment_generation(object: &mut Value, stored: i64) {
    object["metadata"]["generation"] = stored.wrapping_add(1).into();
}

/// Returns the name that errors show for an object whose name may not be generated yet (`extractResourceName`).
/// `Unknown` if the object has neither a name nor a prefix.
pub(crate) fn name_in_errors(object: &Value) -> &str {
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    text("name").or_else(|| text("generateName")).unwrap_or("Unknown")
}

/// Validates the finalizers (`ValidateFinalizers`). The two of the garbage collector exclude each other, because they
/// have opposite effects on dependents.
fn finalizers(list: &Field<'_>) {
    qualified_names(list);
    let has = |wanted: &str| entries(list).any(|(_, name)| name == wanted);
    list.invalid_if(has("orphan") && has("foregroundDeletion"), "must not have both orphan and foregroundDeletion");
}

/// Validates that the items of a list are qualified names. Errors are at the list.
fn qualified_names(list: &Field<'_>) {
    entries(list).for_each(|(_, name)| list.with(name).qualified_name());
}

/// Validates that the finalizers have domains.
pub(crate) fn validate_finalizer_domains(meta: &Value, errors: &mut Errors) {
    for name in Field::new(&meta["finalizers"], "metadata.finalizers", errors).items() {
        name.invalid_if(!has_domain(name.text()), DOMAIN_RULE);
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
