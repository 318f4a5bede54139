//! Validation of the DNS configuration, the host name and the host aliases of Pods.
//!
//! The limits are those of glibc's resolver as Kubernetes raised them. kubelet merges `dnsConfig` with the settings of
//! the DNS policy, and truncates the result to the same limits. This validation only covers the part that the Pod
//! itself has.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::{NameRule, check_search_domain},
    validation::{address, entries},
};

/// Maximum number of nameservers (`MaxDNSNameservers`), as `resolv.conf` takes no more.
const SERVERS_MAX: usize = 3;
/// Maximum number of search domains (`MaxDNSSearchPaths`).
const DOMAINS_MAX: usize = 32;
/// Maximum length of all search domains with one space between two, in bytes
/// (`MaxDNSSearchListChars`).
const DOMAINS_LEN_MAX: usize = 2048;
/// Maximum length of a host name in Linux, in bytes.
///
/// `HOST_NAME_MAX` of `limits.h`; a longer name would make the sandbox of the Pod fail.
const HOST_NAME_LEN_MAX: usize = 64;

/// Validates `dnsConfig` (`validatePodDNSConfig`).
///
/// The policy `None` needs a nameserver (`FieldValueRequired`). Too many nameservers or search domains are
/// `FieldValueInvalid`.
///
/// Further rules, each `FieldValueInvalid` unless noted:
///
/// - Nameservers are IP addresses that all parsers read alike.
/// - A search domain may end with a dot, and may be a single dot, which means the root. Underscores
///   are allowed, unlike in object names.
/// - Each option needs a name (`FieldValueRequired`, at the option rather than at its `name`).
pub(crate) fn config(spec: &Value, path: &str, errors: &mut Errors) {
    let config = &spec["dnsConfig"];
    let (servers, servers_path) = (&config["nameservers"], format!("{path}.nameservers"));
    let n_servers = entries(servers).count();
    if spec["dnsPolicy"] == "None" {
        if config.is_null() {
            return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if n_servers == 0 {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&servers_path, detail);
        }
    }
    if n_servers > SERVERS_MAX {
        errors.invalid(&servers_path, servers, &format!("must not have more than {SERVERS_MAX} nameservers"));
    }
    for (index, server) in entries(servers) {
        address::legacy(server, &format!("{servers_path}[{index}]"), errors);
    }
    let (domains, domains_path) = (&config["searches"], format!("{path}.searches"));
    let all: Vec<&str> = entries(domains).map(|(_, domain)| text(domain)).collect();
    if all.len() > DOMAINS_MAX {
        errors.invalid(&domains_path, domains, &format!("must not have more than {DOMAINS_MAX} search paths"));
    }
    if all.join(" ").len() > DOMAINS_LEN_MAX {
        let detail =
            format!("must not have more than {DOMAINS_LEN_MAX} characters (including spaces) in the search list");
        errors.invalid(&domains_path, domains, &detail);
    }
    for (index, domain) in all.iter().enumerate().filter(|(_, domain)| **domain != ".") {
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        if let Some(message) = check_search_domain(domain) {
            errors.invalid(&format!("{domains_path}[{index}]"), &domain.into(), message);
        }
    }
    for (index, option) in entries(&config["options"]) {
        if text(&option["name"]).is_empty() {
            errors.required(&format!("{path}.options[{index}]"), "must not be empty");
        }
    }
}

/// Validates `hostnameOverride`: a DNS subdomain of at most 64 bytes, forbidden with `hostNetwork` or
/// `setHostnameAsFQDN`.
///
/// An absent field is valid, an empty string is not: the field is a pointer in Go. The length limit
/// is `FieldValueTooLong`, the form `FieldValueInvalid`; the conflicts are `FieldValueForbidden`.
pub(crate) fn host_name(spec: &Value, path: &str, errors: &mut Errors) {
    let (name, path) = (&spec["hostnameOverride"], format!("{path}.hostnameOverride"));
    if name.is_null() {
        return;
    }
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec[field] == true {
            errors.forbidden(&path, &format!("may not be specified when {field} is true"));
        }
    }
    if text(name).len() > HOST_NAME_LEN_MAX {
        errors.too_long(&path, HOST_NAME_LEN_MAX);
    }
    errors.name(&path, name, NameRule::Subdomain);
}

/// Validates `hostAliases`: an IP address and DNS names each (`ValidateHostAliases`).
///
/// A missing `ip` is reported as the empty string, which is not an address. `hostnames` may be
/// empty.
pub(crate) fn aliases(list: &Value, path: &str, errors: &mut Errors) {
    for (index, alias) in entries(list) {
        address::legacy(&text(&alias["ip"]).into(), &format!("{path}[{index}].ip"), errors);
        for (nth, name) in entries(&alias["hostnames"]) {
            errors.name(&format!("{path}[{index}].hostnames[{nth}]"), name, NameRule::Subdomain);
        }
    }
}
