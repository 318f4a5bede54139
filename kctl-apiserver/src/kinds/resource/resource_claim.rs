//! `ResourceClaim` of `resource.k8s.io`: a request for devices, and their allocation.
//!
//! - The spec is immutable, by a rule that the schema declares. The status is written by scheduler,
//!   drivers and kubelet.
//! - A write of `status` leaves spec and metadata as they are; statuses of deallocated devices are
//!   dropped.
//! - `kubectl get` shows the state: `pending`, `allocated`, `reserved` and `deleted`, joined by
//!   commas.
//!
//! Upstream: `pkg/registry/resource/resourceclaim/strategy.go` and `pkg/apis/resource/validation/validation.go`.

pub(crate) mod status;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    registry::kind::{DeleteAnswer, Kind},
    table::{
        age::age,
        fields::{is_deleting, list, name, value_at},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaims",
    kind: "ResourceClaim",
    delete_answer: DeleteAnswer::Object,
    prepare_update: |_, old, new| status::forget_returned(old, new),
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: super::defaults::claim,
    filled_in: &["/spec/devices/requests"],
    validate_create: Some(validation::validate_create),
    validate_status: status::status,
    printer: Some(cells),
    ..Kind::DEFAULT
};

/// Returns name, state and age (`printResourceClaim`).
///
/// A claim that is allocated and reserved for a Pod is `allocated,reserved`.
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let states = [
        ("deleted", is_deleting(object)),
        ("allocated", value_at(object, "/status/allocation").is_object()),
        ("reserved", !list(object, "/status/reservedFor").is_empty()),
    ];
    let states: Vec<_> = states.into_iter().filter(|(_, holds)| *holds).map(|(state, _)| state).collect();
    let state = if states.is_empty() { "pending".to_owned() } else { states.join(",") };
    vec![json!(name(object)), json!(state), json!(age(object, now))]
}
