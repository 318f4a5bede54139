//! `Secret` of the core group.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
        warnings,
    },
    field_errors::Errors,
    registry::kind::Kind,
    table::{
        age::age,
        fields::{entries, name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "secrets",
    kind: "Secret",
    selectable_fields: &["type"],
    default: defaults::api::secret,
    validate: rules::config::secret,
    validate_update,
    warn,
    printer: Some(cells),
    quota: super::counted_by_name!("secrets"),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    keeps("type", &old["type"], &new["type"], errors);
    rules::change::config(old, new, errors);
}

fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if object["type"] == "kubernetes.io/tls" {
        warnings.extend(warnings::pair_of_keys(&object["data"]));
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/type")), json!(entries(object, "/data")), json!(age(object, now))]
}
