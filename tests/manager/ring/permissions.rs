//! The `ControllerRing` and the RBAC manifests of a ring have exactly what shards and sharder need.

use std::fmt::Debug;

use kctl::{
    Json,
    apiserver::{ApiServer, User},
    json,
    k8s::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    kube::{
        Api, Client,
        api::{ListParams, PostParams},
    },
    prelude::*,
};
use kctl_runtime::manifest::{Manifest, RbacOptions, controller_ring, rbac, ring_rbac};
use kctl_tests::Faults;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    N_KEYS, config, curious,
    sharder::{RING, SHARD_LABEL, Sharder},
};
use crate::{
    lease_candidates::advance_seconds,
    replicas::{Replica, create_configs},
};

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
    let admin = || Client::new(server.service(), "default");
    for Manifest { object, .. } in manifests {
        match object["kind"].as_str().unwrap() {
            "Role" => create(Api::<Role>::default_namespaced(admin()), object).await,
            "RoleBinding" => create(Api::<RoleBinding>::default_namespaced(admin()), object).await,
            "ClusterRole" => create(Api::<ClusterRole>::all(admin()), object).await,
            "ClusterRoleBinding" => create(Api::<ClusterRoleBinding>::all(admin()), object).await,
            _ => {}
        }
    }
}

async fn create<K: Clone + Debug + DeserializeOwned + Serialize>(api: Api<K>, object: &Json) {
    api.create(&PostParams::default(), &kctl::from_json(object.clone()).unwrap()).await.unwrap();
}

/// Runs two shards one after the other with these roles and the roles of their controllers. Returns the requests that
/// were rejected.
async fn rejected_under(manifests: &[Manifest]) -> Vec<String> {
    let server = ApiServer::new();
    let sharder = Sharder::start(&server).await.with_user(User::service_account("sharding-system", "sharder"));
    let app = App::new("podset").controller::<curious>();
    install(&server, &rbac(&app.specs(), &names()).unwrap()).await;
    install(&server, manifests).await;
    let admin = Client::new(server.service(), "default");
    create_configs(&admin, N_KEYS).await;
    let user = User::service_account("default", "podset");
    let _sharder = tokio::spawn(sharder.run());
    let mut shards = Vec::new();
    for shard in ["a", "b"] {
        let client = Client::new(server.service_as(user.clone()), "default");
        let manager = app.manager_in_ring(client.clone(), client, config(shard, 1)).await.unwrap();
        let clock = server.clone();
        let manager = manager.clock(Arc::new(move || clock.now()));
        shards.push(Replica::start(manager, Faults::default()));
        advance_seconds(5).await;
    }
    let first = shards.remove(0);
    // A shard that may not renew its Lease has lost it and ended already.
    let _stopped = first.stop.send(());
    let _ended = first.running.await.unwrap();
    let listed = Api::<ConfigMap>::default_namespaced(admin).list(&ListParams::default()).await.unwrap();
    let rejected = server.requests().into_iter().filter(|request| request.code == 403);
    let mut rejected: Vec<_> = rejected.map(|request| format!("{} {}", request.verb, request.resource)).collect();
    if rejected.is_empty() {
        assert!(listed.iter().all(|config| config.labels().contains_key(SHARD_LABEL)), "the ring works");
    }
    rejected.dedup();
    rejected
}

#[tokio::test(start_paused = true)]
async fn each_permission_of_shard_and_sharder_is_needed() {
    let app = App::new("podset").controller::<curious>();
    let all = ring_rbac(&app.specs(), &names(), RING).unwrap();
    assert_eq!(rejected_under(&all).await, [""; 0], "both roles are enough");
    let mut n_dropped = 0;
    for (index, manifest) in all.iter().enumerate() {
        for (rule, object) in manifest.object["rules"].as_array().into_iter().flatten().enumerate() {
            for verb in 0..object["verbs"].as_array().unwrap().len() {
                let mut fewer = all.clone();
                let verbs = fewer[index].object["rules"][rule]["verbs"].as_array_mut().unwrap();
                let dropped = verbs.remove(verb);
                if verbs.is_empty() {
                    fewer[index].object["rules"] = json!([]);
                }
                assert!(!rejected_under(&fewer).await.is_empty(), "{dropped} of {} is not needed", manifest.file);
                n_dropped += 1;
            }
        }
    }
    assert_eq!(
        n_dropped, 6,
        "create, get and update of Leases and patch of primaries by a shard; list and patch by the sharder"
    );
}
