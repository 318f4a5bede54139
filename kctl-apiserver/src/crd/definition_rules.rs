//! Validation of a `CustomResourceDefinition`.
//!
//! Upstream: `pkg/apis/apiextensions/validation/validation.go` of apiextensions-apiserver. If all versions have the
//! same schema, subresources or columns, errors name the field that v1beta1 had for all versions, such as
//! `spec.validation`, as in upstream.
//!
//! Validation starts after decoding, so all fields have the right types. A missing field is `null` and counts as Go's
//! zero value.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{approved, bundle, is_established, selectable, structural};
use crate::{
    field::Field,
    field_errors::{Errors, FieldError, text},
    names::NameRule,
    webhook_client,
};

/// Maximum length of a `deprecationWarning`, in bytes.
const WARNING_LEN_MAX: usize = 256;

/// Validates a CRD after defaulting ([`super::default_definition`]).
///
/// The types and the estimated costs of CEL rules are not checked.
///
/// Every error that one pass can find is returned. Order: name, group, scope, versions with their
/// schemas, names, conversion, stored versions, API approval.
pub(crate) fn validate_definition(object: &Value) -> Errors {
    validated(None, object)
}

/// Validates a CRD. `old` is set on updates, where an unchanged API approval is not validated again.
/// `spec.preserveUnknownFields: true`, the default of v1beta1, is rejected.
fn validated(old: Option<&Value>, object: &Value) -> Errors {
    let mut errors = Errors::default();
    let spec = &object["spec"];
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    name(object, &mut errors);
    group(spec, &mut errors);
    Field::new(&spec["scope"], "spec.scope", &mut errors).required_one_of(&["Cluster", "Namespaced"]);
    version_parts(versions, &mut errors);
    all_versions(versions, &mut errors);
    resource_names(&spec["names"], "spec.names", &mut errors);
    if spec["preserveUnknownFields"] == true && spec["conversion"]["strategy"] != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.invalid("spec.conversion.strategy", &spec["conversion"]["strategy"], detail);
    }
    conversion(&spec["conversion"], &mut errors);
    stored_versions(object, versions, &mut errors);
    errors.extend(approved::check(old, object));
    if spec["preserveUnknownFields"] == true {
        let detail = "must be false: set x-kubernetes-preserve-unknown-fields in spec.versions[*].schema";
        errors.invalid("spec.preserveUnknownFields", &true.into(), detail);
    }
    errors
}

/// Validates the names in the status of a CRD.
///
/// Runs on writes of the subresource `status`. Conditions are not validated.
pub(crate) fn validate_definition_status(object: &Value) -> Errors {
    Errors::collect(|errors| resource_names(&object["status"]["acceptedNames"], "status.acceptedNames", errors))
}

/// Validates an updated CRD and the change. Scope and kind may change until the CRD is established, so that a user
/// can resolve a name conflict.
///
/// Upstream: `ValidateCustomResourceDefinitionUpdate` of apiextensions-apiserver.
///
/// In addition, an update must not break a CA bundle that could be loaded. Group and plural are immutable
/// from the start, since the name of the object contains both.
pub(crate) fn validate_change_of_definition(old: &Value, new: &Value) -> Errors {
    let mut errors = validated(Some(old), new);
    if bundle::is_broken(new) && !bundle::is_broken(old) {
        errors
            .invalid_without_value("spec.conversion.webhookClientConfig.caBundle", "must be PEM-encoded certificates");
    }
    // Immutable fields below already tie the name to the plural and the group.
    errors.retain(|error| error.field != "metadata.name");
    let value_at = |object: &Value, pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let fixed = [
        ("/spec/scope", "spec.scope", is_established(old)),
        ("/spec/names/kind", "spec.names.kind", is_established(old)),
        ("/spec/group", "spec.group", true),
        ("/spec/names/plural", "spec.names.plural", true),
    ];
    let changed =
        fixed.iter().filter(|(pointer, _, is_fixed)| *is_fixed && value_at(old, pointer) != value_at(new, pointer));
    errors.extend(
        changed.map(|(pointer, field, _)| FieldError::invalid(field, &value_at(new, pointer), "field is immutable")),
    );
    errors
}

