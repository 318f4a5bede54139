//! Validation of the options that containers on Windows have: user names, credentials and host
//! processes.
//!
//! Upstream: `validateWindowsSecurityContextOptions` and `validateWindowsHostProcessPod` in
//! `pkg/apis/core/validation/validation.go`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::container,
};

/// Maximum length of `gmsaCredentialSpec`, in bytes.
///
/// A specification is the content of a group Managed Service Account; kubelet passes it to the
/// runtime.
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
    Regex::new(&format!(r"^(?:{netbios}|{label}(?:\.{label})*)$")).expect("the pattern is one")
});

/// Validates the Windows options of a Pod or container (`validateWindowsSecurityContextOptions`).
///
/// `path` is the field path of `windowsOptions`. Name and content of the credential specification are
/// independent of each other. All errors are `FieldValueInvalid`. `hostProcess` is validated for
/// the whole Pod, see `host_processes`.
pub(crate) fn options(options: &Value, path: &str, errors: &mut Errors) {
    if options["gmsaCredentialSpecName"].is_string() {
        let path = format!("{path}.gmsaCredentialSpecName");
        errors.name(&path, &options["gmsaCredentialSpecName"], NameRule::Subdomain);
    }
    let (credentials, at_credentials) = (&options["gmsaCredentialSpec"], format!("{path}.gmsaCredentialSpec"));
    if credentials == "" || text(credentials).len() > CREDENTIALS_LEN_MAX {
        let detail = format!("must have 1 to {CREDENTIALS_LEN_MAX} bytes");
        errors.invalid_as_such(&at_credentials, &detail);
    }
    if options["runAsUserName"].as_str().is_some_and(|name| !is_user_name(name)) {
        let detail = format!(
            "must be USER or DOMAIN\\USER, a Windows user of at most {USER_LEN_MAX} bytes and a NetBIOS or DNS domain"
        );
        errors.invalid(&format!("{path}.runAsUserName"), &options["runAsUserName"], &detail);
    }
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

/// Validates host process containers: if one container is one, all containers of the Pod must be, on the host network.
///
/// A container inherits `hostProcess` from the Pod, and may repeat it but not contradict it. If any
/// container is a process of the host, then all must be, and `hostNetwork` must be true, since such
/// processes have no network namespace. All errors are `FieldValueInvalid`.
pub(crate) fn host_processes(spec: &Value, path: &str, errors: &mut Errors) {
    let host_process = |context: &Value| context["windowsOptions"]["hostProcess"].as_bool();
    let of_pod = host_process(&spec["securityContext"]);
    let (mut n_containers, mut n_on_host) = (0, 0);
    for (list, index, container) in container::all(spec) {
        let own = host_process(&container["securityContext"]);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = format!("{path}.{list}[{index}].securityContext.windowsOptions.hostProcess");
            let detail = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.invalid(&path, &own.into(), &detail);
        }
        n_containers += 1;
        n_on_host += usize::from(own.or(of_pod) == Some(true));
    }
    if n_on_host == 0 {
        return;
    }
    if n_on_host < n_containers {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid(path, &"".into(), detail);
    }
    if spec["hostNetwork"] != true {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&format!("{path}.hostNetwork"), &false.into(), detail);
    }
}
