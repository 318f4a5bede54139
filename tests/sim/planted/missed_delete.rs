//! A missed delete: external objects are compared by name, so a site that was deleted and recreated seems to be the
//! same.

use std::collections::BTreeMap;

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, State, program, rule},
    site::{A_AND_B, Site, ask, delete, sites},
};

/// The records of a name server: name of the site → UID of the site to which the record points.
type Records = External<BTreeMap<String, String>>;

/// Adds new records and removes stale ones, comparing names only.
#[controller(of = ConfigMap, primary(patch, selector = "zone"), watches = Site(map = zones))]
struct Bug {
    records: Records,
}

impl Reconcile for Bug {
    async fn reconcile(&self, _zone: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let sites = addresses(&cx.store::<Site>());
        cx.patch(kctl::json!({ "data": { "records": sites.len().to_string() } })).await?;
        self.records.with(|records| {
            records.retain(|name, _| sites.contains_key(name));
            for (name, uid) in sites {
                records.entry(name).or_insert(uid);
            }
        });
        Ok(Action::await_change())
    }
}

/// Compares the UIDs to which the records point.
#[controller(of = ConfigMap, primary(patch, selector = "zone"), watches = Site(map = zones))]
struct Twin {
    records: Records,
}

impl Reconcile for Twin {
    async fn reconcile(&self, _zone: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let sites = addresses(&cx.store::<Site>());
        cx.patch(kctl::json!({ "data": { "records": sites.len().to_string() } })).await?;
        self.records.with(|records| {
            if *records != sites {
                *records = sites;
            }
        });
        Ok(Action::await_change())
    }
}

fn zones(_site: &Site, zones: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    zones.keys().into_iter().collect()
}

fn addresses(sites: &Store<Site>) -> BTreeMap<String, String> {
    sites.iter().map(|site| (site.name_any(), site.uid().unwrap_or_default())).collect()
}

const ZONE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: zone, labels: { zone: main } }
";

fn case(app: fn() -> App) -> Scenario {
    let records = Records::default();
    Scenario::new(app)
        .objects(ZONE)
        .objects(A_AND_B)
        .step("replace a", |client| async move {
            delete(&client, "a").await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            ask(&client, "a", 1).await
        })
        .settled("each record leads to a site", rule(move |state| records.with(|records| lead(records, state))))
}

fn lead(records: &BTreeMap<String, String>, state: &State) -> Result<(), String> {
    let sites = state.sites.iter().map(|site| (site.name_any(), site.uid().unwrap_or_default())).collect();
    if *records == sites { Ok(()) } else { Err(format!("records {records:?}, sites {sites:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|records| Bug { records }).controller::<sites>())
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|records| Twin { records }).controller::<sites>())
}
