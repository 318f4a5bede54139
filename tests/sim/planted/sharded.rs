//! Three replicas that share the keys, with and without a bug in the slot protocol, and three with leader election.

use kctl::{
    __private_0_1::Planted,
    app::ShardBy,
    json,
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    prelude::*,
    testing::Scenario,
};

use crate::{
    case::{External, State, rule},
    site::{Site, ask, reached, reached_with, secret},
};

/// Duration of a reconcile, long enough for a slot to move during it.
const TAKES: Duration = Duration::from_secs(2);

/// Sets the reached version of a site after a delay.
#[controller]
async fn slow(site: Arc<Site>, cx: Context<slow>) -> Result<Action> {
    if site.reached() != site.spec.version {
        tokio::time::sleep(TAKES).await;
        cx.patch_status(reached(&site)).await?;
    }
    Ok(Action::await_change())
}

/// Sites that are spread over most of the slots.
const SITES: &str = "
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: a, namespace: default }
spec: { version: 1 }
---
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: b, namespace: default }
spec: { version: 1 }
---
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: c, namespace: default }
spec: { version: 1 }
---
apiVersion: planted.example.com/v1
kind: Site
metadata: { name: d, namespace: default }
spec: { version: 1 }
";

pub(crate) fn twin() -> Scenario {
    with_leader_election().sharded()
}

/// Three replicas of the same program: one of them leads.
pub(crate) fn with_leader_election() -> Scenario {
    Scenario::new(|| App::new("planted").controller::<slow>())
        .objects(SITES)
        .instances(3)
        .step("ask for version 2", |client| async move { all(&client, 2).await })
        .step("ask for version 3", |client| async move { all(&client, 3).await })
}

/// Three replicas that share the namespaces: two sites in each.
pub(crate) fn by_namespace(by: ShardBy) -> Scenario {
    let namespaces = ["north", "east", "south", "west"];
    let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let sites = namespaces.iter().flat_map(|namespace| ["a", "b"].map(|name| site_in(namespace, name, 1)));
    let objects: Vec<_> = namespaces.map(namespace).into_iter().chain(sites).map(|object| object.to_string()).collect();
    Scenario::new(|| App::new("planted").controller::<slow>())
        .objects(&objects.join("\n---\n"))
        .instances(3)
        .sharded_by(by)
        .step("ask for version 2", move |client| async move {
            for (namespace, name) in namespaces.iter().flat_map(|namespace| ["a", "b"].map(|name| (namespace, name))) {
                let sites = Api::<Site>::namespaced(client.clone(), namespace);
                let change = Patch::Apply(site_in(namespace, name, 2));
                sites.patch(name, &PatchParams::apply("user").force(), &change).await?;
            }
            Ok(())
        })
        .settled("each site reached its version", rule(reached_all))
}

fn reached_all(state: &State) -> Result<(), String> {
    match state.sites.iter().find(|site| site.reached() != site.spec.version) {
        Some(site) => {
            Err(format!("{} reached version {} of {}", Key::from_object(site), site.reached(), site.spec.version))
        }
        None => Ok(()),
    }
}

fn site_in(namespace: &str, name: &str, version: i32) -> kctl::Json {
    json!({
        "apiVersion": "planted.example.com/v1",
        "kind": "Site",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "version": version },
    })
}

async fn all(client: &kctl::kube::Client, version: i32) -> Result<()> {
    for name in ["a", "b", "c", "d"] {
        ask(client, name, version).await?;
    }
    Ok(())
}

pub(crate) fn bug(bug: Planted) -> Scenario {
    twin().plant(bug)
}

/// The sites whose key a reconcile did not see, although it was created before.
type Unseen = External<Vec<String>>;

/// Creates a key for each site. Nobody deletes keys, so a cache that lacks one is not complete.
#[controller(owns = Secret(create))]
async fn keys(site: Arc<Site>, cx: Context<keys>) -> Result<Action> {
    let (name, keys) = (site.name_any(), cx.owned::<Secret>());
    if keys.is_empty() {
        if site.made().is_some() {
            Unseen::default().with(|unseen| unseen.push(name.clone()));
        }
        keys.create(secret(&format!("{name}-key"), "1")).or_get().await?;
    }
    cx.patch_status(reached_with(&site, format!("{name}-key"))).await?;
    Ok(Action::await_change())
}

/// Three replicas that share sites with children.
///
/// An outdated server may list a site of today and the keys of yesterday, so it is left out.
pub(crate) fn with_children() -> Scenario {
    Scenario::new(|| App::new("planted").controller::<keys>())
        .objects(SITES)
        .instances(3)
        .sharded()
        .without_outdated_lists()
        .step("ask for version 2", |client| async move { all(&client, 2).await })
        .settled("each owner of a site sees its key", |_snapshot| {
            let unseen = Unseen::default().with(|unseen| unseen.clone());
            if unseen.is_empty() { Ok(()) } else { Err(format!("not seen: {unseen:?}")) }
        })
}
