//! The role of a declaration: least verbs, merged and sorted, each rule with where it comes from.

use kctl::{
    k8s::api::{apps::v1::Deployment, rbac::v1::PolicyRule},
    manifest::{Grant, Manifest, RbacOptions, grants, rbac, user_roles},
    prelude::*,
    spec::ControllerSpec,
};

#[resource(group = "x.io", version = "v1", kind = "Box", namespaced, status = "BoxStatus")]
struct BoxSpec {}

#[schema]
struct BoxStatus {}

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
    superuser: ConfigMap, (owns = Pod, rbac(everything()),);
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

fn options() -> RbacOptions {
    RbacOptions { name: "app".into(), namespace: "system".into(), ..RbacOptions::default() }
}

/// The rules of all roles in short, without the events of kctl.
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
    const OWN: &str = "*: [] configmaps: list,watch";
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
            &[
                "*: /metrics: get",
                "*: [] nodes a,b: get,proxy",
                "a: [] configmaps: list,watch",
                "a: [metrics.k8s.io] nodes a,b: get,proxy",
            ],
        ),
        (vec![spec::<superuser>()], &["*: [*] *: *"]),
        // What is allowed everywhere is not said again for a namespace.
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
fn role_of_another_cluster_is_what_is_declared_on_it() {
    let edge = RbacOptions { cluster: "edge".into(), ..options() };
    let manifests = rbac(&[spec::<elsewhere>()], &edge).unwrap();
    assert_eq!(rules(&manifests), ["*: [] pods: delete,list,watch"]);
    assert!(manifests.iter().all(|manifest| manifest.file.starts_with("rbac-edge/")));
}

#[test]
fn events_are_allowed_where_the_primaries_are() {
    let cases = [
        (spec::<plain>(), ""),
        (spec::<cached_in_a>(), "a"),
        // Events about what is in no namespace are in this one.
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
fn each_rule_says_which_declarations_need_it() {
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
fn labels_and_roles_for_people_are_added_when_asked_for() {
    let labels = [("rbac.example.com/aggregate".to_owned(), "true".to_owned())].into();
    let manifests = rbac(&[spec::<custom>()], &RbacOptions { labels, ..options() }).unwrap();
    let labelled: Vec<_> = manifests
        .iter()
        .filter(|manifest| manifest.object["metadata"]["labels"]["rbac.example.com/aggregate"] == "true")
        .map(|manifest| manifest.file.as_str())
        .collect();
    assert_eq!(labelled, ["rbac/clusterrole-app.yaml"]);

    let people = user_roles(&[spec::<custom>(), spec::<plain>()], &options()).unwrap();
    assert_eq!(
        rules(&people),
        ["*: [x.io] boxes: get,list,watch", "*: [x.io] boxes: create,delete,deletecollection,patch,update"]
    );
    assert_eq!(user_roles(&[spec::<plain>()], &options()).unwrap(), []);
}

#[test]
fn grant_that_says_more_covers_one_that_says_less() {
    let all = |specs: &[ControllerSpec]| grants(specs, "");
    let everything: Vec<Grant> = all(&[spec::<superuser>()]);
    let cases = [
        (all(&[spec::<subresources>()]), true),
        (all(&[spec::<cached_in_a>()]), true),
        // `*` on resources says nothing about paths.
        (all(&[spec::<extra>()]), false),
    ];
    for (wanted, expected) in cases {
        let covered = wanted.iter().all(|grant| everything.iter().any(|other| other.covers(grant)));
        assert_eq!(covered, expected, "{wanted:?}");
    }
    let narrow = all(&[spec::<cached_in_a>()]);
    let broad = all(&[spec::<plain>()]);
    assert!(!broad.iter().any(|grant| narrow.iter().any(|other| other.covers(grant))));
}
