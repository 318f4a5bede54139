//! The condition `Available` of `APIServices` (`kube-aggregator/pkg/controllers/status`), and the response for the
//! paths of `APIServices` with a Service.
//!
//! Requests are not forwarded to other servers. An `APIService` that a cluster could reach is `Available=False` here,
//! and its paths return 503, as if its server did not respond.
//!
//! Upstream considers a version available if its server responds. The earlier checks are the same here: Service, port,
//! `EndpointSlice` and ready endpoints are checked, so that the reasons are the same as in a cluster.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    conditions::report,
    field_errors::text,
    kinds::{apiregistration::api_service::API_SERVICES, core::service, discovery::endpoint_slice},
    lifecycle::Writer,
    registry::kind::Subresource,
    status::GroupResource,
    store::{Key, Store},
};

/// Writes the status as kube-apiserver's own field manager.
const WRITER: Writer = Writer { manager: "kube-apiserver", subresource: Subresource::Status };
/// The label of an `EndpointSlice` with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The port of the Service if the `APIService` specifies none (`SetDefaults_ServiceReference`).
const DEFAULT_PORT: i64 = 443;

/// Returns `true` if the availability of another server's `APIService` may change with objects of this resource. Local
/// versions depend on no other object.
pub(super) fn depend_on(resource: &GroupResource) -> bool {
    service::KIND.is_of(resource) || endpoint_slice::KIND.is_of(resource)
}

/// Updates the conditions of all `APIServices`. An unchanged condition is not written again, so `lastTransitionTime`
/// does not change.
pub(super) fn update(store: &mut Store) {
    let all: Vec<Arc<Value>> = store.objects(&API_SERVICES, None).collect();
    for service in all {
        let (status, reason, message) = availability(store, &service);
        let mut new = Value::clone(&service);
        report(&mut new, &store.clock.seconds(), ["Available", status, reason, &message]);
        if new != *service {
            let key: Key = (String::new(), text(&service["metadata"]["name"]).to_owned());
            WRITER.write(store, &API_SERVICES, &key, &service, new);
        }
    }
}

/// Returns status, reason and message of the condition of an `APIService`.
///
/// | check | reason if it fails |
/// |---|---|
/// | no `spec.service` | available, `Local` |
/// | the Service exists | `ServiceNotFound` |
/// | a `ClusterIP` Service has the port | `ServicePortError` |
/// | it has an `EndpointSlice` | `EndpointsNotFound` |
/// | one of them has a ready endpoint with the port | `MissingEndpoints` |
/// | the server responds | `FailedDiscoveryCheck`, always |
fn availability(store: &Store, api_service: &Value) -> (&'static str, &'static str, String) {
    let spec = &api_service["spec"];
    if !spec["service"].is_object() {
        return ("True", "Local", "Local APIServices are always available".into());
    }
    let (name, namespace) = (text(&spec["service"]["name"]), text(&spec["service"]["namespace"]));
    let port = spec["service"]["port"].as_i64().unwrap_or(DEFAULT_PORT);
    let missing = |reason: &'static str, message: String| ("False", reason, message);
    let Some(service) = store.object(&service::KIND, namespace, name) else {
        return missing("ServiceNotFound", format!("service/{name} in {namespace:?} is not present"));
    };
    if service["spec"]["type"] == "ClusterIP" {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let Some(found) = ports.into_iter().find(|candidate| candidate["port"] == port) else {
            let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
            return missing("ServicePortError", message);
        };
        let slices: Vec<Arc<Value>> = store
            .objects_of(&endpoint_slice::KIND, Some(namespace))
            .filter(|slice| slice["metadata"]["labels"][SERVICE_NAME] == name)
            .collect();
        if slices.is_empty() {
            let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
            return missing("EndpointsNotFound", message);
        }
        let port_name = text(&found["name"]);
        if !slices.iter().any(|slice| is_reachable(slice, port_name)) {
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
            );
            return missing("MissingEndpoints", message);
        }
    }
    missing("FailedDiscoveryCheck", "the embedded API server passes no requests on to other servers".to_owned())
}

/// Returns `true` if a slice has a ready endpoint and a port of this name (`hasAvailableEndpoint`). An endpoint without
/// the condition `ready` counts as ready.
fn is_reachable(slice: &Value, port_name: &str) -> bool {
    let mut endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let mut ports = slice["ports"].as_array().into_iter().flatten();
    endpoints.any(|endpoint| endpoint["conditions"]["ready"] != false)
        && ports.any(|port| port["name"].as_str() == Some(port_name) && port["port"].is_i64())
}

#[cfg(test)]
mod tests {
    use http::Request;
    use serde_json::json;

    use super::*;
    use crate::{ApiServer, User};

    async fn ask(server: &ApiServer, user: User, method: &str, path: &str, body: &Value) -> (u16, String) {
        let request = Request::builder().method(method).uri(path);
        let response = server.service_as(user).send_request(request, body.to_string()).await;
        (response.status().as_u16(), response.into_body())
    }

    async fn register(server: &ApiServer) {
        let spec = json!({
            "group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 2000, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": { "name": "s", "namespace": "default" },
        });
        let service = json!({ "metadata": { "name": "v1alpha1.cluster.karmada.io" }, "spec": spec });
        server.succeed("POST", "/apis/apiregistration.k8s.io/v1/apiservices", &service).await;
    }

