//! Subresources that connect to the processes behind objects: logs, exec, port-forward and proxies.
//!
//! No process runs here. Logs are empty, and connections fail as kube-apiserver fails them for a Pod without a node
//! (`pkg/registry/core/pod/strategy.go`).

use http::StatusCode;
use serde_json::{Value, json};

use super::{Payload, VerbResponse};
use crate::{
    admission::{self, Attributes},
    field_errors::Errors,
    kinds::core::node,
    registry::kind::{ConnectTarget, Subresource},
    request::RequestInfo,
    state::State,
    status::StatusError,
    store::Store,
};

/// Handles a request for a process. A connection is admitted before its object is looked up (`ConnectResource` of
/// `k8s.io/apiserver/pkg/endpoints/handlers/rest.go`), so a webhook sees it even if the object does not exist. Logs are
/// not admitted. The checks run in this order: admission, form of the name, existence of the object, then the target.
/// Only logs can succeed.
///
/// # Errors
/// `NotFound`, or the error of admission. A connection that passes both fails as well. A Node fails with a dial error,
/// and a Pod like one without a node. A Service fails with 503 and "no endpoints available", even if it does not exist,
/// unless the path has a port number.
pub(super) fn connect(state: &State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let resource = &info.resource.id;
    let options = if info.subresource == Subresource::Log { Value::Null } else { admit_options(state, info)? };
    if info.subresource == Subresource::Proxy && info.name.matches(':').count() > 2 {
        return Err(StatusError::bad_request(format!("name must be scheme:name:port, found {:?}", info.name)));
    }
    let (name, port) = split_proxy_name(info);
    let key = (info.namespace.clone(), name.to_owned());
    let object = state.store.get(resource, &key);
    let target = info.resource.kind.requests.connect_target;
    if target == ConnectTarget::Endpoint && (object.is_some() || port.parse::<i64>().is_err()) {
        // Only a port number is looked up in the Service; endpoints are found by its name.
        let why = format!("no endpoints available for service {name:?}");
        return Err(StatusError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why));
    }
    let Some(object) = object else { return Err(StatusError::not_found(resource, name)) };
    match info.subresource {
        _ if target == ConnectTarget::Kubelet => Err(dial_error()),
        Subresource::Proxy if object["status"]["podIP"].is_null() => {
            Err(StatusError::bad_request("address not allowed"))
        }
        Subresource::Log => log(&state.store, info, &object),
        Subresource::Exec | Subresource::Attach => {
            check_container(info, &object, options["container"].as_str().unwrap_or_default())?;
            Err(connection_error(&state.store, info, &object))
        }
        _ => Err(connection_error(&state.store, info, &object)),
    }
}

/// Returns name and port in the path of a proxy, which is `name`, `name:port` or `scheme:name:port`
/// (`SplitSchemeNamePort`). The scheme does not matter here, since nothing is connected.
fn split_proxy_name(info: &RequestInfo) -> (&str, &str) {
    match info.name.split(':').collect::<Vec<_>>().as_slice() {
        [name, port] | [_, name, port] if info.subresource == Subresource::Proxy => (name, port),
        _ => (&info.name, ""),
    }
}

/// Returns the connection's options after admission. The object of a `CONNECT` in admission is its options, such as
/// `PodExecOptions`. Mutating webhooks may change them. Fails with 400 for a dry run, which connections do not support,
/// or with the error of admission.
fn admit_options(state: &State, info: &RequestInfo) -> Result<Value, StatusError> {
    if info.dry_run() {
        return Err(StatusError::bad_request("dryRun is not supported"));
    }
    admission::admit(state, Attributes::connect(info, decode_options(info)?))
}

