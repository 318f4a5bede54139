//! Subresources that lead to the processes behind objects: logs, exec, port-forward and proxies.
//!
//! No process runs here. Logs are empty, and connections fail as kube-apiserver fails them for a Pod without a node
//! (`pkg/registry/core/pod/strategy.go`).

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Answer, Payload};
use crate::{
    admission, go,
    kinds::core::{node, service},
    request::RequestInfo,
    state::State,
    status::{FieldError, StatusError},
};

/// Returns `true` if the subresource leads to a process.
pub(super) fn is_about_processes(info: &RequestInfo) -> bool {
    info.resource.rules.connects.contains(&info.subresource.as_str())
}

/// Answers a request for a process.
///
/// A connection is admitted before its object is looked up (`ConnectResource` of
/// `k8s.io/apiserver/pkg/endpoints/handlers/rest.go`), so a webhook sees it even if the object does not exist. Logs
/// are not admitted. Connections to Nodes fail with a dial error, and to Services with "no endpoints available".
pub(super) fn answer(state: &State, info: &RequestInfo) -> Result<Answer, StatusError> {
    let of = &info.resource.of;
    let options = if info.subresource == "log" { Value::Null } else { admitted(state, info)? };
    if info.subresource == "proxy" && info.name.matches(':').count() > 2 {
        let kind = of.resource.strip_suffix('s').unwrap_or(&of.resource);
        return Err(StatusError::bad_request(format!("invalid {kind} request {}", go::quote(&info.name))));
    }
    let (_, name, port) = proxied(info);
    let key = (info.namespace.clone(), name.to_owned());
    let Some(object) = state.get(of, &key) else { return Err(StatusError::not_found(of, name)) };
    match info.subresource.as_str() {
        _ if info.resource.is(&node::KIND) => Err(no_process()),
        _ if info.resource.is(&service::KIND) => {
            let why = format!("no endpoints available for service {:?}", called(name, port));
            Err(StatusError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why))
        }
        "proxy" if object["status"]["podIP"].is_null() => Err(StatusError::bad_request("address not allowed")),
        "log" => log(state, info, &object),
        "exec" | "attach" => {
            container(info, &object, options["container"].as_str().unwrap_or_default())?;
            Err(connection(state, info, &object))
        }
        _ => Err(connection(state, info, &object)),
    }
}

/// Splits the name of a proxy request, `scheme:name:port`, of which only the name is required
/// (`SplitSchemeNamePort`).
fn proxied(info: &RequestInfo) -> (&str, &str, &str) {
    let whole = ("", info.name.as_str(), "");
    if info.subresource != "proxy" {
        return whole;
    }
    match info.name.split(':').collect::<Vec<_>>().as_slice() {
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => whole,
    }
}

/// Joins name and port.
fn called(name: &str, port: &str) -> String {
    if port.is_empty() { name.to_owned() } else { format!("{name}:{port}") }
}

/// Returns the options of a connection after admission.
fn admitted(state: &State, info: &RequestInfo) -> Result<Value, StatusError> {
    if info.dry_run() {
        return Err(StatusError::bad_request("dryRun is not supported"));
    }
    admission::admit_connection(state, info, options(info)?)
}

/// Decodes the options of a connection from the query: strings, lists of strings, and flags.
fn options(info: &RequestInfo) -> Result<Value, StatusError> {
    let kind = info.resource.subresource(&info.subresource).map_or("", |listed| listed.kind.as_str());
    let mut options = Map::new();
    options.insert("kind".into(), kind.into());
    options.insert("apiVersion".into(), "v1".into());
    match info.subresource.as_str() {
        "portforward" => {
            let ports = ports(&info.params.all("ports"))?;
            if !ports.is_empty() {
                options.insert("ports".into(), ports.into());
            }
        }
        "proxy" => {
            if !info.path_behind.is_empty() {
                options.insert("path".into(), info.path_behind.clone().into());
            }
        }
        _ => {
            for flag in ["stdin", "stdout", "stderr", "tty"].into_iter().filter(|flag| info.params.flag(flag)) {
                options.insert(flag.into(), true.into());
            }
            let container = info.params.text("container");
            if !container.is_empty() {
                options.insert("container".into(), container.into());
            }
            if info.subresource == "exec" {
                let command = info.params.all("command");
                let none = || Value::Null;
                options.insert(
                    "command".into(),
                    Some(command).filter(|all| !all.is_empty()).map_or_else(none, Into::into),
                );
            }
        }
    }
    Ok(options.into())
}

/// Parses ports, one per parameter or several in one (`Convert_Slice_string_To_Slice_int32` of
/// `pkg/apis/core/v1/conversion.go`).
fn ports(given: &[String]) -> Result<Vec<u16>, StatusError> {
    let all = given.iter().flat_map(|text| text.split(','));
    let read = all.map(|text| {
        text.parse::<u16>().map_err(|_| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            let text = go::quote(text);
            StatusError::bad_request(format!("cannot convert to []int32: strconv.ParseUint: parsing {text}: {why}"))
        })
    });
    read.collect()
}

/// Returns an empty log, after the checks of kube-apiserver.
fn log(state: &State, info: &RequestInfo, pod: &Value) -> Result<Answer, StatusError> {
    let mut errors = Vec::new();
    for (option, least, told) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        if let Some(value) = info.params.number(option)?.filter(|value| *value < least) {
            let message = format!("Invalid value: {value}: {told}");
            errors.push(FieldError { reason: "FieldValueInvalid", message, field: option.into() });
        }
    }
    if !errors.is_empty() {
        return Err(StatusError::invalid("", "PodLogOptions", &info.name, &errors));
    }
    container(info, pod, info.params.text("container"))?;
    let code = match node_of(pod) {
        None => StatusCode::NO_CONTENT,
        Some(node) if has_node(state, node) => StatusCode::OK,
        Some(_) => return Err(connection(state, info, pod)),
    };
    Ok(Answer { code, payload: Payload::Plain(String::new()) })
}

/// Checks that the request names one container of the Pod, or that the Pod has only one.
fn container(info: &RequestInfo, pod: &Value, named: &str) -> Result<(), StatusError> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = lists.iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let names: Vec<&str> = all.filter_map(|container| container["name"].as_str()).collect();
    match named {
        "" if names.len() == 1 => Ok(()),
        "" => {
            let names = names.join(" ");
            let why = format!("a container name must be specified for pod {}, choose one of: [{names}]", info.name);
            Err(StatusError::bad_request(why))
        }
        named if names.contains(&named) => Ok(()),
        named => Err(StatusError::bad_request(format!("container {named} is not valid for pod {}", info.name))),
    }
}

/// Returns the node of a Pod.
fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

/// Returns `true` if the Node object exists.
fn has_node(state: &State, node: &str) -> bool {
    state.get(&node::KIND.group_resource(), &(String::new(), node.into())).is_some()
}

/// Returns the error of a connection to a Pod.
fn connection(state: &State, info: &RequestInfo, pod: &Value) -> StatusError {
    match node_of(pod) {
        None => StatusError::bad_request(format!("pod {} does not have a host assigned", info.name)),
        // Upstream names the missing node with the resource of the request.
        Some(node) if !has_node(state, node) => StatusError::not_found(&info.resource.of, node),
        Some(_) => no_process(),
    }
}

/// Returns the error of a dial to a node that does not answer.
fn no_process() -> StatusError {
    let why = "error dialing backend: no process runs on the nodes of this server";
    let mut status_error = StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why);
    status_error.details = json!({ "causes": [{ "message": why }] });
    status_error
}
