//! Errors of `check_role` for roles with unneeded permissions, and for scenarios that fail.

use kctl::{
    kube::{
        Api,
        api::{ListParams, PostParams},
    },
    prelude::*,
    testing::{Trial, check_role},
};

/// Creates a Secret for each `ConfigMap`, but declares more permissions than that needs.
#[controller(owns = Secret(create, delete), reads = Pod(live), primary(patch), name = "greedy")]
async fn greedy(config: Arc<ConfigMap>, cx: Context<greedy>) -> Result<Action> {
    let secrets = cx.owned::<Secret>();
    if secrets.is_empty() {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        secrets.create(Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("greedy").controller::<greedy>()
}

async fn create_config(trial: &Trial) -> Result<()> {
    let metadata = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
    let config = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(trial.client()).create(&PostParams::default(), &config).await?;
    trial.idle().await
}

#[tokio::test(start_paused = true)]
async fn unneeded_permission_is_named_with_its_declaration() {
    let error = check_role(app, create_config).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the scenario does not need everything that is declared:\
         \n  `patch configmaps`, declared by `greedy: primary(patch)`\
         \n  `get pods`, declared by `greedy: reads = Pod(live)`\
         \n  `delete secrets`, declared by `greedy: owns = Secret(create, delete)`\
         \nhelp: leave it out of the declaration, or let the scenario do what needs it"
    );
}

#[tokio::test(start_paused = true)]
async fn scenario_that_fails_or_panics_proves_nothing() {
    let fails = async |_: &Trial| -> Result<()> { Err("no pods".into()) };
    let error = check_role(app, fails).await.unwrap_err().to_string();
    assert_eq!(error, "the scenario fails under the generated role: no pods");
    let panics = async |_: &Trial| -> Result<()> { panic!("{} pods", 7) };
    let error = check_role(app, panics).await.unwrap_err().to_string();
    assert_eq!(error, "the scenario fails under the generated role: panic: 7 pods");
}

/// Creates a client for the cluster that the environment names.
#[controller(name = "inferring")]
async fn inferring(_config: Arc<ConfigMap>, _cx: Context<inferring>) -> Result<Action> {
    // The result does not matter: the trial has to notice the attempt.
    let _found = kctl::kube::Client::try_default().await;
    Ok(Action::await_change())
}

/// Sends requests to a cluster with a hard-coded address.
#[controller(name = "knowing")]
async fn knowing(_config: Arc<ConfigMap>, _cx: Context<knowing>) -> Result<Action> {
    let mut config = kctl::kube::Config::new("http://127.0.0.1:1".parse()?);
    config.default_retry = false;
    let client = kctl::kube::Client::try_from(config)?;
    let _rejected = Api::<Secret>::namespaced(client, "prod").list(&ListParams::default()).await;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn requests_that_bypass_the_context_are_named() {
    let bypass = "other clients, such as `kube::Client::try_default()`, sent requests that bypass the context:\n  ";
    let error =
        check_role(|| App::new("knowing").controller::<knowing>(), create_config).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("{bypass}GET http://127.0.0.1:1/api/v1/namespaces/prod/secrets\n")), "{error}");
    assert!(error.contains("help: declare the kind and use `cx`"), "{error}");
    if kctl::kube::Config::infer().await.is_err() {
        let app = || App::new("inferring").controller::<inferring>();
        let error = check_role(app, create_config).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{bypass}nothing: it found no cluster in the environment\n")), "{error}");
    }
}

fn configs_of(secret: &Secret, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    configs.keys().into_iter().filter(|key| key.name() == secret.name_any()).collect()
}

