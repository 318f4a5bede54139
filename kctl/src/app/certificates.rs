//! The certificates of `--webhook-secret`: one Secret that all replicas read, and the webhook configurations and CRDs
//! that trust it. For the files of `--webhook-cert-dir` see [`kctl_webhook::server::Certificate::Files`].
//!
//! [`kctl_webhook::rotation`] decides which certificate is due; this module reads and writes. Any
//! replica repairs what does not work at all: no certificate, or a configuration that does not
//! trust the one that is served. Caches may need conversions, and a replica can't lead before its
//! caches are full. Only the [leader](Leader) changes what works. Each write names the `resourceVersion` that
//! it is based on, so one of two concurrent writes wins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, StatusCode};
use k8s_openapi::{ByteString, api::core::v1::Secret, jiff::Timestamp};
use kctl_runtime::{
    __private_0_1::in_time,
    manager::{Clock, View, lease::Leadership, shards::ShardView},
    reconcile::{Error, Result, ResultExt},
    writer::WritePermit,
};
use kctl_webhook::{
    rotation::{ReplicaRole, Stored, next_contents},
    server::{Pair, Served},
};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Interval at which the Secret and the configurations are read.
pub(super) const READ_INTERVAL: Duration = Duration::from_secs(10);
/// Wait after a conflict: another replica has written a certificate that should be served soon.
const REREAD_DELAY: Duration = Duration::from_millis(500);

/// Timeout of a request; the next pass sends it again. A leader's write has the time that its Lease
/// allows.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The Secret with the certificate, and the objects that have to trust it.
#[derive(Clone)]
pub(super) struct Certificates {
    /// The certificate that the server uses; replaced without a restart.
    pub(super) served: Arc<Served>,
    pub(super) secret: String,
    /// Name of the Service through which API servers call the webhooks.
    pub(super) service: String,
    /// Other host names and addresses that the certificate is valid for.
    pub(super) names: Vec<String>,
    /// API paths of the webhook configurations and CRDs.
    pub(super) trusting: Vec<String>,
    pub(super) manager: String,
    /// The clock that decides what is due.
    pub(super) clock: Clock,
    /// Interval between two passes.
    pub(super) read_every: Duration,
}

/// Returns the API paths of configurations and CRDs that trust the Secret.
pub(super) fn trusting_paths(configurations: &[Value], crd_names: impl IntoIterator<Item = String>) -> Vec<String> {
    let path = |configuration: &Value| {
        let resource = match configuration["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => "mutatingwebhookconfigurations",
            _ => "validatingwebhookconfigurations",
        };
        let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
        format!("/apis/admissionregistration.k8s.io/v1/{resource}/{name}")
    };
    let crd_path = |name: String| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    configurations.iter().map(path).chain(crd_names.into_iter().map(crd_path)).collect()
}

impl Certificates {
    /// Reads, renews and serves certificates as long as it is polled. An error is logged once,
    /// until it changes.
    pub(super) async fn run(mut self, client: Client, namespace: String, leader: Leader) {
        let service = format!("{}.{namespace}.svc", self.service);
        self.names.extend([format!("{service}.cluster.local"), service]);
        let maintainer = CertificateMaintainer {
            path: format!("/api/v1/namespaces/{namespace}/secrets/{}", self.secret),
            certificates: self,
            namespace,
            client,
            leader,
            reported: Mutex::default(),
        };
        let mut reported = String::new();
        loop {
            let mut wait = maintainer.certificates.read_every;
            match maintainer.pass((maintainer.certificates.clock)()).await {
                Ok(()) => reported.clear(),
                Err(error) if error.is_conflict() => {
                    tracing::debug!("{error}");
                    wait = wait.min(REREAD_DELAY);
                }
                Err(error) => {
                    let text = error.to_string();
                    if text != reported {
                        tracing::error!(
                            secret = maintainer.certificates.secret,
                            "failed to maintain the webhook certificate: {text}"
                        );
                        reported = text;
                    }
                }
            }
            tokio::time::sleep(wait).await;
        }
    }
}

