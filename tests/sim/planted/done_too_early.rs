//! A status that reports completion too early: if the program stops right after the write, the rest of the work is
//! never done.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A, Site, ask, reached, secret},
};

/// Writes the status, then creates the release.
#[controller(of = Site, owns = Secret(create))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if site.reached() != site.spec.version {
            cx.patch_status(reached(&site)).await?;
            cx.owned::<Secret>().create(release(&site)).or_get().await?;
        }
        Ok(Action::await_change())
    }
}

/// Creates the release, then writes the status.
#[controller(of = Site, owns = Secret(create))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if site.reached() != site.spec.version {
            cx.owned::<Secret>().create(release(&site)).or_get().await?;
            cx.patch_status(reached(&site)).await?;
        }
        Ok(Action::await_change())
    }
}

/// Returns the Secret of a released version.
fn release(site: &Site) -> Secret {
    let (name, version) = (site.name_any(), site.spec.version);
    secret(&format!("{name}-{version}"), &version.to_string())
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .settled("every version is released", rule(released))
}

fn released(state: &State) -> Result<(), String> {
    let names: Vec<_> = state.secrets.iter().map(ResourceExt::name_any).collect();
    let missing = |site: &&Site| !names.contains(&release(site).name_any());
    match state.sites.iter().find(missing) {
        Some(site) => Err(format!("{} {} is not: {names:?}", site.name_any(), site.spec.version)),
        None => Ok(()),
    }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
