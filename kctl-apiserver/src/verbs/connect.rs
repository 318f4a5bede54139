//! What leads to the processes behind objects: logs, commands, ports, proxies. No process runs here, so that logs are
//! empty and connections are refused, as the real server refuses those to a pod without a node
//! (`pkg/registry/core/pod/strategy.go`).

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Payload};
use crate::{
    request::Call,
    status::{Cause, GroupResource, Refusal},
    store::State,
};

/// Whether a request is about processes.
pub(super) fn is_about_processes(call: &Call) -> bool {
    let of = (call.resource.of.resource.as_str(), call.subresource.as_str());
    call.resource.of.group.is_empty()
        && matches!(of, ("pods", "attach" | "exec" | "log" | "portforward" | "proxy") | ("nodes" | "services", "proxy"))
}

/// Answers a request about processes.
pub(super) fn answer(state: &State, call: &Call) -> Result<Answer, Refusal> {
    let of = &call.resource.of;
    let Some(object) = state.get(of, &call.key()) else { return Err(Refusal::not_found(of, &call.name)) };
    match (of.resource.as_str(), call.subresource.as_str()) {
        ("nodes", _) => Err(no_process()),
        ("services", _) => {
            let why = format!("no endpoints available for service {:?}", call.name);
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why))
        }
        (_, "proxy") if object["status"]["podIP"].is_null() => Err(Refusal::bad_request("address not allowed")),
        (_, "log") => log(state, call, &object),
        (_, "exec" | "attach") => {
            container(call, &object)?;
            Err(connection(state, call, &object))
        }
        _ => Err(connection(state, call, &object)),
    }
}

/// Nobody writes to a log here.
fn log(state: &State, call: &Call, pod: &Value) -> Result<Answer, Refusal> {
    let mut causes = Vec::new();
    for (option, least, told) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        if let Some(value) = call.params.number(option)?.filter(|value| *value < least) {
            let message = format!("Invalid value: {value}: {told}");
            causes.push(Cause { reason: "FieldValueInvalid", message, field: option.into() });
        }
    }
    if !causes.is_empty() {
        return Err(Refusal::invalid("", "PodLogOptions", &call.name, &causes));
    }
    container(call, pod)?;
    let code = match node_of(pod) {
        None => StatusCode::NO_CONTENT,
        Some(node) if has_node(state, node) => StatusCode::OK,
        Some(_) => return Err(connection(state, call, pod)),
    };
    Ok(Answer { code, payload: Payload::Plain(String::new()) })
}

/// Checks that one container is meant, and that the pod has it.
fn container(call: &Call, pod: &Value) -> Result<(), Refusal> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = lists.iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let names: Vec<&str> = all.filter_map(|container| container["name"].as_str()).collect();
    match call.params.text("container") {
        "" if names.len() == 1 => Ok(()),
        "" => {
            let names = names.join(" ");
            let why = format!("a container name must be specified for pod {}, choose one of: [{names}]", call.name);
            Err(Refusal::bad_request(why))
        }
        named if names.contains(&named) => Ok(()),
        named => Err(Refusal::bad_request(format!("container {named} is not valid for pod {}", call.name))),
    }
}

fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

fn has_node(state: &State, node: &str) -> bool {
    state.get(&GroupResource::new("", "nodes"), &(String::new(), node.into())).is_some()
}

/// Why there is no connection to a pod.
fn connection(state: &State, call: &Call, pod: &Value) -> Refusal {
    match node_of(pod) {
        None => Refusal::bad_request(format!("pod {} does not have a host assigned", call.name)),
        // The real server tells the name of the node with the kind of the request.
        Some(node) if !has_node(state, node) => Refusal::not_found(&call.resource.of, node),
        Some(_) => no_process(),
    }
}

fn no_process() -> Refusal {
    let why = "error dialing backend: no process runs on the nodes of this server";
    let mut refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why);
    refusal.details = json!({ "causes": [{ "message": why }] });
    refusal
}