/// Decodes the options of a connection from the query: strings, lists of strings, and flags. The kind is the
/// subresource's in discovery. Absent parameters are left out, apart from `command`, which Go writes as null.
fn decode_options(info: &RequestInfo) -> Result<Value, StatusError> {
    let kind = info.resource.subresource(info.subresource.as_str()).map_or("", |listed| listed.kind.as_str());
    let mut options = json!({ "kind": kind, "apiVersion": "v1" });
    match info.subresource {
        Subresource::PortForward => {
            let ports = parse_ports(info.params.values("ports"))?;
            if !ports.is_empty() {
                options["ports"] = ports.into();
            }
        }
        Subresource::Proxy if info.path_behind.is_empty() => {}
        Subresource::Proxy => options["path"] = info.path_behind.clone().into(),
        _ => {
            for flag in ["stdin", "stdout", "stderr", "tty"].into_iter().filter(|flag| info.params.flag(flag)) {
                options[flag] = true.into();
            }
            let container = info.params.text("container");
            if !container.is_empty() {
                options["container"] = container.into();
            }
            if info.subresource == Subresource::Exec {
                let command = info.params.values("command");
                options["command"] = if command.is_empty() { Value::Null } else { command.into() };
            }
        }
    }
    Ok(options)
}

/// Parses ports, one per parameter or several in one (`Convert_Slice_string_To_Slice_int32` of
/// `k8s.io/apimachinery/pkg/apis/meta/v1/conversion.go`). Without the parameter the list is empty. Port 0 is accepted.
fn parse_ports(parameters: &[String]) -> Result<Vec<u16>, StatusError> {
    let all = parameters.iter().flat_map(|text| text.split(','));
    let invalid = |text| StatusError::bad_request(format!("ports: must be numbers from 0 to 65535, found {text:?}"));
    all.map(|text| text.parse().map_err(|_| invalid(text))).collect()
}

/// Returns an empty log, after the checks of kube-apiserver. Bounds of the options are validated first: `tailLines`
/// from 0, `limitBytes` and `sinceSeconds` from 1. A Pod without a node returns 204, one on a known node an empty body
/// with 200.
fn log(store: &Store, info: &RequestInfo, pod: &Value) -> Result<VerbResponse, StatusError> {
    let mut errors = Errors::default();
    for (option, least) in [("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)] {
        if let Some(value) = info.params.number(option)?.filter(|value| *value < least) {
            errors.invalid(option, &value.into(), &format!("must be at least {least}"));
        }
    }
    StatusError::unless_valid("", "PodLogOptions", &info.name, &errors)?;
    check_container(info, pod, info.params.text("container"))?;
    let code = match node_of(pod) {
        None => StatusCode::NO_CONTENT,
        Some(node) if has_node(store, node) => StatusCode::OK,
        Some(_) => return Err(connection_error(store, info, pod)),
    };
    Ok(VerbResponse { code, payload: Payload::Plain(String::new()) })
}

/// Checks that the request names one container of the Pod, or that the Pod has only one. With several containers the
/// name is required. The error lists the names.
fn check_container(info: &RequestInfo, pod: &Value, selected: &str) -> Result<(), StatusError> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = lists.iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let names: Vec<&str> = all.filter_map(|container| container["name"].as_str()).collect();
    if names.contains(&selected) || (selected.is_empty() && names.len() == 1) {
        return Ok(());
    }
    let why = format!("container: must be one of {names:?} of pod {}, found {selected:?}", info.name);
    Err(StatusError::bad_request(why))
}

/// Returns the node of a Pod. `None` before the Pod is scheduled.
fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

/// Returns `true` if the Node object exists.
fn has_node(store: &Store, node: &str) -> bool {
    store.object(&node::KIND, "", node).is_some()
}

/// Returns the error of a connection to a Pod. 400 without a node, 404 if the Node object does not exist, else 500.
fn connection_error(store: &Store, info: &RequestInfo, pod: &Value) -> StatusError {
    match node_of(pod) {
        None => StatusError::bad_request(format!("pod {} does not have a host assigned", info.name)),
        // Upstream names the missing node with the resource of the request.
        Some(node) if !has_node(store, node) => StatusError::not_found(&info.resource.id, node),
        Some(_) => dial_error(),
    }
}

/// Returns the error of a dial to a node that does not answer. kube-apiserver reports a refused connection to kubelet
/// in the same way, with the reason `InternalError`.
fn dial_error() -> StatusError {
    StatusError::internal("error dialing backend: no process runs on the nodes of this server")
}
