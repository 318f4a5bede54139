//! The generated manifests grant the manager exactly the permissions that it needs.

use kctl::{
    apiserver::{ApiServer, User},
    from_json, json,
    kube::{
        Api, Client,
        api::{ApiResource, DynamicObject, PostParams},
        core::GroupVersionKind,
    },
    manager::lease::ElectionConfig,
    prelude::*,
};
use kctl_runtime::{
    manager::health::Health,
    manifest::{ManagerOptions, Manifest, RbacOptions, Resources, deployment, manager_rbac, metrics_service, rbac},
};

use crate::lease_candidates::advance_seconds;

#[controller(owns = Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn names() -> RbacOptions {
    RbacOptions::new("restarter", "default")
}

fn account() -> User {
    User::service_account("default", "restarter")
}

async fn install(client: &Client, manifests: Vec<Manifest>) {
    for Manifest { object, .. } in manifests {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        api.create(&PostParams::default(), &from_json(object).unwrap()).await.unwrap();
    }
}

/// Returns the readiness check of the election for a program that runs with its generated roles.
async fn election(options: ManagerOptions) -> Result<String, String> {
    let server = ApiServer::new();
    let admin = Client::new(server.service(), "default");
    let app = App::new("restarter").controller::<configs>();
    install(&admin, rbac(&app.specs(), &names()).unwrap()).await;
    install(&admin, manager_rbac(&names(), options).unwrap()).await;
    let manager = app.manager(Client::new(server.service_as(account()), "default")).await.unwrap();
    let manager = manager.elect(ElectionConfig::new("restarter", "default", "a")).unwrap();
    let health = Health::new(manager.view(), manager.metrics().clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async { drop(stopped.await) }));
    advance_seconds(10).await;
    let check = health.ready().into_iter().find(|check| check.name == "leader-election").unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    let rejected = server.requests().into_iter().filter(|request| request.code == 403 && request.verb != "create");
    let rejected: Vec<_> = rejected.map(|request| format!("{} {}", request.verb, request.resource)).collect();
    if options.leader_elect {
        assert_eq!(rejected, [""; 0]);
    }
    check.result
}

#[tokio::test(start_paused = true)]
async fn program_leads_under_its_leader_election_roles() {
    assert_eq!(election(ManagerOptions::default().with_leader_election()).await, Ok("leads".into()));
    let rejected = election(ManagerOptions::default()).await.unwrap_err();
    assert!(rejected.starts_with("get the lease default/restarter: "), "{rejected}");
}

#[test]
fn role_of_the_lease_is_about_that_lease() {
    assert_eq!(manager_rbac(&names(), ManagerOptions::default()).unwrap(), []);
    let manifests = manager_rbac(&names(), ManagerOptions::default().with_leader_election()).unwrap();
    let files: Vec<_> = manifests.iter().map(|manifest| manifest.file.as_str()).collect();
    let role = "restarter-leader-election.default.yaml";
    assert_eq!(files, [format!("rbac/role-{role}"), format!("rbac/rolebinding-{role}")]);
    let rules = json!([
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"] },
        {
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["restarter"],
            "verbs": ["get", "list", "update", "watch"],
        },
    ]);
    assert_eq!(manifests[0].object["rules"], rules);
    let subjects = json!([{ "kind": "ServiceAccount", "name": "restarter", "namespace": "default" }]);
    assert_eq!(manifests[1].object["subjects"], subjects);
}

#[test]
fn deployment_has_probes_and_usable_replicas() {
    for (leader_elect, replicas, strategy) in [(false, 1, "Recreate"), (true, 2, "RollingUpdate")] {
        let mut options = ManagerOptions::default();
        (options.leader_elect, options.metrics) = (leader_elect, leader_elect);
        let manifest = deployment(&names(), options, &Resources::default(), "restarter:1").unwrap();
        let spec = &manifest.object["spec"];
        assert_eq!((&spec["replicas"], &spec["strategy"]["type"]), (&json!(replicas), &json!(strategy)));
        let container = &spec["template"]["spec"]["containers"][0];
        let args = container["args"].as_array().unwrap();
        assert!(args.contains(&json!("--health-probe-bind-address=:8081")));
        let elects = args.contains(&json!("--leader-elect")) && args.contains(&json!("--leader-election-id=restarter"));
        assert_eq!(elects, leader_elect, "{args:?}");
        assert_eq!(args.contains(&json!("--metrics-bind-address=:8443")), leader_elect, "{args:?}");
        assert_eq!(container["ports"].as_array().unwrap().len(), if leader_elect { 2 } else { 1 });
        assert_eq!(container["livenessProbe"]["httpGet"], json!({ "path": "/livez", "port": "probes" }));
        assert_eq!(container["readinessProbe"]["httpGet"], json!({ "path": "/readyz", "port": "probes" }));
        assert_eq!(container["ports"][0]["containerPort"], json!(8081));
    }
}

#[test]
fn metrics_manifests_include_auth_roles_and_service() {
    let manifests = manager_rbac(&names(), ManagerOptions::default().with_metrics()).unwrap();
    let files: Vec<_> = manifests.iter().map(|manifest| manifest.file.as_str()).collect();
    let wanted = ["role-restarter-metrics-auth", "rolebinding-restarter-metrics-auth", "role-restarter-metrics-reader"];
    assert_eq!(files, wanted.map(|name| format!("rbac/cluster{name}.yaml")));
    let reviews = json!([
        { "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"] },
        { "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"] },
    ]);
    assert_eq!(manifests[0].object["rules"], reviews);
    assert_eq!(manifests[2].object["rules"], json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]));
    let service = metrics_service(&names()).unwrap();
    let manifest =
        deployment(&names(), ManagerOptions::default().with_metrics(), &Resources::default(), "restarter:1").unwrap();
    let pod = &manifest.object["spec"]["template"];
    assert_eq!(service.object["spec"]["selector"], pod["metadata"]["labels"]);
    let port = &pod["spec"]["containers"][0]["ports"][1];
    assert_eq!(service.object["spec"]["ports"][0]["targetPort"], port["name"]);
    assert_eq!(service.object["spec"]["ports"][0]["port"], port["containerPort"]);
}