struct CertificateMaintainer {
    certificates: Certificates,
    path: String,
    /// Namespace of the Secret and of the Service.
    namespace: String,
    client: Client,
    leader: Leader,
    /// Paths of objects that refer to another Service, which are logged once.
    reported: Mutex<BTreeSet<String>>,
}

/// The election that decides which replica renews certificates.
pub(super) enum Leader {
    /// No election: this process renews them.
    Itself,
    /// The leader of the program renews them.
    Elected(Leadership),
    /// All replicas work, and the owner of slot 0 renews them.
    Sharded(ShardView),
}

impl Leader {
    /// Returns the election of a manager.
    pub(super) fn of(view: &View) -> Self {
        match (view.shards(), view.leadership()) {
            (Some(shards), _) => Self::Sharded(shards.clone()),
            (None, Some(leadership)) => Self::Elected(leadership.clone()),
            (None, None) => Self::Itself,
        }
    }

    /// Returns the rights of a pass that begins now.
    fn authority(&self) -> Authority {
        let permit = match self {
            Self::Itself => return Authority::Leader(None),
            Self::Elected(leadership) => leadership.is_leading().then(|| leadership.permit()),
            Self::Sharded(shards) => shards.leader_permit(),
        };
        permit.map_or(Authority::Standby, |permit| Authority::Leader(Some(permit)))
    }
}

/// The rights of one pass, from its start to its end.
///
/// If each write asked again, a leader that is replaced during its pass would continue as a standby: it would send the
/// leader's next write without a permit.
enum Authority {
    /// Renews certificates, with this permit. Without an election it needs none.
    Leader(Option<WritePermit>),
    /// Repairs what does not work at all.
    Standby,
}

impl Authority {
    fn permit(&self) -> Option<&WritePermit> {
        match self {
            Self::Leader(permit) => permit.as_ref(),
            Self::Standby => None,
        }
    }
}

impl CertificateMaintainer {
    /// Reads the Secret, serves its certificate, makes configurations trust it, and renews what is
    /// due.
    async fn pass(&self, now: Timestamp) -> Result<()> {
        let authority = &self.leader.authority();
        let secret: Secret = match self.get(&self.path).await? {
            Some(secret) => secret,
            None => self.create_empty_secret(authority).await?,
        };
        let fields = secret.data.clone().unwrap_or_default().into_iter().map(|(name, ByteString(value))| (name, value));
        let fields: SecretData = fields.collect();
        if is_managed_elsewhere(&secret, &fields) {
            return self.serve_foreign_certificate(&fields);
        }
        let stored = Stored::read(&fields);
        let mut trusted = false;
        if let Some(stored) = &stored {
            self.serve(stored)?;
            trusted = self.update_ca_bundles(stored, authority).await?;
        }
        let role = match authority {
            Authority::Leader(_) => ReplicaRole::Leader { trusted },
            Authority::Standby => ReplicaRole::Standby,
        };
        if let Some(next) = next_contents(stored.as_ref(), &self.certificates.names, now, role)? {
            self.write(&secret, &next, authority).await?;
            self.update_ca_bundles(&next, authority).await?;
            self.serve(&next)?;
        }
        Ok(())
    }

    /// Serves a certificate. An open connection keeps the one that it started with.
    fn serve(&self, stored: &Stored) -> Result<()> {
        if self.certificates.served.set(stored.pair().clone())? {
            tracing::info!(secret = self.certificates.secret, "webhooks use a new certificate");
        }
        Ok(())
    }

