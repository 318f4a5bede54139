//! The embedded server in this process, and a real server that reaches it over TLS on loopback. Both have the app's
//! functions installed.

use std::sync::atomic::{AtomicU32, Ordering};

use kctl::{
    json,
    kube::{
        Api, Client, ResourceExt,
        api::{DynamicObject, Patch, PatchParams},
        config::{Config, KubeConfigOptions, Kubeconfig},
        core::{ApiResource, GroupVersionKind},
    },
    manifest::{Descriptions, definitions},
    testing::TestServer,
};
use kctl_webhook::{
    Metrics,
    admission::{ClientConfig, Configurations},
    conversion::PATH,
    server::{Server, ServerOptions},
};

use crate::kinds::app;

/// Starts an embedded server, which lives as long as the returned value.
pub(crate) async fn embedded() -> (TestServer, Client) {
    let server = TestServer::start(app()).await.unwrap();
    let client = server.client();
    (server, client)
}

/// The CRD and the webhook configurations apply to the whole cluster, so one test at a time uses a real server.
static INSTALLED: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The real server, reserved for one test.
pub(crate) struct Real {
    pub(crate) client: Client,
    _alone: tokio::sync::MutexGuard<'static, ()>,
}

impl Real {
    /// Deletes the CRD and the webhook configurations, because their webhooks end with this process.
    pub(crate) async fn leave(self) {
        for path in [
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/sites",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/sites",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.hooks.example.com",
        ] {
            let request = http::Request::delete(path).body(Vec::new()).unwrap();
            let _gone: kctl::Json = self.client.request(request).await.unwrap();
        }
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.hooks.example.com";
        while self.client.request::<kctl::Json>(http::Request::get(crds).body(Vec::new()).unwrap()).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }
}

/// Number of tests so far, for the names of their namespaces.
static TESTS: AtomicU32 = AtomicU32::new(0);

/// Returns the server of `REAL_SERVER`, if it is set. Each test has a separate namespace there.
pub(crate) async fn real() -> Option<Real> {
    let file = kctl_tests::real_server()?;
    let alone = INSTALLED.lock().await;
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let name = format!("hooks-{}-{}", std::process::id(), TESTS.fetch_add(1, Ordering::Relaxed));
    config.default_namespace.clone_from(&name);
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    apply(&client, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })).await;
    install(&client).await;
    Some(Real { client, _alone: alone })
}

/// Serves the functions while the test runs, and installs the CRD and the webhook configurations.
async fn install(client: &Client) {
    let app = app();
    let routes = app.webhook_routes(&Metrics::default()).unwrap();
    let server = Server::listen(routes, ServerOptions::default()).await.unwrap();
    let (reached, authority) =
        (ClientConfig::Url(format!("https://{}", server.address())), server.authority().unwrap().to_owned());
    tokio::spawn(server.serve(std::future::pending()));
    for definition in definitions(&app.kinds(), Descriptions::Own).unwrap() {
        let mut object = json!(definition);
        object["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "clientConfig": reached.config(PATH, Some(&authority)), "conversionReviewVersions": ["v1"],
        } });
        apply(client, &object).await;
    }
    let configurations = Configurations { name: "sites", client: &reached, authority: Some(&authority) };
    for object in configurations.objects(app.admissions()) {
        apply(client, &object).await;
    }
    // The real server uses a new CRD or webhook configuration with a delay.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
}

/// Applies an object.
pub(crate) async fn apply(client: &Client, object: &kctl::Json) {
    let object: DynamicObject = kctl::from_json(object.clone()).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let params = PatchParams::apply("webhooks-test").force();
    api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await.unwrap();
}
