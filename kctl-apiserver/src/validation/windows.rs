//! Validation of the options that containers on Windows have: user names, credentials and host
//! processes.
//!
//! Upstream: `validateWindowsSecurityContextOptions` and `validateWindowsHostProcessPod` in
//! `pkg/apis/core/validation/validation.go`.

use std::sync::LazyLock;

use regex::Regex;

use crate::{field::Field, names::NameRule, validation::all_containers};

/// Maximum length of `gmsaCredentialSpec`, in bytes: the content of a group Managed Service Account, which kubelet
/// passes to the runtime.
const CREDENTIALS_LEN_MAX: usize = 64 * 1024;
/// Maximum length of the domain in `DOMAIN\USER`, in bytes.
const DOMAIN_LEN_MAX: usize = 255;
/// Maximum length of the user in `DOMAIN\USER`, in bytes.
const USER_LEN_MAX: usize = 104;
/// Characters that a Windows user name cannot have.
const NOT_IN_USERS: &str = "\"/\\:;|=,+*?<>@[]";

/// A `NetBIOS` domain (up to 15 characters, not starting with a dot) or a DNS domain.
static DOMAIN: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    let netbios = r#"[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}"#;
    Regex::new(&format!(r"^(?:{netbios}|{label}(?:\.{label})*)$")).expect("the pattern is valid")
});

/// Validates the Windows options of a Pod or container (`validateWindowsSecurityContextOptions`). `hostProcess` is
/// validated for the whole Pod, see `validate_host_processes`.
pub(crate) fn validate_options(options: &Field<'_>) {
    let [name, credentials, user] =
        ["gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"].map(|name| options.at(name));
    name.when_present(|name| name.name(NameRule::Subdomain));
    let is_wrong = credentials.is_string() && !(1..=CREDENTIALS_LEN_MAX).contains(&credentials.text().len());
    credentials.invalid_without_value_if(is_wrong, format_args!("must have 1 to {CREDENTIALS_LEN_MAX} bytes"));
    let detail = "must be USER or DOMAIN\\USER, a Windows user and a NetBIOS or DNS domain; the user has at most";
    let is_invalid = user.is_string() && !is_user_name(user.text());
    user.invalid_if(is_invalid, format_args!("{detail} {USER_LEN_MAX} bytes"));
}

/// Returns `true` for a user name, `USER` or `DOMAIN\USER`. A user is not only dots and blanks.
fn is_user_name(name: &str) -> bool {
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let is_domain = |domain: &str| domain.len() <= DOMAIN_LEN_MAX && DOMAIN.is_match(domain);
    domain.is_none_or(is_domain)
        && !name.chars().any(|char| char.is_ascii_control())
        && user.len() <= USER_LEN_MAX
        && !user.chars().all(|char| matches!(char, '.' | ' '))
        && !user.contains(|char| NOT_IN_USERS.contains(char))
}

/// Returns the field `hostProcess` of a Pod or container.
fn host_process<'a>(part: &Field<'a>) -> Field<'a> {
    part.at("securityContext").at("windowsOptions").at("hostProcess")
}

/// Validates host process containers: if one container is one, all containers of the Pod must be, on the host network,
/// since such processes have no network namespace. A container inherits `hostProcess` from the Pod, and may repeat it
/// but not contradict it.
pub(crate) fn validate_host_processes(spec: &Field<'_>) {
    let pod_setting = host_process(spec).as_bool();
    let mut are_on_host = Vec::new();
    for container in all_containers(spec) {
        let own = host_process(&container);
        let is_other = pod_setting.is_some() && !own.is_null() && own.as_bool() != pod_setting;
        own.invalid_if(is_other, "must be identical to hostProcess of the pod if both are specified");
        are_on_host.push(own.as_bool().or(pod_setting) == Some(true));
    }
    if are_on_host.contains(&true) {
        let detail = "all containers must be hostProcess containers if one is";
        spec.with(&"".into()).invalid_if(are_on_host.contains(&false), detail);
        let network = spec.at("hostNetwork");
        network.invalid_if(*network != true, "must be true if pod contains any hostProcess containers");
    }
}
