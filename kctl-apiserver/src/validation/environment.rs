//! Validation of the environment variables of containers (`ValidateEnv`, `ValidateEnvFrom`).
//!
//! Rules look at one container at a time, apart from `validate_files`, which needs the volumes of the Pod.
//! Variables may repeat a name: the later one is used, and `warnings` reports it.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::text,
    json_path::by_name,
    names::NameRule,
    validation::{all_containers, config_key, downward, paths},
};

/// The fields of `valueFrom`. Exactly one is set.
const SOURCES: &[&str] = &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Validates `env`. Names do not have to be C identifiers: since the feature gate
/// `RelaxedEnvironmentVariableValidation` any printable ASCII character but `=` is valid.
pub(crate) fn validate_variables(list: &Field<'_>) {
    for variable in list.items() {
        let (name, from) = (variable.at("name"), variable.at("valueFrom"));
        name.required_if(name.is_empty());
        require_printable(&name);
        if from.is_object() {
            validate_source(&from, &variable["value"]);
        }
    }
}

/// Validates that a variable name is printable ASCII without `=`. Prefixes of `envFrom` and keys of environment files
/// follow the same rule. An empty one is accepted.
fn require_printable(name: &Field<'_>) {
    let is_printable = name.text().bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    name.invalid_if(!is_printable, "must consist only of printable ASCII characters other than '='");
}

/// Validates `valueFrom`: each source that is set, then that exactly one is, without a `value`. An empty `value` counts
/// as unset.
fn validate_source(from: &Field<'_>, value: &Value) {
    let present: Vec<_> = SOURCES.iter().filter(|kind| from[**kind].is_object()).collect();
    for kind in &present {
        let reference = from.at(kind);
        match **kind {
            "fieldRef" => downward::validate_field(&reference, downward::ENV_FIELD_PATHS),
            "resourceFieldRef" => downward::validate_amount(&reference, downward::Target::Variable),
            "fileKeyRef" => validate_file_key(&reference),
            _ => validate_object_key(&reference),
        }
    }
    let is_only = present.len() == 1 && text(value).is_empty();
    let detail = format_args!("must have exactly one of {}, and no `value`", SOURCES.join(", "));
    from.invalid_if(!is_only, detail);
}

/// Validates a reference to a key of a `ConfigMap` or Secret. The name is optional in the API for historical reasons;
/// the empty string is not a DNS subdomain. kubelet checks that object and key exist.
fn validate_object_key(reference: &Field<'_>) {
    reference.at("name").name(NameRule::Subdomain);
    let key = reference.at("key");
    if key.require_value() {
        config_key::validate_config_key(&key);
    }
}

/// Validates a `fileKeyRef`: a file that a container writes into an `emptyDir` volume (feature gate `EnvFiles`).
fn validate_file_key(reference: &Field<'_>) {
    reference.require_children(&["key", "path"]);
    require_printable(&reference.at("key"));
    reference.at("volumeName").required_name(NameRule::Label);
    reference.at("path").check(paths::without_backsteps);
}

/// Validates that each `fileKeyRef` names a volume of the Pod that is an `emptyDir`. It runs once per Pod after all
/// containers were validated, since a container rule does not see the volumes.
pub(crate) fn validate_files(spec: &Field<'_>) {
    let volumes = by_name(&spec["volumes"]);
    for variable in all_containers(spec).flat_map(|container| container.at("env").items()) {
        let reference = variable.at("valueFrom").at("fileKeyRef");
        if !reference.is_object() {
            continue;
        }
        let name = reference.at("volumeName");
        match volumes.get(name.text()) {
            None => name.not_found(),
            Some(volume) => name.invalid_if(volume["emptyDir"].is_null(), "must be a volume of type emptyDir"),
        }
    }
}

/// Validates `envFrom`: each item has exactly one of `configMapRef` and `secretRef`. Errors about the number of
/// references are at the list, without the index, as upstream reports them.
pub(crate) fn validate_sources(list: &Field<'_>) {
    let nothing = Value::from("");
    for from in list.items() {
        require_printable(&from.at("prefix"));
        let references = ["configMapRef", "secretRef"].map(|kind| from.at(kind));
        let present = || references.iter().filter(|reference| reference.is_object());
        present().for_each(|reference| reference.at("name").required_name(NameRule::Subdomain));
        // The value is empty as upstream: the whole list in each of its errors would take memory with its square.
        list.with(&nothing)
            .invalid_if(present().count() != 1, "each item must have exactly one of `configMapRef` and `secretRef`");
    }
}
