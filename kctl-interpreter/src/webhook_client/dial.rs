//! Addresses of Services: resolves a Service reference as Karmada does (`resolveCluster` in
//! `pkg/resourceinterpreter/customized/webhook/serviceresolvers.go`).

use http::Uri;
use serde_json::Value;

use super::configuration;

/// A lookup of the Services of a control plane. Closures over namespace and name implement it.
///
/// [`Webhooks`](super::Webhooks) calls it to route a webhook with `clientConfig.service` to the cluster
/// IP, because a control plane often has no cluster DNS. Answer from a cache, such as the store of
/// a reflector.
///
/// ```
/// use std::collections::HashMap;
/// use kctl_interpreter::webhook_client::Services;
/// use serde_json::{Value, json};
///
/// let service = json!({ "spec": { "type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{ "port": 443 }] } });
/// let cache: HashMap<String, Value> = [("shop/webhooks".to_owned(), service)].into();
/// let services = move |namespace: &str, name: &str| cache.get(&format!("{namespace}/{name}")).cloned();
/// assert!(services.get("shop", "webhooks").is_some());
/// assert!(services.get("shop", "other").is_none());
/// ```
pub trait Services: Send + Sync {
    /// Returns the Service as JSON; `None` if the control plane does not have it, and DNS resolves
    /// its name instead.
    ///
    /// It is called for each new connection, on the task that connects, so it must not block.
    fn get(&self, namespace: &str, name: &str) -> Option<Value>;
}

impl<F: Fn(&str, &str) -> Option<Value> + Send + Sync> Services for F {
    fn get(&self, namespace: &str, name: &str) -> Option<Value> {
        self(namespace, name)
    }
}

/// The error of a Service without a usable address: correct the Service, or the configuration that
/// refers to it.
///
/// ```
/// use kctl_interpreter::webhook_client::ServiceError;
///
/// assert_eq!(ServiceError::Headless.to_string(), "cannot route to service with ClusterIP \"None\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The Service is headless: it has no cluster IP.
    #[error("cannot route to service with ClusterIP \"None\"")]
    Headless,
    /// The configuration names a port that the Service does not have.
    #[error("no service port {port} found for service {name:?}")]
    #[non_exhaustive]
    PortMissing {
        /// The port in the configuration.
        port: u16,
        /// The name of the Service.
        name: String,
    },
    /// The Service has a type that Kubernetes does not define.
    #[error("unsupported service type {kind:?}")]
    #[non_exhaustive]
    TypeUnknown {
        /// The value of `spec.type`.
        kind: String,
    },
}

/// Returns `host:port` to connect to for a Service reference.
///
/// A Service that the control plane does not know is resolved by DNS. An `ExternalName` gives its
/// external name; all other types give the cluster IP.
pub(super) fn endpoint(services: &dyn Services, reference: &configuration::Service) -> Result<String, ServiceError> {
    let configuration::Service { namespace, name, port, .. } = reference;
    let Some(service) = services.get(namespace, name) else {
        return Ok(format!("{name}.{namespace}.svc:{port}"));
    };
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    match text("type") {
        "ExternalName" => Ok(format!("{}:{port}", bracket_ipv6(text("externalName")))),
        // API servers set a default type. An object that was never stored may have none.
        "" | "ClusterIP" if text("clusterIP") == "None" => Err(ServiceError::Headless),
        "" | "ClusterIP" | "LoadBalancer" | "NodePort" => {
            let mut ports = spec["ports"].as_array().into_iter().flatten();
            if !ports.any(|served| served["port"] == *port) {
                return Err(ServiceError::PortMissing { port: *port, name: name.clone() });
            }
            Ok(format!("{}:{port}", bracket_ipv6(text("clusterIP"))))
        }
        kind => Err(ServiceError::TypeUnknown { kind: kind.to_owned() }),
    }
}

/// Returns `true` if the URI has the host and port of the Service reference. After a redirect it
/// may have others.
pub(super) fn matches_service(reference: &configuration::Service, uri: &Uri) -> bool {
    let configuration::Service { namespace, name, port, .. } = reference;
    uri.host() == Some(&format!("{name}.{namespace}.svc")) && uri.port_u16().unwrap_or(443) == *port
}

/// Returns the host in the form that a port can follow: an IPv6 address gets brackets.
fn bracket_ipv6(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn service_resolves_to_cluster_ip_or_name() {
        let ports = json!([{ "port": 80 }, { "port": 8443 }]);
        let spec = |kind: &str, ip: &str| json!({ "spec": { "type": kind, "clusterIP": ip, "ports": ports } });
        let missing = ServiceError::PortMissing { port: 8443, name: "s".into() };
        let unknown = ServiceError::TypeUnknown { kind: "Odd".into() };
        let cases = [
            (None, Ok("s.n.svc:8443")),
            (Some(spec("ClusterIP", "10.0.0.1")), Ok("10.0.0.1:8443")),
            (Some(spec("LoadBalancer", "fd00::1")), Ok("[fd00::1]:8443")),
            (Some(spec("NodePort", "10.0.0.1")), Ok("10.0.0.1:8443")),
            (Some(spec("ClusterIP", "None")), Err(ServiceError::Headless)),
            (
                Some(json!({ "spec": { "type": "ExternalName", "externalName": "hooks.example.com" } })),
                Ok("hooks.example.com:8443"),
            ),
            (
                Some(json!({ "spec": { "type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{ "port": 443 }] } })),
                Err(missing),
            ),
            (Some(spec("Odd", "10.0.0.1")), Err(unknown)),
        ];
        let reference =
            configuration::Service { namespace: "n".into(), name: "s".into(), path: String::new(), port: 8443 };
        for (service, expected) in cases {
            let services = |namespace: &str, name: &str| service.clone().filter(|_| (namespace, name) == ("n", "s"));
            assert_eq!(endpoint(&services, &reference), expected.map(ToOwned::to_owned), "{service:?}");
        }
    }
}
