//! `ServiceCIDR` of `networking.k8s.io`: a range from which Services get cluster IPs.
//!
//! The embedded server allocates from a fixed range. Objects of this kind are stored and validated,
//! and do not extend it.
//!
//! A write of `status` leaves spec and metadata as they are.
//!
//! Upstream: `pkg/registry/networking/servicecidr/strategy.go` and `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    registry::kind::{Cell, Kind, Strategy, TableColumns, Validation},
    validation::{address, entries},
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

/// Validates the ranges of a new `ServiceCIDR`: one or two, the second of the other IP family.
///
/// A third range ends the validation; so does an empty list (`FieldValueRequired`).
fn validate_create(object: &Value, errors: &mut Errors) {
    let (ranges, path) = (&object["spec"]["cidrs"], "spec.cidrs");
    let families: Vec<Option<bool>> =
        entries(ranges).map(|(_, range)| address::range(text(range)).map(|(ip, _)| ip.is_ipv4())).collect();
    if families.is_empty() {
        return errors.required(path, "at least one CIDR required");
    }
    if families.len() > 2 {
        return errors.invalid(path, ranges, "may only hold up to 2 values");
    }
    for (index, range) in entries(ranges) {
        address::legacy_range(range, &format!("{path}[{index}]"), errors);
    }
    if families.len() == 2 && families[0].is_some() && families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(path, ranges, detail);
    }
}

/// Validates that the ranges are unchanged (`ValidateServiceCIDRUpdate`), because Services may have addresses of them.
///
/// Only a second range, of the other family, may be added; the whole list is then validated again.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    const DETAIL: &str = "field is immutable";
    let (was, is, path) = (&old["spec"]["cidrs"], &new["spec"]["cidrs"], "spec.cidrs");
    let n_kept = match (entries(was).count(), entries(is).count()) {
        (before, after) if before == after => before,
        (1, 2) => 1,
        _ => return errors.invalid(path, is, DETAIL),
    };
    for index in (0..n_kept).filter(|index| was[*index] != is[*index]) {
        errors.invalid(&format!("{path}[{index}]"), &is[index], DETAIL);
    }
    if entries(is).count() > n_kept {
        validate_create(new, errors);
    }
}
