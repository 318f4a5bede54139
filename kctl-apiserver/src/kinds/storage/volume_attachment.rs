//! `VolumeAttachment` of `storage.k8s.io`.

use crate::{
    admit::{defaults, rules},
    registry::kind::{DeleteAnswer, Kind},
    table,
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
    printer: Some(table::storage::volume_attachment),
    ..Kind::DEFAULT
};
