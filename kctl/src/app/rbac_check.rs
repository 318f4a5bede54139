//! The permission check at the start of `run`: logs which declared permissions are missing, before
//! anything fails.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Request;
use http_body_util::{BodyExt, Limited};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kctl_runtime::{
    manifest::{Permission, PermissionScope, PermissionTarget, permissions, permissions_of_rule},
    reconcile::{Result, ResultExt},
    spec::ControllerSpec,
    writer::ApiError,
};
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// Longest wait for the reviews. After it the check ends with a debug log only: a request that lacks a permission
/// is rejected and logged anyway.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest response to a review in bytes: the rules of a user with thousands of roles.
const REVIEW_LEN_MAX: usize = 16 << 20;
/// A namespace name that can't exist: a review in it lists what is allowed in all namespaces.
const NOWHERE: &str = "kctl.nowhere";

/// A role in addition to the controllers' role, for what the program's options need: the Lease of leader election or of
/// shards, or the Secret of its certificate.
pub(super) struct ExtraRole {
    /// Suffix of the role's name.
    pub(super) role: &'static str,
    /// Options of `generate-rbac` that print it.
    pub(super) generate: Cow<'static, str>,
    pub(super) permissions: Vec<Permission>,
    /// Flags of `run` with their values, and how the value follows from a namespace and a name in
    /// generated roles.
    pub(super) run: Vec<(&'static str, String, Naming)>,
}

/// Returns the value of a flag for a namespace and a name of generated roles.
type Naming = fn(&str, &str) -> String;

/// The program and cluster of a check.
pub(super) struct CheckedProgram {
    pub(super) app: String,
    /// The declarations of its controllers, restricted to the namespaces of `--namespace`.
    pub(super) specs: Vec<ControllerSpec>,
    /// Empty for the cluster that the program is started against.
    pub(super) cluster: String,
}

/// Logs what the program lacks of its declared permissions and of what it needs itself.
///
/// If the cluster does not answer the reviews, nothing is logged above debug level.
pub(super) async fn report(client: Client, program: CheckedProgram, extra: Vec<ExtraRole>) {
    let cluster = program.cluster.as_str();
    let mut needed = permissions(&program.specs, cluster);
    needed.extend(extra.iter().flat_map(|extra| extra.permissions.iter().cloned()));
    let review = async {
        let missing = missing(&client, &needed).await?;
        let user = if missing.is_empty() { String::new() } else { user(&client).await.unwrap_or_default() };
        Ok::<_, kctl_runtime::reconcile::Error>((missing, user))
    };
    match tokio::time::timeout(REVIEW_TIMEOUT, review).await {
        Ok(Ok((missing, _))) if missing.is_empty() => tracing::debug!(cluster, "all declared permissions are granted"),
        Ok(Ok((missing, user))) => {
            for line in describe(&missing, cluster) {
                tracing::error!("{line}");
            }
            tracing::error!("{}", repair(&program, &user, &extra));
        }
        Ok(Err(error)) => tracing::debug!(cluster, %error, "the cluster did not answer the permission review"),
        Err(_elapsed) => {
            tracing::debug!(cluster, "the cluster did not answer the permission review within {REVIEW_TIMEOUT:?}");
        }
    }
}

/// Returns the wanted permissions that are not allowed.
///
/// It sends a `SelfSubjectRulesReview` per namespace, and a `SelfSubjectAccessReview` for single
/// permissions where an authorizer can't list its rules.
pub(crate) async fn missing(client: &Client, needed: &[Permission]) -> Result<Vec<Permission>> {
    let scopes: BTreeSet<&PermissionScope> = needed.iter().map(|permission| &permission.scope).collect();
    let mut missing = Vec::new();
    for scope in scopes {
        let (granted, incomplete) = review_rules(client, scope).await?;
        let here = needed.iter().filter(|permission| permission.scope == *scope);
        for permission in here.filter(|permission| !granted.iter().any(|other| other.covers(permission))) {
            // Not every authorizer can list what it allows.
            if !incomplete || !review_access(client, permission).await? {
                missing.push(permission.clone());
            }
        }
    }
    Ok(missing)
}

/// Sends a review and returns the answer. Reviews are created like objects, and never stored.
///
/// # Errors
/// The request fails, or its response has more than [`REVIEW_LEN_MAX`] bytes.
async fn review(client: &Client, path: &str, object: &Value) -> Result<Value> {
    let body = Body::from(serde_json::to_vec(object)?);
    let request = Request::post(path).header("content-type", "application/json").body(body)?;
    let (head, body) = client.send(request).await?.into_parts();
    let body = Limited::new(body, REVIEW_LEN_MAX).collect().await?.to_bytes();
    if head.status.is_success() {
        return Ok(serde_json::from_slice(&body)?);
    }
    let text = String::from_utf8_lossy(&body);
    Err(ApiError::rejected(format!("create {path}"), head.status.as_u16(), None, &text).into())
}

/// Returns the permissions that the program has in a namespace, and `true` if the list is incomplete.
///
/// `SelfSubjectRulesReview` needs a namespace. For permissions in all namespaces it asks about one that
/// can't exist: RBAC lists the rules of `ClusterRoleBinding`s there, and no Role can be bound in it.
/// Webhook authorizers can't list their rules, and then `status.incomplete` is set.
async fn review_rules(client: &Client, scope: &PermissionScope) -> Result<(Vec<Permission>, bool)> {
    let namespace = match scope {
        PermissionScope::Everywhere => NOWHERE,
        PermissionScope::Namespace(namespace) => namespace,
    };
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": { "namespace": namespace },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let response = review(client, path, &body).await.context("SelfSubjectRulesReview")?;
    let status = &response["status"];
    let mut granted = Vec::new();
    for list in ["resourceRules", "nonResourceRules"] {
        for rule in status[list].as_array().into_iter().flatten() {
            let rule: PolicyRule = serde_json::from_value(rule.clone()).context("SelfSubjectRulesReview")?;
            granted.extend(permissions_of_rule(&rule, scope));
        }
    }
    Ok((granted, status["incomplete"] == true))
}

/// Returns `true` if a single permission is allowed, by a `SelfSubjectAccessReview`.
///
/// It costs one request per permission, so it is used only where the rules review is incomplete.
async fn review_access(client: &Client, permission: &Permission) -> Result<bool> {
    let spec = match &permission.target {
        PermissionTarget::Url(path) => json!({ "nonResourceAttributes": { "path": path, "verb": permission.verb } }),
        PermissionTarget::Resource { group, resource, name } => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let namespace = match &permission.scope {
                PermissionScope::Everywhere => "",
                PermissionScope::Namespace(namespace) => namespace,
            };
            json!({ "resourceAttributes": {
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "name": name,
                "namespace": namespace,
                "verb": permission.verb,
            } })
        }
    };
    let body = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let response = review(client, path, &body).await.context("SelfSubjectAccessReview")?;
    Ok(response["status"]["allowed"] == true)
}

