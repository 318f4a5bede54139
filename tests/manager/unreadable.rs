//! Objects that no replica of a sharded program can decode.

use std::collections::BTreeMap;

use kctl::{
    k8s::{
        api::events::v1::Event,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps},
    },
    kube::{
        Api, Client, CustomResourceExt,
        api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use kctl_tests::Faults;
use serde_json::json;

use crate::{
    lease_candidates::{Contest, advance_seconds},
    replicas::{Replica, create_configs},
    shards::shards,
};

const N_GAUGES: usize = 12;

/// On the server its level may be anything: another program has changed the CRD.
#[resource(group = "example.com", version = "v1", kind = "Gauge", namespaced)]
struct GaugeSpec {
    level: u8,
}

/// Each replica caches all `Gauge`s.
#[controller(reads = Gauge)]
async fn readers(_config: Arc<ConfigMap>, _cx: Context<readers>) -> Result<Action> {
    Ok(Action::await_change())
}

fn gauges(client: &Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &ApiResource::erase::<Gauge>(&()))
}

async fn create_gauges(client: &Client) {
    let mut definition = Gauge::crd();
    let anything = JSONSchemaProps { x_kubernetes_preserve_unknown_fields: Some(true), ..JSONSchemaProps::default() };
    let schema = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.properties.as_mut().unwrap().insert("spec".into(), anything);
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    advance_seconds(1).await;
    let gauges = gauges(client);
    for number in 0..N_GAUGES {
        let gauge = json!({
            "apiVersion": "example.com/v1", "kind": "Gauge",
            "metadata": { "name": format!("gauge-{number}") }, "spec": { "level": 300 },
        });
        gauges.create(&PostParams::default(), &serde_json::from_value(gauge).unwrap()).await.unwrap();
    }
}

/// Returns the number of Events about each object.
async fn n_events(client: &Client) -> BTreeMap<String, usize> {
    let events = Api::<Event>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap();
    let mut n_events = BTreeMap::new();
    for event in events.into_iter().filter(|event| event.reason.as_deref() == Some("Unreadable")) {
        *n_events.entry(event.regarding.unwrap().name.unwrap()).or_default() += 1;
    }
    n_events
}

#[tokio::test(start_paused = true)]
async fn one_replica_reports_unreadable_object_of_whole_cache() {
    let contest = Contest::new();
    create_configs(&contest.client, 4).await;
    let mut replicas = Vec::new();
    for identity in ["a", "b", "c"] {
        let faults = Faults::default();
        let client = faults.client(&contest.server);
        let manager = App::new("podset").controller::<readers>().manager(client.clone()).await.unwrap();
        replicas.push(Replica::start(manager.shard(client, shards(identity, 8)).unwrap(), faults));
        if identity == "a" {
            create_gauges(&contest.client).await;
            advance_seconds(10).await;
            assert_eq!(
                n_events(&contest.client).await.len(),
                N_GAUGES,
                "also those that are created before it owns a slot"
            );
        }
    }
    advance_seconds(20).await;
    assert!(replicas.iter().all(|replica| replica.n_owned() > 0));
    let before = n_events(&contest.client).await;
    let gauges = gauges(&contest.client);
    for number in 0..N_GAUGES {
        let patch = Patch::Merge(json!({ "spec": { "level": 400 } }));
        gauges.patch(&format!("gauge-{number}"), &PatchParams::default(), &patch).await.unwrap();
    }
    advance_seconds(20).await;
    let after = n_events(&contest.client).await;
    assert_eq!(after.len(), N_GAUGES);
    for (name, n) in after {
        assert_eq!(n, before[&name] + 1, "{name}");
    }
}
