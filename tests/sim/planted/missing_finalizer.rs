//! No finalizer: external records are removed on a delete event, which the program misses while it is down.

use std::collections::BTreeSet;

use kctl::{prelude::*, testing::Scenario};
use parking_lot::Mutex;

use crate::{
    case::{External, State, program, rule},
    site::{A_AND_B, Site, delete, reached, sites, stays},
};

type Records = External<BTreeSet<String>>;

/// Keeps the records of a zone, and remembers in memory which ones it created.
#[controller(of = ConfigMap, primary(patch, selector = "zone"), watches = Site(map = zones))]
struct Bug {
    records: Records,
    made: Mutex<BTreeSet<String>>,
}

fn zones(_site: &Site, zones: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    zones.keys().into_iter().collect()
}

impl Reconcile for Bug {
    async fn reconcile(&self, _zone: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let wanted: BTreeSet<_> = cx.store::<Site>().iter().map(|site| site.name_any()).collect();
        cx.patch(kctl::json!({ "data": { "records": wanted.len().to_string() } })).await?;
        keep(self.records.clone(), &self.made, wanted);
        Ok(Action::await_change())
    }
}

/// Makes the wanted records, and removes those that this program made.
fn keep(records: Records, made: &Mutex<BTreeSet<String>>, wanted: BTreeSet<String>) {
    let gone: Vec<_> = made.lock().difference(&wanted).cloned().collect();
    records.with(|records| {
        records.extend(wanted.iter().cloned());
        records.retain(|name| !gone.contains(name));
    });
    *made.lock() = wanted;
}

/// The same without a request at which the program could crash.
#[controller(of = ConfigMap, primary(selector = "zone"), watches = Site(map = zones))]
struct Quiet {
    records: Records,
    made: Mutex<BTreeSet<String>>,
}

impl Reconcile for Quiet {
    async fn reconcile(&self, _zone: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        keep(self.records.clone(), &self.made, cx.store::<Site>().iter().map(|site| site.name_any()).collect());
        Ok(Action::await_change())
    }
}

/// Keeps a finalizer on a site until its record is removed.
#[controller(of = Site, primary(get), finalizer = "planted.example.com/record")]
struct Twin {
    records: Records,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let name = site.name_any();
        if !self.records.with(|records| records.contains(&name)) && stays(&site, &*cx.get().await?) {
            self.records.with(|records| records.insert(name));
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Twin {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        self.records.with(|records| records.remove(&site.name_any()));
        Ok(())
    }
}

const ZONE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: zone, labels: { zone: main } }
---
";

fn case(app: fn() -> App) -> Scenario {
    let records = Records::default();
    Scenario::new(app)
        .objects(ZONE)
        .objects(A_AND_B)
        .step("delete a", |client| async move { delete(&client, "a").await })
        .settled("one record for each site", rule(move |state| records.with(|records| same(records, state))))
}

fn same(records: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let sites: BTreeSet<_> = state.sites.iter().map(ResourceExt::name_any).collect();
    if *records == sites { Ok(()) } else { Err(format!("records {records:?}, sites {sites:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|records| Bug { records, made: Mutex::default() }).controller::<sites>())
}

pub(crate) fn quiet_bug() -> Scenario {
    case(|| program(|records| Quiet { records, made: Mutex::default() }).controller::<sites>())
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|records| Twin { records }))
}
