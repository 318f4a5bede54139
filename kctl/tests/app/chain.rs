//! The interpreter chain follows the objects of its control plane: applied customizations and webhooks answer, deleted
//! ones do not.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kctl::{
    json,
    k8s::{api::apps::v1::Deployment, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition},
    karmada::{
        chain::{Chain, ChainError, LayerKind},
        kind::Gvk,
        lua::{Limits, Pool},
        operation::{InterpretHealth, InterpretReplica, Object, Operation},
        prelude::*,
        registry::Registry,
    },
    kube::{
        Api,
        api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
        core::{ApiResource, GroupVersionKind},
    },
    prelude::*,
    testing::TestServer,
};
use kctl_interpreter::{
    function::Interpreter,
    lua::Configurable,
    webhook::{ClientConfig, Configuration, Webhook, WebhookOptions},
};
use kctl_runtime::manifest::{PermissionScope, permissions};

/// A controller that does nothing, because these tests only use the interpreter chain.
#[controller]
async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    Ok(Action::await_change())
}

fn api(server: &TestServer, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("config.karmada.io", "v1alpha1", kind));
    Api::all_with(server.client(), &kind)
}

async fn create(api: &Api<DynamicObject>, object: kctl::Json) {
    api.create(&PostParams::default(), &kctl::from_json(object).unwrap()).await.unwrap();
}

fn customization(name: &str, kind: &str, replicas: &str) -> kctl::Json {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": name },
        "spec": {
            "target": { "apiVersion": "apps/v1", "kind": kind },
            "customizations": { "replicaResource": { "luaScript": format!("function GetReplicas(o) {replicas} end") } },
        },
    })
}

fn object(kind: &str) -> Object {
    Object(json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "web" }, "spec": { "replicas": 1 } }))
}

async fn replicas(chain: &Registry, kind: &str) -> Result<i32, ChainError> {
    chain.interpret::<InterpretReplica>(object(kind)).await.map(|answer| answer.replicas)
}

/// Returns the CRDs of the kinds that a chain watches.
fn definitions() -> Vec<CustomResourceDefinition> {
    let kinds = App::new("chained").interpreter_kinds().kinds();
    kctl::manifest::definitions(&kinds, kctl::manifest::Descriptions::Own).unwrap()
}

