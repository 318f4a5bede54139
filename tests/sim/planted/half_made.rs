//! A partial set of objects is treated as complete: a program that stops in between never creates the rest.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A, PARTS, Site, ask, reached, secret},
};

/// Creates the parts of a site that has none.
#[controller(of = Site, owns = Secret(create))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let secrets = cx.owned::<Secret>();
        if secrets.is_empty() {
            for part in PARTS {
                secrets.create(secret(part, "1")).await?;
            }
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Creates each missing part.
#[controller(of = Site, owns = Secret(create))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let secrets = cx.owned::<Secret>();
        for part in PARTS {
            if !secrets.iter().any(|secret| secret.name_any() == part) {
                secrets.create(secret(part, "1")).or_get().await?;
            }
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .settled("a site has all of its parts", rule(whole))
}

fn whole(state: &State) -> Result<(), String> {
    let missing: Vec<_> =
        PARTS.into_iter().filter(|part| state.secrets.iter().all(|s| s.name_any() != *part)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} are missing")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
