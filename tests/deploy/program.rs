//! Runs a program as its manifests say: with the arguments, the probes and the `ServiceAccount` of its Deployment.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::Request;
use kctl::{
    Json, json,
    kube::{Client, Config, config::AuthInfo},
};
use tokio::process::{Child, Command};

use crate::{
    build,
    cluster::{Cluster, client, until},
    files::{Folder, kustomization_objects},
    roles,
};

/// The grace period of the Deployment.
const STOP_TIMEOUT: Duration = Duration::from_secs(45);

/// A running program, and the server on which it is deployed.
pub(crate) struct Program<'a> {
    cluster: &'a Cluster,
    name: String,
    namespace: String,
    manifests: Vec<Json>,
    process: Child,
    /// Local ports of the container ports.
    ports: BTreeMap<u64, u16>,
    files: Folder,
}

/// Settings of a program that its manifests do not have.
#[derive(Default)]
pub(crate) struct DeployOptions {
    /// Local folders by the mount paths of the container.
    pub(crate) mounts: BTreeMap<String, PathBuf>,
    /// Environment variables.
    pub(crate) env: BTreeMap<String, String>,
    /// Additional arguments.
    pub(crate) args: Vec<String>,
    /// Additional arguments of `generate-manifests`.
    pub(crate) generate: Vec<String>,
    /// The number of slots, without leader election.
    pub(crate) shards: Option<u32>,
    /// Local ports for container ports. All other container ports get a free port.
    pub(crate) ports: BTreeMap<u64, u16>,
}

impl<'a> Program<'a> {
    /// Generates the manifests of a program for a new namespace, applies them and starts it.
    pub(crate) async fn deploy(cluster: &'a Cluster, program: &str, options: DeployOptions) -> Self {
        let coordination = if options.shards.is_some() { "shards" } else { "elect" };
        let namespace = format!("deploy-{program}-{coordination}-{}", std::process::id());
        let (program, files) = (build::programs().join(program), Folder::new());
        let out = files.join("manifests");
        let mut generate = std::process::Command::new(&program);
        generate.args(["generate-manifests", "--metrics", "--namespace", &namespace, "--out"]).arg(&out);
        generate.arg(options.shards.map_or_else(|| "--leader-elect".into(), |slots| format!("--shards={slots}")));
        build::run(generate.args(&options.generate));
        let manifests = kustomization_objects(&out);
        let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        cluster.apply(&space, "").await;
        for manifest in &manifests {
            cluster.apply(manifest, "").await;
        }
        Self::start_applied(cluster, &program, &namespace, manifests, files, options).await
    }

    /// Starts a program whose manifests have been applied.
    pub(crate) async fn start_applied(
        cluster: &'a Cluster,
        program: &Path,
        namespace: &str,
        manifests: Vec<Json>,
        files: Folder,
        options: DeployOptions,
    ) -> Self {
        let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let name = pod["serviceAccountName"].as_str().unwrap().to_owned();
        let kubeconfig = cluster.kubeconfig_of(namespace, &name).await;
        roles::check_permissions(cluster, &manifests, namespace, &name, &client(&kubeconfig).await).await;

        let args = pod["containers"][0]["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let (mut ports, mut local) = (options.ports.clone(), Vec::new());
        for arg in args {
            local.extend(on_this_machine(arg, &mut ports, &options.mounts));
        }
        let file = files.join("kubeconfig");
        std::fs::write(&file, kubeconfig).unwrap();
        let log = std::fs::File::create(files.join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(local).args(&options.args).envs(&options.env).env("KUBECONFIG", &file).current_dir(&*files);
        let process = command.stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn().unwrap();
        let program = Self { cluster, name, namespace: namespace.into(), manifests, process, ports, files };
        program.is_ready().await;
        program
    }

    /// Starts one more replica.
    pub(crate) async fn replica(&self, program: &str) -> Self {
        let (program, manifests) = (build::programs().join(program), self.manifests.clone());
        Self::start_applied(self.cluster, &program, &self.namespace, manifests, Folder::new(), DeployOptions::default())
            .await
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the local port of a container port.
    pub(crate) fn port(&self, port: u64) -> u16 {
        self.ports[&port]
    }

    /// Sends a request to a port of the container over TLS, and returns the response.
    pub(crate) async fn post(&self, port: u64, path: &str, body: &Json) -> Json {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
        let response = connect("https", self.port(port), None).unwrap().request(request).await;
        response.unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log()))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.files.join("log")).unwrap()
    }

    fn container(&self) -> &Json {
        let deployment = self.manifests.iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
        &deployment["spec"]["template"]["spec"]["containers"][0]
    }

