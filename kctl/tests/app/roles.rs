//! Generated roles of a declaration: fewest verbs, merged and sorted, each rule with its origin.

use kctl::{
    k8s::{
        api::{apps::v1::Deployment, rbac::v1::PolicyRule},
        kube_aggregator::pkg::apis::apiregistration::v1::APIService,
    },
    prelude::*,
    spec::ControllerSpec,
};
use kctl_runtime::manifest::{
    KindSpec, ManagerOptions, Manifest, Permission, RbacOptions, manager_rbac, permissions, rbac, user_roles,
};

#[resource(group = "x.io", version = "v1", kind = "Box", namespaced, status = "BoxStatus")]
struct BoxSpec {}

#[schema]
struct BoxStatus {}

/// A kind without a controller.
#[resource(group = "x.io", version = "v1", kind = "Lid", namespaced)]
struct LidSpec {}

macro_rules! idle {
    ($($name:ident: $primary:ty, ($($options:tt)*);)*) => { $(
        #[controller($($options)* name = stringify!($name))]
        async fn $name(_object: Arc<$primary>, _cx: Context<$name>) -> Result<Action> {
            Ok(Action::await_change())
        }
    )* };
}

idle! {
    plain: ConfigMap, ();
    custom: Box, ();
    only_read: Box, (primary(read_only),);
    blocking: Box, (owns = Pod(create, block_owner_deletion), namespaces = ["a"], primary(read_only),);
    finalizing_in_a: ConfigMap, (primary(patch), namespaces = ["a"],);
    live: ConfigMap, (reads = Secret(live),);
    live_in_cluster: ConfigMap, (reads = Secret(live(cluster)), namespaces = ["a"],);
    cached_in_a: ConfigMap, (reads = Secret, reads = Node, namespaces = ["a"],);
    applies: ConfigMap, (owns = Pod(apply),);
    owns_all: ConfigMap, (owns = Pod,);
    subresources: ConfigMap, (reads = Pod(eviction, binding, status), reads = Deployment(scale), reads = ServiceAccount(token),);
    one_name: ConfigMap, (reads = Secret(fields = "metadata.name=password"),);
    of_the_cluster: Node, ();
    elsewhere: ConfigMap, (reads = Pod(delete, on = "edge"),);
    extra: ConfigMap, (rbac(extra_resources(), extra_paths()),);
    extra_in_a: ConfigMap, (rbac(extra_resources(), extra_paths()), namespaces = ["a"],);
    extra_of_scopes: ConfigMap, (reads = Box, rbac(of("authorization.k8s.io", "subjectaccessreviews"), of("storage.k8s.io", "csinodes"), of("x.io", "boxes/status"), of("y.io", "crates"), of("core", "pods"), of("apps", "*"), of("core", "*"), of("*", "*")), namespaces = ["a"],);
    extra_elsewhere: ConfigMap, (rbac(extra_paths()), rbac(extra_resources(), on = Edge),);
    of_nothing: ConfigMap, (rbac(without_groups()),);
    superuser: ConfigMap, (owns = Pod, rbac(everything()),);
}

/// The permissions that most controllers need for their primaries.
const OWN: &str = "*: [] configmaps: list,watch";

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn extra_resources() -> PolicyRule {
    PolicyRule {
        api_groups: Some(texts(&["", "metrics.k8s.io"])),
        resources: Some(texts(&["nodes"])),
        resource_names: Some(texts(&["b", "a"])),
        verbs: vec!["proxy".into(), "get".into()],
        ..PolicyRule::default()
    }
}

fn extra_paths() -> PolicyRule {
    PolicyRule { non_resource_urls: Some(texts(&["/metrics"])), verbs: vec!["get".into()], ..PolicyRule::default() }
}

fn without_groups() -> PolicyRule {
    PolicyRule { resources: Some(texts(&["pods"])), verbs: vec!["get".into()], ..PolicyRule::default() }
}

fn of(group: &str, resource: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(texts(&[group])),
        resources: Some(texts(&[resource])),
        verbs: vec![format!("use-{}", resource.replace('*', "all").replace('/', "-"))],
        ..PolicyRule::default()
    }
}

fn everything() -> PolicyRule {
    PolicyRule {
        api_groups: Some(texts(&["*"])),
        resources: Some(texts(&["*"])),
        verbs: vec!["*".into()],
        ..PolicyRule::default()
    }
}

