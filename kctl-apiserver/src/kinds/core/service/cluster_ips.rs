//! Cluster IPs of Services: checks families and requested addresses.
//!
//! There is one address family, IPv4, as in a cluster with default flags. `allocate` of the kind takes a free address,
//! after this check.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::validation;
use crate::{
    field_errors::{Errors, FieldError},
    registry::kind::Others,
};

/// The range of cluster IPs in messages. IPv4 only, as `--service-cluster-ip-range` with one range.
const RANGE: &str = "10.96.0.0/16";
/// The first bytes of an address in the range. A prefix of 16 bits.
const RANGE_OCTETS: [u8; 2] = [10, 96];

/// Checks the addresses of a Service before any is allocated (`initIPFamilyFields`). Checks stop at the first group
/// that has errors, because upstream's allocator does. `ExternalName` has no address; a headless Service without a
/// selector has no further rules.
///
/// # Errors
/// `FieldValueInvalid` for addresses and families that the cluster does not have, and for taken addresses.
pub(super) fn check(old: Option<&Value>, sent: &Value, others: Others<'_>) -> Result<(), Errors> {
    let mut service = sent.clone();
    let spec = &mut service["spec"];
    if spec["type"] == "ExternalName" {
        return Ok(());
    }
    let has_none = spec["clusterIPs"].as_array().is_none_or(Vec::is_empty);
    if old.is_none() && has_none && spec["clusterIP"].as_str().is_some_and(|ip| !ip.is_empty()) {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    let spec = &service["spec"];
    let fail_if_any = |errors: Errors| if errors.is_empty() { Ok(()) } else { Err(errors) };
    fail_if_any(validation::addresses_of_service(&service))?;
    let list = |name: &str| spec[name].as_array().cloned().unwrap_or_default();
    let (addresses, families) = (list("clusterIPs"), list("ipFamilies"));
    let is_six = |address: &Value| address.as_str().is_some_and(|address| address.contains(':'));
    let unknown = addresses.iter().enumerate().skip(families.len()).filter(|(_, address)| is_six(address));
    let no_ipv6 = |field: &str, index: usize| {
        FieldError::invalid(&format!("spec.{field}[{index}]"), &spec[field][index], "IPv6 is not configured")
    };
    fail_if_any(unknown.map(|(index, _)| no_ipv6("clusterIPs", index)).collect())?;
    let is_headless = addresses == [json!("None")];
    if is_headless && let Some(old) = old {
        fail_if_any(family_release_errors(&old["spec"], spec))?;
    }
    if is_headless && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(());
    }
    let mut errors = policy_errors(spec, families.len().max(addresses.len()));
    if spec["ipFamilyPolicy"] == "SingleStack" && !errors.is_empty() {
        return Err(errors);
    }
    let unknown = families.iter().enumerate().filter(|(_, family)| **family == "IPv6");
    errors.extend(unknown.map(|(index, _)| no_ipv6("ipFamilies", index)));
    fail_if_any(errors)?;
    // Existing addresses are immutable: validation rejects a change.
    if is_headless || old.is_some_and(|old| old["spec"]["clusterIPs"].is_array()) {
        return Ok(());
    }
    fail_if_any(requested_address_errors(spec, others))
}

/// Validates `ipFamilyPolicy` for a cluster with a single address family. `PreferDualStack` is valid with one family.
fn policy_errors(spec: &Value, n_families: usize) -> Errors {
    let policy = &spec["ipFamilyPolicy"];
    let mut errors = Errors::default();
    if policy == "RequireDualStack" || (policy == "SingleStack" && n_families > 1) {
        errors.invalid("spec.ipFamilyPolicy", policy, "must fit the IP families of the Service and the cluster");
    }
    errors
}

/// Checks that the second family is removed only with the policy `SingleStack`. Only headless Services are checked,
/// because their families can change.
fn family_release_errors(old: &Value, new: &Value) -> Errors {
    let n_families = |spec: &Value| spec["ipFamilies"].as_array().map_or(0, Vec::len);
    let policy = &new["ipFamilyPolicy"];
    if n_families(old) < 2 || n_families(new) != 1 || policy == "SingleStack" {
        return Errors::default();
    }
    let why = "must be SingleStack to release the secondary IP family";
    Errors::collect(|errors| errors.invalid("spec.ipFamilyPolicy", policy, why))
}

/// Checks that a requested address is in the range and not in use. Both cases have the same error. The taken addresses
/// are the addresses of the other Services, without a separate allocation.
fn requested_address_errors(spec: &Value, mut others: Others<'_>) -> Errors {
    let Some(address) = spec["clusterIPs"][0].as_str() else { return Errors::default() };
    // The first address is the network address, the last one is the broadcast address.
    let is_in_range = matches!(address.parse(), Ok(IpAddr::V4(four))
        if four.octets()[..2] == RANGE_OCTETS && ![[0, 0], [255, 255]].iter().any(|ends| four.octets()[2..] == *ends));
    if is_in_range && !others.any(|other| other["spec"]["clusterIPs"][0] == address) {
        return Errors::default();
    }
    let why = format!("must be a free address in {RANGE}");
    Errors::collect(|errors| errors.invalid("spec.clusterIPs", &spec["clusterIPs"], &why))
}
