//! A status with the time of its reconcile: each write is a change that triggers the next reconcile.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::simple,
    site::{A, Site, ask, reached_with},
};

/// Writes the time of each reconcile.
#[controller(of = Site)]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        cx.patch_status(reached_with(&site, cx.now().to_string())).await?;
        Ok(Action::await_change())
    }
}

/// Writes the time at which it reached a version.
#[controller(of = Site)]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if site.reached() != site.spec.version {
            cx.patch_status(reached_with(&site, cx.now().to_string())).await?;
        }
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app).objects(A).step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
