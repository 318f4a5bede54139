//! Ownership by name: objects of a deleted site are attributed to a new site of the same name. The new site keeps the
//! old key, unless a reconcile ran in between.

use std::collections::BTreeMap;

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A, Site, ask, delete, reached, secret, text},
};

const SITE: &str = "planted.example.com/site";

/// Issues a key for each site. Another controller deletes keys without a site.
#[controller(of = Site, reads = Secret(create))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let name = site.name_any();
        let issued = cx.store::<Secret>().iter().any(|key| key.annotations().get(SITE) == Some(&name));
        if !issued {
            let mut key = key(&site);
            key.metadata.namespace = site.namespace();
            key.metadata.annotations = Some(BTreeMap::from([(SITE.into(), name)]));
            cx.objects::<Secret>().create(&key).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

#[controller(primary(delete), watches = Site(map = keys_of), name = "tidier")]
async fn tidier(key: Arc<Secret>, cx: Context<tidier>) -> Result<Action> {
    let there = |name: &String| cx.store::<Site>().iter().any(|site| site.name_any() == *name);
    if !key.annotations().get(SITE).is_none_or(there) {
        cx.delete().await?;
    }
    Ok(Action::await_change())
}

fn keys_of(_site: &Site, keys: &Store<Secret>) -> Vec<Key<Secret>> {
    keys.keys().into_iter().collect()
}

/// Owns the key: the owner reference has the UID, so the garbage collector deletes it with its site.
#[controller(of = Site, owns = Secret(create))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let keys = cx.owned::<Secret>();
        if keys.is_empty() {
            // While the key of the former site exists, the create fails and is retried.
            keys.create(key(&site)).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Returns a key that is valid for this site's UID only.
fn key(site: &Site) -> Secret {
    secret(&format!("{}-key", site.name_any()), &site.uid().unwrap_or_default())
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A)
        // A key contains a UID, which differs in each run.
        .ignoring("/data")
        .step("replace a", |client| async move {
            delete(&client, "a").await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            ask(&client, "a", 1).await
        })
        .settled("each site has a separate key", rule(own_keys))
}

fn own_keys(state: &State) -> Result<(), String> {
    let keys: Vec<_> = state.secrets.iter().map(text).collect();
    let sites: Vec<_> = state.sites.iter().filter_map(ResourceExt::uid).collect();
    if keys == sites { Ok(()) } else { Err(format!("keys for {keys:?}, sites {sites:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug).controller::<tidier>())
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