/// Returns the user name of the program, as the cluster sees it: `system:serviceaccount:NAMESPACE:NAME`
/// for a Pod, or the user of a kubeconfig.
async fn user(client: &Client) -> Result<String> {
    let body = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let response = review(client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &body).await?;
    Ok(response["status"]["userInfo"]["username"].as_str().unwrap_or_default().into())
}

/// Returns one line for each combination of resource, namespace and declaration, with all missing verbs.
fn describe(missing: &[Permission], cluster: &str) -> Vec<String> {
    let on_cluster = if cluster.is_empty() { String::new() } else { format!("on the cluster `{cluster}`: ") };
    let mut verbs: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for permission in missing {
        verbs.entry((&permission.target, &permission.because, &permission.scope)).or_default().push(&permission.verb);
    }
    let sentence =
        |((target, because, scope), verbs): ((&PermissionTarget, &BTreeSet<String>, &PermissionScope), Vec<&str>)| {
            let target = match target {
                PermissionTarget::Url(path) => path.clone(),
                PermissionTarget::Resource { group, resource, name } => {
                    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                    let name = if name.is_empty() { String::new() } else { format!(" {name}") };
                    format!("{resource}{group}{name}")
                }
            };
            let scope = match scope {
                PermissionScope::Everywhere => "in all namespaces".to_owned(),
                PermissionScope::Namespace(namespace) => format!("in namespace {namespace}"),
            };
            let because: Vec<_> = because.iter().map(|text| format!("`{text}`")).collect();
            format!("{on_cluster}may not {} {target} {scope}, which {} needs", verbs.join(", "), because.join(" and "))
        };
    verbs.into_iter().map(sentence).collect()
}

