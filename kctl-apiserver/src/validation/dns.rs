//! Validation of the DNS configuration, the host name and the host aliases of Pods.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::{NameRule, check_search_domain},
    validation::{address, entries},
};

/// Limits of `resolv.conf`.
const SERVERS_MAX: usize = 3;
const DOMAINS_MAX: usize = 32;
const DOMAINS_LEN_MAX: usize = 2048;
/// Maximum length of a host name in Linux, in bytes.
const HOST_NAME_LEN_MAX: usize = 64;

/// Validates `dnsConfig` (`validatePodDNSConfig`).
///
/// The policy `None` needs a nameserver (`FieldValueRequired`). Too many nameservers or search domains are
/// `FieldValueInvalid`.
pub(crate) fn config(spec: &Value, at: &str, errors: &mut Errors) {
    let config = &spec["dnsConfig"];
    let (servers, servers_at) = (&config["nameservers"], format!("{at}.nameservers"));
    let n_servers = entries(servers).count();
    if spec["dnsPolicy"] == "None" {
        if config.is_null() {
            return errors.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if n_servers == 0 {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&servers_at, detail);
        }
    }
    if n_servers > SERVERS_MAX {
        errors.invalid(&servers_at, servers, &format!("must not have more than {SERVERS_MAX} nameservers"));
    }
    for (index, server) in entries(servers) {
        address::legacy(server, &format!("{servers_at}[{index}]"), errors);
    }
    let (domains, domains_at) = (&config["searches"], format!("{at}.searches"));
    let all: Vec<&str> = entries(domains).map(|(_, domain)| text(domain)).collect();
    if all.len() > DOMAINS_MAX {
        errors.invalid(&domains_at, domains, &format!("must not have more than {DOMAINS_MAX} search paths"));
    }
    if all.join(" ").len() > DOMAINS_LEN_MAX {
        let detail =
            format!("must not have more than {DOMAINS_LEN_MAX} characters (including spaces) in the search list");
        errors.invalid(&domains_at, domains, &detail);
    }
    for (index, domain) in all.iter().enumerate().filter(|(_, domain)| **domain != ".") {
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        if let Some(message) = check_search_domain(domain) {
            errors.invalid(&format!("{domains_at}[{index}]"), &domain.into(), message);
        }
    }
    for (index, option) in entries(&config["options"]) {
        if text(&option["name"]).is_empty() {
            errors.required(&format!("{at}.options[{index}]"), "must not be empty");
        }
    }
}

/// Validates `hostnameOverride`: a DNS subdomain of at most 64 bytes, forbidden with `hostNetwork` or
/// `setHostnameAsFQDN`.
pub(crate) fn host_name(spec: &Value, at: &str, errors: &mut Errors) {
    let (name, at) = (&spec["hostnameOverride"], format!("{at}.hostnameOverride"));
    if name.is_null() {
        return;
    }
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec[field] == true {
            errors.forbidden(&at, &format!("may not be specified when {field} is true"));
        }
    }
    if text(name).len() > HOST_NAME_LEN_MAX {
        errors.too_long(&at, HOST_NAME_LEN_MAX);
    }
    errors.name(&at, name, NameRule::Subdomain);
}

/// Validates `hostAliases`: an IP address and DNS names each (`ValidateHostAliases`).
pub(crate) fn aliases(list: &Value, at: &str, errors: &mut Errors) {
    for (index, alias) in entries(list) {
        address::legacy(&text(&alias["ip"]).into(), &format!("{at}[{index}].ip"), errors);
        for (nth, name) in entries(&alias["hostnames"]) {
            errors.name(&format!("{at}[{index}].hostnames[{nth}]"), name, NameRule::Subdomain);
        }
    }
}
