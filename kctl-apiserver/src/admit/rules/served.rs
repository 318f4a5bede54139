//! Rules of what is served where: groups of the API by services, and ranges of addresses for services.

use serde_json::Value;

use super::{Errors, address, entries, text};
use crate::names::NameRule;

const GROUP_PRIORITY_MAX: i64 = 20_000;
const VERSION_PRIORITY_MAX: i64 = 1_000;

/// A version of a group, served by this server or by a service.
pub(crate) fn version(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (group, version) = (text(&spec["group"]), text(&spec["version"]));
    let wanted = format!("{version}.{group}");
    let name = text(&object["metadata"]["name"]);
    if !name.is_empty() && name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.invalid("metadata.name", &name.into(), &detail);
    }
    if group.is_empty() && version != "v1" {
        errors.required("spec.group", "only v1 may have an empty group and it better be legacy kube");
    }
    if !group.is_empty() {
        errors.name("spec.group", &spec["group"], NameRule::Subdomain);
    }
    errors.name("spec.version", &version.into(), NameRule::Label1035);
    for (field, most) in [("groupPriorityMinimum", GROUP_PRIORITY_MAX), ("versionPriority", VERSION_PRIORITY_MAX)] {
        if !spec[field].as_i64().is_some_and(|priority| (1..=most).contains(&priority)) {
            let detail = format!("must be positive and less than {most}");
            errors.invalid(&format!("spec.{field}"), &spec[field], &detail);
        }
    }
    service(spec, errors);
}

/// Who serves a version; nobody but this server where there is none.
fn service(spec: &Value, errors: &mut Errors) {
    let (service, trusted) = (&spec["service"], text(&spec["caBundle"]));
    let skips = (&spec["insecureSkipTLSVerify"], "spec.insecureSkipTLSVerify");
    if service.is_null() {
        if !trusted.is_empty() {
            // Four letters are three bytes.
            let len = trusted.len() / 4 * 3 - trusted.bytes().rev().take_while(|byte| *byte == b'=').count();
            let shown = format!("{len} bytes").into();
            errors.invalid("spec.caBundle", &shown, "local APIServices may not have a caBundle");
        }
        if *skips.0 == true {
            errors.invalid(skips.1, skips.0, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    for field in ["namespace", "name"].iter().filter(|field| text(&service[**field]).is_empty()) {
        errors.required(&format!("spec.service.{field}"), "");
    }
    let port = &service["port"];
    if !port.as_i64().is_some_and(|port| (1..=65_535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid("spec.service.port", port, detail);
    }
    if *skips.0 == true && !trusted.is_empty() {
        errors.invalid(skips.1, skips.0, "may not be true if caBundle is present");
    }
}

/// Addresses out of which services get theirs.
pub(crate) fn ranges(object: &Value, errors: &mut Errors) {
    let (ranges, at) = (&object["spec"]["cidrs"], "spec.cidrs");
    let families: Vec<Option<bool>> =
        entries(ranges).map(|(_, range)| address::range(text(range)).map(|(ip, _)| ip.is_ipv4())).collect();
    if families.is_empty() {
        return errors.required(at, "at least one CIDR required");
    }
    if families.len() > 2 {
        return errors.invalid(at, ranges, "may only hold up to 2 values");
    }
    for (index, range) in entries(ranges) {
        address::legacy_range(range, &format!("{at}[{index}]"), errors);
    }
    if families.len() == 2 && families[0].is_some() && families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(at, ranges, detail);
    }
}

/// Ranges stay; there may only come one of the other family (`ValidateServiceCIDRUpdate`).
pub(crate) fn ranges_stay(old: &Value, new: &Value, errors: &mut Errors) {
    const DETAIL: &str = "field is immutable";
    let (was, is, at) = (&old["spec"]["cidrs"], &new["spec"]["cidrs"], "spec.cidrs");
    let n_kept = match (entries(was).count(), entries(is).count()) {
        (before, after) if before == after => before,
        (1, 2) => 1,
        _ => return errors.invalid(at, is, DETAIL),
    };
    for index in (0..n_kept).filter(|index| was[*index] != is[*index]) {
        errors.invalid(&format!("{at}[{index}]"), &is[index], DETAIL);
    }
    if entries(is).count() > n_kept {
        ranges(new, errors);
    }
}

/// An address, and what has it.
pub(crate) fn owned_address(object: &Value, errors: &mut Errors) {
    let (parent, at) = (&object["spec"]["parentRef"], "spec.parentRef");
    if !text(&parent["group"]).is_empty() {
        errors.name(&format!("{at}.group"), &parent["group"], NameRule::Subdomain);
    }
    for field in ["resource", "name"].into_iter().filter(|field| !text(&parent[*field]).is_empty()) {
        errors.name(&format!("{at}.{field}"), &parent[field], NameRule::PathSegment);
    }
    if !text(&parent["namespace"]).is_empty() {
        errors.name(&format!("{at}.namespace"), &parent["namespace"], NameRule::PathSegment);
    }
}

/// Whether a group is served by somebody else.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    for (index, condition) in entries(&object["status"]["conditions"]) {
        let at = format!("status.conditions[{index}].status");
        errors.always_one_of(&at, &text(&condition["status"]).into(), &["True", "False", "Unknown"]);
    }
}
