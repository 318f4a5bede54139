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
    json_path::entries,
    names::NameRule,
    webhook_client::{client_config, review_versions},
};

/// Maximum length of a `deprecationWarning`, in bytes.
const WARNING_LEN_MAX: usize = 256;

/// Validates a CRD after defaulting ([`super::default_definition`]).
///
/// The types and the estimated costs of CEL rules are not checked.
///
/// Every error that one pass can find is returned.
pub(crate) fn validate_definition(object: &Value) -> Errors {
    validate(None, object)
}

/// Validates a CRD. `old` is set on updates, where an unchanged API approval is not validated again.
/// `spec.preserveUnknownFields: true`, the default of v1beta1, is rejected.
fn validate(old: Option<&Value>, object: &Value) -> Errors {
    let mut errors = Errors::collect(|errors| definition(&Field::new(object, "", errors)));
    errors.extend(approved::check(old, object));
    errors
}

/// Validates all but the API approval.
fn definition(definition: &Field<'_>) {
    let spec = definition.at("spec");
    let (versions, conversion) = (spec.at("versions"), spec.at("conversion"));
    name(definition);
    group(&spec.at("group"));
    spec.at("scope").required_one_of(&["Cluster", "Namespaced"]);
    version_parts(&spec, &versions);
    all_versions(&spec, &versions);
    resource_names(&spec.at("names"));
    self::conversion(&conversion);
    stored_versions(&definition.at("status").at("storedVersions"), &versions);
    let preserves = spec["preserveUnknownFields"] == true;
    let converts = conversion["strategy"] != "None";
    conversion.at("strategy").invalid_if(preserves && converts, "must be None if spec.preserveUnknownFields is true");
    let detail = "must be false: set x-kubernetes-preserve-unknown-fields in spec.versions[*].schema";
    spec.at("preserveUnknownFields").invalid_if(preserves, detail);
}

/// Validates the names in the status of a CRD.
///
/// Runs on writes of the subresource `status`. Conditions are not validated.
pub(crate) fn validate_definition_status(object: &Value) -> Errors {
    let names = &object["status"]["acceptedNames"];
    Errors::collect(|errors| resource_names(&Field::new(names, "status.acceptedNames", errors)))
}

/// Validates an updated CRD and the change. Scope and kind may change until the CRD is established, so that a user
/// can resolve a name conflict.
///
/// Upstream: `ValidateCustomResourceDefinitionUpdate` of apiextensions-apiserver.
///
/// In addition, an update must not break a CA bundle that could be loaded. Group and plural are immutable
/// from the start, since the name of the object contains both.
pub(crate) fn validate_change_of_definition(old: &Value, new: &Value) -> Errors {
    let mut errors = validate(Some(old), new);
    if bundle::is_broken(new) && !bundle::is_broken(old) {
        errors
            .invalid_without_value("spec.conversion.webhookClientConfig.caBundle", "must be PEM-encoded certificates");
    }
    // Immutable fields below already tie the name to the plural and the group.
    errors.retain(|error| error.field != "metadata.name");
    check_immutable(old, &Field::new(&new["spec"], "spec", &mut errors));
    errors
}

/// Validates the immutable fields of the spec.
fn check_immutable(old: &Value, spec: &Field<'_>) {
    let (names, old_spec) = (spec.at("names"), &old["spec"]);
    if is_established(old) {
        spec.at("scope").immutable(&old_spec["scope"]);
        names.at("kind").immutable(&old_spec["names"]["kind"]);
    }
    spec.at("group").immutable(&old_spec["group"]);
    names.at("plural").immutable(&old_spec["names"]["plural"]);
}

/// Validates the name of the CRD: `PLURAL.GROUP`. An empty name is reported with the metadata.
fn name(definition: &Field<'_>) {
    let (name, spec) = (definition.at("metadata").at("name"), &definition["spec"]);
    if name.is_empty() {
        return;
    }
    name.name(NameRule::Subdomain);
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    name.invalid_if(name.text() != expected, "must be spec.names.plural+\".\"+spec.group");
}

