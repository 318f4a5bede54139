//! Controllers whose reconcile is a closure of the test, and the world in which they run.

use std::{future::Future, pin::Pin};

use kctl::{
    apiserver::{ApiServer, ControllerOptions, Kubelet},
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    manager::{Manager, View},
    prelude::*,
    watches::Watches,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Duration, sleep},
};

type Act<C, K> = Arc<dyn Fn(Arc<K>, Context<C>) -> Pin<Box<dyn Future<Output = Result<Action>> + Send>> + Send + Sync>;

/// Number of retries of `Configs`.
pub(crate) const RETRIES: u32 = 10;

/// Reconciles up to four `ConfigMap`s concurrently, and owns Pods.
#[controller(of = ConfigMap, owns = Pod, concurrency = 4, retries = RETRIES)]
pub(crate) struct Configs {
    act: Act<Configs, ConfigMap>,
}

impl Reconcile for Configs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        (self.act)(config, cx).await
    }
}

/// Reconciles `Secret`s and reads Pods.
#[controller(of = Secret, reads = Pod)]
pub(crate) struct Secrets {
    act: Act<Secrets, Secret>,
}

impl Reconcile for Secrets {
    async fn reconcile(&self, secret: Arc<Secret>, cx: Context<Self>) -> Result<Action> {
        (self.act)(secret, cx).await
    }
}

/// Reconciles `Service`s and reads `ConfigMap`s.
#[controller(of = Service, reads = ConfigMap)]
pub(crate) struct Services {
    act: Act<Services, Service>,
}

impl Reconcile for Services {
    async fn reconcile(&self, service: Arc<Service>, cx: Context<Self>) -> Result<Action> {
        (self.act)(service, cx).await
    }
}

