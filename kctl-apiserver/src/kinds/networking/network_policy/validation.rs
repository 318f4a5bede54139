//! Validation of `NetworkPolicy` objects.
//!
//! Upstream: `ValidateNetworkPolicySpec` in `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    validation::{
        address::{self, Cidr},
        ports, selector,
    },
};

/// Directions of traffic, each with the field that lists the peers of a rule.
const DIRECTIONS: &[(&str, &str)] = &[("ingress", "from"), ("egress", "to")];

/// Validates a policy. Three or more types are reported once at the list; errors about single types are dropped.
pub(crate) fn validate_policy(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.at("podSelector").check(selector::validate_selector);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.at(direction).items() {
            rule.at("ports").items().for_each(|item| validate_port(&item));
            rule.at(peers).items().for_each(|item| validate_peer(&item));
        }
    }
    let types = spec.at("policyTypes");
    if types.items().count() > DIRECTIONS.len() {
        types.discard_errors_below();
        types.invalid("may not specify more than two policyTypes");
    }
}

/// Validates a port by number or name, or a range from `port` to `endPort`.
fn validate_port(port: &Field<'_>) {
    let (first, last) = (port.at("port"), port.at("endPort"));
    first.when_present(ports::number_or_name);
    let is_range = first.is_number() && last.as_i64() >= first.as_i64();
    last.invalid_if(!last.is_null() && !is_range, "requires a numeric `port`, and must not be less than it");
    last.in_range(1, 65_535);
}

/// Validates a peer: either a block of addresses, or selectors of Pods and namespaces.
fn validate_peer(peer: &Field<'_>) {
    let selectors = ["podSelector", "namespaceSelector"];
    peer.check_children(&selectors, selector::validate_selector);
    let selects = selectors.iter().any(|name| peer[*name].is_object());
    let range = peer.at("ipBlock");
    range.when_present(validate_block);
    peer.forbidden_if(range.is_object() && selects, "may not specify both ipBlock and another peer");
    peer.required_with_if(!range.is_object() && !selects, "must specify a peer");
}

/// Validates a block of addresses. A tag of the API requires `cidr`.
fn validate_block(block: &Field<'_>) {
    let range = block.at("cidr");
    if range.is_empty() {
        return;
    }
    range.check(address::legacy_range);
    let Some(whole) = Cidr::parse(range.text()) else { return };
    for part in block.at("except").items() {
        if part.passes(address::legacy_range) {
            let is_part = Cidr::parse(part.text()).is_none_or(|part| part.is_strict_subset_of(whole));
            part.invalid_if(!is_part, "must be a strict subset of `cidr`");
        }
    }
}
