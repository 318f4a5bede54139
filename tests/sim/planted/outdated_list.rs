//! Reliance on the first list: objects that the cache lacks at the start count as deleted, and their data is dropped.
//! But the list was outdated.

use std::collections::BTreeSet;

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, State, program, rule},
    site::{A_AND_B, Site, ask, reached, stays},
};

/// The databases, by the name of their site.
type Databases = External<BTreeSet<String>>;

/// Drops the databases of sites that are not in its cache.
#[controller(of = Site)]
struct Bug {
    databases: Databases,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let known: BTreeSet<_> = cx.store::<Site>().iter().map(|site| site.name_any()).collect();
        self.databases.with(|databases| {
            databases.insert(site.name_any());
            databases.retain(|name| known.contains(name));
        });
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Drops the database of a deleted site, which a finalizer keeps until then.
#[controller(of = Site, primary(get), finalizer = "planted.example.com/database")]
struct Twin {
    databases: Databases,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if stays(&site, &*cx.get().await?) {
            self.databases.with(|databases| databases.insert(site.name_any()));
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Twin {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        self.databases.with(|databases| databases.remove(&site.name_any()));
        Ok(())
    }
}

fn case(app: fn() -> App) -> Scenario {
    let databases = Databases::default();
    Scenario::new(app)
        .objects(A_AND_B)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .invariant("no database of a site is dropped", rule(move |state| databases.with(|known| kept(known, state))))
}

/// Checks that no site has lost its database, except sites that are being deleted.
fn kept(databases: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let stay = |site: &&Site| site.metadata.deletion_timestamp.is_none() && site.reached() > 0;
    let lost = state.sites.iter().filter(stay).map(ResourceExt::name_any).find(|name| !databases.contains(name));
    lost.map_or(Ok(()), |name| Err(format!("site {name} has lost its database")))
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|databases| Bug { databases }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|databases| Twin { databases }))
}
