//! A status that differs in every write: each write is a change that triggers the next reconcile.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::simple,
    site::{A, Site, SiteStatus, ask, reached},
};

/// Counts its reconciles in the status.
#[controller(of = Site)]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let runs = site.status.as_ref().map_or(0, |status| status.runs) + 1;
        cx.patch_status(SiteStatus { runs, ..reached(&site) }).await?;
        Ok(Action::await_change())
    }
}

/// Only writes the version that it reached.
#[controller(of = Site)]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        cx.patch_status(reached(&site)).await?;
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
