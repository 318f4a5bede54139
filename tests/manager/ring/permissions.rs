//! The `ControllerRing` and the RBAC manifests of a ring have exactly what shards and sharder need.

use kctl::{
    apiserver::{ApiServer, User},
    json,
    k8s::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    kube::{
        Api, Client,
        api::{ListParams, PostParams},
    },
    manifest::{Manifest, RbacOptions, rbac},
    prelude::*,
};
use kctl_runtime::manifest::{controller_ring, ring_rbac};
use tokio::sync::oneshot;

use super::{
    N_KEYS, config, curious,
    sharder::{RING, SHARD_LABEL, Sharder},
};
use crate::contest::seconds;

#[test]
fn ring_has_the_kinds_of_the_declarations() {
    let app = App::new("podset").controller::<curious>();
    let ring = controller_ring(&app.specs(), RING).unwrap();
    assert_eq!(ring.file, "sharding/controllerring-podset.yaml");
    let (configs, secrets) =
        (json!({ "group": "", "resource": "configmaps" }), json!({ "group": "", "resource": "secrets" }));
    let mut resource = configs.clone();
    resource["controlledResources"] = json!([secrets]);
    assert_eq!(ring.object["spec"], json!({ "resources": [resource] }));
    let manifests = ring_rbac(&app.specs(), &names(), RING).unwrap();
    let sharder: Vec<_> = manifests.iter().filter(|manifest| manifest.file.starts_with("sharding/")).collect();
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "patch"] }]);
    assert_eq!(sharder[0].object["rules"], rules);
    let subjects = json!([{ "kind": "ServiceAccount", "name": "sharder", "namespace": "sharding-system" }]);
    assert_eq!(sharder[1].object["subjects"], subjects);
}

fn names() -> RbacOptions {
    RbacOptions::new("podset", "default")
}

/// Installs roles and bindings for the `ServiceAccount` of the app.
async fn install(server: &ApiServer, manifests: &[Manifest]) {
    let admin = Client::new(server.service(), "default");
    let new = PostParams::default();
    for Manifest { object, .. } in manifests {
        let object = object.clone();
        match object["kind"].as_str().unwrap() {
            "Role" => drop(
                Api::<Role>::default_namespaced(admin.clone())
                    .create(&new, &kctl::from_json(object).unwrap())
                    .await
                    .unwrap(),
            ),
            "RoleBinding" => {
                drop(
                    Api::<RoleBinding>::default_namespaced(admin.clone())
                        .create(&new, &kctl::from_json(object).unwrap())
                        .await
                        .unwrap(),
                );
            }
            "ClusterRole" => drop(
                Api::<ClusterRole>::all(admin.clone()).create(&new, &kctl::from_json(object).unwrap()).await.unwrap(),
            ),
            "ClusterRoleBinding" => {
                drop(
                    Api::<ClusterRoleBinding>::all(admin.clone())
                        .create(&new, &kctl::from_json(object).unwrap())
                        .await
                        .unwrap(),
                );
            }
            _ => {}
        }
    }
}

/// Runs two shards one after the other with these roles and those of their controllers. Returns the requests that were
/// rejected.
async fn refused_under(manifests: &[Manifest]) -> Vec<String> {
    let server = ApiServer::new();
    let sharder = Sharder::start(&server).await;
    let app = App::new("podset").controller::<curious>();
    install(&server, &rbac(&app.specs(), &names()).unwrap()).await;
    install(&server, manifests).await;
    let configs = Api::<ConfigMap>::default_namespaced(Client::new(server.service(), "default"));
    for number in 0..N_KEYS {
        let config = kctl::from_json(json!({ "metadata": { "name": format!("config-{number}") } })).unwrap();
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    let user = User::service_account("default", "podset");
    let _sharder = tokio::spawn(sharder.run());
    let mut stops = Vec::new();
    for shard in ["a", "b"] {
        let client = Client::new(server.service_as(user.clone()), "default");
        let manager = app.manager_in_ring(client.clone(), client, config(shard, 1)).await.unwrap();
        let clock = server.clone();
        let manager = manager.clock(Arc::new(move || clock.now()));
        let (stop, stopped) = oneshot::channel::<()>();
        stops.push((stop, tokio::spawn(manager.run(async move { drop(stopped.await) }))));
        seconds(5).await;
    }
    let (stop, running) = stops.remove(0);
    // A shard that may not renew its Lease has lost it and ended already.
    let _stopped = stop.send(());
    let _ended = running.await.unwrap();
    let listed = configs.list(&ListParams::default()).await.unwrap();
    let refused = server.requests().into_iter().filter(|request| request.code == 403);
    let mut refused: Vec<_> = refused.map(|request| format!("{} {}", request.verb, request.resource)).collect();
    if refused.is_empty() {
        assert!(listed.iter().all(|config| config.labels().contains_key(SHARD_LABEL)), "the ring works");
    }
    refused.dedup();
    refused
}

#[tokio::test(start_paused = true)]
async fn each_permission_of_a_shard_is_needed() {
    let app = App::new("podset").controller::<curious>();
    let all = ring_rbac(&app.specs(), &names(), RING).unwrap();
    let of_shard: Vec<Manifest> = all.into_iter().filter(|manifest| manifest.file.starts_with("rbac/")).collect();
    assert_eq!(refused_under(&of_shard).await, [""; 0], "the whole role is enough");
    let mut n_dropped = 0;
    for (index, manifest) in of_shard.iter().enumerate() {
        for (rule, object) in manifest.object["rules"].as_array().into_iter().flatten().enumerate() {
            for verb in 0..object["verbs"].as_array().unwrap().len() {
                let mut fewer = of_shard.clone();
                let verbs = fewer[index].object["rules"][rule]["verbs"].as_array_mut().unwrap();
                let dropped = verbs.remove(verb);
                if verbs.is_empty() {
                    fewer[index].object["rules"] = json!([]);
                }
                assert!(!refused_under(&fewer).await.is_empty(), "{dropped} of {} is not needed", manifest.file);
                n_dropped += 1;
            }
        }
    }
    assert_eq!(n_dropped, 4, "create, get and update of Leases, and patch of primaries");
}
