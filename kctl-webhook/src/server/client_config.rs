//! The address of webhooks in the objects that register them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// The way in which an API server or Karmada reaches webhooks: the `clientConfig` of a configuration.
///
/// ```
/// use kctl_webhook::server::ClientConfig;
/// use serde_json::json;
///
/// let url = ClientConfig::Url("https://127.0.0.1:9443".into());
/// assert_eq!(url.config("/convert", None), json!({ "url": "https://127.0.0.1:9443/convert" }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientConfig {
    /// The start of an https URL, such as `https://127.0.0.1:9443`; paths are appended.
    Url(String),
    /// A Service of the cluster, or of Karmada's control plane.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Port of the Service.
        port: u16,
    },
}

impl ClientConfig {
    /// Returns the `clientConfig` for a path.
    ///
    /// `authority` is PEM, and becomes `caBundle`. Without it the API server uses the roots of its
    /// system, or another program such as cert-manager fills it in.
    pub fn config(&self, path: &str, authority: Option<&str>) -> Value {
        let mut config = match self {
            Self::Url(url) => json!({ "url": format!("{}{path}", url.trim_end_matches('/')) }),
            Self::Service { namespace, name, port } => {
                json!({ "service": { "namespace": namespace, "name": name, "port": port, "path": path } })
            }
        };
        if let Some(authority) = authority {
            config["caBundle"] = STANDARD.encode(authority).into();
        }
        config
    }
}
