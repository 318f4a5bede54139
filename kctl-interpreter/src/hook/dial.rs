//! What a Service of the control plane stands for.

use http::Uri;
use serde_json::Value;

use super::configuration;

/// Knows the Services of a control plane. A function on namespace and name does.
pub trait Services: Send + Sync {
    /// Returns the Service, as JSON, where there is one. It is asked for each new connection and must not wait.
    fn get(&self, namespace: &str, name: &str) -> Option<Value>;
}

impl<F: Fn(&str, &str) -> Option<Value> + Send + Sync> Services for F {
    fn get(&self, namespace: &str, name: &str) -> Option<Value> {
        self(namespace, name)
    }
}

/// A Service that stands for no address: correct the Service, or the configuration that names it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceUnusable {
    /// A Service without an address of its own.
    #[error("cannot route to service with ClusterIP \"None\"")]
    Headless,
    /// The configuration names a port that the Service does not have.
    #[error("no service port {port} found for service {name:?}")]
    PortMissing {
        /// The port of the configuration.
        port: u16,
        /// The Service.
        name: String,
    },
    /// A type that Kubernetes does not have.
    #[error("unsupported service type {kind:?}")]
    TypeUnknown {
        /// The type.
        kind: String,
    },
}

/// Returns the `host:port` that a Service stands for. One that the control plane does not have is looked up in the DNS.
pub(super) fn endpoint(services: &dyn Services, reference: &configuration::Service) -> Result<String, ServiceUnusable> {
    let configuration::Service { namespace, name, port, .. } = reference;
    let Some(service) = services.get(namespace, name) else {
        return Ok(format!("{name}.{namespace}.svc:{port}"));
    };
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    match text("type") {
        "ExternalName" => Ok(format!("{}:{port}", bracketed(text("externalName")))),
        // The API server fills the type in; objects that never were on one may have none.
        "" | "ClusterIP" if text("clusterIP") == "None" => Err(ServiceUnusable::Headless),
        "" | "ClusterIP" | "LoadBalancer" | "NodePort" => {
            let mut ports = spec["ports"].as_array().into_iter().flatten();
            if !ports.any(|known| known["port"] == *port) {
                return Err(ServiceUnusable::PortMissing { port: *port, name: name.clone() });
            }
            Ok(format!("{}:{port}", bracketed(text("clusterIP"))))
        }
        kind => Err(ServiceUnusable::TypeUnknown { kind: kind.to_owned() }),
    }
}

/// Whether an address is that of a Service.
pub(super) fn stands_for(reference: &configuration::Service, uri: &Uri) -> bool {
    let configuration::Service { namespace, name, port, .. } = reference;
    uri.host() == Some(&format!("{name}.{namespace}.svc")) && uri.port_u16().unwrap_or(443) == *port
}

/// An address of IPv6 stands in brackets before a port.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_stands_for_its_cluster_address_and_an_unknown_one_for_its_name() {
        let ports = json!([{ "port": 80 }, { "port": 8443 }]);
        let of = |kind: &str, ip: &str| json!({ "spec": { "type": kind, "clusterIP": ip, "ports": ports } });
        let missing = ServiceUnusable::PortMissing { port: 8443, name: "s".into() };
        let unknown = ServiceUnusable::TypeUnknown { kind: "Odd".into() };
        let cases = [
            (None, Ok("s.n.svc:8443")),
            (Some(of("ClusterIP", "10.0.0.1")), Ok("10.0.0.1:8443")),
            (Some(of("LoadBalancer", "fd00::1")), Ok("[fd00::1]:8443")),
            (Some(of("NodePort", "10.0.0.1")), Ok("10.0.0.1:8443")),
            (Some(of("ClusterIP", "None")), Err(ServiceUnusable::Headless)),
            (
                Some(json!({ "spec": { "type": "ExternalName", "externalName": "hooks.example.com" } })),
                Ok("hooks.example.com:8443"),
            ),
            (
                Some(json!({ "spec": { "type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{ "port": 443 }] } })),
                Err(missing),
            ),
            (Some(of("Odd", "10.0.0.1")), Err(unknown)),
        ];
        let reference =
            configuration::Service { namespace: "n".into(), name: "s".into(), path: String::new(), port: 8443 };
        for (service, expected) in cases {
            let services = |namespace: &str, name: &str| service.clone().filter(|_| (namespace, name) == ("n", "s"));
            assert_eq!(endpoint(&services, &reference), expected.map(ToOwned::to_owned), "{service:?}");
        }
    }
}
