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

/// Bytes of a kibibyte, the unit in the message.
const KIB: usize = 1024;
/// Maximum length of `gmsaCredentialSpec`, in bytes.
///
/// A specification is the content of a group Managed Service Account; kubelet passes it to the
/// runtime.
const CREDENTIALS_LEN_MAX: usize = 64 * KIB;
/// Maximum length of the domain in `DOMAIN\USER`, in bytes. The message says "under 256".
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
    if credentials == "" {
        errors.invalid(&at_credentials, credentials, "gmsaCredentialSpec cannot be an empty string");
    } else if text(credentials).len() > CREDENTIALS_LEN_MAX {
        let detail = format!("gmsaCredentialSpec size must be under {} KiB", CREDENTIALS_LEN_MAX / KIB);
        errors.invalid(&at_credentials, credentials, &detail);
    }
    if let Some(name) = options["runAsUserName"].as_str() {
        for detail in mistakes(name) {
            errors.invalid(&format!("{path}.runAsUserName"), &name.into(), &format!("runAsUserName{detail}"));
        }
    }
}

/// Validates a user name, `USER` or `DOMAIN\USER`.
///
/// Returns the ends of the messages, which follow the field's name. An empty name, control
/// characters and a second backslash end the validation; all other rules are reported together. A
/// name without a backslash has no domain.
fn mistakes(name: &str) -> Vec<String> {
    let message = |text: &str| vec![text.to_owned()];
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts[..] {
        _ if name.is_empty() => return message(" cannot be an empty string"),
        _ if name.chars().any(|char| char.is_ascii_control()) => return message(" cannot contain control characters"),
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return message(" cannot contain more than one backslash"),
    };
    let is_blank = !user.is_empty() && user.chars().all(|char| matches!(char, '.' | ' '));
    let rules = [
        (
            domain.is_some_and(|domain| domain.len() > DOMAIN_LEN_MAX),
            format!("'s Domain length must be under {} characters", DOMAIN_LEN_MAX + 1),
        ),
        (
            domain.is_some_and(|domain| !DOMAIN.is_match(domain)),
            "'s Domain doesn't match the NetBios nor the DNS format".to_owned(),
        ),
        (user.is_empty(), "'s User cannot be empty".to_owned()),
        (user.len() > USER_LEN_MAX, format!("'s User length must not be longer than {USER_LEN_MAX} characters")),
        (is_blank, "'s User cannot contain only periods or spaces".to_owned()),
        (
            user.contains(|char| NOT_IN_USERS.contains(char)),
            format!("'s User cannot contain the following characters: {NOT_IN_USERS}"),
        ),
    ];
    rules.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, text)| text).collect()
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
