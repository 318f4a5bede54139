//! The permissions of a service account, as the API server reports them, are those of its roles.

use std::collections::BTreeSet;

use http::Request;
use kctl::{Json, json, kube::Client};

use crate::place::{Place, client, until};

/// In its own namespace it may do what the generated roles say, elsewhere what those of the cluster say, and no more than
/// every service account otherwise.
pub(crate) async fn are_exact(place: &Place, manifests: &[Json], namespace: &str, account: &str, its: &Client) {
    let nobody = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "nobody" } });
    place.apply(&nobody, namespace).await;
    let nobody = client(&place.kubeconfig_of(namespace, "nobody").await).await;
    for of in [namespace, "kube-public"] {
        let of_everybody = allowed(&nobody, of).await;
        let expected: BTreeSet<_> =
            granted(manifests, namespace, account, of).difference(&of_everybody).cloned().collect();
        let actual: BTreeSet<_> = allowed(its, of).await.difference(&of_everybody).cloned().collect();
        assert_eq!(actual, expected, "in {of}");
    }
}

/// Waits until the authorizer knows the roles that are bound to the account: it watches them as everybody does.
pub(crate) async fn are_known(manifests: &[Json], namespace: &str, account: &str, its: &Client) {
    let expected = granted(manifests, namespace, account, namespace);
    until("the server knows the roles", || async { expected.is_subset(&allowed(its, namespace).await) }).await;
}

/// Returns the rules of the roles that are bound to the account.
fn granted(manifests: &[Json], namespace: &str, account: &str, of: &str) -> BTreeSet<String> {
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

async fn allowed(client: &Client, namespace: &str) -> BTreeSet<String> {
    let asked = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": { "namespace": namespace },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let request = Request::post(path).body(serde_json::to_vec(&asked).unwrap()).unwrap();
    let status = client.request::<Json>(request).await.unwrap()["status"].take();
    let rules = ["resourceRules", "nonResourceRules"].iter().filter_map(|rules| status[rules].as_array()).flatten();
    rules.flat_map(permissions).collect()
}

/// A rule, taken apart.
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
