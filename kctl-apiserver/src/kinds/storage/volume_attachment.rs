//! `VolumeAttachment` of `storage.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules},
    registry::kind::{DeleteAnswer, Kind},
    table::{
        age::age,
        fields::{flag, name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattachments",
    kind: "VolumeAttachment",
    allows_unconditional_update: false,
    delete_answer: DeleteAnswer::Object,
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: |object| defaults::add(defaults::part(object, "status"), "attached", false),
    validate: rules::attached::attachment,
    validate_status: |_, new, errors| rules::attached::status(new, errors),
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/spec/attacher")),
        json!(text(object, "/spec/source/persistentVolumeName")),
        json!(text(object, "/spec/nodeName")),
        json!(flag(object, "/status/attached")),
        json!(age(object, now)),
    ]
}
