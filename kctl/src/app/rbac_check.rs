//! What `run` says first: which of the declared permissions it does not have, before anything fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Request;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kctl_runtime::{
    manifest::{Grant, On, Place, grants, grants_of_rule},
    reconcile::{Result, ResultExt},
    spec::ControllerSpec,
};
use kube::Client;
use serde_json::{Value, json};

/// Longest wait for the answers: what they would say is said later as well, by requests that are refused.
const WITHIN: Duration = Duration::from_secs(10);
/// Can never exist: a review in it says what is allowed in all namespaces.
const NOWHERE: &str = "kctl.nowhere";

/// Logs what the program may not do, of what is declared and of what the election of a leader needs. When the cluster does not
/// say, neither does it.
pub(super) async fn report(client: &Client, app: &str, specs: &[ControllerSpec], election: Vec<Grant>) {
    let lease = lease_of(&election);
    let mut wanted = grants(specs, "");
    wanted.extend(election);
    let asked = async {
        let missing = missing(client, &wanted).await?;
        let user = if missing.is_empty() { String::new() } else { user(client).await.unwrap_or_default() };
        Ok::<_, kctl_runtime::reconcile::Error>((missing, user))
    };
    match tokio::time::timeout(WITHIN, asked).await {
        Ok(Ok((missing, _))) if missing.is_empty() => tracing::debug!("every declared permission is there"),
        Ok(Ok((missing, user))) => {
            for line in describe(&missing) {
                tracing::error!("{line}");
            }
            tracing::error!("{}", repair(app, &user, specs, lease.as_ref()));
        }
        Ok(Err(error)) => tracing::debug!(%error, "the cluster does not say what is allowed"),
        Err(_elapsed) => tracing::debug!("the cluster does not say within {WITHIN:?} what is allowed"),
    }
}

/// What is wanted and not allowed.
pub(crate) async fn missing(client: &Client, wanted: &[Grant]) -> Result<Vec<Grant>> {
    let places: BTreeSet<&Place> = wanted.iter().map(|grant| &grant.place).collect();
    let mut missing = Vec::new();
    for place in places {
        let (given, incomplete) = review_rules(client, place).await?;
        let here = wanted.iter().filter(|grant| grant.place == *place);
        for grant in here.filter(|grant| !given.iter().any(|other| other.covers(grant))) {
            // Not every authorizer can list what it allows.
            if !incomplete || !review_access(client, grant).await? {
                missing.push(grant.clone());
            }
        }
    }
    Ok(missing)
}

async fn review(client: &Client, path: &str, object: &Value) -> Result<Value> {
    let request = Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(object)?)?;
    Ok(client.request(request).await?)
}

/// What the program may do in a place, and whether that is not all.
async fn review_rules(client: &Client, place: &Place) -> Result<(Vec<Grant>, bool)> {
    let namespace = match place {
        Place::Everywhere => NOWHERE,
        Place::Namespace(namespace) => namespace,
    };
    let asked = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": { "namespace": namespace },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let answer = review(client, path, &asked).await.context("SelfSubjectRulesReview")?;
    let status = &answer["status"];
    let mut given = Vec::new();
    for list in ["resourceRules", "nonResourceRules"] {
        for rule in status[list].as_array().into_iter().flatten() {
            let rule: PolicyRule = serde_json::from_value(rule.clone()).context("SelfSubjectRulesReview")?;
            given.extend(grants_of_rule(&rule, place));
        }
    }
    Ok((given, status["incomplete"] == true))
}

async fn review_access(client: &Client, grant: &Grant) -> Result<bool> {
    let spec = match &grant.on {
        On::Url(path) => json!({ "nonResourceAttributes": { "path": path, "verb": grant.verb } }),
        On::Resource { group, resource, name } => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let namespace = match &grant.place {
                Place::Everywhere => "",
                Place::Namespace(namespace) => namespace,
            };
            json!({ "resourceAttributes": {
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "name": name,
                "namespace": namespace,
                "verb": grant.verb,
            } })
        }
    };
    let asked = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = review(client, path, &asked).await.context("SelfSubjectAccessReview")?;
    Ok(answer["status"]["allowed"] == true)
}

/// Who the program is for the cluster.
async fn user(client: &Client) -> Result<String> {
    let asked = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let answer = review(client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &asked).await?;
    Ok(answer["status"]["userInfo"]["username"].as_str().unwrap_or_default().into())
}

