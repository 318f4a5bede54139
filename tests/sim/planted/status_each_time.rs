//! A status that is different each time it is written: the write is a change, the change wakes the controller, and so on.

use kctl::prelude::*;

use crate::{
    case::{Case, External},
    site::{A, Site, SiteStatus, ask, reached},
};

/// Counts how often it ran.
#[controller(of = Site)]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let runs = site.status.as_ref().map_or(0, |status| status.runs) + 1;
        cx.patch_status(SiteStatus { runs, ..reached(&site) }).await?;
        Ok(Action::await_change())
    }
}

/// Says only what it reached.
#[controller(of = Site)]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn case<C: Reconcile>(make: fn(External<()>) -> C) -> Case {
    Case::of(&External::default(), make)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .in_the_end("the status says what was asked for", |state| match state.sites.iter().find(|s| s.reached() != 2) {
            Some(site) if site.spec.version == 2 => Err(format!("reached {}", site.reached())),
            _ => Ok(()),
        })
}

pub(crate) fn bug() -> Case {
    case(|_| Bug)
}

pub(crate) fn twin() -> Case {
    case(|_| Twin)
}
