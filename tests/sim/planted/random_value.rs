//! A random value: each run writes another value into a Secret, so no run equals another although all of them send the
//! same requests.

use std::hash::{BuildHasher, RandomState};

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::simple,
    site::{A, Site, reached, secret},
};

/// Creates a key for each site.
#[controller(of = Site, owns = Secret(create))]
struct Keys {
    key: fn(&Site) -> String,
}

impl Reconcile for Keys {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if cx.owned::<Secret>().is_empty() {
            cx.owned::<Secret>().create(secret("key", &(self.key)(&site))).or_get().await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Draws a number, as each new hasher of the standard library does.
pub(crate) fn bug() -> Scenario {
    Scenario::new(|| simple(|| Keys { key: |_site| RandomState::new().hash_one("key").to_string() })).objects(A)
}

/// Derives the key from the site.
pub(crate) fn twin() -> Scenario {
    Scenario::new(|| simple(|| Keys { key: |site| format!("key of {}", site.name_any()) })).objects(A)
}
