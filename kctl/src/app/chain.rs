//! The chain of interpreters of a control plane: watches its customizations and webhook
//! configurations, and replaces layers when they change.

mod crds;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

pub(super) use crds::kinds;
use k8s_openapi::api::{core::v1::Service, rbac::v1::PolicyRule};
use kctl_interpreter::{
    chain::LayerKind,
    lua::{Configurable, Limits, Pool, Scripts},
    registry::Registry,
    webhook_client::Webhooks,
};
use kctl_runtime::{
    key::ObjectKey,
    object::Kind,
    reconcile::{Error, Result},
    source::{Source, WatchConfig},
    spec::ExtraRule,
    store::SharedStore,
};
use kube::Client;
use serde_json::Value;
use tokio::sync::Notify;

/// API group of both kinds.
const GROUP: &str = "config.karmada.io";

/// The names of a kind of Karmada.
#[derive(Clone, Copy)]
struct KindNames {
    kind: &'static str,
    plural: &'static str,
}

/// Karmada's script customizations.
const CUSTOMIZATION: KindNames =
    KindNames { kind: "ResourceInterpreterCustomization", plural: "resourceinterpretercustomizations" };
/// Karmada's webhook configurations.
const CONFIGURATION: KindNames =
    KindNames { kind: "ResourceInterpreterWebhookConfiguration", plural: "resourceinterpreterwebhookconfigurations" };
/// The layers that come from the control plane.
pub(super) const FOLLOWED_LAYERS: [LayerKind; 2] = [LayerKind::Configurable, LayerKind::Webhook];

/// After this time of 404s the kind counts as not installed, rather than as a control plane that is
/// still starting.
const ABSENT_TIMEOUT: Duration = Duration::from_secs(12);
/// Interval between two checks for a missing kind.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the rules that the chain adds to the app's role.
pub(super) fn rules() -> Vec<ExtraRule> {
    let read = |group: &str, resources: &[&str]| {
        let rule = PolicyRule {
            api_groups: Some(vec![group.into()]),
            resources: Some(resources.iter().map(|resource| (*resource).to_owned()).collect()),
            verbs: vec!["list".into(), "watch".into()],
            ..PolicyRule::default()
        };
        let mut rule = ExtraRule::new("App::interpreter_chain", rule);
        // The services of webhooks are in any namespace.
        rule.everywhere = true;
        rule
    };
    vec![read(GROUP, &[CUSTOMIZATION.plural, CONFIGURATION.plural]), read("", &["services"])]
}

/// Returns an error if the program has set a layer that [`follow`] sets from the control plane: the first list would
/// silently remove it.
pub(super) fn check(registry: &Registry) -> Result<()> {
    let Some(layer) = FOLLOWED_LAYERS.into_iter().find(|layer| registry.has_own_layer(*layer)) else { return Ok(()) };
    Err(Error::from(format!(
        "App::interpreter_chain: the chain has a layer LayerKind::{layer:?}, which is replaced by the objects of the control plane\n\
         help: use LayerKind::ThirdParty for it, or use the chain without App::interpreter_chain"
    )))
}

/// Keeps a registry current with the control plane of a client, as long as it is polled.
///
/// The registry answers once the customizations and configurations were listed, or once the control
/// plane proved to have no such kinds. They may be installed later.
pub(super) async fn follow(client: Client, registry: Arc<Registry>) {
    registry.wait_for(FOLLOWED_LAYERS);
    let source = |kind| Arc::new(Source::new(client.clone(), WatchConfig::new(kind), Arc::default()));
    let source_of = |KindNames { kind, plural }: KindNames| {
        source(Kind { group: GROUP.into(), version: "v1alpha1".into(), kind: kind.into(), plural: plural.into() })
    };
    let (customizations, configurations) = (source_of(CUSTOMIZATION), source_of(CONFIGURATION));
    let services = source(Kind::of::<Service>());
    let cached = services.store().clone();
    let mut layer = Configurable::new(Scripts::default(), Pool::new(Limits::default()));
    let mut logged = LoggedErrors::default();
    let scripts = |objects: &[Value]| {
        layer = layer.followed_by(objects);
        for error in logged.new_errors(layer.errors().iter().map(ToString::to_string)) {
            tracing::error!(%error, "a customization is invalid: operations that an invalid script answers fail with this error");
        }
        registry.set_followed(LayerKind::Configurable, Some(Arc::new(layer.clone())));
    };
    let mut layer = Arc::new(Webhooks::new([], lookup(cached)).unwrap_or_default());
    let mut logged = LoggedErrors::default();
    let hooks = |objects: &[Value]| {
        let (hooks, malformed) = layer.followed_by(objects);
        for error in logged.new_errors(malformed.iter().map(|error| format!("{error}: {}", error.source))) {
            tracing::error!(%error, "a webhook configuration can't be used: its webhooks are not called");
        }
        layer = Arc::new(hooks);
        registry.set_followed(LayerKind::Webhook, Some(layer.clone()));
    };
    tokio::join!(
        run(&customizations),
        run(&configurations),
        run(&services),
        follow_source(&customizations, None, scripts),
        follow_source(&configurations, Some(services.store()), hooks),
    );
}

/// Looks up Services in the cache, at each new connection to a webhook.
fn lookup(services: Arc<SharedStore>) -> impl Fn(&str, &str) -> Option<Value> + Send + Sync {
    move |namespace, name| {
        let service = services.get(&ObjectKey::new(Some(namespace), name))?;
        serde_json::from_str(&service.json()).ok()
    }
}

/// The errors of the last check, so that each is logged once, and not with each unrelated change.
#[derive(Default)]
struct LoggedErrors(BTreeSet<String>);

impl LoggedErrors {
    /// Returns the errors that the last check did not find.
    fn new_errors(&mut self, errors: impl IntoIterator<Item = String>) -> Vec<String> {
        let before = std::mem::replace(&mut self.0, errors.into_iter().collect());
        self.0.difference(&before).cloned().collect()
    }
}

/// Runs the list and watch of a source, and its store.
async fn run(source: &Arc<Source>) {
    tokio::join!(source.store().clone().write(), source.run());
}

/// Calls `apply` with all objects of a source once they are listed, and after changes; several
/// changes at once are one call.
async fn follow_source(source: &Arc<Source>, also: Option<&Arc<SharedStore>>, mut apply: impl FnMut(&[Value])) {
    if is_absent(source).await {
        let kind = &source.config().kind.kind;
        tracing::warn!("the control plane has no kind {kind}: its rules are ignored until its CRD is installed");
        apply(&[]);
    }
    let store = source.store();
    let changed = Arc::new(Notify::new());
    let tell = changed.clone();
    store.subscribe(Arc::new(move |_change, _origin| tell.notify_one())).await.wait_until_delivered().await;
    if let Some(also) = also {
        also.wait_until_synced().await;
    }
    loop {
        let objects: Vec<Value> =
            store.all().iter().filter_map(|object| serde_json::from_str(&object.json()).ok()).collect();
        apply(&objects);
        changed.notified().await;
    }
}

/// Waits for the first list. Returns `true` if the kind is not installed.
async fn is_absent(source: &Source) -> bool {
    let mut absent_for = Duration::ZERO;
    while absent_for < ABSENT_TIMEOUT {
        if tokio::time::timeout(CHECK_INTERVAL, source.store().wait_until_synced()).await.is_ok() {
            return false;
        }
        let is_missing = source.health().failure.is_some_and(|failure| failure.is_not_found());
        absent_for = if is_missing { absent_for + CHECK_INTERVAL } else { Duration::ZERO };
    }
    true
}
