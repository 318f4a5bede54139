//! Names that are reserved for configurations in files, and resources that no webhook sees.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    kinds,
};

/// The suffix of names of configurations in files (`StaticConfigSuffix`).
const SUFFIX: &str = ".static.k8s.io";

/// Validates the name of a new object (`ValidateStaticSuffix`).
pub(super) fn name(object: &Value, errors: &mut Errors) {
    let name = Field::new(&object["metadata"]["name"], "metadata.name", errors);
    name.invalid_if(name.text().ends_with(SUFFIX), detail());
}

/// Warns about a name that is reserved now, so that a client could no longer create the object
/// (`WarningsForStaticSuffix`).
pub(super) fn warn_of_name(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if old.is_some() && text(&object["metadata"]["name"]).ends_with(SUFFIX) {
        warnings.push(format!("metadata.name: {}", detail()));
    }
}

fn detail() -> String {
    format!("names that end with {SUFFIX:?} are reserved for configurations in files")
}

/// Warns about a configuration of webhooks: its name, and rules that name resources which webhooks never see
/// (`warningsForExcludedRules`). A rule with `*` is not reported, because its intent is not known.
pub(super) fn warn_of_webhooks(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    warn_of_name(old, object, warnings);
    for (webhook, value) in entries(&object["webhooks"]) {
        for (index, rule) in entries(&value["rules"]) {
            for resource in reserved_resources(&rule["apiGroups"], &rule["resources"]) {
                let path = format!("webhooks[{webhook}].rules[{index}]");
                warnings.push(format!("{path}: webhooks are not called for {resource}, so the rule has no effect"));
            }
        }
    }
}

/// Returns the resources of the rule that webhooks never see.
fn reserved_resources(groups: &Value, resources: &Value) -> Vec<String> {
    let has = |list: &Value, name: &str| entries(list).any(|(_, item)| item == name);
    if has(groups, "*") || has(resources, "*") {
        return Vec::new();
    }
    let exempt = kinds::ALL.iter().filter(|kind| kind.is_exempt_from_webhooks());
    let named = exempt.filter(|kind| has(groups, kind.group) && has(resources, kind.resource));
    named.map(|kind| kind.group_resource().to_string()).collect()
}