/// A sentence for each resource and declaration.
fn describe(missing: &[Grant]) -> Vec<String> {
    let mut verbs: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for grant in missing {
        verbs.entry((&grant.on, &grant.because, &grant.place)).or_default().push(&grant.verb);
    }
    let sentence = |((on, because, place), verbs): ((&On, &BTreeSet<String>, &Place), Vec<&str>)| {
        let on = match on {
            On::Url(path) => path.clone(),
            On::Resource { group, resource, name } => {
                let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                let name = if name.is_empty() { String::new() } else { format!(" {name}") };
                format!("{resource}{group}{name}")
            }
        };
        let place = match place {
            Place::Everywhere => "in all namespaces".to_owned(),
            Place::Namespace(namespace) => format!("in namespace {namespace}"),
        };
        let because: Vec<_> = because.iter().map(|text| format!("`{text}`")).collect();
        format!("may not {} {on} {place}, which {} needs", verbs.join(", "), because.join(" and "))
    };
    verbs.into_iter().map(sentence).collect()
}

/// A Lease, by namespace and name.
type Lease = (String, String);

/// The Lease that permissions are about.
fn lease_of(election: &[Grant]) -> Option<Lease> {
    election.iter().find_map(|grant| match (&grant.place, &grant.on) {
        (Place::Namespace(namespace), On::Resource { name, .. }) if !name.is_empty() => {
            Some((namespace.clone(), name.clone()))
        }
        _ => None,
    })
}

/// The command that gives what is missing.
fn repair(app: &str, user: &str, specs: &[ControllerSpec], lease: Option<&Lease>) -> String {
    let program = std::env::args().next().unwrap_or_else(|| app.into());
    let namespaces: BTreeSet<&String> = specs.iter().flat_map(|spec| &spec.namespaces).collect();
    let everywhere = specs.iter().any(|spec| spec.namespaces.is_empty());
    let only = namespaces.into_iter().filter(|_| !everywhere).map(|namespace| format!(" --objects-in {namespace}"));
    let only = only.collect::<String>() + if lease.is_some() { " --leader-elect" } else { "" };
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let help = "help: an administrator gives it by";
    // The role is about the Lease of its own name and namespace.
    let run = |namespace: &str, name: &str| {
        let other = lease.is_some_and(|(place, of)| (place.as_str(), of.as_str()) != (namespace, name));
        let flags = format!("; then run with --leader-election-id={name} --leader-election-namespace={namespace}");
        if other { flags } else { String::new() }
    };
    if let Some((namespace, name)) = account {
        let run = run(namespace, name);
        return format!(
            "{help}: {program} generate-rbac --name {name} --namespace {namespace}{only} | kubectl apply -f -{run}"
        );
    }
    let user = if user.is_empty() { "NAME" } else { user };
    let mut commands = format!("{help}: {program} generate-rbac{only} | kubectl apply -f -");
    let places: BTreeSet<Place> = grants(specs, "").into_iter().map(|grant| grant.place).collect();
    for place in places {
        commands += &match place {
            Place::Everywhere => {
                format!(" && kubectl create clusterrolebinding '{app}:{user}' --clusterrole={app} --user='{user}'")
            }
            Place::Namespace(namespace) => {
                format!(" && kubectl create rolebinding '{app}:{user}' -n {namespace} --role={app} --user='{user}'")
            }
        };
    }
    if lease.is_some() {
        let role = format!("{app}-leader-election");
        commands += &format!(" && kubectl create rolebinding '{role}:{user}' -n default --role={role} --user='{user}'");
    }
    commands + &run("default", app)
}