/// Waits until the watches have delivered recent events.
async fn wait_for_watches() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn applied_customizations_and_webhooks_answer_until_deleted() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let server = TestServer::start(app).await.unwrap();
    wait_for_watches().await;
    assert!(chain.is_ready());
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 1);

    let customizations = api(&server, "ResourceInterpreterCustomization");
    create(&customizations, customization("a", "Deployment", "return 5, nil")).await;
    create(&customizations, customization("b", "Deployment", "return 6, nil")).await;
    create(&customizations, customization("c", "StatefulSet", "return")).await;
    create(&customizations, customization("d", "ReplicaSet", "retrn")).await;
    wait_for_watches().await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 5);
    assert!(replicas(&chain, "StatefulSet").await.is_err(), "it returns no number, and is final");
    let error = replicas(&chain, "ReplicaSet").await.unwrap_err();
    assert!(matches!(error, ChainError::LayerFailed { layer_kind: LayerKind::Configurable, .. }), "{error}");

    customizations.delete("a", &DeleteParams::default()).await.unwrap();
    wait_for_watches().await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 6);

    let configurations = api(&server, "ResourceInterpreterWebhookConfiguration");
    let configuration = json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": { "name": "hooks" },
        "webhooks": [{
            "name": "w.example.com", "clientConfig": { "service": { "namespace": "default", "name": "hooks", "port": 443 } },
            "rules": [{ "operations": ["InterpretHealth"], "apiGroups": ["apps"], "apiVersions": ["*"], "kinds": ["Deployment"] }],
            "interpreterContextVersions": ["v1alpha1"],
        }],
    });
    create(&configurations, configuration).await;
    let services: Api<kctl::k8s::api::core::v1::Service> = Api::namespaced(server.client(), "default");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "hooks" },
        "spec": { "ports": [{ "port": 8443 }] },
    });
    services.create(&PostParams::default(), &kctl::from_json(service).unwrap()).await.unwrap();
    wait_for_watches().await;
    let error = chain.interpret::<InterpretHealth>(object("Deployment")).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.ends_with("failed to call webhook: no service port 443 found for service \"hooks\""), "{cause}");
    configurations.delete("hooks", &DeleteParams::default()).await.unwrap();
    wait_for_watches().await;
    let kind = Gvk { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() };
    assert!(chain.hook_enabled(Operation::InterpretHealth, &kind), "the built-in rule is left");
    let error = chain.interpret::<InterpretHealth>(object("Deployment")).await;
    assert!(!matches!(error, Err(ChainError::LayerFailed { layer_kind: LayerKind::Webhook, .. })), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn interpreter_chain_starts_without_crds_and_detects_installation() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let server = TestServer::start(app).await.unwrap();
    let installed: Api<CustomResourceDefinition> = Api::all(server.client());
    for definition in definitions() {
        installed.delete(&definition.name_any(), &DeleteParams::default()).await.unwrap();
    }
    // Another instance of the app, which starts on a control plane that does not have the CRDs.
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let manager = app.manager(server.client()).await.unwrap();
    tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!chain.is_ready(), "an API server that starts does not have them either");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 1);

    for definition in definitions() {
        installed.create(&PostParams::default(), &definition).await.unwrap();
    }
    wait_for_watches().await;
    let customizations = api(&server, "ResourceInterpreterCustomization");
    create(&customizations, customization("a", "Deployment", "return 5, nil")).await;
    // A missing kind is looked for every five seconds.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn custom_layer_at_control_plane_place_is_rejected() {
    for place in [LayerKind::Configurable, LayerKind::Webhook] {
        let layer = || {
            Configurable::from_customizations(
                [&customization("mine", "Deployment", "return 9")],
                Pool::new(Limits::default()),
            )
        };
        let set_before = Arc::new(Registry::new(Chain::native().with(place, layer())));
        let set_after = Arc::new(Registry::new(Chain::native()));
        let apps =
            [&set_before, &set_after].map(|chain| App::new("chained").controller::<idle>().interpreter_chain(chain));
        set_after.set(place, Some(Arc::new(layer())));
        for app in apps {
            let rejected = TestServer::start(app).await.expect_err("the app does not start").to_string();
            assert!(rejected.contains(&format!("a layer LayerKind::{place:?}")), "{rejected}");
            assert!(rejected.contains("help: use LayerKind::ThirdParty"), "{rejected}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn own_layer_behind_the_control_plane_answers() {
    let layer = Configurable::from_customizations(
        [&customization("mine", "Deployment", "return 9")],
        Pool::new(Limits::default()),
    );
    let chain = Arc::new(Registry::new(Chain::native().with(LayerKind::ThirdParty, layer)));
    let server = TestServer::start(App::new("chained").controller::<idle>().interpreter_chain(&chain)).await.unwrap();
    wait_for_watches().await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 9);
    create(&api(&server, "ResourceInterpreterCustomization"), customization("theirs", "Deployment", "return 4")).await;
    wait_for_watches().await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 4);
}

#[tokio::test(start_paused = true)]
async fn role_of_the_app_allows_the_chains_reads() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let read = |app: &App| -> Vec<String> {
        let mut specs = app.specs();
        // The chain reads in all namespaces, even if the first controller is limited to one.
        specs[0].namespaces = vec!["a".into()];
        let all = permissions(&specs, "");
        all.iter()
            .filter(|permission| permission.scope == PermissionScope::Everywhere)
            .map(ToString::to_string)
            .collect()
    };
    let app = || App::new("chained").controller::<idle>();
    assert!(read(&app()).is_empty());
    let expected = [
        "list services",
        "watch services",
        "list resourceinterpretercustomizations.config.karmada.io",
        "watch resourceinterpretercustomizations.config.karmada.io",
        "list resourceinterpreterwebhookconfigurations.config.karmada.io",
        "watch resourceinterpreterwebhookconfigurations.config.karmada.io",
    ];
    assert_eq!(read(&app().interpreter_chain(&chain)), expected);
}

/// Defines a webhook that answers with this number after a delay, so that calls are in flight whenever rules change.
macro_rules! version {
    ($module:ident, $replicas:literal) => {
        mod $module {
            use super::*;

            #[interpreter(op = InterpretReplica)]
            async fn replicas(_deployment: &Deployment) -> Result<Replicas> {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(Replicas { replicas: $replicas, requirements: None })
            }

            /// Serves the webhook with its own CA, and returns its configuration.
            pub(super) async fn serve() -> kctl::Json {
                let rules = <replicas as Interpreter>::rules();
                let webhook = Webhook::listen(rules.clone(), WebhookOptions::default()).await.unwrap();
                let client = ClientConfig::Url(format!("https://{}", webhook.address()));
                let authority = webhook.authority();
                let configuration = Configuration { name: "hooks", client, authority, timeout_seconds: 10 };
                let configuration = configuration.object(&rules).unwrap();
                tokio::spawn(webhook.serve(std::future::pending()));
                configuration
            }
        }
    };
}
version!(first, 7);
version!(second, 8);

