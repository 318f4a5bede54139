//! `ResourceClaim` of `resource.k8s.io`: a request for devices, and their allocation.
//!
//! - The spec is immutable, by a tag of the API. Scheduler, drivers and kubelet write the status.
//! - A write of `status` leaves spec and metadata as they are; statuses of deallocated devices are dropped.
//!
//! Upstream: `pkg/registry/resource/resourceclaim/strategy.go` and `pkg/apis/resource/validation/validation.go`.

pub(crate) mod status;
pub(crate) mod validation;

use serde_json::Value;

use crate::{
    registry::kind::{Cell, Defaults, DeleteStrategy, Kind, ManagedFields, Strategy, TableColumns, Validation},
    table::fields::{is_deleting, list, value_at},
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaims",
    kind: "ResourceClaim",
    defaults: Defaults { set: super::defaults::claim, ..Defaults::DEFAULT },
    strategy: Strategy {
        kept_by_status: Kind::CLIENT_METADATA,
        prepare_update: |_, old, new| status::drop_deallocated_devices(old, new),
        ..Strategy::DEFAULT
    },
    validation: Validation {
        device_requests: Some("/spec/devices/requests"),
        validate_create: validation::validate_create,
        validate_status: status::validate_status,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields { filled_in: &["/spec/devices/requests"], ..ManagedFields::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[Cell::Name, Cell::Computed(|claim, _| state(claim).into()), Cell::Age]),
    ..Kind::DEFAULT
};

/// Returns the state. A claim that is allocated and reserved for a Pod is `allocated,reserved`.
fn state(object: &Value) -> String {
    let states = [
        ("deleted", is_deleting(object)),
        ("allocated", value_at(object, "/status/allocation").is_object()),
        ("reserved", !list(object, "/status/reservedFor").is_empty()),
    ];
    let states: Vec<_> = states.into_iter().filter(|(_, holds)| *holds).map(|(state, _)| state).collect();
    if states.is_empty() { "pending".to_owned() } else { states.join(",") }
}