/// Validates the group: a DNS subdomain with at least one dot, since groups without one belong to Kubernetes.
fn group(group: &Field<'_>) {
    group.required_name(NameRule::Subdomain);
    let has_one_label = !group.is_empty() && !group.text().contains('.');
    group.invalid_if(has_one_label, "should be a domain with at least one dot");
}

/// Validates the names of the versions and that exactly one is the storage version.
fn all_versions(spec: &Field<'_>, versions: &Field<'_>) {
    versions.items().for_each(|version| version.at("name").name(NameRule::Label1035));
    let names: Vec<&str> = entries(versions).map(|(_, version)| text(&version["name"])).collect();
    let n_names = names.iter().collect::<BTreeSet<_>>().len();
    let n_stored = entries(versions).filter(|(_, version)| version["storage"] == true).count();
    let is_invalid = n_names < names.len() || n_stored != 1;
    let list = names.into_iter().collect::<Value>();
    versions.with(&list).invalid_if(is_invalid, "must have unique names and exactly one storage version");
    // v1beta1 had a single version in `spec.version`; the first version is also checked under that path.
    spec.at_with("version", &versions[0]["name"]).name_if_set(NameRule::Label1035);
}

/// Validates the schema, subresources, columns, selectable fields and warning of each version. A part that all versions
/// share is validated once, under its path of v1beta1. A missing schema is always reported per version.
fn version_parts(spec: &Field<'_>, versions: &Field<'_>) {
    let is_shared = |key: &&str| entries(versions).all(|(_, version)| version[*key] == versions[0][*key]);
    let parts = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];
    let shared_parts: Vec<&str> = parts.into_iter().filter(is_shared).collect();
    for (i, version) in versions.items().enumerate() {
        let part = |key: &str, shared: &str| {
            if shared_parts.contains(&key) {
                (i == 0).then(|| spec.at_with(shared, &version.value()[key]))
            } else {
                Some(version.at(key))
            }
        };
        let schema = version.at("schema").at("openAPIV3Schema");
        if !schema.is_object() {
            schema.required();
        } else if let Some(schema) = part("schema", "validation").map(|part| part.at("openAPIV3Schema")) {
            let has_status = version["subresources"]["status"].is_object();
            let unfit = has_status.then(|| unfit_for_status(&schema)).flatten();
            schema.with_errors(|errors, path| structural::check(&schema, path, unfit, errors));
        }
        if let Some(subresources) = part("subresources", "subresources") {
            scale(&subresources.at("scale"));
        }
        if let Some(all) = part("additionalPrinterColumns", "additionalPrinterColumns") {
            columns(&all);
        }
        if let Some(fields) = part("selectableFields", "selectableFields") {
            selectable::check(&fields, &schema);
        }
        let warning = version.at("deprecationWarning");
        if let Some(text) = warning.as_str() {
            let is_valid = (1..=WARNING_LEN_MAX).contains(&text.len()) && !text.contains(char::is_control);
            warning.invalid_if(
                version["deprecated"] != true || !is_valid,
                format_args!("must be 1 to {WARNING_LEN_MAX} printable bytes, and only set if deprecated is true"),
            );
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
/// (`validateCustomResourceDefinitionValidation`): a root type other than `object`, else the first unfit keyword by
/// name.
fn unfit_for_status(schema: &Field<'_>) -> Option<FieldError> {
    const WHERE: &str = "at the root of the schema if the status subresource is enabled";
    // Zero values that Go omits were removed by `normalize`.
    let is_set = |keyword: &str| !schema[keyword].is_null();
    let has_reference = ["id", "$schema", "$ref"].iter().any(|keyword| is_set(keyword));
    if !has_reference && is_set("type") && schema["type"] != "object" {
        let detail = format!("only \"object\" is allowed as the type {WHERE}");
        return Some(FieldError::invalid(schema.at("type").path(), &schema["type"], &detail));
    }
    let mut set = schema.as_object()?.keys().map(String::as_str).filter(|keyword| is_set(keyword));
    let unfit = set.find(|keyword| !FIT_FOR_STATUS.contains(keyword))?;
    Some(FieldError::invalid(schema.path(), &unfit.into(), &format!("this keyword is not allowed {WHERE}")))
}

/// Validates the JSON paths of the scale subresource. Only the first step of a path is checked: the fields need not be
/// declared in the schema. Array notation is not rejected here, as in upstream.
fn scale(scale: &Field<'_>) {
    if !scale.is_object() {
        return;
    }
    scale.require_children(&["specReplicasPath", "statusReplicasPath"]);
    for (key, roots) in [
        ("specReplicasPath", [".spec."].as_slice()),
        ("statusReplicasPath", &[".status."]),
        ("labelSelectorPath", &[".spec.", ".status."]),
    ] {
        let path = scale.at(key);
        let is_elsewhere = !path.is_empty() && !roots.iter().any(|root| path.text().starts_with(root));
        path.invalid_if(is_elsewhere, format_args!("must begin with {}", roots.join(" or ")));
    }
}

/// Validates `additionalPrinterColumns`. Paths of the errors end in `JSONPath` with capital letters, upstream's
/// spelling. A JSON path is only checked to begin with a dot; a malformed one shows an empty cell.
fn columns(columns: &Field<'_>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for column in columns.items() {
        column.require_children(&["name", "type"]);
        for (key, all) in [("type", TYPES.as_slice()), ("format", &FORMATS)] {
            let named = column.at(key);
            let is_unknown = !named.is_empty() && !all.contains(&named.text());
            named.invalid_if(is_unknown, format_args!("must be one of {}", all.join(", ")));
        }
        let path = column.at_with("JSONPath", &column["jsonPath"]);
        if path.require_value() {
            path.invalid_if(!path.text().starts_with('.'), "must begin with a dot");
        }
    }
}

/// Validates `spec.names` or `status.acceptedNames`, where names may still be empty.
fn resource_names(names: &Field<'_>) {
    if names.path() == "spec.names" {
        names.require_children(&["plural", "singular", "kind", "listKind"]);
    }
    names.check_children(&["plural", "singular"], |name| name.name_if_set(NameRule::Label1035));
    for name in ["kind", "listKind"].map(|key| names.at(key)) {
        if !name.is_empty() {
            name.kind_name();
        }
    }
    for list in ["shortNames", "categories"].map(|key| names.at(key)) {
        list.items().for_each(|name| name.name(NameRule::Label1035));
    }
    let list_kind = names.at("listKind");
    let is_kind = !list_kind.is_empty() && *list_kind == names["kind"];
    list_kind.invalid_if(is_kind, "kind and listKind may not be the same");
}

/// Validates `spec.conversion`. Errors name the fields of v1beta1, as in upstream. The strategy `Webhook` requires both
/// client configuration and review versions; `None` forbids both.
fn conversion(conversion: &Field<'_>) {
    let (strategy, webhook) = (conversion.at("strategy"), &conversion["webhook"]);
    strategy.required_one_of(&["None", "Webhook"]);
    let client = conversion.at_with("webhookClientConfig", &webhook["clientConfig"]);
    let reviews = conversion.at_with("conversionReviewVersions", &webhook["conversionReviewVersions"]);
    if *strategy == "Webhook" {
        client_config(&client);
        review_versions(&reviews);
    } else {
        let detail = "should not be set when strategy is not set to Webhook";
        for part in [client, reviews] {
            part.forbidden_if(!part.is_null(), detail);
        }
    }
}

/// Validates `status.storedVersions`, the versions that objects may still be stored in: it must include the storage
/// version and only existing versions. If versions share a name, upstream uses the first
/// (`ValidateCustomResourceDefinitionStoredVersions`).
fn stored_versions(stored: &Field<'_>, versions: &Value) {
    if stored.is_empty() {
        return stored.invalid("must have at least one stored version");
    }
    let mut left: BTreeSet<&str> = stored.items().map(|name| name.text()).collect();
    for (_, version) in entries(versions) {
        let name = text(&version["name"]);
        let is_missing = !left.remove(name) && version["storage"] == true;
        stored.invalid_if(is_missing, format_args!("must have the storage version {name}"));
    }
    let declared: BTreeSet<&str> = entries(versions).map(|(_, version)| text(&version["name"])).collect();
    for name in stored.items() {
        let detail = "must remain in spec.versions while objects are stored in it or status.storedVersions has it";
        name.invalid_if(!declared.contains(name.text()), detail);
    }
}
