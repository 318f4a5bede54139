//! A sharder that follows the protocol of kubernetes-controller-sharding v0.13.0 against the embedded API server: the
//! webhook that assigns objects, the controller of shard Leases, and the resync.
//!
//! It differs in its hash function, which shards never compute. It also checks all objects in each step.

use bytes::Bytes;
use http::{Request, Response};
use kctl::{
    Json,
    apiserver::{ApiServer, User},
    json,
    k8s::{
        api::{admissionregistration::v1::MutatingWebhookConfiguration, coordination::v1::Lease},
        jiff::Timestamp,
    },
    kube::{
        Api, Client,
        api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
        core::ApiResource,
    },
    prelude::*,
};

pub(super) const RING: &str = "podset";
pub(super) const SHARD_LABEL: &str = "shard.alpha.sharding.timebertt.dev/podset";
pub(super) const DRAIN_LABEL: &str = "drain.alpha.sharding.timebertt.dev/podset";
pub(super) const STATE_LABEL: &str = "alpha.sharding.timebertt.dev/state";
const RING_LABEL: &str = "alpha.sharding.timebertt.dev/controllerring";
/// The holder identity of a Lease that the sharder has acquired.
pub(super) const TAKEN: &str = "shardlease-controller";
const HOST: &str = "sharder.sharding-system.svc";
const STEP: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub(super) struct Sharder {
    server: ApiServer,
    /// For its Leases and the webhook configuration.
    client: Client,
    /// For the objects of the ring.
    objects: Client,
}

/// Returns the state of a shard by its Lease (`pkg/sharding/leases/state.go`).
fn state(name: &str, lease: &Json, now: Timestamp) -> &'static str {
    let spec = &lease["spec"];
    if spec["holderIdentity"] != name {
        return "dead";
    }
    let renewed: Timestamp = spec["renewTime"].as_str().unwrap().parse().unwrap();
    let (age, duration) = ((now - renewed).get_seconds(), spec["leaseDurationSeconds"].as_i64().unwrap());
    match age / duration {
        0 => "ready",
        1 => "expired",
        _ => "uncertain",
    }
}

/// Returns the shard with the highest weight for a key.
pub(super) fn highest_weight_shard(key: &str, available: &[String]) -> Option<String> {
    let weight = |shard: &String| {
        let bytes = key.bytes().chain(shard.bytes());
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
    };
    available.iter().max_by_key(|shard| weight(shard)).cloned()
}

/// Returns the key of an object: its own, or its controller's. `None` if the object is not assigned.
fn hash_key(resource: &str, object: &Json) -> Option<String> {
    let meta = &object["metadata"];
    let (kind, name) = if resource == "configmaps" {
        ("ConfigMap", &meta["name"])
    } else {
        let owners = meta["ownerReferences"].as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        ("ConfigMap", &owner["name"])
    };
    Some(format!("/{kind}/{}/{}", meta["namespace"].as_str()?, name.as_str()?))
}

impl Sharder {
    pub(super) async fn start(server: &ApiServer) -> Self {
        let client = Client::new(server.service(), "default");
        let sharder = Self { server: server.clone(), objects: client.clone(), client };
        let webhook = sharder.clone();
        server.serve_webhook(HOST, move |request: Request<Bytes>| {
            let response = webhook.admit(&serde_json::from_slice(request.body()).unwrap());
            async move { Response::new(response.to_string().into()) }
        });
        let rule = |resource: &str| {
            json!({
                "apiGroups": [""], "apiVersions": ["*"], "resources": [resource], "operations": ["CREATE", "UPDATE"], "scope": "*",
            })
        };
        let config = json!({
            "metadata": { "name": format!("controllerring-{RING}") },
            "webhooks": [{
                "name": "sharder.sharding.timebertt.dev",
                "clientConfig": { "service": {
                    "namespace": "sharding-system", "name": "sharder", "path": format!("/webhooks/sharder/controllerring/{RING}"),
                } },
                "failurePolicy": "Ignore", "sideEffects": "None", "timeoutSeconds": 5, "admissionReviewVersions": ["v1"],
                "objectSelector": { "matchExpressions": [{ "key": SHARD_LABEL, "operator": "DoesNotExist" }] },
                "rules": [rule("configmaps"), rule("secrets")],
            }],
        });
        let configs = Api::<MutatingWebhookConfiguration>::all(sharder.client.clone());
        configs.create(&PostParams::default(), &kctl::from_json(config).unwrap()).await.unwrap();
        sharder
    }