/// Returns the command that grants what is missing.
///
/// A service account gets roles under its own name. Another user keeps its name: the roles are printed
/// under the name of the app, and bound by `kubectl create clusterrolebinding` or `rolebinding`. Where the
/// program runs with other names than the generated roles allow, the flags of `run` follow.
fn repair(checked: &CheckedProgram, user: &str, extra: &[ExtraRole]) -> String {
    let CheckedProgram { app, specs, cluster } = checked;
    let app = app.as_str();
    let program = std::env::args().next().unwrap_or_else(|| app.into());
    let namespaces: BTreeSet<&String> = specs.iter().flat_map(|spec| &spec.namespaces).collect();
    let everywhere = specs.iter().any(|spec| spec.namespaces.is_empty());
    let only = namespaces.into_iter().filter(|_| !everywhere).map(|namespace| format!(" --objects-in {namespace}"));
    let there = (!cluster.is_empty()).then(|| format!(" --cluster {cluster}"));
    let only: String = only.chain(extra.iter().map(|extra| extra.generate.to_string())).chain(there).collect();
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let help = if cluster.is_empty() {
        "help: an administrator gives it by".to_owned()
    } else {
        format!("help: an administrator of the cluster `{cluster}` gives it there by")
    };
    if let Some((namespace, name)) = account {
        let run = run_with(extra, namespace, name);
        return format!(
            "{help}: {program} generate-rbac --name {name} --namespace {namespace}{only} | kubectl apply -f -{run}"
        );
    }
    let user = if user.is_empty() { "NAME" } else { user };
    // The program's own roles are in the namespace where it runs. Only the election's Lease can be elsewhere, by a
    // flag.
    let scopes = extra.iter().rev().flat_map(|extra| &extra.permissions);
    let namespace = scopes.map(|permission| &permission.scope).find_map(|scope| match scope {
        PermissionScope::Namespace(namespace) => Some(namespace.as_str()),
        PermissionScope::Everywhere => None,
    });
    let namespace = namespace.unwrap_or("default");
    let own_place = if namespace == "default" { String::new() } else { format!(" --namespace {namespace}") };
    let mut commands = format!("{help}: {program} generate-rbac{own_place}{only} | kubectl apply -f -");
    for scope in scopes_of(&permissions(specs, cluster)) {
        commands += &bind(app, user, &scope);
    }
    for extra in extra {
        for scope in scopes_of(&extra.permissions) {
            let scope = match scope {
                PermissionScope::Everywhere => scope,
                PermissionScope::Namespace(_) => PermissionScope::Namespace(namespace.into()),
            };
            commands += &bind(&format!("{app}-{}", extra.role), user, &scope);
        }
    }
    commands + &run_with(extra, namespace, app)
}

/// Returns the namespaces that permissions are for, each once; `Everywhere` is one of them.
fn scopes_of(permissions: &[Permission]) -> BTreeSet<PermissionScope> {
    permissions.iter().map(|permission| permission.scope.clone()).collect()
}

/// Returns the command that binds a role to a user.
///
/// API servers reject `/` and `%` in the name of a binding. Users of OIDC issuers and of clouds have them.
fn bind(role: &str, user: &str, scope: &PermissionScope) -> String {
    let name = format!("{role}:{user}").replace(['/', '%'], "-");
    match scope {
        PermissionScope::Everywhere => {
            format!(" && kubectl create clusterrolebinding '{name}' --clusterrole={role} --user='{user}'")
        }
        PermissionScope::Namespace(namespace) => {
            format!(" && kubectl create rolebinding '{name}' -n {namespace} --role={role} --user='{user}'")
        }
    }
}

/// Returns the flags of `run` that make the program use the objects of the generated roles.
fn run_with(extra: &[ExtraRole], namespace: &str, name: &str) -> String {
    let other = |extra: &&ExtraRole| extra.run.iter().any(|(_, is, naming)| *is != naming(namespace, name));
    let flags = extra.iter().filter(other).flat_map(|extra| &extra.run);
    let flags: Vec<_> = flags.map(|(flag, _, naming)| format!("{flag}={}", naming(namespace, name))).collect();
    if flags.is_empty() { String::new() } else { format!("; then run with {}", flags.join(" ")) }
}

