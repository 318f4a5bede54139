//! Two external calls that belong together: a program that stops between them never makes the second one.

use std::collections::BTreeMap;

use kctl::{
    prelude::*,
    testing::{Scenario, external},
};

use crate::{
    case::{External, State, program, rule},
    site::{A_AND_B, Site, ask, reached},
};

/// The buckets of a cloud: name → owner, which is a tag.
type Buckets = External<BTreeMap<String, Option<String>>>;

async fn create(buckets: Buckets, name: &str) -> Result<()> {
    external("create the bucket", || {
        buckets.with(|known| {
            known.entry(name.to_owned()).or_default();
        });
    })
    .await
}

async fn tag(buckets: Buckets, name: &str) -> Result<()> {
    external("tag the bucket", || {
        buckets.with(|known| {
            known.insert(name.to_owned(), Some("planted".into()));
        });
    })
    .await
}

/// Tags only a bucket that it has just created.
#[controller(of = Site)]
struct Bug {
    buckets: Buckets,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let name = site.name_any();
        if !self.buckets.with(|known| known.contains_key(&name)) {
            create(self.buckets, &name).await?;
            tag(self.buckets, &name).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Looks at the tag as well.
#[controller(of = Site)]
struct Twin {
    buckets: Buckets,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let name = site.name_any();
        if !self.buckets.with(|known| known.contains_key(&name)) {
            create(self.buckets, &name).await?;
        }
        if self.buckets.with(|known| known.get(&name).is_none_or(Option::is_none)) {
            tag(self.buckets, &name).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    let buckets = Buckets::default();
    Scenario::new(app)
        .objects(A_AND_B)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .settled("each site has a bucket with a tag", rule(move |state| buckets.with(|known| tagged(known, state))))
}

fn tagged(buckets: &BTreeMap<String, Option<String>>, state: &State) -> Result<(), String> {
    let has_none = |site: &&Site| buckets.get(&site.name_any()).is_none_or(Option::is_none);
    match state.sites.iter().find(has_none) {
        Some(site) => Err(format!("{} has none: {buckets:?}", site.name_any())),
        None => Ok(()),
    }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|buckets| Bug { buckets }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|buckets| Twin { buckets }))
}
