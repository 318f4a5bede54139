//! The resources of a whole Pod, `spec.resources`.

use serde_json::Value;

use crate::{
    amounts::{self, ResourceMap},
    defaulting::{add, part},
    json_path::value_at,
};

/// Completes the Pod-level resources of a Pod that has some (`DefaultPodLevelResources` of `pkg/api/pod`).
///
/// | resource | default |
/// |---|---|
/// | limits of huge pages without a request | the sum of the containers |
/// | other requests | the sum of the containers, or else the limit of the Pod |
/// | limits that each container has | the sum of the containers, or the request if that is more |
///
/// The strategy calls it, so that it sees the containers that webhooks add. A Pod without `spec.resources` gets none of
/// these: the scheduler sums up its containers.
pub(super) fn complete(spec: &mut Value) {
    let has =
        |side: &str| value_at(spec, ["resources", side]).and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    if !has("limits") && !has("requests") {
        return;
    }
    let (limits, requests) = (
        amounts::aggregate_containers(spec, ResourceMap::Limits),
        amounts::aggregate_containers(spec, ResourceMap::Requests),
    );
    let request = ResourceMap::Requests.amounts(spec);
    for (name, amount) in limits.iter().filter(|(name, _)| amounts::is_pages(name) && !request.contains_key(*name)) {
        add(part(part(spec, "resources"), "limits"), name, amount.to_string());
    }
    let container_requests = requests.into_iter().filter(|(name, _)| !amounts::is_pages(name));
    for (name, amount) in container_requests
        .chain(ResourceMap::Limits.amounts(spec))
        .filter(|(name, _)| amounts::is_standard_pod_resource(name))
    {
        add(part(part(spec, "resources"), "requests"), &name, amount.to_string());
    }
    for (name, request) in
        ResourceMap::Requests.amounts(spec).into_iter().filter(|(name, _)| amounts::is_standard_pod_resource(name))
    {
        let lists = ["containers", "initContainers", "ephemeralContainers"].map(|list| spec[list].as_array());
        let is_limited = |container: &Value| !container["resources"]["limits"][&name].is_null();
        let are_limited = lists.into_iter().flatten().flatten().all(is_limited);
        if let Some(sum) = limits.get(&name).filter(|_| are_limited) {
            let most = if request > *sum { request } else { *sum };
            add(part(part(spec, "resources"), "limits"), &name, most.to_string());
        }
    }
}
