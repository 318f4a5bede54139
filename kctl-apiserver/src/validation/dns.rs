//! Validation of the DNS configuration, the host name and the host aliases of Pods.
//!
//! The limits are glibc's, as raised by Kubernetes. kubelet merges `dnsConfig` with the settings of the DNS policy, and
//! truncates the result to the same limits. This validation only covers the part that the Pod itself has.

use crate::{
    field::Field,
    names::{NameRule, check_search_domain},
    validation::address,
};

/// Maximum number of nameservers (`MaxDNSNameservers`), as `resolv.conf` takes no more.
const SERVERS_MAX: usize = 3;
/// Maximum number of search domains (`MaxDNSSearchPaths`).
const DOMAINS_MAX: usize = 32;
/// Maximum length of all search domains with one space between two, in bytes (`MaxDNSSearchListChars`).
const DOMAINS_LEN_MAX: usize = 2048;
/// Maximum length of a host name in Linux, in bytes (`HOST_NAME_MAX` of `limits.h`). A longer name would make the
/// sandbox of the Pod fail.
const HOST_NAME_LEN_MAX: usize = 64;

/// Validates `dnsConfig` (`validatePodDNSConfig`). Without the nameserver that the policy `None` needs, nothing else is
/// validated. A search domain may end with a dot, and may be a single dot, which means the root. Underscores are
/// allowed, unlike in object names. An option without a name is reported at the option.
pub(crate) fn validate_config(spec: &Field<'_>) {
    let config = spec.at("dnsConfig");
    let (servers, domains) = (config.at("nameservers"), config.at("searches"));
    if spec["dnsPolicy"] == "None" {
        if config.is_null() {
            return config.required();
        }
        if !servers.require_value() {
            return;
        }
    }
    let has_too_many = servers.items().count() > SERVERS_MAX;
    servers.invalid_if(has_too_many, format_args!("must not have more than {SERVERS_MAX} nameservers"));
    servers.items().for_each(|server| server.check(address::validate_legacy_ip));
    let all: Vec<&str> = domains.items().map(|domain| domain.text()).collect();
    if all.len() > DOMAINS_MAX || all.join(" ").len() > DOMAINS_LEN_MAX {
        domains.invalid(format_args!(
            "must not have more than {DOMAINS_MAX} search paths or {DOMAINS_LEN_MAX} characters, including spaces"
        ));
    }
    for domain in domains.items().filter(|domain| domain.text() != ".") {
        if let Some(message) = check_search_domain(domain.text().strip_suffix('.').unwrap_or(domain.text())) {
            domain.invalid(message);
        }
    }
    config.at("options").items().for_each(|option| option.required_if(option.at("name").is_empty()));
}

/// Validates `hostnameOverride`. An absent field is valid, an empty string is not: the field is a pointer in Go.
pub(crate) fn validate_host_name(spec: &Field<'_>) {
    let name = spec.at("hostnameOverride");
    if name.is_null() {
        return;
    }
    let is_forbidden = spec["setHostnameAsFQDN"] == true || spec["hostNetwork"] == true;
    name.forbidden_if(is_forbidden, "may not be specified when setHostnameAsFQDN or hostNetwork is true");
    name.max_bytes(HOST_NAME_LEN_MAX);
    name.name(NameRule::Subdomain);
}

/// Validates `hostAliases`: an IP address and DNS names each (`ValidateHostAliases`). `hostnames` may be empty.
pub(crate) fn validate_aliases(list: &Field<'_>) {
    for alias in list.items() {
        alias.at("ip").check(address::validate_legacy_ip);
        alias.at("hostnames").items().for_each(|name| name.name(NameRule::Subdomain));
    }
}