    /// Serves a certificate that another program writes, such as cert-manager. That program also makes configurations
    /// trust it. Unlike a certificate in files, its expiry and names are not checked.
    fn serve_foreign_certificate(&self, fields: &SecretData) -> Result<()> {
        let text = |name: &str| fields.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| text(name).unwrap_or_default());
        let name = &self.certificates.secret;
        let is_new = self.certificates.served.set(Pair { certificate, key }).context(format!(
            "Secret {name} is managed by another program and is left as it is, but its tls.crt and tls.key can't be served: fix \
             them, or name another Secret with --webhook-secret"
        ))?;
        if is_new {
            tracing::info!(secret = name, "webhooks use a new certificate that another process wrote");
        }
        Ok(())
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let response = self.client.request(Request::get(path).body(Vec::new())?);
        match wait_for_response(path, RESPONSE_TIMEOUT, response).await? {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == StatusCode::NOT_FOUND => Ok(None),
            Err(error) => Err(error).context(describe_path(path)),
        }
    }

    /// Sends a patch. A leader asks its write permit first, and may take only as long as the permit
    /// allows.
    ///
    /// # Errors
    /// The permit was lost since the pass began, the API server rejects the patch, or there is no response in time.
    async fn patch<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        media: &str,
        body: &Value,
        authority: &Authority,
    ) -> Result<T> {
        let request = Request::builder().method(Method::PATCH).uri(path).header("content-type", media);
        let request = request.body(serde_json::to_vec(body)?)?;
        let Some(permit) = authority.permit() else {
            return wait_for_response(path, RESPONSE_TIMEOUT, self.client.request(request))
                .await?
                .context(describe_path(path));
        };
        let guard = permit.acquire(describe_path(path)).await?;
        let response =
            in_time(&guard, self.client.request(request)).await.ok_or_else(|| late(path, guard.timeout()))?;
        if is_decided(&response) {
            guard.resolve();
        }
        response.context(describe_path(path))
    }

    /// Applies a Secret without data under a separate field manager, so it overwrites nothing that
    /// a faster replica has written.
    async fn create_empty_secret(&self, authority: &Authority) -> Result<Secret> {
        let manager = format!("{}-create", self.certificates.manager);
        self.apply(&manager, &json!({ "name": self.certificates.secret }), &BTreeMap::new(), authority).await
    }

    async fn write(&self, read: &Secret, next: &Stored, authority: &Authority) -> Result<()> {
        let meta = json!({ "name": self.certificates.secret, "resourceVersion": read.metadata.resource_version });
        let data = next.fields()?.into_iter().map(|(name, value)| (name, ByteString(value.into_bytes()))).collect();
        let _written: Secret = self.apply(&self.certificates.manager, &meta, &data, authority).await?;
        Ok(())
    }

    async fn apply(
        &self,
        manager: &str,
        meta: &Value,
        data: &BTreeMap<String, ByteString>,
        authority: &Authority,
    ) -> Result<Secret> {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": data });
        let path = format!("{}?fieldManager={manager}&force=true", self.path);
        self.patch(&path, "application/apply-patch+yaml", &secret, authority).await
    }

    /// Adds the authorities to each configuration that lacks them. Returns `true` if all of them
    /// trust all authorities.
    ///
    /// An object that refers to another Service is left as it is. Two installs may share a CRD, and each would replace
    /// the authority of the other.
    async fn update_ca_bundles(&self, stored: &Stored, authority: &Authority) -> Result<bool> {
        let mut all = true;
        for path in &self.certificates.trusting {
            // Without a configuration, no API server calls the webhook.
            let Some(object) = self.get::<Value>(path).await? else { continue };
            if let Some(other) = self.other_service(&object) {
                if self.reported.lock().insert(path.clone()) {
                    let (object, service) = (describe_path(path), &self.certificates.service);
                    tracing::warn!(
                        "{object} refers to Service {other} instead of {}/{service}: its caBundle is not changed",
                        self.namespace
                    );
                }
                continue;
            }
            let missing = missing(&object, stored);
            let is_broken = missing.iter().any(|(_, served)| !served.contains(stored.signing_authority()));
            if missing.is_empty() {
                continue;
            }
            if matches!(authority, Authority::Standby) && !is_broken {
                all = false;
                continue;
            }
            let bundle = ByteString(stored.bundle().into_bytes());
            // If the object has changed, the answer is 409. A failed `test` would be 422, and a 422 is not a conflict.
            let version = &object["metadata"]["resourceVersion"];
            let mut patch = vec![json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version })];
            patch.extend(missing.iter().map(|(at, _)| json!({ "op": "add", "path": at, "value": bundle })));
            let path = format!("{path}?fieldManager={}", self.certificates.manager);
            let _patched: Value = self.patch(&path, "application/json-patch+json", &patch.into(), authority).await?;
            tracing::info!("{} trusts the webhook certificate", describe_path(&path));
        }
        Ok(all)
    }

    /// Returns the namespace and name of a Service in an object if it is not this program's. An object with a URL has no
    /// Service.
    fn other_service(&self, object: &Value) -> Option<String> {
        let is_own =
            |service: &Value| service["name"] == *self.certificates.service && service["namespace"] == *self.namespace;
        let mut services = client_configs(object).filter_map(|path| object.pointer(&format!("{path}/service")));
        let other = services.find(|service| !is_own(service))?;
        let text = |field: &str| other[field].as_str().unwrap_or_default();
        Some(format!("{}/{}", text("namespace"), text("name")))
    }
}

