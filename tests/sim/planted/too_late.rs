//! Work for new objects only: an object that is created while the program is down is too old when the program is back.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A, Site, ask, secret},
};

/// Age in seconds at which a site counts as done.
const NEW: i64 = 60;

/// Creates a key for a site that is new.
#[controller(of = Site, owns = Secret(create))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let made = site.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let is_new = made.is_some_and(|made| cx.now().duration_since(made).as_secs() < NEW);
        if is_new && cx.owned::<Secret>().is_empty() {
            cx.owned::<Secret>().create(secret(&site.name_any(), "1")).or_get().await?;
        }
        Ok(Action::await_change())
    }
}

/// Creates a key for a site that has none.
#[controller(of = Site, owns = Secret(create))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if cx.owned::<Secret>().is_empty() {
            cx.owned::<Secret>().create(secret(&site.name_any(), "1")).or_get().await?;
        }
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A)
        .step("ask for a second object", |client| async move { ask(&client, "b", 1).await })
        .settled("each site has a key", rule(keyed))
}

fn keyed(state: &State) -> Result<(), String> {
    let has_none = |site: &&Site| state.secrets.iter().all(|key| key.name_any() != site.name_any());
    match state.sites.iter().find(has_none) {
        Some(site) => Err(format!("{} has none", site.name_any())),
        None => Ok(()),
    }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