/// Adds controllers to an app as closures.
pub(crate) trait With {
    fn configs<F, Fut>(self, act: F) -> Self
    where
        F: Fn(Arc<ConfigMap>, Context<Configs>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send + 'static;
    fn secrets<F, Fut>(self, act: F) -> Self
    where
        F: Fn(Arc<Secret>, Context<Secrets>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send + 'static;
    fn services<F, Fut>(self, act: F) -> Self
    where
        F: Fn(Arc<Service>, Context<Services>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send + 'static;
}

impl With for App {
    fn configs<F, Fut>(self, act: F) -> Self
    where
        F: Fn(Arc<ConfigMap>, Context<Configs>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send + 'static,
    {
        let act: Act<Configs, ConfigMap> = Arc::new(move |config, cx| Box::pin(act(config, cx)));
        self.controller_with(move |_env| std::future::ready(Ok(Configs { act: act.clone() })))
    }

    fn secrets<F, Fut>(self, act: F) -> Self
    where
        F: Fn(Arc<Secret>, Context<Secrets>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send + 'static,
    {
        let act: Act<Secrets, Secret> = Arc::new(move |secret, cx| Box::pin(act(secret, cx)));
        self.controller_with(move |_env| std::future::ready(Ok(Secrets { act: act.clone() })))
    }

    fn services<F, Fut>(self, act: F) -> Self
    where
        F: Fn(Arc<Service>, Context<Services>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send + 'static,
    {
        let act: Act<Services, Service> = Arc::new(move |service, cx| Box::pin(act(service, cx)));
        self.controller_with(move |_env| std::future::ready(Ok(Services { act: act.clone() })))
    }
}

/// Returns an app without controllers.
pub(crate) fn app() -> App {
    App::new("loop")
}

/// A log of the steps of a test.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    /// Returns the lines since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A server, a client that never fails, and a manager whose connection has injected faults.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) faults: Faults,
    view: Option<View>,
    tasks: JoinSet<()>,
}

impl World {
    /// Creates a world without a running manager.
    pub(crate) fn new() -> Self {
        Self::seeded(0)
    }

    /// Creates a world whose server only lists in pages.
    pub(crate) fn in_pages() -> Self {
        let mut world = Self::seeded(0);
        world.faults.pages_only = true;
        world
    }

    /// Creates a world with a seed for UIDs and generated names.
    pub(crate) fn seeded(seed: u64) -> Self {
        let server = ApiServer::seeded(seed);
        let client = Client::new(server.service(), "default");
        Self { server, client, faults: Faults::default(), view: None, tasks: JoinSet::new() }
    }

    /// Starts the controllers.
    pub(crate) async fn run(&mut self, app: App) -> View {
        let manager = app.manager(self.faults.client(&self.server)).await.unwrap();
        self.begin(manager)
    }

    /// Starts the controllers with this client.
    pub(crate) async fn run_on(&mut self, client: Client, app: App) -> View {
        let manager = app.manager(client).await.unwrap();
        self.begin(manager)
    }

    /// Starts the controllers with streaming lists.
    pub(crate) async fn run_streaming(&mut self, app: App) -> View {
        let manager = app.manager(self.faults.client(&self.server)).await.unwrap();
        self.begin(manager.stream_states())
    }

    fn begin(&mut self, manager: Manager) -> View {
        let view = manager.view();
        self.tasks.spawn(async move { manager.run(std::future::pending()).await.unwrap() });
        view
    }

    /// Starts the controllers, and returns the handle for watches at run time.
    pub(crate) async fn run_with_watches(&mut self, app: App) -> Watches {
        let manager = app.manager(self.faults.client(&self.server)).await.unwrap();
        let watches = manager.watches();
        self.view = Some(manager.view());
        self.tasks.spawn(async move { manager.run(std::future::pending()).await.unwrap() });
        watches
    }

    /// Returns the view of the manager that [`World::run_with_watches`] started.
    pub(crate) fn view(&self) -> &View {
        self.view.as_ref().unwrap()
    }

    /// Aborts the controllers, like a dropped manager.
    pub(crate) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Starts the garbage collector and a kubelet. Namespaces get no `kube-root-ca.crt`, which tests would count as a
    /// `ConfigMap`.
    pub(crate) fn run_cluster(&mut self) {
        let controllers = ControllerOptions::default().without_service_accounts();
        self.tasks.spawn(self.server.controllers_with(&controllers));
        self.tasks.spawn(Kubelet::for_server(&self.server).run());
    }

    /// Creates a `ConfigMap`, or changes its data.
    pub(crate) async fn set(&self, name: &str, text: &str) {
        let config = kctl::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "text": text },
        });
        let configs = Api::<ConfigMap>::default_namespaced(self.client.clone());
        configs.patch(name, &PatchParams::apply("test"), &Patch::Apply(config)).await.unwrap();
    }

    pub(crate) async fn create_secret(&self, name: &str) {
        let secret = Secret { metadata: metadata_named(name), ..Secret::default() };
        let secrets = Api::default_namespaced(self.client.clone());
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    pub(crate) async fn create_service(&self, name: &str) {
        let service = kctl::json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "ports": [{ "port": 80 }], "type": "ClusterIP" },
        });
        let services = Api::<Service>::default_namespaced(self.client.clone());
        // The API server's own Service would be counted in each of these tests.
        if services.get_opt("kubernetes").await.unwrap().is_some() {
            services.delete("kubernetes", &DeleteParams::default()).await.unwrap();
        }
        services.patch(name, &PatchParams::apply("test"), &Patch::Apply(service)).await.unwrap();
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    /// Returns the names of all Pods in order.
    pub(crate) async fn pod_names(&self) -> Vec<String> {
        let pods = self.pods().list(&ListParams::default()).await.unwrap();
        pods.items.iter().map(ResourceExt::name_any).collect()
    }

    /// Stops all reads of a resource by the manager from now on.
    pub(crate) fn stop_reads(&self, plural: &'static str) {
        self.faults.add(Fault::Break, move |request: &RequestSummary| request.reads(plural));
        self.faults.cut_watches();
    }

    /// Returns the number of answered requests with this verb on a resource.
    pub(crate) fn n_requests(&self, verb: &str, resource: &str) -> usize {
        let requests = self.server.requests();
        requests.iter().filter(|request| request.verb == verb && request.resource == resource).count()
    }
}

/// Advances the simulated time by `n` seconds.
pub(crate) async fn advance_seconds(n: u64) {
    sleep(Duration::from_secs(n)).await;
}

pub(crate) fn metadata_named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

pub(crate) fn pod(name: &str) -> Pod {
    let container = Container { name: "main".into(), image: Some("nginx".into()), ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    Pod { metadata: metadata_named(name), spec: Some(spec), ..Pod::default() }
}

pub(crate) fn text(config: &ConfigMap) -> String {
    config.data.as_ref().and_then(|data| data.get("text").cloned()).unwrap_or_default()
}
