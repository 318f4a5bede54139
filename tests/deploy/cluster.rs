//! A cluster to deploy programs to: an API server on a socket, an administrator's client, and a simulated kubelet.

use std::time::Duration;

use kctl::{
    Json,
    apiserver::{ApiServer, ServeOptions, Workloads},
    json,
    kube::{
        Api, Client, Config,
        api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
        config::{KubeConfigOptions, Kubeconfig},
        core::GroupVersionKind,
    },
};
use tokio::{
    process::{Child, Command},
    task::JoinSet,
};

use crate::{build, files::Folder};

/// Time limit of `until`.
const TIMEOUT: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Only one test at a time uses a real server, because two simulated kubelets would interfere with each other.
static ONE_ON_A_REAL_SERVER: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// An API server with a simulated kubelet.
pub(crate) struct Cluster {
    pub(crate) admin: Client,
    /// The administrator's kubeconfig.
    kubeconfig: Json,
    /// The embedded server, whose record of requests the tests read.
    embedded: Option<ApiServer>,
    _kubelet: Child,
    tasks: JoinSet<()>,
    _files: Folder,
    _alone: Option<tokio::sync::MutexGuard<'static, ()>>,
}

impl Cluster {
    /// Starts a separate embedded API server.
    pub(crate) async fn embedded() -> Self {
        let server = ApiServer::on_system_time();
        let listening = server.listen(ServeOptions::default()).await.unwrap();
        let kubeconfig = listening.kubeconfig();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.controllers());
        tasks.spawn(async move { listening.serve().await.unwrap() });
        Self::at(&kubeconfig, Some(server), tasks, None).await
    }

    /// Connects to the API server whose kubeconfig an environment variable names.
    pub(crate) async fn from_env(variable: &str) -> Self {
        let file = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names an API server"));
        // Only the server of `KUBECONFIG` is locked: a test uses the servers of member clusters together with it.
        let alone = if variable == "KUBECONFIG" { Some(ONE_ON_A_REAL_SERVER.lock().await) } else { None };
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        Self::at(&text, None, JoinSet::new(), alone).await
    }

    async fn at(
        kubeconfig: &str,
        embedded: Option<ApiServer>,
        tasks: JoinSet<()>,
        alone: Option<tokio::sync::MutexGuard<'static, ()>>,
    ) -> Self {
        let files = Folder::new();
        let file = files.join("admin");
        std::fs::write(&file, kubeconfig).unwrap();
        let admin = client(kubeconfig).await;
        let mut kubelet = Command::new(build::programs().join("kctl"));
        kubelet.args(["kubelet", "--node", "deploy-test", "--kubeconfig"]).arg(&file);
        let kubelet = kubelet.stderr(std::process::Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let kubeconfig = serde_saphyr::from_str(kubeconfig).unwrap();
        Self { admin, kubeconfig, embedded, _kubelet: kubelet, tasks, _files: files, _alone: alone }
    }

    /// Runs workload controllers, such as the Deployment controller, which envtest does not have.
    pub(crate) fn run_workloads(&mut self) {
        self.tasks.spawn(Workloads::new(self.admin.clone()).run());
    }

    /// Applies an object, in this namespace unless the object names another namespace. After a CRD, waits until its
    /// objects can be listed: a busy server begins to serve them seconds later.
    pub(crate) async fn apply(&self, object: &Json, namespace: &str) {
        let (api, kind, name) = (&object["apiVersion"], &object["kind"], &object["metadata"]["name"]);
        let applied = self.try_apply(object, namespace).await;
        applied.unwrap_or_else(|error| panic!("{api} {kind} {name}: {error}"));
        if kind == "CustomResourceDefinition" {
            let (spec, names) = (&object["spec"], &object["spec"]["names"]);
            let text = |value: &Json| value.as_str().unwrap().to_owned();
            for version in spec["versions"].as_array().unwrap().iter().filter(|version| version["served"] == true) {
                let kind = GroupVersionKind::gvk(&text(&spec["group"]), &text(&version["name"]), &text(&names["kind"]));
                self.is_served(&ApiResource::from_gvk_with_plural(&kind, &text(&names["plural"]))).await;
            }
        }
    }

    /// Waits until the objects of a kind can be listed.
    async fn is_served(&self, resource: &ApiResource) {
        let of = Api::<DynamicObject>::all_with(self.admin.clone(), resource);
        let served = || async { of.list(&ListParams::default()).await.is_ok() };
        until(&format!("{} is served", resource.kind), served).await;
    }

    /// Applies an object, and returns the error if the server rejects it.
    pub(crate) async fn try_apply(&self, object: &Json, namespace: &str) -> Result<(), kctl::kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let apply = PatchParams::apply("test").force();
        self.api(object, namespace).patch(name, &apply, &Patch::Apply(object)).await.map(drop)
    }

    /// Changes an object by a merge patch, as `kubectl patch --type merge` does.
    pub(crate) async fn merge(&self, object: &Json, namespace: &str, patch: &Json) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let by = PatchParams { field_manager: Some("kubectl-patch".into()), ..PatchParams::default() };
        self.api(object, namespace).patch(name, &by, &Patch::Merge(patch)).await.unwrap();
    }

    /// Applies an object once its kind is served.
    pub(crate) async fn apply_soon(&self, object: &Json, namespace: &str) {
        self.is_served(&resource(object)).await;
        self.apply(object, namespace).await;
    }

    pub(crate) async fn delete(&self, object: &Json, namespace: &str) {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object, namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Returns the current state of an object; `None` if it does not exist.
    pub(crate) async fn get(&self, object: &Json, namespace: &str) -> Option<Json> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let found = self.api(object, namespace).get_opt(name).await.unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    /// Checks that the embedded server rejected no request of a `ServiceAccount`. A real server has no record of
    /// requests.
    pub(crate) fn assert_never_forbidden(&self, namespace: &str, account: &str) {
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let mut rejected = self.embedded.as_ref().map(ApiServer::requests).unwrap_or_default();
        rejected.retain(|request| request.user == user && [401, 403].contains(&request.code));
        assert_eq!(rejected, []);
    }

    /// Returns the objects of a kind.
    pub(crate) async fn list(&self, api: &str, kind: &str, namespace: &str) -> Vec<Json> {
        let of = self.api(&json!({ "apiVersion": api, "kind": kind }), namespace);
        let found = of.list(&ListParams::default()).await.unwrap().items.into_iter();
        found.map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    fn api(&self, object: &Json, namespace: &str) -> Api<DynamicObject> {
        let (kind, resource) = (object["kind"].as_str().unwrap(), resource(object));
        let cluster_scoped = ["CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Namespace", "Cluster"];
        if cluster_scoped.contains(&kind) || kind.ends_with("WebhookConfiguration") {
            return Api::all_with(self.admin.clone(), &resource);
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        Api::namespaced_with(self.admin.clone(), namespace, &resource)
    }

    /// Returns the administrator's kubeconfig with this namespace.
    pub(crate) fn kubeconfig_at(&self, namespace: &str) -> String {
        let mut kubeconfig = self.kubeconfig.clone();
        for context in kubeconfig["contexts"].as_array_mut().unwrap() {
            context["context"]["namespace"] = namespace.into();
        }
        kubeconfig.to_string()
    }

    /// Returns a kubeconfig with a new token of a `ServiceAccount`, in its namespace.
    pub(crate) async fn kubeconfig_of(&self, namespace: &str, account: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let spec = json!({ "expirationSeconds": 3600 });
        let token_request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec });
        let request = http::Request::post(path).body(serde_json::to_vec(&token_request).unwrap()).unwrap();
        let response: Json = self.admin.request(request).await.unwrap();
        let mut kubeconfig = self.kubeconfig.clone();
        let current = &self.kubeconfig["current-context"];
        let mut contexts = self.kubeconfig["contexts"].as_array().unwrap().iter();
        let mut context = contexts.find(|context| context["name"] == *current).unwrap().clone();
        context["context"]["namespace"] = namespace.into();
        context["context"]["user"] = account.into();
        kubeconfig["contexts"] = json!([context]);
        kubeconfig["users"] = json!([{ "name": account, "user": { "token": response["status"]["token"] } }]);
        kubeconfig.to_string()
    }
}

/// Returns the resource of an object, with the plural that follows from its kind.
fn resource(object: &Json) -> ApiResource {
    let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Returns a client for a kubeconfig.
pub(crate) async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Waits until `holds` returns `true`.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("not within {TIMEOUT:?}: {what}"));
}
