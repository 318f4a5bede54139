//! A kind that is read but not watched: a reconcile that ran before the object existed is not repeated.

use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
    testing::Scenario,
};

use crate::{
    case::{State, rule, simple},
    site::{Site, ask, secret},
};

/// Creates a key once settings exist, but only checks for them when the site changes.
#[controller(of = Site, owns = Secret(create), reads = ConfigMap)]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if !cx.store::<ConfigMap>().is_empty() && cx.owned::<Secret>().is_empty() {
            cx.owned::<Secret>().create(secret(&site.name_any(), "1")).or_get().await?;
        }
        Ok(Action::await_change())
    }
}

/// Also reconciles when the settings change.
#[controller(of = Site, owns = Secret(create), watches = ConfigMap(map = every_site))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if !cx.store::<ConfigMap>().is_empty() && cx.owned::<Secret>().is_empty() {
            cx.owned::<Secret>().create(secret(&site.name_any(), "1")).or_get().await?;
        }
        Ok(Action::await_change())
    }
}

fn every_site(_settings: &ConfigMap, sites: &Store<Site>) -> Vec<Key<Site>> {
    sites.keys()
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .keeping("configmaps")
        .step("settings, and a site", |client| async move {
            let metadata = ObjectMeta { name: Some("settings".into()), ..ObjectMeta::default() };
            let settings = ConfigMap { metadata, ..ConfigMap::default() };
            Api::default_namespaced(client.clone()).create(&PostParams::default(), &settings).await?;
            ask(&client, "a", 1).await
        })
        .settled("each site has a key", rule(keyed))
}

fn keyed(state: &State) -> Result<(), String> {
    if state.sites.len() == state.secrets.len() {
        return Ok(());
    }
    Err(format!("{} sites, {} keys", state.sites.len(), state.secrets.len()))
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
