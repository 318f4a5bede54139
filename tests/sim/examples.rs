//! Each example controller survives single faults and 64 combinations.

use std::sync::Arc;

use config_restarter::InMemoryRegistry;
use kctl::{
    json,
    kube::{
        Api, Client,
        api::{DynamicObject, Patch, PatchParams},
        core::{ApiResource, GroupVersionKind},
    },
    prelude::*,
    testing::Scenario,
};

#[path = "../../examples/quickstart/src/main.rs"]
#[expect(dead_code, unreachable_pub, clippy::default_trait_access, reason = "a program, of which only the app is used")]
mod quickstart;

/// Patches an object of the default namespace.
async fn patch(client: Client, kind: &str, name: &str, change: kctl::Json) -> Result<()> {
    let (group, version) = if kind == "ConfigMap" { ("", "v1") } else { ("apps.example.com", "v1") };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let objects = Api::<DynamicObject>::default_namespaced_with(client, &resource);
    objects.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

fn scaled(scenario: Scenario) -> Scenario {
    scenario.step("scale to 1", |client| patch(client, "PodSet", "web", json!({ "spec": { "replicas": 1 } }))).step_at(
        Duration::from_millis(500),
        "scale to 2 meanwhile",
        |client| patch(client, "PodSet", "web", json!({ "spec": { "replicas": 2 } })),
    )
}

#[kctl::test(seeds = 64)]
fn quickstart_survives_simulated_faults(scenario: Scenario) -> Scenario {
    scaled(scenario.app(quickstart::app).objects(include_str!("../../examples/quickstart/web.yaml")))
}

#[kctl::test(seeds = 64)]
fn podset_survives_simulated_faults(scenario: Scenario) -> Scenario {
    scaled(scenario.app(podset::app).objects(include_str!("../../examples/podset/web.yaml")))
}

/// Fewer: with two leases to renew, simulated time costs more than twice as much.
#[kctl::test(seeds = 12)]
fn two_podset_processes_survive_simulated_faults(scenario: Scenario) -> Scenario {
    scaled(scenario.app(podset::app).objects(include_str!("../../examples/podset/web.yaml"))).instances(2)
}

thread_local! {
    /// The registry outlives a crash of the program: each run has a thread of its own.
    static REGISTRY: Arc<InMemoryRegistry> = Arc::default();
}

#[kctl::test(seeds = 64)]
fn config_restarter_survives_simulated_faults(scenario: Scenario) -> Scenario {
    scenario
        .app(|| config_restarter::app(REGISTRY.with(Arc::clone)))
        .objects(include_str!("../../examples/config-restarter/web.yaml"))
        .step("change the data", |client| {
            patch(client, "ConfigMap", "web-config", json!({ "data": { "GREETING": "good morning" } }))
        })
}