/// Labels the Secrets of another cluster that have the name of a `ConfigMap` in this cluster.
#[controller(watches = Secret(patch, delete, map = configs_of, on = "edge"))]
async fn marker(config: Arc<ConfigMap>, cx: Context<marker>) -> Result<Action> {
    for secret in cx.store::<Secret>().iter().filter(|secret| secret.name_any() == config.name_any()) {
        cx.objects::<Secret>().patch(&secret, kctl::json!({ "metadata": { "labels": { "marked": "true" } } })).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn role_on_another_cluster_is_proven_as_well() {
    let app = || {
        let unused = || async { Err("a test has its own server".into()) };
        App::new("marker").controller::<marker>().cluster("edge", unused)
    };
    let marks = async |trial: &Trial| -> Result<()> {
        let metadata = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
        let edge = Api::default_namespaced(trial.cluster("edge").unwrap());
        edge.create(&PostParams::default(), &Secret { metadata, ..Secret::default() }).await?;
        create_config(trial).await?;
        let marked = edge.get("web").await?;
        assert_eq!(marked.labels().get("marked").map(String::as_str), Some("true"));
        Ok(())
    };
    let error = check_role(app, marks).await.unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(
        lines[1],
        "  `delete secrets` on edge, declared by `configmap: watches = Secret(patch, delete, on = \"edge\")`"
    );
    assert!(lines[2].starts_with("help: "), "{error}");
}

fn nothing() -> kctl::k8s::api::rbac::v1::PolicyRule {
    let list = |text: &str| vec![text.to_owned()];
    kctl::k8s::api::rbac::v1::PolicyRule {
        api_groups: Some(list("")),
        resources: Some(list("nodes")),
        verbs: list("get"),
        ..Default::default()
    }
}

/// Lists Secrets with the raw client, which its rule does not allow.
#[controller(rbac(nothing()), primary(read_only))]
async fn bold(_config: Arc<ConfigMap>, cx: Context<bold>) -> Result<Action> {
    Api::<Secret>::default_namespaced(cx.client()).list(&ListParams::default()).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn check_role_fails_fast_on_undeclared_permission() {
    let begin = tokio::time::Instant::now();
    let error = check_role(|| App::new("bold").controller::<bold>(), create_config).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the generated role lacks `list secrets in namespace default`: nothing that is declared needs it"
    );
    assert!(begin.elapsed() < Duration::from_secs(5), "after {:?}", begin.elapsed());
}

/// Caches all Nodes and Secrets, and reads neither store.
#[controller(reads = Node, watches = Secret(map = configs_of), primary(patch), name = "curious")]
async fn curious(config: Arc<ConfigMap>, cx: Context<curious>) -> Result<Action> {
    if !config.labels().contains_key("seen") {
        cx.patch(kctl::json!({ "metadata": { "labels": { "seen": "true" } } })).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn check_role_reports_unread_caches_secrets_first() {
    let error = check_role(|| App::new("curious").controller::<curious>(), create_config).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the scenario does not need everything that is declared:\
         \n  `list secrets` and `watch secrets`, declared by `curious: watches = Secret`: \
         no reconcile reads the store of Secret, and every Secret is held in memory\
         \n  `list nodes` and `watch nodes`, declared by `curious: reads = Node`: \
         no reconcile reads the store of Node\
         \nhelp: leave it out of the declaration, or let the scenario do what needs it"
    );
}

/// Reads one store, and uses the watch of the other kind only as a trigger.
#[controller(reads = Node, watches = Secret(map = configs_of_metadata, metadata), primary(patch), name = "modest")]
async fn modest(config: Arc<ConfigMap>, cx: Context<modest>) -> Result<Action> {
    if !config.labels().contains_key("seen") {
        let n_nodes = cx.store::<Node>().len().to_string();
        cx.patch(kctl::json!({ "metadata": { "labels": { "seen": n_nodes } } })).await?;
    }
    Ok(Action::await_change())
}

fn configs_of_metadata(secret: &PartialObjectMeta<Secret>, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    configs.keys().into_iter().filter(|key| key.name() == secret.name_any()).collect()
}

#[tokio::test(start_paused = true)]
async fn check_role_accepts_read_cache_and_metadata_watch() {
    check_role(|| App::new("modest").controller::<modest>(), create_config).await.unwrap();
}
