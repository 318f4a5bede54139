//! Rules of the probes of containers.

use serde_json::Value;

use super::{Errors, entries, ports, text};

/// A probe; one that does not say when a container is ready needs to succeed once.
pub(super) fn probe(probe: &Value, at: &str, succeeds_once: bool, errors: &mut Errors) {
    handler(probe, at, errors);
    let times = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    for name in times {
        errors.not_negative(&format!("{at}.{name}"), &probe[name]);
    }
    if succeeds_once && probe["successThreshold"].as_i64().is_some_and(|times| times != 1) {
        errors.invalid(&format!("{at}.successThreshold"), &probe["successThreshold"], "must be 1");
    }
}

fn handler(handler: &Value, at: &str, errors: &mut Errors) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc"];
    let given: Vec<&str> = kinds.into_iter().filter(|kind| handler[*kind].is_object()).collect();
    for (index, kind) in given.iter().enumerate() {
        let at = format!("{at}.{kind}");
        let action = &handler[*kind];
        if index > 0 {
            errors.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        match *kind {
            "exec" if entries(&action["command"]).next().is_none() => errors.required(&format!("{at}.command"), ""),
            "exec" => {}
            "httpGet" => {
                if text(&action["path"]).is_empty() {
                    errors.required(&format!("{at}.path"), "");
                }
                ports::number_or_name(&action["port"], &format!("{at}.port"), errors);
                errors.one_of(&format!("{at}.scheme"), &action["scheme"], &["HTTP", "HTTPS"]);
            }
            _ => ports::number_or_name(&action["port"], &format!("{at}.port"), errors),
        }
    }
    if given.is_empty() {
        errors.required(at, "must specify a handler type");
    }
}