    /// Lists and patches the objects of the ring as this user.
    pub(super) fn with_user(mut self, user: User) -> Self {
        self.objects = Client::new(self.server.service_as(user), "default");
        self
    }

    /// Runs until the future is dropped.
    pub(super) async fn run(self) {
        loop {
            self.step().await;
            tokio::time::sleep(STEP).await;
        }
    }

    fn shards(&self) -> Vec<(String, &'static str)> {
        let leases = self.server.objects("coordination.k8s.io", "leases");
        let ring_leases = leases.iter().filter(|lease| lease["metadata"]["labels"][RING_LABEL] == RING);
        let now = self.server.now();
        let shards = ring_leases.map(|lease| {
            let name = lease["metadata"]["name"].as_str().unwrap();
            (name.to_owned(), state(name, lease, now))
        });
        shards.collect()
    }

    fn available(&self) -> Vec<String> {
        self.shards().into_iter().filter(|(_, state)| *state != "dead").map(|(name, _)| name).collect()
    }

    /// Answers an `AdmissionReview` (`pkg/webhook/sharder/handler.go`).
    fn admit(&self, review: &Json) -> Json {
        let request = &review["request"];
        let mut response = json!({ "uid": request["uid"], "allowed": true });
        let key = hash_key(request["resource"]["resource"].as_str().unwrap(), &request["object"]);
        if let Some(shard) = key.and_then(|key| highest_weight_shard(&key, &self.available())) {
            let mut patch = Vec::new();
            if request["object"]["metadata"]["labels"].is_null() {
                patch.push(json!({ "op": "add", "path": "/metadata/labels", "value": {} }));
            }
            let path = format!("/metadata/labels/{}", SHARD_LABEL.replace('/', "~1"));
            patch.push(json!({ "op": "add", "path": path, "value": shard }));
            response["patchType"] = "JSONPatch".into();
            response["patch"] = base64(&Json::from(patch).to_string()).into();
        }
        json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response })
    }

    /// Maintains the Leases, then drains and moves objects that are assigned to another shard.
    pub(super) async fn step(&self) {
        let leases = Api::<Lease>::default_namespaced(self.client.clone());
        for (name, state) in self.shards() {
            let mut lease = leases.get(&name).await.unwrap();
            if lease.labels().get(STATE_LABEL).is_none_or(|known| known != state) {
                lease.labels_mut().insert(STATE_LABEL.into(), state.into());
                // After a conflict, the next step sees the shard's renewal.
                let Ok(labelled) = leases.replace(&name, &PostParams::default(), &lease).await else { continue };
                lease = labelled;
            }
            if state == "uncertain" {
                let spec = lease.spec.as_mut().unwrap();
                spec.holder_identity = Some(TAKEN.into());
                spec.lease_duration_seconds = spec.lease_duration_seconds.map(|seconds| 2 * seconds);
                let _faster = leases.replace(&name, &PostParams::default(), &lease).await;
            }
        }
        let available = self.available();
        for (resource, kind) in [("configmaps", "ConfigMap"), ("secrets", "Secret")] {
            let of = ApiResource {
                group: String::new(),
                version: "v1".into(),
                api_version: "v1".into(),
                kind: kind.into(),
                plural: resource.into(),
            };
            let objects = Api::<DynamicObject>::default_namespaced_with(self.objects.clone(), &of);
            let Ok(listed) = objects.list(&ListParams::default()).await else { continue };
            for object in listed {
                let json = serde_json::to_value(&object).unwrap();
                let Some(desired) = hash_key(resource, &json).and_then(|key| highest_weight_shard(&key, &available))
                else {
                    continue;
                };
                let current = object.labels().get(SHARD_LABEL).cloned().unwrap_or_default();
                if current == desired {
                    continue;
                }
                let is_drained = resource == "configmaps" && available.contains(&current);
                let labels = if is_drained {
                    json!({ DRAIN_LABEL: "true" })
                } else {
                    json!({ SHARD_LABEL: null, DRAIN_LABEL: null })
                };
                let patch = json!({ "metadata": { "resourceVersion": object.resource_version(), "labels": labels } });
                let _changed = objects.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
            }
        }
    }
}

fn base64(text: &str) -> String {
    let value = serde_json::to_value(kctl::k8s::ByteString(text.as_bytes().to_vec())).unwrap();
    value.as_str().unwrap().to_owned()
}