/// Validates a kind: a DNS-1035 label, except that it may have uppercase letters.
pub(super) fn check_kind(field: &str, kind: &str, errors: &mut Errors) {
    let message = NameRule::Label1035.check(&kind.to_lowercase());
    errors.extend(message.map(|message| FieldError::invalid(field, &kind.into(), message)));
}

/// Validates the name of the CRD: `PLURAL.GROUP`. An empty name is reported with the metadata.
fn name(object: &Value, errors: &mut Errors) {
    let name = text(&object["metadata"]["name"]);
    if name.is_empty() {
        return;
    }
    errors.name("metadata.name", &name.into(), NameRule::Subdomain);
    let spec = &object["spec"];
    if name != format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"])) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.invalid("metadata.name", &name.into(), detail);
    }
}

/// Validates the group: a DNS subdomain with at least one dot, since groups without one belong to Kubernetes.
fn group(spec: &Value, errors: &mut Errors) {
    let group = text(&spec["group"]);
    if group.is_empty() {
        errors.required("spec.group", "");
        return;
    }
    errors.name("spec.group", &group.into(), NameRule::Subdomain);
    if NameRule::Subdomain.check(group).is_none() && !group.contains('.') {
        errors.invalid("spec.group", &group.into(), "should be a domain with at least one dot");
    }
}

/// Validates the names of the versions and that exactly one is the storage version.
fn all_versions(versions: &[Value], errors: &mut Errors) {
    let names: Vec<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    for (i, name) in names.iter().enumerate() {
        errors.name(&format!("spec.versions[{i}].name"), &(*name).into(), NameRule::Label1035);
    }
    let list = names.iter().copied().collect::<Value>();
    if names.iter().enumerate().any(|(i, name)| names[..i].contains(name)) {
        errors.invalid("spec.versions", &list, "must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        errors.invalid("spec.versions", &list, "must have exactly one version marked as storage version");
    }
    // v1beta1 had a single version in `spec.version`; the first version is also checked under that path.
    if let Some(name) = names.first().filter(|name| !name.is_empty()) {
        errors.name("spec.version", &(**name).into(), NameRule::Label1035);
    }
}

/// Returns `true` if all versions have the same value of a field. Upstream then reports the v1beta1 field.
fn is_shared(versions: &[Value], key: &str) -> bool {
    versions.iter().all(|version| version[key] == versions[0][key])
}

/// Validates the schema, subresources, columns, selectable fields and warning of each version. A part that all versions
/// share is validated once, under its path of v1beta1. A missing schema is always reported per version.
fn version_parts(versions: &[Value], errors: &mut Errors) {
    for (i, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{i}]");
        let path_of = |key: &str, shared: &str| {
            if is_shared(versions, key) {
                (i == 0).then(|| format!("spec.{shared}"))
            } else {
                Some(format!("{path}.{key}"))
            }
        };
        if !version["schema"]["openAPIV3Schema"].is_object() {
            errors.required(&format!("{path}.schema.openAPIV3Schema"), "");
        } else if let Some(path) = path_of("schema", "validation") {
            let (schema, path) = (&version["schema"]["openAPIV3Schema"], format!("{path}.openAPIV3Schema"));
            let has_status = version["subresources"]["status"].is_object();
            let unfit = has_status.then(|| unfit_for_status(schema, &path)).flatten();
            structural::check(schema, &path, unfit, errors);
        }
        if let Some(path) = path_of("subresources", "subresources") {
            scale(&version["subresources"]["scale"], &format!("{path}.scale"), errors);
        }
        if let Some(path) = path_of("additionalPrinterColumns", "additionalPrinterColumns") {
            columns(&version["additionalPrinterColumns"], &path, errors);
        }
        if let Some(path) = path_of("selectableFields", "selectableFields") {
            selectable::check(&version["selectableFields"], &version["schema"]["openAPIV3Schema"], &path, errors);
        }
        if let Some(warning) = version["deprecationWarning"].as_str() {
            let field = format!("{path}.deprecationWarning");
            let is_valid = (1..=WARNING_LEN_MAX).contains(&warning.len()) && !warning.contains(char::is_control);
            if version["deprecated"] != true || !is_valid {
                let detail =
                    format!("must be 1 to {WARNING_LEN_MAX} printable bytes, and only set if deprecated is true");
                errors.invalid(&field, &warning.into(), &detail);
            }
        }
    }
}

