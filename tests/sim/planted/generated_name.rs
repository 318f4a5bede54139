//! A generated name without a check for an existing object: the created object is only recorded by a status that is
//! written afterwards.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A, Site, ask, reached_with, secret, unnamed_secret},
};

/// Relies on the status alone.
#[controller(of = Site, owns = Secret(create))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let made = match site.made() {
            Some(made) => made,
            None => cx.owned::<Secret>().create(unnamed_secret("key-")).await?.name_any(),
        };
        cx.patch_status(reached_with(&site, made)).await?;
        Ok(Action::await_change())
    }
}

/// Uses a fixed name, so that a second create fails however old the cache is.
#[controller(of = Site, owns = Secret(create))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let key = secret(&format!("{}-key", site.name_any()), "1");
        let made = match cx.owned::<Secret>().iter().next() {
            Some(there) => there,
            None => cx.owned::<Secret>().create(key).or_get().await?,
        };
        cx.patch_status(reached_with(&site, made.name_any())).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .settled("one key for the site", rule(one_key))
}

fn one_key(state: &State) -> Result<(), String> {
    let keys: Vec<_> = state.secrets.iter().map(ResourceExt::name_any).collect();
    if keys.len() == 1 { Ok(()) } else { Err(format!("{keys:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
