//! Runs the API server in separate processes: the embedded one, or kube-apiserver with etcd.
//!
//! A separate process keeps its CPU time apart from the benchmark's, and gives it one thread, as `kctl apiserver`
//! has.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use kctl::kube::{
    Api, Client, Config,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::ApiResource,
};
use kctl_apiserver::{ApiServer, ServeOptions};
use tokio::time::{Instant, sleep};

use crate::{Failure, process::cpu_of};

/// Longest wait until a server is ready, or until it serves a kind.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval between two checks for readiness.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running server. Dropping it stops it.
pub(crate) struct Server {
    /// The name that the results show.
    pub(crate) name: &'static str,
    /// A client of an administrator.
    pub(crate) client: Client,
    /// A kubeconfig of the same administrator, for the replicas.
    pub(crate) kubeconfig: PathBuf,
    /// The names and ids of its processes: the embedded server, or kube-apiserver and etcd.
    processes: Vec<(&'static str, u32)>,
    _end: End,
}

/// The way to stop a server.
enum End {
    /// Kill the process, which has no state to save.
    Kill(Child),
    /// Run the script `down` with the server's folder.
    Down(PathBuf, PathBuf),
}

impl Drop for End {
    fn drop(&mut self) {
        // A failure to stop a server can't be handled here.
        let _best_effort = match self {
            Self::Kill(child) => child.kill().and_then(|()| child.wait()),
            Self::Down(script, folder) => Command::new(script).arg(folder).status(),
        };
    }
}

impl Server {
    /// Starts the embedded server in another process of this program.
    pub(crate) async fn embedded(folder: &Path) -> Result<Self, Failure> {
        let kubeconfig = folder.join("embedded.kubeconfig");
        if kubeconfig.exists() {
            fs::remove_file(&kubeconfig)?;
        }
        let child = Command::new(std::env::current_exe()?).arg("serve").arg(&kubeconfig).spawn()?;
        let processes = vec![("kctl apiserver", child.id())];
        let end = End::Kill(child);
        Ok(Self { name: "kctl apiserver", client: ready(&kubeconfig).await?, kubeconfig, processes, _end: end })
    }

    /// Starts kube-apiserver and etcd without data, using the script `up` of a folder. `flags` are further flags of
    /// kube-apiserver.
    pub(crate) async fn real(scripts: &Path, folder: &Path, flags: Option<&str>) -> Result<Self, Failure> {
        let folder = folder.join("server");
        let end = End::Down(scripts.join("down"), folder.clone());
        if folder.exists() {
            Command::new(scripts.join("down")).arg(&folder).status()?;
            fs::remove_dir_all(&folder)?;
        }
        let mut up = Command::new(scripts.join("up"));
        up.arg(&folder);
        if let Some(flags) = flags {
            up.env("KUBE_APISERVER_FLAGS", flags);
        }
        let up = up.output()?;
        if !up.status.success() {
            return Err(format!("{}: {}", scripts.display(), String::from_utf8_lossy(&up.stderr)).into());
        }
        let kubeconfig = folder.join("kubeconfig");
        let pid = |name: &str| -> Result<u32, Failure> { Ok(fs::read_to_string(folder.join(name))?.trim().parse()?) };
        let processes = vec![("kube-apiserver", pid("apiserver.pid")?), ("etcd", pid("etcd.pid")?)];
        let client = ready(&kubeconfig).await?;
        Ok(Self { name: "kube-apiserver with etcd", client, kubeconfig, processes, _end: end })
    }

    /// Returns the CPU time of each process of the server so far, in seconds, by its name.
    pub(crate) fn cpu(&self) -> Result<Vec<(&'static str, f64)>, Failure> {
        self.processes.iter().map(|(name, pid)| Ok::<_, Failure>((*name, cpu_of(*pid)?))).collect()
    }

    /// Installs the CRDs that the program prints with `generate-crds`, and waits until `kind` is served.
    ///
    /// # Errors
    /// The program fails, the server rejects the CRD, or it does not serve the kind within [`READY_TIMEOUT`].
    pub(crate) async fn install(&self, program: &Path, kind: &ApiResource) -> Result<(), Failure> {
        let printed = Command::new(program).arg("generate-crds").output()?;
        if !printed.status.success() {
            return Err(format!("generate-crds: {}", String::from_utf8_lossy(&printed.stderr)).into());
        }
        let crd: DynamicObject = kctl::from_yaml(&String::from_utf8(printed.stdout)?)?;
        let crds = resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
        let name = crd.metadata.name.clone().unwrap_or_default();
        let crds = Api::<DynamicObject>::all_with(self.client.clone(), &crds);
        crds.patch(&name, &PatchParams::apply("bench").force(), &Patch::Apply(&crd)).await?;
        let served = Api::<DynamicObject>::all_with(self.client.clone(), kind);
        let start = Instant::now();
        while let Err(error) = served.list(&ListParams::default()).await {
            if start.elapsed() > READY_TIMEOUT {
                return Err(format!("{name} is not served: {error}").into());
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Returns the number of requests for a resource that the server has counted, by verb, such as `PUT`.
    ///
    /// Both servers export `apiserver_request_total`. The counts are summed over its other labels.
    pub(crate) async fn requests(&self, resource: &str) -> Result<Vec<(String, f64)>, Failure> {
        let text = self.client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
        let of = format!("resource=\"{resource}\"");
        let mut counts: Vec<(String, f64)> = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{") && line.contains(&of)) {
            let (labels, value) = line.rsplit_once(' ').ok_or("a metric without a value")?;
            let verb = labels.split_once("verb=\"").and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default();
            let value: f64 = value.parse()?;
            match counts.iter_mut().find(|(known, _)| known == verb) {
                Some((_, count)) => *count += value,
                None => counts.push((verb.into(), value)),
            }
        }
        Ok(counts)
    }
}

/// Returns the `ApiResource` of a kind, for requests with dynamic objects.
pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.into(), version: version.into(), api_version, kind: kind.into(), plural: plural.into() }
}

/// Waits until the server of a kubeconfig is ready, and returns its client.
///
/// # Errors
/// The server is not ready within [`READY_TIMEOUT`]. The result is the error of the last attempt.
async fn ready(kubeconfig: &Path) -> Result<Client, Failure> {
    let start = Instant::now();
    loop {
        let attempt = async {
            let read = Kubeconfig::read_from(kubeconfig)?;
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
            let client = Client::try_from(config)?;
            client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
            Ok::<_, Failure>(client)
        };
        match attempt.await {
            Ok(client) => return Ok(client),
            Err(error) if start.elapsed() > READY_TIMEOUT => return Err(error),
            Err(_) => sleep(POLL_INTERVAL).await,
        }
    }
}

/// Serves the embedded API server with its controllers. This is the process that [`Server::embedded`] starts.
pub(crate) async fn serve(kubeconfig: &Path) -> Result<(), Failure> {
    let server = ApiServer::on_system_time();
    let listening = server.listen(ServeOptions::default()).await?;
    listening.write_kubeconfig(kubeconfig)?;
    tokio::spawn(server.controllers());
    Ok(listening.serve().await?)
}
