//! `ResourceClaimTemplate` of `resource.k8s.io`: the template of one `ResourceClaim` per Pod.
//!
//! The spec is immutable, because claims that were created from it would not change.
//!
//! Upstream: `pkg/registry/resource/resourceclaimtemplate/strategy.go` and
//! `pkg/apis/resource/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    kinds::resource::resource_claim::validation::validate_devices,
    registry::kind::{Cell, Defaults, DeleteStrategy, Kind, ManagedFields, TableColumns, Validation},
    validation::volume::template_metadata,
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaimtemplates",
    kind: "ResourceClaimTemplate",
    defaults: Defaults { set: super::defaults::claim_template, ..Defaults::DEFAULT },
    validation: Validation {
        device_requests: Some("/spec/spec/devices/requests"),
        validate_create,
        validate_update: |old, new, errors| Field::new(&new["spec"], "spec", errors).immutable(&old["spec"]),
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields { filled_in: &["/spec/spec/devices/requests"], ..ManagedFields::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[Cell::Name, Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates metadata and devices of the claims to make. The path of errors is `spec.spec`, the spec of a claim.
fn validate_create(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.at("metadata").check(template_metadata);
    validate_devices(&spec.at("spec").at("devices"));
}
