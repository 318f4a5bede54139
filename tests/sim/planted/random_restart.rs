//! A random order only after a restart: unfinished work of the previous process is continued in the order of a hash
//! set. Runs without faults never show the bug. Runs with one fault, executed twice, do.

use std::collections::{BTreeSet, HashSet};

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, program},
    site::{A, PARTS, Site, reached, secret},
};

/// An external journal of the parts that were begun.
type Journal = External<BTreeSet<&'static str>>;

/// Creates the parts of a site, beginning with those that a previous process had begun.
#[controller(of = Site, owns = Secret(create))]
struct Parts {
    journal: Journal,
    begun: Vec<&'static str>,
}

impl Reconcile for Parts {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        self.journal.with(|journal| journal.extend(PARTS));
        let there: BTreeSet<_> = cx.owned::<Secret>().iter().map(|secret| secret.name_any()).collect();
        let rest = PARTS.into_iter().filter(|part| !self.begun.contains(part));
        for part in self.begun.iter().copied().chain(rest).filter(|part| !there.contains(*part)) {
            cx.owned::<Secret>().create(secret(part, "1")).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Reads the journal into a hash set.
pub(crate) fn bug() -> Scenario {
    let make = |journal: Journal| {
        let begun: HashSet<_> = journal.with(|begun| begun.iter().copied().collect());
        Parts { journal, begun: begun.into_iter().collect() }
    };
    Scenario::new(move || program(make)).objects(A)
}

/// Keeps the journal's order.
pub(crate) fn twin() -> Scenario {
    let make = |journal: Journal| Parts { journal, begun: journal.with(|begun| begun.iter().copied().collect()) };
    Scenario::new(move || program(make)).objects(A)
}