#[cfg(all(test, feature = "testing"))]
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
        type Verbs = ();
        fn spec() -> ControllerSpec {
            SpecBuilder::<Self>::new("keeper", "keeper.rs", 1)
                .named("keeper")
                .relation(Relation::<Self, Node>::read("reads = Node(patch)").verbs(&["patch"]))
                .relation(Relation::<Self, Pod>::read("reads = Pod(eviction)").verbs(&["eviction"]))
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
        User::new("system:serviceaccount:default:keeper").in_group("system:authenticated")
    }

    #[tokio::test]
    async fn exactly_what_a_role_lacks_is_missing() {
        for specs in scopes() {
            let all = permissions(&specs, "");
            for left_out in (0..all.len()).map(Some).chain([None]) {
                let mut granted = all.clone();
                let expected: Vec<Permission> = left_out.map(|index| granted.remove(index)).into_iter().collect();
                let server = ApiServer::new();
                let options = RbacOptions::new("keeper", "default");
                let admin = Client::new(server.service(), "default");
                install(&admin, &[], &granted, &options).await.unwrap();
                let client = Client::new(server.service_as(account()), "default");
                assert_eq!(missing(&client, &all).await.unwrap(), expected);
                for permission in &all {
                    let allowed = review_access(&client, permission).await.unwrap();
                    assert_eq!(allowed, !expected.contains(permission), "{permission} is asked for by itself");
                }
                assert_eq!(user(&client).await.unwrap(), account().name);
            }
        }
    }

    fn program(specs: &[ControllerSpec]) -> CheckedProgram {
        CheckedProgram { app: "keeper".into(), specs: specs.to_vec(), cluster: String::new() }
    }

    #[test]
    fn missing_permission_names_the_other_cluster() {
        let [mut specs, _] = scopes();
        let mut there = specs[0].primary.clone();
        (there.cluster, there.declared_as, there.text) =
            ("edge".into(), kctl_runtime::spec::RelationKind::Watched, "watches = ConfigMap(on = \"edge\")".into());
        specs[0].relations.push(there);
        let program = CheckedProgram { cluster: "edge".into(), ..program(&specs) };
        let needed = permissions(&program.specs, "edge");
        let expected = "on the cluster `edge`: may not list, watch configmaps in all namespaces, which `keeper: watches = \
                        ConfigMap(on = \"edge\")` needs";
        assert_eq!(describe(&needed, "edge"), [expected]);
        let text = repair(&program, "system:serviceaccount:ops:bot", &[]);
        assert!(text.starts_with("help: an administrator of the cluster `edge` gives it there by: "), "{text}");
        assert!(
            text.ends_with("generate-rbac --name bot --namespace ops --cluster edge | kubectl apply -f -"),
            "{text}"
        );
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
            let lines = describe(&permissions(specs, ""), "");
            assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
        }
    }

    #[test]
    fn repair_is_a_command_for_the_current_user() {
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
            let text = repair(&program(specs), user, &[]);
            for part in expected {
                assert!(text.contains(&part), "{text} has {part}");
            }
        }
    }

    #[test]
    fn binding_of_user_with_slash_has_valid_name() {
        let [_, local] = scopes();
        let text = repair(&program(&local), "https://id.example.com#jane%2F", &[]);
        for part in [
            "clusterrolebinding 'keeper:https:--id.example.com#jane-2F' --clusterrole=keeper",
            "rolebinding 'keeper:https:--id.example.com#jane-2F' -n default --role=keeper",
            "--user='https://id.example.com#jane%2F'",
        ] {
            assert!(text.contains(part), "{text} has {part}");
        }
    }

    /// Returns a role with the verb `get` for an object `any` of each of these resources.
    fn extra(
        permissions: &[(PermissionScope, &str)],
        role: &'static str,
        generate: &'static str,
        run: Vec<(&'static str, String, Naming)>,
    ) -> ExtraRole {
        let permission = |(scope, resource): &(PermissionScope, &str)| {
            let target =
                PermissionTarget::Resource { group: String::new(), resource: (*resource).into(), name: "any".into() };
            Permission { scope: scope.clone(), target, verb: "get".into(), because: BTreeSet::new(), framework: true }
        };
        ExtraRole { role, generate: generate.into(), permissions: permissions.iter().map(permission).collect(), run }
    }

    fn lease(namespace: &str, name: &str) -> ExtraRole {
        let run: Vec<(_, _, Naming)> = vec![
            ("--leader-election-id", name.into(), |_, name| name.into()),
            ("--leader-election-namespace", namespace.into(), |namespace, _| namespace.into()),
        ];
        extra(&[(PermissionScope::Namespace(namespace.into()), "leases")], "leader-election", " --leader-elect", run)
    }

    fn certificate(namespace: &str, name: &str) -> ExtraRole {
        let run: Vec<(_, _, Naming)> =
            vec![("--webhook-secret", format!("{name}-tls"), |_, name| format!("{name}-tls"))];
        let scopes = [
            (PermissionScope::Everywhere, "configurations"),
            (PermissionScope::Namespace(namespace.into()), "secrets"),
        ];
        extra(&scopes, "webhook", "", run)
    }

    #[test]
    fn repair_covers_leader_election_and_webhook_roles() {
        let [everywhere, _] = scopes();
        let account = "system:serviceaccount:ops:bot";
        let other = "--leader-elect | kubectl apply -f -; then run with --leader-election-id=bot --leader-election-namespace=ops";
        let bound = "rolebinding 'keeper-leader-election:jane' -n default --role=keeper-leader-election --user='jane'";
        let elsewhere = "&& kubectl create clusterrolebinding 'keeper-webhook:jane' --clusterrole=keeper-webhook --user='jane' \
                         && kubectl create rolebinding 'keeper-webhook:jane' -n ops --role=keeper-webhook --user='jane'";
        let cases: [(&str, &[ExtraRole], &str); 6] = [
            (account, &[lease("ops", "bot")], "--namespace ops --leader-elect | kubectl apply -f -"),
            (account, &[lease("ops", "keeper")], other),
            (
                account,
                &[lease("ops", "bot"), certificate("ops", "keeper")],
                "-f -; then run with --webhook-secret=bot-tls",
            ),
            ("jane", &[lease("default", "keeper")], bound),
            ("jane", &[certificate("ops", "keeper")], elsewhere),
            (
                "jane",
                &[lease("kube-system", "keeper"), certificate("ops", "keeper")],
                "; then run with --leader-election-id=keeper --leader-election-namespace=ops",
            ),
        ];
        for (user, extra, expected) in cases {
            let text = repair(&program(&everywhere), user, extra);
            assert!(text.ends_with(expected), "{text} ends with {expected}");
        }
        let text = repair(&program(&everywhere), "jane", &[certificate("ops", "keeper")]);
        assert!(text.contains("generate-rbac --namespace ops | kubectl"), "{text}");
    }

    /// Returns a client of a server that answers each request after a time, or never.
    fn slow(after: Option<Duration>) -> Client {
        let service = tower::service_fn(move |_request: http::Request<kube::client::Body>| async move {
            match after {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            let response = http::Response::builder().status(403).body(kube::client::Body::empty());
            Ok::<_, std::convert::Infallible>(response.unwrap())
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn long_review_is_read_up_to_its_bound() {
        for code in [200_u16, 500] {
            let service = tower::service_fn(move |_request: http::Request<Body>| async move {
                let body = Body::from(vec![b' '; REVIEW_LEN_MAX + 1]);
                Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
            });
            let error = review(&Client::new(service, "default"), "/reviews", &json!({})).await.unwrap_err();
            assert!(error.to_string().contains("length limit"), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rbac_report_ends_at_deadline_despite_slow_server() {
        let [everywhere, _] = scopes();
        for (after, expected) in [
            (None, REVIEW_TIMEOUT),
            (Some(REVIEW_TIMEOUT * 3), REVIEW_TIMEOUT),
            (Some(Duration::from_secs(2)), Duration::from_secs(2)),
        ] {
            let begin = tokio::time::Instant::now();
            report(slow(after), program(&everywhere), vec![certificate("ops", "keeper")]).await;
            let took = begin.elapsed();
            assert!(took >= expected && took < expected + Duration::from_millis(10), "{after:?}: {took:?}");
        }
    }
}
