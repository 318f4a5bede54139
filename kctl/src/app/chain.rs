//! The chain of interpreters of a control plane: its customizations and webhook configurations, watched and put in force.

use std::sync::Arc;

use k8s_openapi::{
    api::{core::v1::Service, rbac::v1::PolicyRule},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kctl_interpreter::{
    chain::{Layer, Place},
    hook::Hooks,
    lua::{Configurable, Limits, Pool},
    registry::Registry,
};
use kctl_runtime::{
    key::ObjectKey,
    object::Kind,
    reconcile::Result,
    source::{Identity, Source},
    store::SharedStore,
};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The group of customizations and configurations.
const GROUP: &str = "config.karmada.io";
/// Their kinds with their plurals.
const CUSTOMIZATION: (&str, &str) = ("ResourceInterpreterCustomization", "resourceinterpretercustomizations");
const CONFIGURATION: (&str, &str) =
    ("ResourceInterpreterWebhookConfiguration", "resourceinterpreterwebhookconfigurations");
/// The places whose layers come from the control plane.
const PLACES: [Place; 2] = [Place::Configurable, Place::Webhook];

/// What the app's role must allow for it.
pub(super) fn rules() -> Vec<PolicyRule> {
    let read = |group: &str, resources: &[&str]| PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(resources.iter().map(|resource| (*resource).to_owned()).collect()),
        verbs: vec!["list".into(), "watch".into()],
        ..PolicyRule::default()
    };
    vec![read(GROUP, &[CUSTOMIZATION.1, CONFIGURATION.1]), read("", &["services"])]
}

/// The definitions of the two kinds. Karmada brings its own; an API server without it has them from here.
///
/// # Errors
/// None: the objects are definitions.
pub(super) fn definitions() -> Result<Vec<CustomResourceDefinition>> {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
    let script = || object(json!({ "luaScript": { "type": "string" } }), &["luaScript"]);
    let scripts = kctl_interpreter::lua::OPERATIONS.map(|operation| (operation.field.to_owned(), script()));
    let scripts: serde_json::Map<String, Value> = scripts.into_iter().collect();
    let target = object(json!({ "apiVersion": text(), "kind": text() }), &["apiVersion", "kind"]);
    let customizations = object(Value::Object(scripts), &[]);
    let spec = object(json!({ "target": target, "customizations": customizations }), &["target", "customizations"]);
    let service = object(
        json!({ "namespace": text(), "name": text(), "path": text(), "port": { "type": "integer", "format": "int32" } }),
        &["namespace", "name"],
    );
    let client =
        object(json!({ "url": text(), "service": service, "caBundle": { "type": "string", "format": "byte" } }), &[]);
    let rule = object(
        json!({ "operations": texts(), "apiGroups": texts(), "apiVersions": texts(), "kinds": texts() }),
        &["operations", "apiGroups", "apiVersions", "kinds"],
    );
    let webhook = object(
        json!({
            "name": text(), "clientConfig": client, "rules": { "type": "array", "items": rule },
            "timeoutSeconds": { "type": "integer", "format": "int32" }, "interpreterContextVersions": texts(),
        }),
        &["name", "clientConfig", "interpreterContextVersions"],
    );
    let webhooks = json!({ "type": "array", "items": webhook });
    let customization = definition(CUSTOMIZATION, &["ric"], &json!({ "spec": spec }), &["spec"]);
    let configuration = definition(CONFIGURATION, &[], &json!({ "webhooks": webhooks }), &["webhooks"]);
    Ok(vec![serde_json::from_value(customization)?, serde_json::from_value(configuration)?])
}

fn definition((kind, plural): (&str, &str), short: &[&str], properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": properties, "required": required } });
    let singular = kind.to_ascii_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular, "shortNames": short },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

/// Has a registry follow the control plane of a client, as long as it is polled. The registry answers once the customizations
/// and the configurations were listed.
pub(super) async fn follow(client: Client, registry: Arc<Registry>) {
    registry.wait_for(PLACES);
    let source = |kind| Arc::new(Source::new(client.clone(), Identity::all(kind), Arc::default()));
    let of_group = |(kind, plural): (&str, &str)| {
        source(Kind { group: GROUP.into(), version: "v1alpha1".into(), kind: kind.into(), plural: plural.into() })
    };
    let (customizations, configurations) = (of_group(CUSTOMIZATION), of_group(CONFIGURATION));
    let services = source(Kind::of::<Service>());
    let known = services.store().clone();
    let scripts = |objects: &[Value]| {
        let layer = Configurable::of_control_plane(objects, Pool::new(Limits::default()));
        for error in layer.errors() {
            tracing::error!(%error, "a customization can't be used: its operations are answered by this error");
        }
        registry.set(Place::Configurable, Some(Arc::new(layer)));
    };
    let hooks = |objects: &[Value]| registry.set(Place::Webhook, Some(Arc::new(hooks_of(objects, &known))));
    tokio::join!(
        run(&customizations),
        run(&configurations),
        run(&services),
        keep(customizations.store(), None, scripts),
        keep(configurations.store(), Some(services.store()), hooks),
    );
}

fn hooks_of(objects: &[Value], services: &Arc<SharedStore>) -> impl Layer + use<> {
    let lookup = || {
        let services = services.clone();
        move |namespace: &str, name: &str| {
            let service = services.get(&ObjectKey::new(Some(namespace), name))?;
            serde_json::from_str(service.json()).ok()
        }
    };
    let is_whole = |object: &&Value| match Hooks::new([*object], lookup()) {
        Ok(_) => true,
        Err(error) => {
            let source = &error.source;
            tracing::error!(%error, %source, "a webhook configuration can't be used: nothing is asked of its webhooks");
            false
        }
    };
    let whole: Vec<&Value> = objects.iter().filter(is_whole).collect();
    Hooks::new(whole, lookup()).unwrap_or_default()
}

async fn run(source: &Arc<Source>) {
    tokio::join!(source.store().clone().write(), source.run());
}

/// Hands on all objects of a store once they are listed, and again after each change: several changes at once are one.
async fn keep(store: &Arc<SharedStore>, also: Option<&Arc<SharedStore>>, apply: impl Fn(&[Value])) {
    let changed = Arc::new(Notify::new());
    let tell = changed.clone();
    store.subscribe(Arc::new(move |_change, _initial| tell.notify_one())).await.delivered().await;
    if let Some(also) = also {
        also.wait_until_synced().await;
    }
    loop {
        let objects: Vec<Value> =
            store.all().iter().filter_map(|object| serde_json::from_str(object.json()).ok()).collect();
        apply(&objects);
        changed.notified().await;
    }
}
