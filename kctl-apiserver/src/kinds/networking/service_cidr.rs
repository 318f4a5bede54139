//! `ServiceCIDR` of `networking.k8s.io`: a range from which Services get cluster IPs.
//!
//! The embedded server allocates from a fixed range. Objects of this kind are stored and validated, and do not extend
//! it.
//!
//! Upstream: `pkg/registry/networking/servicecidr/strategy.go` and `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    registry::kind::{Cell, Kind, Strategy, TableColumns, Validation},
    validation::address::{self, Cidr},
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "servicecidrs",
    kind: "ServiceCIDR",
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::DEFAULT },
    validation: Validation { validate_create, validate_update, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Joined("/spec/cidrs", ""), Cell::Age]),
    ..Kind::DEFAULT
};

/// Validates the ranges of a new `ServiceCIDR`: one or two, the second of the other IP family. A third range ends the
/// validation.
fn validate_create(object: &Value, errors: &mut Errors) {
    let ranges = Field::new(&object["spec"]["cidrs"], "spec.cidrs", errors);
    let families: Vec<_> =
        ranges.items().map(|range| Cidr::parse(range.text()).map(|range| range.address.is_ipv4())).collect();
    if families.is_empty() {
        return ranges.required();
    }
    let is_repeated = families.len() == 2 && families[0].is_some() && families[0] == families[1];
    ranges.invalid_if(families.len() > 2 || is_repeated, "must have at most one range of each IP family");
    if families.len() <= 2 {
        ranges.items().for_each(|range| range.check(address::legacy_range));
    }
}

/// Validates that the ranges are unchanged (`ValidateServiceCIDRUpdate`), because Services may have addresses of them.
///
/// Only a second range, of the other family, may be added; the whole list is then validated again.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let was = &old["spec"]["cidrs"];
    let ranges = Field::new(&new["spec"]["cidrs"], "spec.cidrs", errors);
    let n_kept = match (was.as_array().map_or(0, Vec::len), ranges.items().count()) {
        (before, after) if before == after => before,
        (1, 2) => 1,
        _ => return ranges.immutable(was),
    };
    ranges.items().enumerate().take(n_kept).for_each(|(index, range)| range.immutable(&was[index]));
    if ranges.items().count() > n_kept {
        validate_create(new, errors);
    }
}
