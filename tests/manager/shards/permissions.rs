//! The printed role has the permissions that sharded replicas need, and no others.

use kctl::{
    apiserver::{ApiServer, User},
    k8s::api::rbac::v1::{Role, RoleBinding},
    kube::{Api, Client, api::PostParams},
    prelude::*,
};
use kctl_runtime::manifest::{ManagerOptions, RbacOptions, manager_rbac};
use serde_json::json;
use tokio::sync::oneshot;

use super::shards;
use crate::lease_candidates::advance_seconds;

/// Runs two replicas with a role, stops one of them, and returns the requests for Leases that were rejected.
async fn rejected_under(rules: &kctl::Json) -> Vec<String> {
    let server = ApiServer::new();
    let admin = Client::new(server.service(), "default");
    let (roles, bindings) =
        (Api::<Role>::default_namespaced(admin.clone()), Api::<RoleBinding>::default_namespaced(admin));
    let role = kctl::from_json(json!({ "metadata": { "name": "app" }, "rules": rules })).unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({
        "metadata": { "name": "app" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "app" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "app" }],
    });
    bindings.create(&PostParams::default(), &kctl::from_json(binding).unwrap()).await.unwrap();
    let user = User::new("app").in_group("system:authenticated");
    let client = || Client::new(server.service_as(user.clone()), "default");
    let mut stops = Vec::new();
    for replica in ["a", "b"] {
        let app = App::new("podset");
        let manager = app.manager(client()).await.unwrap().shard(client(), shards(replica, 2)).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        stops.push((stop, tokio::spawn(manager.run(async move { drop(stopped.await) }))));
        advance_seconds(3).await;
    }
    let (stop, running) = stops.remove(0);
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    advance_seconds(8).await;
    let rejected = server.requests().into_iter().filter(|request| request.code == 403 && request.resource == "leases");
    rejected.map(|request| format!("{} {}", request.verb, request.name)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_permission_of_the_printed_role_is_needed() {
    let names = RbacOptions::new("podset", "default");
    let options = ManagerOptions::default().with_shards(2);
    let manifests = manager_rbac(&names, options).unwrap();
    assert_eq!(manifests[0].file, "rbac/role-podset-shards.default.yaml");
    let rules = manifests[0].object["rules"].clone();
    assert_eq!(rejected_under(&rules).await, [""; 0], "the whole role is enough");
    for (index, rule) in rules.as_array().unwrap().iter().enumerate() {
        for field in ["verbs", "resourceNames"] {
            for part in 0..rule[field].as_array().map_or(0, Vec::len) {
                let mut fewer = rules.clone();
                let dropped = fewer[index][field].as_array_mut().unwrap().remove(part);
                assert!(!rejected_under(&fewer).await.is_empty(), "{dropped} of rule {index} is not needed");
            }
        }
    }
}
