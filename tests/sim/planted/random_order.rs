//! A random order: each hash set of the standard library has a random seed, so no run equals another and a failure
//! can't be reproduced.

use std::collections::{BTreeSet, HashSet};

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::simple,
    site::{A, PARTS, Site, reached, secret},
};

/// Creates the parts of a site in this order.
#[controller(of = Site, owns = Secret(create))]
struct Parts {
    order: fn() -> Vec<&'static str>,
}

impl Reconcile for Parts {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let there: BTreeSet<_> = cx.owned::<Secret>().iter().map(|secret| secret.name_any()).collect();
        for part in (self.order)().into_iter().filter(|part| !there.contains(*part)) {
            cx.owned::<Secret>().create(secret(part, "1")).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Uses the order of a hash set.
pub(crate) fn bug() -> Scenario {
    Scenario::new(|| simple(|| Parts { order: || HashSet::from(PARTS).into_iter().collect() })).objects(A)
}

/// Uses the order of names.
pub(crate) fn twin() -> Scenario {
    Scenario::new(|| simple(|| Parts { order: || BTreeSet::from(PARTS).into_iter().collect() })).objects(A)
}
