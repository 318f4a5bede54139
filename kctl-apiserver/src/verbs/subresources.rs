//! Subresources that are created but not stored. Bindings are here; evictions and tokens have their own files.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    admission::{self, Attributes},
    apply,
    kinds::core::{node, pod},
    lifecycle,
    registry::{TypeMeta, kind::Subresource},
    request::{Operation, RequestInfo},
    state::State,
    status::{GroupResource, StatusError},
    store::Store,
    verbs::{VerbResponse, evict},
    write::{
        self, FieldManager, body, namespace, ownership,
        precondition::{Subject, check_uid, check_version},
    },
};

/// Performs `POST` to a subresource of an object. The name in the path, the name in the body and the namespace must
/// agree. 405 for subresources that have no `create`.
pub(super) fn create(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let resource = &info.resource.id;
    let TypeMeta { kind, api_version } = info.resource.type_at(info.subresource);
    let mut sent = body::read_as(info, &kind, &api_version)?;
    namespace::match_namespace(info, &mut sent)?;
    namespace::check_namespace(&state.store, info, &sent)?;
    let named = sent["metadata"]["name"].as_str().unwrap_or_default();
    if info.subresource != Subresource::Token && named != info.name {
        return Err(StatusError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    let find =
        |store: &Store| store.get(resource, &info.key()).ok_or_else(|| StatusError::not_found(resource, &info.name));
    match info.subresource {
        Subresource::Binding => {
            set_binding_managers(state, info, &mut sent);
            let sent = admit_binding(state, info, &info.name, sent)?;
            let pod = find(&state.store)?;
            bind(&mut state.store, info, &info.name, &pod, &sent)
        }
        Subresource::Eviction => {
            evict::check_options(info, &sent["deleteOptions"])?;
            let sent = admission::admit(state, Attributes::new(info, Operation::Create, &info.name, sent))?;
            let pod = find(&state.store)?;
            evict::evict(&mut state.store, info, &pod, &sent)
        }
        Subresource::Token => super::token::create(state, info, sent),
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Returns a binding after mutating admission, if it is valid.
fn admit_binding(state: &State, info: &RequestInfo, name: &str, sent: Value) -> Result<Value, StatusError> {
    let mut attributes = Attributes::new(info, Operation::Create, name, sent);
    admission::mutate(state, &mut attributes)?;
    check_binding(attributes.object.as_ref().unwrap_or(&Value::Null))?;
    admission::validate(state, &attributes)?;
    Ok(attributes.object.unwrap_or_default())
}

/// Sets the managed fields of a binding, which admission sees. Evictions have none.
fn set_binding_managers(state: &State, info: &RequestInfo, binding: &mut Value) {
    let manager = FieldManager::from_request(info, state);
    let TypeMeta { kind, api_version } = info.resource.type_at(info.subresource);
    let schema = crate::schema::Schema::built_in(&api_version, &kind);
    apply::update(&apply::Request { schema, ..manager.request() }, None, binding);
}

/// Performs `POST bindings` (`LegacyBindingREST`): the Binding has the name of the Pod.
///
/// # Errors
/// `NotFound` without the Pod, `Conflict` for another uid or version, 500 for a Binding without a Node, and errors of
/// admission.
pub(super) fn bind_named(
    state: &mut State,
    info: &RequestInfo,
    mut binding: Value,
) -> Result<VerbResponse, StatusError> {
    namespace::check_namespace(&state.store, info, &binding)?;
    ownership::update_managers(state, info, None, &mut binding)?;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let binding = &admit_binding(state, info, &name, binding)?;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(StatusError::bad_request("Name parameter required."));
    }
    let pod = state.store.object(&pod::KIND, &info.namespace, name);
    let pod = pod.ok_or_else(|| StatusError::not_found(&pod::KIND.group_resource(), name))?;
    bind(&mut state.store, info, name, &pod, binding)
}

/// Validates a Binding (`ValidatePodBinding`). Upstream returns 500 for an invalid one. A kind other than `Node` is
/// invalid; the empty one counts as `Node`.
fn check_binding(binding: &Value) -> Result<(), StatusError> {
    let text = |field: &str| binding["target"][field].as_str().unwrap_or_default();
    if ["", node::KIND.kind].contains(&text("kind")) && !text("name").is_empty() {
        return Ok(());
    }
    let why = format!("target: must name a Node, found kind {:?} and name {:?}", text("kind"), text("name"));
    Err(StatusError::server_error(why))
}

/// Assigns a node to a Pod (`assignPod` in `pkg/registry/core/pod/storage`). Uid and version in the binding's metadata
/// are preconditions. Labels and annotations of the binding are added to the Pod, and so are the topology labels of the
/// Node. The error for a Pod with a Node is `Conflict`.
fn bind(
    store: &mut Store,
    info: &RequestInfo,
    name: &str,
    pod: &Arc<Value>,
    binding: &Value,
) -> Result<VerbResponse, StatusError> {
    let (subject, required, stored) = (Subject::from_request(info), &binding["metadata"], &pod["metadata"]);
    check_uid(subject, &required["uid"], &stored["uid"])?;
    check_version(subject, &required["resourceVersion"], &stored["resourceVersion"])?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    let current_node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !current_node.is_empty() {
        let subresource = GroupResource::new("", &format!("{}/binding", pod::KIND.resource));
        let why = format!("pod {name} is already assigned to node {current_node:?}");
        return Err(StatusError::conflict(&subresource, name, &why));
    }
    let mut new = Value::clone(pod);
    new["spec"]["nodeName"] = node.into();
    // A valid target without a kind is a Node too, but upstream copies no labels for it.
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    let topology_labels = if kind.is_empty() { Map::new() } else { write::topology(store, node) };
    for field in ["labels", "annotations"] {
        let sent = binding["metadata"][field].as_object().into_iter().flatten();
        for (key, value) in sent.chain(topology_labels.iter().filter(|_| field == "labels")) {
            new["metadata"][field][key] = value.clone();
        }
    }
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": store.clock.seconds() });
    let conditions = new["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let others = conditions.into_iter().filter(|condition| condition["type"] != "PodScheduled");
    new["status"]["conditions"] = others.chain([scheduled]).collect();
    // A bound Pod is no longer nominated for a node.
    new["status"].as_object_mut().map(|status| status.remove("nominatedNodeName"));
    if !info.dry_run() {
        let key = (info.namespace.clone(), name.to_owned());
        lifecycle::update(store, &pod::KIND.group_resource(), &key, pod, new);
    }
    Ok(VerbResponse::success(StatusCode::CREATED))
}