#[cfg(all(test, feature = "dev"))]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
    use kctl_apiserver::{ApiServer, User};
    use kctl_runtime::{
        manifest::RbacOptions,
        reconcile::{Action, Context, Controller, FunctionController, Reconcile},
        spec::{Relation, SpecBuilder},
    };

    use super::*;
    use crate::app::install;

    struct Keeper;

    impl Controller for Keeper {
        type Primary = ConfigMap;
        type Grant = ();
        fn spec() -> ControllerSpec {
            SpecBuilder::<Self>::new("keeper", "keeper.rs", 1)
                .named("keeper")
                .relation(Relation::<Self, Node>::reads("reads = Node(patch)").verbs(&["patch"]))
                .relation(Relation::<Self, Pod>::reads("reads = Pod(eviction)").verbs(&["eviction"]))
                .build()
        }
    }

    impl Reconcile for Keeper {
        async fn reconcile(&self, _config: std::sync::Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
            Ok(Action::await_change())
        }
    }

    impl FunctionController for Keeper {
        fn instance() -> Self {
            Self
        }
    }

    /// The declaration in all namespaces and in two of them.
    fn scopes() -> [Vec<ControllerSpec>; 2] {
        let everywhere = Keeper::spec();
        let mut local = Keeper::spec();
        local.namespaces = vec!["default".into(), "kube-system".into()];
        [vec![everywhere], vec![local]]
    }

    fn account() -> User {
        User { name: "system:serviceaccount:default:keeper".into(), groups: vec!["system:authenticated".into()] }
    }

    #[tokio::test]
    async fn exactly_what_a_role_lacks_is_missing() {
        for specs in scopes() {
            let all = grants(&specs, "");
            for left_out in (0..all.len()).map(Some).chain([None]) {
                let mut given = all.clone();
                let expected: Vec<Grant> = left_out.map(|index| given.remove(index)).into_iter().collect();
                let server = ApiServer::new();
                let options =
                    RbacOptions { name: "keeper".into(), namespace: "default".into(), ..RbacOptions::default() };
                let admin = Client::new(server.service(), "default");
                install(&admin, &[], &given, &options).await.unwrap();
                let client = Client::new(server.service_as(account()), "default");
                assert_eq!(missing(&client, &all).await.unwrap(), expected);
                for grant in &all {
                    let allowed = review_access(&client, grant).await.unwrap();
                    assert_eq!(allowed, !expected.contains(grant), "{grant} is asked for by itself");
                }
                assert_eq!(user(&client).await.unwrap(), account().name);
            }
        }
    }

    #[test]
    fn sentences_name_verbs_resource_place_and_declaration() {
        let [everywhere, local] = scopes();
        let cases: [(&[ControllerSpec], &str); 2] = [
            (
                &everywhere,
                "may not create pods/eviction in all namespaces, which `keeper: reads = Pod(eviction)` needs",
            ),
            (
                &local,
                "may not create pods/eviction in namespace kube-system, which `keeper: reads = Pod(eviction)` needs",
            ),
        ];
        for (specs, expected) in cases {
            let lines = describe(&grants(specs, ""));
            assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
        }
    }

    #[test]
    fn repair_is_a_command_for_who_runs_the_program() {
        let [everywhere, local] = scopes();
        let only = "--objects-in default --objects-in kube-system";
        let account = "system:serviceaccount:ops:bot";
        let cases: [(&[ControllerSpec], &str, Vec<String>); 4] = [
            (&everywhere, account, vec!["generate-rbac --name bot --namespace ops | kubectl apply -f -".into()]),
            (&local, account, vec![format!("generate-rbac --name bot --namespace ops {only} | kubectl apply -f -")]),
            (
                &everywhere,
                "jane",
                vec!["kubectl create clusterrolebinding 'keeper:jane' --clusterrole=keeper --user='jane'".into()],
            ),
            (
                &local,
                "jane",
                vec![
                    format!("generate-rbac {only} | kubectl apply -f -"),
                    "kubectl create clusterrolebinding 'keeper:jane' --clusterrole=keeper --user='jane'".into(),
                    "kubectl create rolebinding 'keeper:jane' -n default --role=keeper --user='jane'".into(),
                    "kubectl create rolebinding 'keeper:jane' -n kube-system --role=keeper --user='jane'".into(),
                ],
            ),
        ];
        for (specs, user, expected) in cases {
            let text = repair("keeper", user, specs, None);
            for part in expected {
                assert!(text.contains(&part), "{text} has {part}");
            }
        }
    }

    #[test]
    fn repair_gives_the_lease_or_says_which_one_it_gives() {
        let [everywhere, _] = scopes();
        let lease = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let account = "system:serviceaccount:ops:bot";
        let other = "--leader-elect | kubectl apply -f -; then run with --leader-election-id=bot --leader-election-namespace=ops";
        let bound = "rolebinding 'keeper-leader-election:jane' -n default --role=keeper-leader-election --user='jane'";
        let cases = [
            (account, lease("ops", "bot"), "--leader-elect | kubectl apply -f -"),
            (account, lease("ops", "keeper"), other),
            ("jane", lease("default", "keeper"), bound),
        ];
        for (user, lease, expected) in cases {
            let text = repair("keeper", user, &everywhere, Some(&lease));
            assert!(text.ends_with(expected), "{text} ends with {expected}");
        }
    }
}
