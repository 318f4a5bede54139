//! Validation of probes and lifecycle handlers of containers.
//!
//! Upstream: `validateProbe` and `validateLifecycle` in `pkg/apis/core/validation/validation.go`.
//! Numbers have been defaulted before: a 0 in `timeoutSeconds`, `periodSeconds` or a threshold has
//! become the default (`SetDefaults_Probe`).

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::{entries, ports},
};

/// Handler types of a probe, in the order of upstream's checks.
const OF_PROBES: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
/// Handler types of `postStart` and `preStop`. They include `sleep`, but not `grpc`.
const OF_LIFECYCLES: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// Validates the three probes and the lifecycle of a container.
///
/// `terminationGracePeriodSeconds` is `FieldValueInvalid` in a readiness probe. The other two must have
/// `successThreshold: 1`.
///
/// Upstream: `validateLivenessProbe`, `validateReadinessProbe` and `validateStartupProbe`. A
/// readiness probe never kills the container, so a grace period has no meaning for it. A liveness
/// or startup probe acts on the first success.
pub(crate) fn of_container(container: &Value, path: &str, spec: &Value, errors: &mut Errors) {
    let grace = spec["terminationGracePeriodSeconds"].as_i64();
    lifecycle(&container["lifecycle"], &format!("{path}.lifecycle"), grace, errors);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let (probe_value, path) = (&container[name], format!("{path}.{name}"));
        if probe_value.is_null() {
            continue;
        }
        probe(probe_value, &path, errors);
        if name == "readinessProbe" {
            let seconds = &probe_value["terminationGracePeriodSeconds"];
            if !seconds.is_null() {
                let path = format!("{path}.terminationGracePeriodSeconds");
                errors.invalid(&path, seconds, "must not be set for readinessProbes");
            }
        } else if probe_value["successThreshold"].as_i64().is_some_and(|times| times != 1) {
            errors.invalid(&format!("{path}.successThreshold"), &probe_value["successThreshold"], "must be 1");
        }
    }
}

/// Validates a probe: one handler, times and thresholds not negative, a grace period above 0 (`validateProbe`).
///
/// Numbers are in seconds or counts; 0 is valid for each of them here.
fn probe(probe: &Value, path: &str, errors: &mut Errors) {
    handler(probe, path, OF_PROBES, None, errors);
    let times = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    for name in times {
        errors.not_negative(&format!("{path}.{name}"), &probe[name]);
    }
    let seconds = &probe["terminationGracePeriodSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(&format!("{path}.terminationGracePeriodSeconds"), seconds, "must be greater than 0");
    }
}

/// Validates `postStart` and `preStop` (`validateLifecycle`). `grace` is the grace period of the Pod, in seconds.
///
/// The grace period bounds a `sleep` action: a longer one would always be interrupted.
fn lifecycle(lifecycle: &Value, path: &str, grace: Option<i64>, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        if lifecycle[name].is_object() {
            handler(&lifecycle[name], &format!("{path}.{name}"), OF_LIFECYCLES, grace, errors);
        }
    }
}

/// Validates that exactly one of the handler types in `kinds` is set (`validateHandler`).
///
/// None is `FieldValueRequired`; each one after the first is `FieldValueForbidden` and not validated further.
///
/// The first one in the order of `kinds` counts as the intended one, regardless of the order in the client's JSON.
fn handler(handler: &Value, path: &str, kinds: &[&str], grace: Option<i64>, errors: &mut Errors) {
    let present: Vec<&&str> = kinds.iter().filter(|kind| handler[**kind].is_object()).collect();
    for (index, kind) in present.iter().enumerate() {
        let path = format!("{path}.{kind}");
        if index > 0 {
            errors.leave_out(&format!("{path}."));
            errors.forbidden(&path, "may not specify more than 1 handler type");
        } else {
            action(kind, &handler[**kind], &path, grace, errors);
        }
    }
    if present.is_empty() {
        errors.required(path, "must specify a handler type");
    }
}

/// Validates the fields of one handler type.
///
/// | type | rule |
/// |---|---|
/// | `exec` | `command` has at least one item |
/// | `httpGet` | a path, a port by number or name, valid header names |
/// | `tcpSocket`, `grpc` | a port |
/// | `sleep` | from 0 to the grace period of the Pod, if it has one |
///
/// An absent port counts as 0 and is out of range. Hosts and schemes are not validated here.
fn action(kind: &str, action: &Value, path: &str, grace: Option<i64>, errors: &mut Errors) {
    let port_path = format!("{path}.port");
    // An absent port counts as 0.
    let port = if action["port"].is_null() { &Value::from(0) } else { &action["port"] };
    match kind {
        "exec" if entries(&action["command"]).next().is_none() => errors.required(&format!("{path}.command"), ""),
        "exec" => {}
        "httpGet" => {
            if text(&action["path"]).is_empty() {
                errors.required(&format!("{path}.path"), "");
            }
            ports::number_or_name(port, &port_path, errors);
            for (_, header) in entries(&action["httpHeaders"]) {
                header_name(&header["name"], &format!("{path}.httpHeaders"), errors);
            }
        }
        "sleep" => {
            let seconds = action["seconds"].as_i64().unwrap_or(0);
            if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
                let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.invalid(path, &seconds.into(), &detail);
            }
        }
        _ => ports::number_or_name(port, &port_path, errors),
    }
}

/// Validates the name of an HTTP header: letters, digits and dashes (`IsHTTPHeaderName`). Values
/// are not validated. The error is at the list of headers, without an index.
fn header_name(name: &Value, path: &str, errors: &mut Errors) {
    let text = text(name);
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        let detail = "must be letters, digits and hyphens, such as X-Header-Name";
        errors.invalid(path, &text.into(), detail);
    }
}
