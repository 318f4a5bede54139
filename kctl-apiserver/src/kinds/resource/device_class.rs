//! `DeviceClass` of `resource.k8s.io`: selects and configures devices for claims.
//!
//! All CEL selectors must hold for a device of the class; the configuration is passed to the driver.
//!
//! Upstream: `pkg/registry/resource/deviceclass/strategy.go` and `pkg/apis/resource/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    kinds::resource::validation::{validate_opaque_config, validate_selectors},
    names::NameRule,
    registry::kind::{Cell, DeleteStrategy, Kind, Metadata, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "deviceclasses",
    kind: "DeviceClass",
    metadata: Metadata { names: NameRule::SubdomainOnceWhole, ..Metadata::COUNTED },
    validation: Validation { validate, ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[Cell::Name, Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates a class (`validateDeviceClassSpec`): the selectors, and parameters of drivers.
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    validate_selectors(&spec.at("selectors"));
    spec.at("config").items().for_each(|config| validate_opaque_config(&config));
}
