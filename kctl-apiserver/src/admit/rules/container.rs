//! Rules of containers.

use serde_json::Value;

use super::{Errors, entries, environment, pod, ports, probe, text, volume};
use crate::admit::names::NameRule;

/// The containers of a pod, all kinds of them.
pub(super) fn containers(spec: &Value, at: &str, volumes: &[&str], errors: &mut Errors) {
    let on_host = spec["hostNetwork"] == true;
    let list_at = format!("{at}.containers");
    if entries(&spec["containers"]).next().is_none() {
        errors.required(&list_at, "");
    }
    let mut names: Vec<&str> = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, one) in entries(&spec[list]) {
            let at = format!("{at}.{list}[{index}]");
            let name = text(&one["name"]);
            container(one, &at, on_host, volumes, errors);
            if names.contains(&name) && !name.is_empty() {
                errors.duplicate(&format!("{at}.name"), &one["name"].to_string());
            }
            names.push(name);
        }
    }
}

fn container(container: &Value, at: &str, on_host: bool, volumes: &[&str], errors: &mut Errors) {
    let field = |name: &str| format!("{at}.{name}");
    errors.required_name(&field("name"), &container["name"], NameRule::Label);
    let image = text(&container["image"]);
    if image.is_empty() {
        errors.required(&field("image"), "");
    } else if image.trim() != image {
        errors.invalid(&field("image"), &container["image"], "must not have leading or trailing whitespace");
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[name].is_object() {
            probe::probe(&container[name], &field(name), name != "readinessProbe", errors);
        }
    }
    let policies = ["File", "FallbackToLogsOnError"];
    errors.one_of(&field("terminationMessagePolicy"), &container["terminationMessagePolicy"], &policies);
    ports::of_container(&container["ports"], &field("ports"), on_host, errors);
    environment::variables(&container["env"], &field("env"), errors);
    environment::sources(&container["envFrom"], &field("envFrom"), errors);
    volume::mounts(&container["volumeMounts"], &field("volumeMounts"), volumes, errors);
    let policies = ["Always", "IfNotPresent", "Never"];
    errors.one_of(&field("imagePullPolicy"), &container["imagePullPolicy"], &policies);
    pod::resources(&container["resources"], &field("resources"), errors);
}