/// Returns the JSON pointers of the client configurations that an object can have.
fn client_configs(object: &Value) -> impl Iterator<Item = String> {
    let webhooks = object["webhooks"].as_array().map_or(0, Vec::len);
    let paths = (0..webhooks).map(|idx| format!("/webhooks/{idx}/clientConfig"));
    paths.chain([String::from("/spec/conversion/webhook/clientConfig")])
}

type SecretData = BTreeMap<String, Vec<u8>>;

/// Returns `true` if another program writes the Secret, such as cert-manager. kctl's own is
/// `Opaque` and has the key of an authority.
fn is_managed_elsewhere(secret: &Secret, fields: &SecretData) -> bool {
    let has = |name: &str| fields.get(name).is_some_and(|value| !value.is_empty());
    let is_own = has("ca.key") || has("state.json");
    secret.type_.as_deref() == Some("kubernetes.io/tls") || (has("tls.crt") && !is_own)
}

/// Returns the object of a path for messages: `secrets default/web-webhook`,
/// `customresourcedefinitions webs.example.com`.
fn describe_path(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        [.., "namespaces", namespace, plural, name] => format!("{plural} {namespace}/{name}"),
        [.., plural, name] => format!("{plural} {name}"),
        _ => path.into(),
    }
}

/// Waits for a response, for a limited time.
async fn wait_for_response<T>(path: &str, within: Duration, response: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(within, response).await.map_err(|_elapsed| late(path, within))
}

/// Returns the error of a request without a response in time.
fn late(path: &str, within: Duration) -> Error {
    Error::from(format!("{}: no response within {within:?}; retrying", describe_path(path)))
}

/// Returns `true` if the response proves that the write is finished. After a 5xx or a broken connection, the API server
/// may still apply it.
fn is_decided<T>(response: &std::result::Result<T, kube::Error>) -> bool {
    match response {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => status.code < StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        Err(_) => false,
    }
}

/// Returns the JSON pointers of an object that do not hold the authorities, with what they hold.
fn missing(object: &Value, stored: &Stored) -> Vec<(String, String)> {
    let bundles = client_configs(object).filter_map(|path| {
        let config = object.pointer(&path)?.as_object()?;
        let bundle = config.get("caBundle").cloned().unwrap_or_default();
        let bundle =
            serde_json::from_value::<ByteString>(bundle).map_or_else(|_| Vec::new(), |ByteString(bytes)| bytes);
        Some((format!("{path}/caBundle"), String::from_utf8_lossy(&bundle).into_owned()))
    });
    bundles.filter(|(_, bundle)| *bundle != stored.bundle()).collect()
}

#[cfg(all(test, feature = "testing"))]
mod tests;
