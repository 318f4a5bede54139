//! The multi-cluster program has a `ServiceAccount`, a token and roles in each cluster.

use std::collections::BTreeMap;

use kctl::{Json, json};

use crate::{
    build,
    cluster::{Cluster, client, until},
    files::{Folder, objects},
    program::{DeployOptions, Program},
    roles,
};

const PROGRAM: &str = "multicluster";
const FLEET: &str = include_str!("../../examples/multicluster/fleet.yaml");
/// Namespace of the fleet's objects.
const NAMESPACE: &str = "default";

/// Applies the generated roles for a member cluster. Returns them and the kubeconfig file of the `ServiceAccount`
/// there.
async fn on_member(member: &Cluster, name: &str, files: &Folder) -> (Vec<Json>, String) {
    let mut generate = std::process::Command::new(build::programs().join(PROGRAM));
    let roles = objects(&build::run(generate.args(["generate-rbac", "--cluster", name])));
    for object in &roles {
        member.apply(object, NAMESPACE).await;
    }
    let kubeconfig = member.kubeconfig_of(NAMESPACE, PROGRAM).await;
    roles::check_permissions(member, &roles, NAMESPACE, PROGRAM, &client(&kubeconfig).await).await;
    let file = files.join(name);
    std::fs::write(&file, kubeconfig).unwrap();
    (roles, file.to_str().unwrap().to_owned())
}

async fn check_division(home: &Cluster, mut members: [Cluster; 2]) {
    members.iter_mut().for_each(Cluster::run_workloads);
    let members = &members;
    let (files, mut env, mut roles) = (Folder::new(), BTreeMap::new(), Vec::new());
    for (member, name) in members.iter().zip(["member1", "member2"]) {
        let (objects, file) = on_member(member, name, &files).await;
        env.insert(format!("KUBECONFIG_{}", name.to_uppercase()), file);
        roles.push(objects);
    }
    let program = Program::deploy(home, PROGRAM, DeployOptions { env, ..DeployOptions::default() }).await;
    let fleet = objects(FLEET);
    for object in &fleet {
        home.apply_soon(object, NAMESPACE).await;
    }
    let web = &json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" } });
    let ready = async |cluster: &Cluster| {
        let found = cluster.get(web, NAMESPACE).await;
        found.map(|found| found["status"]["readyReplicas"].as_i64().unwrap_or_default())
    };
    until("each member has its share", || async {
        (ready(&members[0]).await, ready(&members[1]).await) == (Some(2), Some(8))
    })
    .await;
    until("the template says so", || async { ready(home).await == Some(10) }).await;
    let policy = fleet.iter().find(|object| object["kind"] == "PropagationPolicy").unwrap();
    home.delete(policy, NAMESPACE).await;
    until("the members have it no longer", || async {
        ready(&members[0]).await.is_none() && ready(&members[1]).await.is_none()
    })
    .await;
    until("no work is left", || async { home.list("fleet.example.com/v1alpha1", "Work", "").await.is_empty() }).await;
    for object in fleet.iter().filter(|object| object["kind"] != "PropagationPolicy") {
        home.delete(object, NAMESPACE).await;
    }
    for (member, roles) in members.iter().zip(&roles) {
        member.assert_never_forbidden(NAMESPACE, PROGRAM);
        for object in roles {
            member.delete(object, NAMESPACE).await;
        }
    }
    program.assert_never_forbidden().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fleet_divides_replicas_on_embedded_servers() {
    let members = [Cluster::embedded().await, Cluster::embedded().await];
    check_division(&Cluster::embedded().await, members).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG and two members: cargo xtask deployed"]
async fn fleet_divides_on_a_real_server_and_members() {
    let home = Cluster::from_env("KUBECONFIG").await;
    let (first, second) =
        (Cluster::from_env("KUBECONFIG_MEMBER1").await, Cluster::from_env("KUBECONFIG_MEMBER2").await);
    check_division(&home, [first, second]).await;
}