    /// Waits until the liveness and readiness probes of the Deployment succeed.
    async fn is_ready(&self) {
        for probe in ["livenessProbe", "readinessProbe"] {
            let get = &self.container()[probe]["httpGet"];
            let port = self.container()["ports"].as_array().unwrap().iter().find(|port| port["name"] == get["port"]);
            let port = self.port(port.unwrap()["containerPort"].as_u64().unwrap());
            let scheme = get["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
            let path = get["path"].as_str().unwrap();
            until(&format!("{probe}: {}", self.log()), || async { page(&scheme, port, path, None).await.is_ok() })
                .await;
        }
    }

    /// Returns the metrics, requested with a token of a `ServiceAccount` that has the metrics reader role.
    pub(crate) async fn metrics(&self) -> String {
        let (reader, role) = (format!("{}-scraper", self.name), format!("{}-metrics-reader", self.name));
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": reader } });
        self.cluster.apply(&account, &self.namespace).await;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": reader },
            "subjects": [{ "kind": "ServiceAccount", "name": reader, "namespace": self.namespace }],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        });
        let kubeconfig = self.cluster.kubeconfig_of(&self.namespace, &reader).await;
        let kubeconfig: Json = serde_json::from_str(&kubeconfig).unwrap();
        let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
        let port = self.port(8443);
        assert!(page("https", port, "/metrics", None).await.is_err(), "not without a token");
        assert!(page("https", port, "/metrics", Some("wrong")).await.is_err(), "not with any token");
        self.cluster.apply(&binding, "").await;
        let text = page("https", port, "/metrics", Some(token)).await.unwrap();
        self.cluster.delete(&binding, "").await;
        text
    }

    /// Stops the program, checks that no request was rejected and nothing was logged at WARN or ERROR, and deletes its
    /// objects.
    pub(crate) async fn assert_never_forbidden(self) {
        self.stop().await.remove().await;
    }

    /// Stops the program with SIGTERM as a kubelet does, and keeps its objects. Checks that no request was rejected and
    /// that it logged no WARN or ERROR.
    pub(crate) async fn stop(mut self) -> Self {
        let metrics = self.metrics().await;
        let requests = metrics.lines().filter(|line| line.starts_with("rest_client_requests_total{"));
        let rejected: Vec<_> = requests.filter(|line| line.contains("code=\"40")).collect();
        let but = rejected.iter().filter(|line| !line.contains("code=\"404\"") && !line.contains("code=\"409\""));
        assert_eq!(but.count(), 0, "{rejected:?}\n{}", self.log());
        self.cluster.assert_never_forbidden(&self.namespace, &self.name);
        let process = self.process.id().unwrap().to_string();
        build::run(std::process::Command::new("kill").args(["-TERM", &process]));
        let ended = tokio::time::timeout(STOP_TIMEOUT, self.process.wait()).await;
        let log = self.log();
        assert!(ended.unwrap_or_else(|_| panic!("not within {STOP_TIMEOUT:?}: {log}")).unwrap().success(), "{log}");
        let complaints: Vec<_> =
            log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).collect();
        assert_eq!(complaints, [""; 0], "{log}");
        self
    }

    /// Deletes the manifests and the namespace. CRDs and the namespace `default` are kept, because others may use them.
    async fn remove(self) {
        for manifest in self.manifests.iter().filter(|manifest| manifest["kind"] != "CustomResourceDefinition") {
            self.cluster.delete(manifest, "").await;
        }
        if self.namespace != "default" {
            let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.namespace } });
            self.cluster.delete(&space, "").await;
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

/// Adapts an argument of the container for a local process: replaces bind addresses by loopback ports, and mount paths
/// by folders.
fn on_this_machine(arg: &str, ports: &mut BTreeMap<u64, u16>, mounts: &BTreeMap<String, PathBuf>) -> Vec<String> {
    let Some((flag, value)) = arg.split_once('=') else { return vec![arg.into()] };
    if let Some(folder) = mounts.get(value) {
        return vec![format!("{flag}={}", folder.display())];
    }
    if !flag.ends_with("-bind-address") {
        return vec![arg.into()];
    }
    let port = *ports.entry(value.rsplit_once(':').unwrap().1.parse().unwrap()).or_insert_with(free_port);
    let mut args = vec![format!("{flag}=127.0.0.1:{port}")];
    if flag == "--metrics-bind-address" {
        // HTTPS is the default only for addresses other than loopback.
        args.push("--metrics-secure".into());
    }
    args
}

/// Returns a free loopback port for a program to listen at. It is below those that the kernel gives to connections, so no
/// client takes it before the program starts.
pub(crate) fn free_port() -> u16 {
    const PORTS: std::ops::Range<u16> = 20_000..30_000;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = std::process::id() as usize * 100 + NEXT.fetch_add(1, Ordering::Relaxed);
    let mut candidates = PORTS.cycle().skip(first % PORTS.len()).take(PORTS.len());
    candidates.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("a port is free")
}

/// Returns the body of a page that the program serves.
pub(crate) async fn page(
    scheme: &str,
    port: u16,
    path: &str,
    token: Option<&str>,
) -> Result<String, kctl::kube::Error> {
    connect(scheme, port, token)?.request_text(Request::get(path).body(Vec::new()).unwrap()).await
}

fn connect(scheme: &str, port: u16, token: Option<&str>) -> Result<Client, kctl::kube::Error> {
    let mut config = Config::new(format!("{scheme}://127.0.0.1:{port}").parse().unwrap());
    // The kubelet and scrapers do not verify self-signed certificates either.
    config.accept_invalid_certs = true;
    config.auth_info = AuthInfo { token: token.map(|token| token.to_owned().into()), ..AuthInfo::default() };
    Client::try_from(config)
}
