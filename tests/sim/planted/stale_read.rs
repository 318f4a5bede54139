//! A double create after a stale read: two sites share a Secret, and each only looks in the cache. The cache has own
//! writes whose responses arrived. A write whose response was lost is not in it yet, and only the site that sent it
//! waits.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A_AND_B, Site, ask, reached, secret, unnamed_secret},
};

/// Creates the shared Secret with a generated name if the cache has none.
#[controller(of = Site, reads = Secret(create))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if cx.store::<Secret>().is_empty() {
            let shared = in_default(unnamed_secret("shared-"));
            cx.objects::<Secret>().create(&shared).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Uses a fixed name, so that the API server rejects a second create.
#[controller(of = Site, reads = Secret(create))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if cx.store::<Secret>().is_empty() {
            let shared = in_default(secret("shared", "1"));
            match cx.objects::<Secret>().create(&shared).await {
                Err(error) if !error.is_already_exists() => return Err(error.into()),
                _there => {}
            }
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn in_default(mut secret: Secret) -> Secret {
    secret.metadata.namespace = Some("default".into());
    secret
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A_AND_B)
        .keeping("secrets")
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .settled("the sites share one secret", rule(one_secret))
}

fn one_secret(state: &State) -> Result<(), String> {
    let names: Vec<_> = state.secrets.iter().map(ResourceExt::name_any).collect();
    if names.len() == 1 { Ok(()) } else { Err(format!("{names:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