    fn condition(server: &ApiServer) -> (String, String, String) {
        let name = "v1alpha1.cluster.karmada.io";
        let service = server.object("apiregistration.k8s.io", "apiservices", "", name).unwrap();
        let condition = &service["status"]["conditions"][0];
        let field = |field: &str| text(&condition[field]).to_owned();
        assert_eq!(service["status"]["conditions"].as_array().map(Vec::len), Some(1));
        (field("status"), field("reason"), field("message"))
    }

    /// Expects the conditions of kube-apiserver at each step.
    #[tokio::test(start_paused = true)]
    async fn remote_api_service_is_unavailable_with_a_reason() {
        let server = ApiServer::new();
        register(&server).await;
        let check = |reason: &str, message: &str| {
            assert_eq!(condition(&server), ("False".to_owned(), reason.to_owned(), message.to_owned()));
        };
        check("ServiceNotFound", "service/s in \"default\" is not present");
        let services = "/api/v1/namespaces/default/services";
        let service = json!({ "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80, "name": "x" }] } });
        server.succeed("POST", services, &service).await;
        check("ServicePortError", "service/s in \"default\" is not listening on port 443");
        let mut service = Value::clone(&server.object("", "services", "default", "s").unwrap());
        service["spec"]["ports"] = json!([{ "port": 443, "name": "https" }]);
        ask(&server, User::admin(), "PUT", &format!("{services}/s"), &service).await;
        check("EndpointsNotFound", "cannot find endpointslices for service/s in \"default\"");
        let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let slice = |name: &str, port: &str| {
            json!({
                "metadata": { "name": name, "labels": { SERVICE_NAME: "s" } }, "addressType": "IPv4",
                "endpoints": [{ "addresses": ["192.0.2.1"] }], "ports": [{ "name": port, "port": 1 }],
            })
        };
        server.succeed("POST", slices, &slice("a", "other")).await;
        let message = "endpointslices for service/s in \"default\" have no addresses with port name \"https\"";
        check("MissingEndpoints", message);
        server.succeed("POST", slices, &slice("b", "https")).await;
        assert_eq!(condition(&server).1, "FailedDiscoveryCheck");
        ask(&server, User::admin(), "DELETE", &format!("{services}/s"), &json!({})).await;
        check("ServiceNotFound", "service/s in \"default\" is not present");
    }

    #[tokio::test(start_paused = true)]
    async fn paths_of_another_server_are_answered_503() {
        let server = ApiServer::new();
        register(&server).await;
        let nobody = || User { name: "nobody".into(), groups: Vec::new() };
        let root = "/apis/cluster.karmada.io/v1alpha1";
        for path in ["", "/clusters", "/clusters/a", "/clusters/a/proxy/api/v1/pods", "/namespaces/n/x?watch=true"] {
            let path = format!("{root}{path}");
            let response = ask(&server, User::admin(), "GET", &path, &Value::Null).await;
            assert_eq!(response, (503, "service unavailable\n".to_owned()), "{path}");
        }
        let (code, response) = ask(&server, nobody(), "GET", &format!("{root}/clusters"), &Value::Null).await;
        assert_eq!(code, 403, "{response}");
        let (code, group) = ask(&server, User::admin(), "GET", "/apis/cluster.karmada.io", &Value::Null).await;
        let version = json!({ "groupVersion": "cluster.karmada.io/v1alpha1", "version": "v1alpha1" });
        let group: Value = serde_json::from_str(&group).unwrap();
        assert_eq!((code, &group["versions"], &group["preferredVersion"]), (200, &json!([version]), &version));
        let name = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.cluster.karmada.io";
        ask(&server, User::admin(), "DELETE", name, &json!({})).await;
        for path in ["/apis/cluster.karmada.io", root] {
            assert_eq!(ask(&server, User::admin(), "GET", path, &Value::Null).await.0, 404, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn api_service_can_take_over_builtin_version() {
        let server = ApiServer::new();
        let name = "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps";
        let mut service = Value::clone(&server.object("apiregistration.k8s.io", "apiservices", "", "v1.apps").unwrap());
        service["spec"]["service"] = json!({ "name": "a", "namespace": "b" });
        service["spec"]["insecureSkipTLSVerify"] = true.into();
        let (code, response) = ask(&server, User::admin(), "PUT", name, &service).await;
        assert_eq!(code, 200, "{response}");
        let deployments = "/apis/apps/v1/namespaces/default/deployments";
        assert_eq!(ask(&server, User::admin(), "GET", deployments, &Value::Null).await.0, 503);
        let mut service = Value::clone(&server.object("apiregistration.k8s.io", "apiservices", "", "v1.apps").unwrap());
        assert_eq!(service["status"]["conditions"][0]["reason"], "ServiceNotFound");
        for field in ["service", "insecureSkipTLSVerify"] {
            service["spec"].as_object_mut().unwrap().remove(field);
        }
        ask(&server, User::admin(), "PUT", name, &service).await;
        assert_eq!(ask(&server, User::admin(), "GET", deployments, &Value::Null).await.0, 200);
        let service = server.object("apiregistration.k8s.io", "apiservices", "", "v1.apps").unwrap();
        assert_eq!(service["status"]["conditions"][0]["status"], "True");
    }
}