/// The keywords that the root of a schema may have if the status subresource is enabled. A write of the status is
/// validated by the schema below `properties.status` alone, so other keywords at the root could not be evaluated for
/// it.
const FIT_FOR_STATUS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Returns the error of a root keyword that the status subresource does not support
/// (`ValidateCustomResourceDefinitionValidation`): a root type other than `object`, else the first unfit keyword by
/// name.
fn unfit_for_status(schema: &Value, path: &str) -> Option<FieldError> {
    const WHERE: &str = "at the root of the schema if the status subresource is enabled";
    // Zero values that Go omits were removed by `normalize`.
    let is_set = |keyword: &str| !schema[keyword].is_null();
    let has_reference = ["id", "$schema", "$ref"].iter().any(|keyword| is_set(keyword));
    if !has_reference && is_set("type") && schema["type"] != "object" {
        let detail = format!("only \"object\" is allowed as the type {WHERE}");
        return Some(FieldError::invalid(&format!("{path}.type"), &schema["type"], &detail));
    }
    let mut set = schema.as_object()?.keys().map(String::as_str).filter(|keyword| is_set(keyword));
    let unfit = set.find(|keyword| !FIT_FOR_STATUS.contains(keyword))?;
    Some(FieldError::invalid(path, &unfit.into(), &format!("this keyword is not allowed {WHERE}")))
}

/// Validates the JSON paths of the scale subresource. Only the first step of a path is checked: the fields need not be
/// declared in the schema. Array notation is not rejected here, as in upstream.
fn scale(scale: &Value, path: &str, errors: &mut Errors) {
    if !scale.is_object() {
        return;
    }
    for (key, roots) in [
        ("specReplicasPath", [".spec."].as_slice()),
        ("statusReplicasPath", &[".status."]),
        ("labelSelectorPath", &[".spec.", ".status."]),
    ] {
        let (value, field) = (text(&scale[key]), format!("{path}.{key}"));
        if value.is_empty() {
            if key != "labelSelectorPath" {
                errors.required(&field, "");
            }
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            errors.invalid(&field, &value.into(), &format!("must begin with {}", roots.join(" or ")));
        }
    }
}

/// Validates `additionalPrinterColumns`. Paths of the errors end in `JSONPath` with capital letters, upstream's
/// spelling. A JSON path is only checked to begin with a dot; a malformed one shows an empty cell.
fn columns(columns: &Value, path: &str, errors: &mut Errors) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let one_of = |all: &[&str]| format!("must be one of {}", all.join(", "));
    for (i, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path_of = |key: &str| format!("{path}[{i}].{key}");
        if text(&column["name"]).is_empty() {
            errors.required(&path_of("name"), "");
        }
        match text(&column["type"]) {
            "" => errors.required(&path_of("type"), &one_of(&TYPES)),
            name if TYPES.contains(&name) => {}
            name => errors.invalid(&path_of("type"), &name.into(), &one_of(&TYPES)),
        }
        let format = text(&column["format"]);
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.invalid(&path_of("format"), &format.into(), &one_of(&FORMATS));
        }
        match text(&column["jsonPath"]) {
            "" => errors.required(&path_of("JSONPath"), ""),
            value if !value.starts_with('.') => {
                errors.invalid(&path_of("JSONPath"), &value.into(), "must begin with a dot");
            }
            _ => {}
        }
    }
}