/// Represents an error of the configurable layer.
const BROKEN: i32 = -1;

/// Calls the chain in a loop and records the answers, without consecutive duplicates.
async fn call(chain: Arc<Registry>, n_calls: Arc<AtomicUsize>, answers: Arc<Mutex<Vec<i32>>>) {
    loop {
        let answer = match replicas(&chain, "Deployment").await {
            Ok(replicas) => replicas,
            Err(ChainError::LayerFailed { layer_kind: LayerKind::Configurable, .. }) => BROKEN,
            Err(other) => panic!("no other call fails: {other}: {:?}", std::error::Error::source(&other)),
        };
        n_calls.fetch_add(1, Ordering::Relaxed);
        {
            let mut answers = answers.lock().unwrap();
            answers.push(answer);
            answers.dedup();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_succeed_while_rules_change() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let early = replicas(&chain, "Deployment").await.unwrap_err();
    assert!(
        matches!(early, ChainError::NotReady { .. }),
        "not by the built-in rule, which may not be the first: {early}"
    );
    let server = TestServer::start(app).await.unwrap();
    chain.ready().await;
    let n_calls = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let answers = Arc::new(Mutex::new(Vec::new()));
            (tokio::spawn(call(chain.clone(), n_calls.clone(), answers.clone())), answers)
        })
        .collect();
    let all_answer = async |expected: i32| {
        let answered = async {
            while callers.iter().any(|(_, answers)| answers.lock().unwrap().last() != Some(&expected)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), answered).await.expect("everybody is answered by the new rule");
        // Calls that began before the change end within this time.
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let customizations = api(&server, "ResourceInterpreterCustomization");
    let configurations = api(&server, "ResourceInterpreterWebhookConfiguration");
    let apply = async |api: &Api<DynamicObject>, object: &kctl::Json| {
        let name = object["metadata"]["name"].as_str().unwrap();
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
    };
    all_answer(1).await;
    apply(&configurations, &first::serve().await).await;
    all_answer(7).await;
    // The second webhook has another address and another CA: a call that mixes the two fails.
    apply(&configurations, &second::serve().await).await;
    all_answer(8).await;
    apply(&customizations, &customization("b", "Deployment", "return 5, nil")).await;
    all_answer(5).await;
    apply(&customizations, &customization("b", "Deployment", "return 6, nil")).await;
    all_answer(6).await;
    // Customization `a` comes first, so its error is the answer and the script of `b` does not run.
    apply(&customizations, &customization("a", "Deployment", "retrn")).await;
    all_answer(BROKEN).await;
    apply(&customizations, &customization("a", "Deployment", "return 9, nil")).await;
    all_answer(9).await;
    // An error in the script of `b` has no effect, because `a` answers first.
    apply(&customizations, &customization("b", "Deployment", "retrn")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    customizations.delete("b", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    customizations.delete("a", &DeleteParams::default()).await.unwrap();
    all_answer(8).await;
    configurations.delete("hooks", &DeleteParams::default()).await.unwrap();
    all_answer(1).await;

    for (caller, answers) in &callers {
        caller.abort();
        assert_eq!(*answers.lock().unwrap(), [1, 7, 8, 5, 6, BROKEN, 9, 8, 1]);
    }
    assert!(n_calls.load(Ordering::Relaxed) > 400, "{n_calls:?}: there were calls all the time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_scripts_delay_only_their_caller() {
    const TAKES: Duration = Duration::from_secs(2);
    /// Less than `TAKES`, with room for the delays of a loaded machine.
    const WAITS_MAX: Duration = Duration::from_millis(1600);
    let endless = customization("endless", "Deployment", "while true do end");
    let pool = Pool::new(Limits::default().time(TAKES));
    let chain = Arc::new(Registry::new(Chain::native()));
    chain.set(LayerKind::Configurable, Some(Arc::new(Configurable::from_customizations([&endless], pool))));
    assert!(replicas(&chain, "Deployment").await.is_err(), "from now on it is known to take long");
    let longest = Arc::new(Mutex::new(Duration::ZERO));
    let seen = longest.clone();
    let ticks = tokio::spawn(async move {
        loop {
            let start = tokio::time::Instant::now();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let mut longest = seen.lock().unwrap();
            *longest = start.elapsed().max(*longest);
        }
    });
    let call = |_| {
        let chain = chain.clone();
        tokio::spawn(async move { replicas(&chain, "Deployment").await.is_err() })
    };
    for call in (0..4).map(call).collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    ticks.abort();
    let longest = *longest.lock().unwrap();
    assert!(longest < WAITS_MAX, "as many as there are threads ran, and others waited {longest:?}");
}
