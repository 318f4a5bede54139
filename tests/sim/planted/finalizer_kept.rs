//! A finalizer that is never removed: the cleanup fails if nothing is left to clean up. Once interrupted between the
//! cleanup and the removal, it fails forever.

use std::collections::BTreeSet;

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, State, program, rule},
    site::{A_AND_B, Site, delete, reached, stays},
};

/// The disks at a provider, by the name of their site.
type Disks = External<BTreeSet<String>>;

/// Deletes a disk at the provider. As usual, it is an error if the disk does not exist.
fn delete_disk(disks: &Disks, name: &str) -> Result<(), NotFound> {
    if disks.with(|disks| disks.remove(name)) { Ok(()) } else { Err(NotFound) }
}

#[derive(Debug)]
struct NotFound;

/// Retries after every error of the provider.
#[controller(of = Site, primary(get), finalizer = "planted.example.com/disk")]
struct Bug {
    disks: Disks,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let name = site.name_any();
        if !self.disks.with(|disks| disks.contains(&name)) && stays(&site, &*cx.get().await?) {
            self.disks.with(|disks| disks.insert(name));
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Bug {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        delete_disk(&self.disks, &site.name_any()).map_err(|NotFound| "the provider has no such disk".into())
    }
}

/// Treats a disk that does not exist as deleted.
#[controller(of = Site, primary(get), finalizer = "planted.example.com/disk")]
struct Twin {
    disks: Disks,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let name = site.name_any();
        if !self.disks.with(|disks| disks.contains(&name)) && stays(&site, &*cx.get().await?) {
            self.disks.with(|disks| disks.insert(name));
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Twin {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        match delete_disk(&self.disks, &site.name_any()) {
            Ok(()) | Err(NotFound) => Ok(()),
        }
    }
}

fn case(app: fn() -> App) -> Scenario {
    let disks = Disks::default();
    Scenario::new(app)
        .objects(A_AND_B)
        .step("delete a", |client| async move { delete(&client, "a").await })
        .settled("one disk for each site", rule(move |state| disks.with(|disks| same(disks, state))))
}

fn same(disks: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let sites: BTreeSet<_> = state.sites.iter().map(ResourceExt::name_any).collect();
    if *disks == sites { Ok(()) } else { Err(format!("disks {disks:?}, sites {sites:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|disks| Bug { disks }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|disks| Twin { disks }))
}