fn spec<C: kctl::reconcile::Controller>() -> ControllerSpec {
    C::spec()
}

/// Returns the kind that a controller reconciles, if it has a CRD.
fn kinds<C: kctl::reconcile::Controller>() -> Vec<KindSpec> {
    KindSpec::from_spec(&spec::<C>()).into_iter().collect()
}

fn options() -> RbacOptions {
    RbacOptions::new("app", "system")
}

/// Returns the rules of all roles in a short form, without kctl's own permission for Events.
fn rules(manifests: &[Manifest]) -> Vec<String> {
    let mut rules = Vec::new();
    for object in manifests.iter().map(|manifest| &manifest.object).filter(|object| object["rules"].is_array()) {
        let place = object["metadata"]["namespace"].as_str().unwrap_or("*");
        for rule in object["rules"].as_array().unwrap() {
            let list = |field: &str| {
                let values = rule[field].as_array().into_iter().flatten();
                values.map(|value| value.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(",")
            };
            let on = match list("nonResourceURLs").as_str() {
                "" => format!("[{}] {} {}", list("apiGroups"), list("resources"), list("resourceNames")),
                paths => paths.to_owned(),
            };
            rules.push(format!("{place}: {}: {}", on.trim(), list("verbs")));
        }
    }
    rules.retain(|rule| !rule.contains("events.k8s.io"));
    rules
}

#[test]
fn rules_are_the_least_that_a_declaration_needs() {
    let cases: Vec<(Vec<ControllerSpec>, &[&str])> = vec![
        (vec![spec::<plain>()], &[OWN]),
        (vec![spec::<custom>()], &["*: [x.io] boxes: list,watch", "*: [x.io] boxes/status: patch"]),
        (vec![spec::<only_read>()], &["*: [x.io] boxes: list,watch"]),
        (
            vec![spec::<blocking>()],
            &["a: [] pods: create,list,watch", "a: [x.io] boxes: list,watch", "a: [x.io] boxes/finalizers: update"],
        ),
        (vec![spec::<finalizing_in_a>()], &["a: [] configmaps: list,patch,watch"]),
        (vec![spec::<live>()], &[OWN, "*: [] secrets: get"]),
        (vec![spec::<live_in_cluster>()], &["*: [] secrets: get", "a: [] configmaps: list,watch"]),
        (vec![spec::<cached_in_a>()], &["*: [] nodes: list,watch", "a: [] configmaps,secrets: list,watch"]),
        (vec![spec::<applies>()], &[OWN, "*: [] pods: create,list,patch,watch"]),
        (vec![spec::<owns_all>()], &[OWN, "*: [] pods: create,delete,list,patch,update,watch"]),
        (
            vec![spec::<subresources>()],
            &[
                "*: [] configmaps,pods,serviceaccounts: list,watch",
                "*: [] pods/binding,pods/eviction,serviceaccounts/token: create",
                "*: [] pods/status: patch",
                "*: [apps] deployments: list,watch",
                "*: [apps] deployments/scale: patch",
            ],
        ),
        (vec![spec::<one_name>()], &[OWN, "*: [] secrets password: list,watch"]),
        (vec![spec::<of_the_cluster>()], &["*: [] nodes: list,watch"]),
        (vec![spec::<elsewhere>()], &[OWN]),
        (vec![spec::<extra>()], &["*: /metrics: get", OWN, "*: [,metrics.k8s.io] nodes a,b: get,proxy"]),
        (
            vec![spec::<extra_in_a>()],
            &["*: /metrics: get", "*: [,metrics.k8s.io] nodes a,b: get,proxy", "a: [] configmaps: list,watch"],
        ),
        (
            vec![spec::<extra_of_scopes>()],
            &[
                "*: [*] *: use-all",
                "*: [authorization.k8s.io] subjectaccessreviews: use-subjectaccessreviews",
                "*: [storage.k8s.io] csinodes: use-csinodes",
                // The scope of this kind is unknown, so its rule applies to all namespaces.
                "*: [y.io] crates: use-crates",
                "a: [] configmaps: list,watch",
                "a: [] pods: use-pods",
                "a: [x.io] boxes: list,watch",
                "a: [x.io] boxes/status: use-boxes-status",
            ],
        ),
        (vec![spec::<superuser>()], &["*: [*] *: *"]),
        // A permission in all namespaces is not repeated for a single namespace.
        (
            vec![spec::<cached_in_a>(), spec::<plain>()],
            &["*: [] configmaps,nodes: list,watch", "a: [] secrets: list,watch"],
        ),
    ];
    for (specs, expected) in cases {
        let names: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
        assert_eq!(rules(&rbac(&specs, &options()).unwrap()), expected, "{names:?}");
    }
}

#[test]
fn role_of_another_cluster_is_its_declaration() {
    let mut edge = options();
    edge.cluster = "edge".into();
    let manifests = rbac(&[spec::<elsewhere>()], &edge).unwrap();
    assert_eq!(rules(&manifests), ["*: [] pods: delete,list,watch"]);
    assert!(manifests.iter().all(|manifest| manifest.file.starts_with("rbac-edge/")));
    let extra = rbac(&[spec::<extra_elsewhere>()], &edge).unwrap();
    assert_eq!(rules(&extra), ["*: [,metrics.k8s.io] nodes a,b: get,proxy"]);
    let here = rbac(&[spec::<extra_elsewhere>()], &options()).unwrap();
    assert_eq!(rules(&here), ["*: /metrics: get", OWN]);
}

#[test]
fn events_are_allowed_where_the_primaries_are() {
    let cases = [
        (spec::<plain>(), ""),
        (spec::<cached_in_a>(), "a"),
        // Events about cluster-scoped objects are created in this namespace.
        (spec::<of_the_cluster>(), "default"),
    ];
    for (spec, expected) in cases {
        let manifests = rbac(&[spec], &options()).unwrap();
        let with_events = manifests.iter().find(|manifest| manifest.yaml.contains("events.k8s.io")).unwrap();
        assert_eq!(with_events.object["metadata"]["namespace"].as_str().unwrap_or_default(), expected);
    }
}

#[test]
fn order_of_the_declarations_changes_nothing() {
    let mut specs =
        vec![spec::<plain>(), spec::<extra>(), spec::<subresources>(), spec::<cached_in_a>(), spec::<owns_all>()];
    let first = rbac(&specs, &options()).unwrap();
    for _ in 0..specs.len() {
        specs.rotate_left(1);
        assert_eq!(rbac(&specs, &options()).unwrap(), first);
    }
}

#[test]
fn each_rule_names_its_declarations() {
    let manifests = rbac(&[spec::<subresources>()], &options()).unwrap();
    let role = manifests.iter().find(|manifest| manifest.object["kind"] == "ClusterRole").unwrap();
    let comments: Vec<&str> = role.yaml.lines().filter(|line| line.starts_with('#')).take(3).collect();
    assert_eq!(
        comments,
        [
            "# subresources: its primary",
            "# subresources: reads = Pod(eviction, binding, status)",
            "# subresources: reads = ServiceAccount(token)"
        ]
    );
    let read: kctl::Json = kctl::from_yaml(&role.yaml).unwrap();
    assert_eq!(read, role.object);
}

#[test]
fn comment_marks_declarations_narrower_than_the_role() {
    let cases = [
        (spec::<one_name>(), "", "# one_name: reads = Secret(fields = \"metadata.name=password\")"),
        (spec::<elsewhere>(), "edge", "# elsewhere: reads = Pod(delete, on = \"edge\")"),
        (spec::<extra>(), "", "# extra: rbac(extra_paths())"),
        (spec::<extra_elsewhere>(), "edge", "# extra_elsewhere: rbac(extra_resources(), on = Edge)"),
        (spec::<finalizing_in_a>(), "", "# finalizing_in_a: primary(patch)"),
        (spec::<finalizing_in_a>(), "", "# finalizing_in_a: its primary"),
    ];
    for (spec, cluster, expected) in cases {
        let mut options = options();
        options.cluster = cluster.into();
        let manifests = rbac(&[spec], &options).unwrap();
        let lines: Vec<&str> = manifests.iter().flat_map(|manifest| manifest.yaml.lines()).collect();
        assert!(lines.contains(&expected), "{expected}: {lines:#?}");
    }
}

#[test]
fn generated_rules_have_comments_and_roles_have_labels() {
    let labels = [("team".to_owned(), "a".to_owned())].into();
    let mut options = options();
    options.labels = labels;
    let mut manifests = user_roles(&kinds::<custom>(), &options).unwrap();
    let manager = ManagerOptions::default().with_leader_election().with_metrics();
    manifests.extend(manager_rbac(&options, manager).unwrap());
    let roles: Vec<_> = manifests.iter().filter(|manifest| manifest.object["rules"].is_array()).collect();
    assert_eq!(roles.len(), 5);
    for Manifest { file, object, yaml, .. } in roles {
        assert_eq!(object["metadata"]["labels"]["team"], "a", "{file}");
        let lines: Vec<&str> = yaml.lines().collect();
        for rule in lines.iter().enumerate().filter(|(_, line)| line.starts_with("- ")).map(|(index, _)| index) {
            assert!(lines[rule - 1].starts_with("# "), "{file}: {yaml}");
        }
    }
    assert!(manifests[0].yaml.contains("# kind Box, for people\n"));
}

#[test]
fn labels_and_user_roles_are_added_on_request() {
    let labels = [("rbac.example.com/aggregate".to_owned(), "true".to_owned())].into();
    let mut labelled = options();
    labelled.labels = labels;
    let manifests = rbac(&[spec::<custom>()], &labelled).unwrap();
    let labelled: Vec<_> = manifests
        .iter()
        .filter(|manifest| manifest.object["metadata"]["labels"]["rbac.example.com/aggregate"] == "true")
        .map(|manifest| manifest.file.as_str())
        .collect();
    assert_eq!(labelled, ["rbac/clusterrole-app.yaml"]);

    let people = user_roles(&kinds::<custom>(), &options()).unwrap();
    assert_eq!(
        rules(&people),
        ["*: [x.io] boxes: get,list,watch", "*: [x.io] boxes: create,delete,deletecollection,patch,update"]
    );
    assert_eq!(user_roles(&kinds::<plain>(), &options()).unwrap(), []);
}

#[test]
fn user_roles_include_kinds_without_controllers_once() {
    let app = App::new("app").controller::<custom>().controller::<only_read>().kind::<Lid>().kind::<Box>();
    let view = &user_roles(&app.kinds(), &options()).unwrap()[..1];
    assert_eq!(rules(view), ["*: [x.io] boxes: get,list,watch", "*: [x.io] lids: get,list,watch"]);
    assert_eq!(rules(&user_roles(&App::new("app").kind::<Lid>().kinds(), &options()).unwrap()).len(), 2);
}

#[test]
fn wildcard_is_listed_once_with_framework_permissions() {
    let all = permissions(&[spec::<superuser>()], "");
    let wildcards: Vec<_> = all.iter().filter(|permission| permission.to_string() == "* *.*").collect();
    assert_eq!(wildcards.len(), 1, "{all:?}");
    assert!(!wildcards[0].framework && wildcards[0].because.len() > 1, "{wildcards:?}");
}

#[test]
fn rules_without_effect_are_reported_with_a_fix() {
    let rule = |verbs: &[&str], groups: &[&str], resources: &[&str], urls: &[&str]| {
        let list = |of: &[&str]| (!of.is_empty()).then(|| texts(of));
        PolicyRule {
            verbs: texts(verbs),
            api_groups: list(groups),
            resources: list(resources),
            non_resource_urls: list(urls),
            resource_names: None,
        }
    };
    let cases = [
        (rule(&["get"], &[""], &["pods"], &[]), None),
        (rule(&["get"], &[], &[], &["/metrics"]), None),
        (rule(&[], &[""], &["pods"], &[]), Some("it has no verbs")),
        (rule(&["get"], &[], &["pods"], &[]), Some("it has no API groups")),
        (rule(&["get"], &["apps"], &[], &[]), Some("it has no resources")),
        (rule(&["get"], &[], &[], &[]), Some("it is about nothing")),
        (rule(&["get"], &[""], &["pods"], &["/metrics"]), Some("it is about objects and about paths")),
        (
            PolicyRule { api_groups: Some(Vec::new()), ..rule(&["get"], &[], &["pods"], &[]) },
            Some("it has no API groups"),
        ),
    ];
    for (rule, expected) in cases {
        let problem = kctl_runtime::manifest::rule_problem(&rule);
        match expected {
            None => assert_eq!(problem, None, "{rule:?}"),
            Some(what) => {
                assert!(
                    problem.is_some_and(|(message, help)| message.starts_with(what) && !help.is_empty()),
                    "{rule:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn app_with_an_empty_rule_does_not_start() {
    let app = App::new("app").controller::<of_nothing>();
    let error = kctl::testing::TestServer::start(app).await.err().unwrap().to_string();
    assert!(
        error.contains("the rule of `rbac(without_groups())` has no effect: it has no API groups\nhelp: write"),
        "{error}"
    );
    assert!(error.contains("roles.rs:"), "{error}");
}

#[test]
fn wider_grant_covers_a_narrower_one() {
    let all = |specs: &[ControllerSpec]| permissions(specs, "");
    let everything: Vec<Permission> = all(&[spec::<superuser>()]);
    let cases = [
        (all(&[spec::<subresources>()]), true),
        (all(&[spec::<cached_in_a>()]), true),
        // `*` in `resources` does not cover non-resource URLs.
        (all(&[spec::<extra>()]), false),
    ];
    for (wanted, expected) in cases {
        let covered = wanted.iter().all(|permission| everything.iter().any(|other| other.covers(permission)));
        assert_eq!(covered, expected, "{wanted:?}");
    }
    let narrow = all(&[spec::<cached_in_a>()]);
    let broad = all(&[spec::<plain>()]);
    assert!(!broad.iter().any(|permission| narrow.iter().any(|other| other.covers(permission))));
}

#[controller(reads = Secret(scale), primary(read_only))]
async fn scaled_secret(_config: Arc<ConfigMap>, _cx: Context<scaled_secret>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(reads = Pod(scale), primary(read_only))]
async fn scaled_pod(_config: Arc<ConfigMap>, _cx: Context<scaled_pod>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(reads = APIService(scale), primary(read_only))]
async fn scaled_api_service(_config: Arc<ConfigMap>, _cx: Context<scaled_api_service>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(reads = Deployment(scale), reads = Pod(eviction), primary(read_only))]
async fn scaled_deployment(_config: Arc<ConfigMap>, _cx: Context<scaled_deployment>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test]
async fn unknown_subresource_is_rejected_with_the_existing_ones() {
    let started = async |app: App| kctl::testing::TestServer::start(app).await.err().map(|error| error.to_string());
    for (app, expected) in [
        (
            App::new("app").controller::<scaled_secret>(),
            "`Secret` has no subresource `scale`\nhelp: remove `scale` from its verbs: it has none",
        ),
        (
            App::new("app").controller::<scaled_pod>(),
            "`Pod` has no subresource `scale`\nhelp: remove `scale` from its verbs: it has binding, eviction, status",
        ),
        (
            App::new("app").controller::<scaled_api_service>(),
            "`APIService` has no subresource `scale`\nhelp: remove `scale` from its verbs: it has status",
        ),
    ] {
        let error = started(app).await.unwrap();
        assert!(error.ends_with(expected) && error.contains("roles.rs:"), "{error}");
    }
    assert_eq!(started(App::new("app").controller::<scaled_deployment>()).await, None);
}

/// Compares the table of subresources with the API server, for every built-in kind.
#[tokio::test]
async fn known_subresources_match_the_api_server() {
    let server = kctl::apiserver::ApiServer::new();
    let client = kctl::kube::Client::new(server.service(), "default");
    let discovered = kctl::kube::discovery::Discovery::new(client).run().await.unwrap();
    let mut n_kinds = 0;
    for group in discovered.groups() {
        for (resource, capabilities) in group.versioned_resources(group.preferred_version_or_latest()) {
            let has = |verb: &str| capabilities.subresources.iter().any(|(sub, _)| sub.plural == verb);
            for verb in ["status", "scale", "eviction", "binding", "token"] {
                let is_rejected = kctl_runtime::manifest::lacks_subresource(
                    &resource.group,
                    &resource.version,
                    &resource.plural,
                    verb,
                );
                assert_eq!(is_rejected, !has(verb), "{}/{} {verb}", resource.group, resource.plural);
            }
            n_kinds += 1;
        }
    }
    assert!(n_kinds > 40, "{n_kinds}");
}
