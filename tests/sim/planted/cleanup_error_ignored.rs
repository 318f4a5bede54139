//! An ignored error of a cleanup outside of the cluster: the finalizer is removed although nothing was cleaned up.

use std::collections::BTreeSet;

use kctl::{
    prelude::*,
    testing::{Scenario, external},
};

use crate::{
    case::{External, State, program, rule},
    site::{A_AND_B, Site, ask, delete, reached, stays},
};

/// The sites that a registry knows, by name.
type Registry = External<BTreeSet<String>>;

async fn register(registry: Registry, name: &str) -> Result<()> {
    external("register", || {
        registry.with(|names| {
            names.insert(name.to_owned());
        });
    })
    .await
}

async fn unregister(registry: Registry, name: &str) -> Result<()> {
    external("unregister", || {
        registry.with(|names| {
            names.remove(name);
        });
    })
    .await
}

/// Removes the finalizer even if the registry does not respond.
#[controller(of = Site, primary(get), finalizer = "planted.example.com/registration")]
struct Bug {
    registry: Registry,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if stays(&site, &*cx.get().await?) {
            register(self.registry, &site.name_any()).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Bug {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        let _ignored = unregister(self.registry, &site.name_any()).await;
        Ok(())
    }
}

/// Keeps the finalizer until the registry has removed the site.
#[controller(of = Site, primary(get), finalizer = "planted.example.com/registration")]
struct Twin {
    registry: Registry,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if stays(&site, &*cx.get().await?) {
            register(self.registry, &site.name_any()).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Twin {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        unregister(self.registry, &site.name_any()).await
    }
}

fn case(app: fn() -> App) -> Scenario {
    let registry = Registry::default();
    Scenario::new(app)
        .objects(A_AND_B)
        .step("ask for version 2", |client| async move { ask(&client, "b", 2).await })
        .step("delete a", |client| async move { delete(&client, "a").await })
        .settled("the registry knows each site", rule(move |state| registry.with(|names| same(names, state))))
}

fn same(names: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let sites: BTreeSet<_> = state.sites.iter().map(ResourceExt::name_any).collect();
    if *names == sites { Ok(()) } else { Err(format!("registered {names:?}, sites {sites:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|registry| Bug { registry }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|registry| Twin { registry }))
}