/// Validates `spec.names` or `status.acceptedNames`, where names may be empty; `path` is the field path of the names.
fn resource_names(all: &Value, path: &str, errors: &mut Errors) {
    for key in ["plural", "singular", "kind", "listKind"] {
        let (name, field) = (text(&all[key]), format!("{path}.{key}"));
        // `spec.names` are required; `status.acceptedNames` may still be empty.
        match key {
            _ if name.is_empty() && path == "spec.names" => errors.required(&field, ""),
            _ if name.is_empty() => {}
            "plural" | "singular" => errors.name(&field, &all[key], NameRule::Label1035),
            _ => check_kind(&field, name, errors),
        }
    }
    for key in ["shortNames", "categories"] {
        for (i, name) in all[key].as_array().into_iter().flatten().filter_map(Value::as_str).enumerate() {
            errors.name(&format!("{path}.{key}[{i}]"), &name.into(), NameRule::Label1035);
        }
    }
    let kind = text(&all["kind"]);
    if !kind.is_empty() && kind == text(&all["listKind"]) {
        let detail = "kind and listKind may not be the same";
        errors.invalid(&format!("{path}.listKind"), &kind.into(), detail);
    }
}

/// Validates `spec.conversion`. Errors name the fields of v1beta1, as in upstream. The strategy `Webhook` requires both
/// client configuration and review versions; `None` forbids both.
fn conversion(conversion: &Value, errors: &mut Errors) {
    Field::new(&conversion["strategy"], "spec.conversion.strategy", errors).required_one_of(&["None", "Webhook"]);
    let part = |key: &str| Some(&conversion["webhook"][key]).filter(|part| !part.is_null());
    let (client, reviews) = (part("clientConfig"), part("conversionReviewVersions"));
    let (client_field, reviews_field) =
        ("spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions");
    if conversion["strategy"] != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        for (part, field) in [(client, client_field), (reviews, reviews_field)] {
            errors.extend(part.map(|_| FieldError::forbidden(field, detail)));
        }
        return;
    }
    match client {
        None => errors.required(client_field, "required when strategy is set to Webhook"),
        Some(client) => errors.extend(webhook_client::validate(client, client_field)),
    }
    let reviews = reviews.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    review_versions(reviews, reviews_field, errors);
}

/// Validates `conversionReviewVersions`, which must have one of `v1` and `v1beta1`. A duplicate is not validated
/// further.
fn review_versions(versions: &[Value], field: &str, errors: &mut Errors) {
    if versions.is_empty() {
        errors.required(field, "");
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("{field}[{index}]");
        if versions[..index].contains(version) {
            errors.invalid(&path, version, "duplicate version");
        } else {
            errors.name(&path, version, NameRule::Label1035);
        }
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        errors.invalid(field, &versions.into(), "must include at least one of v1, v1beta1");
    }
}

/// Validates `status.storedVersions`, the versions that objects may still be stored in: it must include the storage
/// version and only existing versions. If versions share a name, upstream uses the first
/// (`ValidateCustomResourceDefinitionStoredVersions`).
fn stored_versions(object: &Value, versions: &[Value], errors: &mut Errors) {
    let field = "status.storedVersions";
    let stored = &object["status"]["storedVersions"];
    if stored.as_array().is_none_or(Vec::is_empty) {
        errors.invalid(field, &Value::Null, "must have at least one stored version");
        return;
    }
    let mut left: BTreeSet<&str> = stored.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for version in versions {
        let name = text(&version["name"]);
        if !left.remove(name) && version["storage"] == true {
            errors.invalid(field, stored, &format!("must have the storage version {name}"));
        }
    }
    for (index, name) in stored.as_array().into_iter().flatten().enumerate() {
        if !versions.iter().any(|declared| text(&declared["name"]) == text(name)) {
            let detail = "must stay in spec.versions while objects are stored in it or status.storedVersions has it";
            errors.invalid(&format!("{field}[{index}]"), name, detail);
        }
    }
}
