//! Validation of probes and lifecycle handlers of containers.
//!
//! Upstream: `validateProbe` and `validateLifecycle` in `pkg/apis/core/validation/validation.go`.
//! Numbers have been defaulted before: a 0 in `timeoutSeconds`, `periodSeconds` or a threshold has
//! become the default (`SetDefaults_Probe`).

use serde_json::Value;

use crate::{field::Field, validation::ports};

/// Handler types of a probe, in the order of upstream's checks.
const PROBE_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
/// Handler types of `postStart` and `preStop`. They include `sleep`, but not `grpc`.
const LIFECYCLE_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];
/// Times and thresholds of a probe; 0 is valid for each of them here.
const NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];

/// Validates the three probes and the lifecycle of a container (`validateLivenessProbe`, `validateReadinessProbe` and
/// `validateStartupProbe`). A readiness probe never kills the container, so a grace period has no meaning for it. A
/// liveness or startup probe acts on the first success.
pub(crate) fn validate_probes(container: &Field<'_>, spec: &Value) {
    let (lifecycle, grace) = (container.at("lifecycle"), spec["terminationGracePeriodSeconds"].as_i64());
    for hook in ["postStart", "preStop"].map(|name| lifecycle.at(name)).iter().filter(|hook| hook.is_object()) {
        validate_handler(hook, LIFECYCLE_HANDLERS, grace);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(name);
        if probe.is_null() {
            continue;
        }
        validate_handler(&probe, PROBE_HANDLERS, None);
        probe.check_children(&NUMBERS, Field::not_negative);
        let (grace, successes) = (probe.at("terminationGracePeriodSeconds"), probe.at("successThreshold"));
        grace.invalid_if(grace.as_i64().is_some_and(|seconds| seconds <= 0), "must be greater than 0");
        if name == "readinessProbe" {
            grace.invalid_if(!grace.is_null(), "must not be set for readinessProbes");
        } else {
            successes.invalid_if(successes.as_i64().is_some_and(|successes| successes != 1), "must be 1");
        }
    }
}

/// Returns the handlers of a container which are forbidden because they are not the first of their probe or hook.
pub(crate) fn surplus_handlers<'a>(container: &Field<'a>) -> Vec<Field<'a>> {
    let hooks = ["postStart", "preStop"].map(|name| (container.at("lifecycle").at(name), LIFECYCLE_HANDLERS));
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|name| (container.at(name), PROBE_HANDLERS));
    let surplus = |(handler, kinds): (Field<'a>, &'static [&'static str])| {
        kinds.iter().map(move |kind| handler.at(kind)).filter(|kind| kind.is_object()).skip(1)
    };
    hooks.into_iter().chain(probes).flat_map(surplus).collect()
}

/// Validates that exactly one of the handler types in `kinds` is set (`validateHandler`). The first one in the order of
/// `kinds` counts as the intended one, and others are not validated further. `grace` is the grace period of the Pod, in
/// seconds.
fn validate_handler(handler: &Field<'_>, kinds: &[&str], grace: Option<i64>) {
    let mut present = kinds.iter().filter(|kind| handler[**kind].is_object());
    match present.next() {
        Some(kind) => validate_action(kind, &handler.at(kind), grace),
        None => handler.required_with("must specify a handler type"),
    }
    present.for_each(|kind| handler.at(kind).forbidden("may not specify more than 1 handler type"));
}

/// Validates the fields of one handler type. Hosts, schemes and values of headers are not validated here. A `sleep`
/// longer than the grace period of the Pod would always be interrupted.
fn validate_action(kind: &str, action: &Field<'_>, grace: Option<i64>) {
    match kind {
        "exec" => action.require_children(&["command"]),
        "sleep" => {
            let seconds = action["seconds"].as_i64().unwrap_or(0);
            if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
                action.invalid(format_args!("seconds must be from 0 to terminationGracePeriodSeconds ({grace})"));
            }
        }
        _ => {
            let (port, absent) = (action.at("port"), Value::from(0));
            let port = if port.is_null() { port.with(&absent) } else { port.clone() };
            port.check(ports::number_or_name);
        }
    }
    if kind == "httpGet" {
        action.require_children(&["path"]);
        let headers = action.at("httpHeaders");
        for header in headers.items() {
            let name = headers.with(&header["name"]);
            name.invalid_if(!is_header_name(name.text()), "must be letters, digits and hyphens, such as X-Header-Name");
        }
    }
}

/// Returns `true` for the name of an HTTP header (`IsHTTPHeaderName`).
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
