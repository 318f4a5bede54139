//! The permissions of a `ServiceAccount`, as the API server reports them, match its roles.

use std::collections::BTreeSet;

use http::Request;
use kctl::{Json, json, kube::Client};

use crate::cluster::{Cluster, client, until};

/// Checks the permissions of an account in its namespace and in another namespace. Its roles must grant them, apart
/// from the permissions that every `ServiceAccount` has.
pub(crate) async fn check_permissions(
    cluster: &Cluster,
    manifests: &[Json],
    namespace: &str,
    account: &str,
    its: &Client,
) {
    let nobody = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "nobody" } });
    cluster.apply(&nobody, namespace).await;
    let nobody = client(&cluster.kubeconfig_of(namespace, "nobody").await).await;
    for of in [namespace, "kube-public"] {
        let default_permissions = allowed_permissions(&nobody, of).await;
        let expected: BTreeSet<_> =
            role_permissions(manifests, namespace, account, of).difference(&default_permissions).cloned().collect();
        let actual: BTreeSet<_> =
            allowed_permissions(its, of).await.difference(&default_permissions).cloned().collect();
        assert_eq!(actual, expected, "in {of}");
    }
}

/// Waits until the server's authorizer, which watches roles like any client, has the roles of the account.
pub(crate) async fn wait_for_roles(manifests: &[Json], namespace: &str, account: &str, its: &Client) {
    let expected = role_permissions(manifests, namespace, account, namespace);
    until("the server knows the roles", || async { expected.is_subset(&allowed_permissions(its, namespace).await) })
        .await;
}

/// Returns the permissions of the roles that are bound to the account, as they apply in the namespace `of`.
fn role_permissions(manifests: &[Json], namespace: &str, account: &str, of: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for binding in manifests.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("RoleBinding")) {
        let subject = json!({ "kind": "ServiceAccount", "name": account, "namespace": namespace });
        let here = binding["kind"] == "ClusterRoleBinding" || binding["metadata"]["namespace"] == of;
        if !here || !binding["subjects"].as_array().unwrap().contains(&subject) {
            continue;
        }
        let (kind, name) = (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]);
        let role = manifests.iter().find(|role| role["kind"] == *kind && role["metadata"]["name"] == *name);
        all.extend(role.unwrap()["rules"].as_array().unwrap().iter().flat_map(permissions));
    }
    all
}

async fn allowed_permissions(client: &Client, namespace: &str) -> BTreeSet<String> {
    let rules_review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": { "namespace": namespace },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let request = Request::post(path).body(serde_json::to_vec(&rules_review).unwrap()).unwrap();
    let status = client.request::<Json>(request).await.unwrap()["status"].take();
    let rules = ["resourceRules", "nonResourceRules"].iter().filter_map(|rules| status[rules].as_array()).flatten();
    rules.flat_map(permissions).collect()
}

/// Splits a rule into single permissions.
fn permissions(rule: &Json) -> Vec<String> {
    let list = |field: &str| -> Vec<String> {
        let values = rule[field].as_array().into_iter().flatten();
        values.map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    let mut objects = list("nonResourceURLs");
    for group in list("apiGroups") {
        for resource in list("resources") {
            let resource = format!("{resource}.{group}");
            match list("resourceNames").as_slice() {
                [] => objects.push(resource),
                names => objects.extend(names.iter().map(|name| format!("{resource} {name}"))),
            }
        }
    }
    let verbs = list("verbs");
    objects.iter().flat_map(|object| verbs.iter().map(move |verb| format!("{verb} {object}"))).collect()
}
