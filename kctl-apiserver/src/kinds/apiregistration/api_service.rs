//! `APIService` of `apiregistration.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules},
    registry::kind::Kind,
    table::{
        age::age,
        fields::{at, condition, name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    kind: "APIService",
    finalizers_without_domain: true,
    allows_unconditional_update: false,
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: defaults::api::api_service,
    validate: rules::served::version,
    validate_status: |_, new, errors| rules::served::status(new, errors),
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = at(object, "/spec/service");
    let service = if service.is_object() {
        format!("{}/{}", text(service, "/namespace"), text(service, "/name"))
    } else {
        "Local".to_owned()
    };
    let available = condition(object, "Available").map_or_else(
        || "Unknown".to_owned(),
        |available| match text(available, "/status") {
            "True" => "True".to_owned(),
            status => format!("{status} ({})", text(available, "/reason")),
        },
    );
    vec![json!(name(object)), json!(service), json!(available), json!(age(object, now))]
}
