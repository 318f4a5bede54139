//! A real kube-apiserver with etcd (`tests/envtest`), and the suites that run against it.
//!
//! Its behaviour is the reference for every claim about Kubernetes. It is built from Go modules, so no binary is
//! downloaded.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use crate::{
    Result,
    gate::Gate,
    kubernetes_version::{GOGC, VERSION, resolve},
    new_project,
    process::{REAL_SERVER, Run, find, root, scratch},
    shards,
    steps::{cargo_test, clients, path_with_helm},
    third_party,
};

/// The version of the server.
#[derive(Args)]
pub(crate) struct Version {
    /// The version of Kubernetes, for example 1.37.2, or 1.37 for its newest patch version; the default is in
    /// `tests/envtest/go.mod`.
    #[arg(long, value_name = "VERSION")]
    pub(crate) kubernetes: Option<String>,
}

// A doc comment would become clap's help text.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Starts a server, and prints the path of an administrator's kubeconfig.
    Up {
        /// Folder for its files.
        folder: PathBuf,
        #[command(flatten)]
        version: Version,
    },
    /// Stops what `up` started; the data is kept.
    Down {
        /// The folder given to `up`.
        folder: PathBuf,
    },
    /// Kills the API server that `up` started, and starts it again on the same port.
    Restart {
        /// The folder given to `up`.
        folder: PathBuf,
        /// Seconds before it starts again.
        #[arg(default_value_t = 0)]
        seconds: u32,
    },
    /// Builds the server, and prints the folder of its binaries.
    Assets(Version),
}

/// Returns a script of `tests/envtest`. Without a version, the script uses its default.
pub(crate) fn script(name: &str, version: Option<&str>) -> Run {
    let run = Run::new(root().join("tests/envtest").join(name));
    match version {
        Some(version) => run.env(VERSION, version),
        None => run,
    }
}

impl Version {
    /// Returns the complete version, or `None` for the default. Without Go, which resolves minor versions, returns the
    /// option unchanged: the build needs Go too, and reports that.
    pub(crate) fn complete(&self) -> Result<Option<String>> {
        match &self.kubernetes {
            Some(version) if find("go").is_some() => resolve(version).map(Some),
            version => Ok(version.clone()),
        }
    }
}

/// Returns an absolute path, because scripts run in the root of the repository and not in the current folder of xtask.
fn absolute(folder: &PathBuf) -> Result<PathBuf> {
    std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Runs `cargo xtask server …`.
pub(crate) fn command(command: &Command) -> Result {
    match command {
        Command::Up { folder, version } => {
            script("up", version.complete()?.as_deref()).arg(absolute(folder)?).run_quietly()
        }
        Command::Down { folder } => script("down", None).arg(absolute(folder)?).run_quietly(),
        Command::Restart { folder, seconds } => {
            script("restart", None).arg(absolute(folder)?).arg(seconds.to_string()).run_quietly()
        }
        Command::Assets(version) => script("assets", version.complete()?.as_deref()).run_quietly(),
    }
}

/// Builds the binaries, and returns their folder. Another process that builds them at the same time is waited for. Two
/// builds would take the time and the memory of two, and write the same files.
fn assets(version: Option<&str>) -> Result<String> {
    let lock = scratch("servers")?.join("assets.lock");
    let _locked = std::fs::File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| format!("failed to lock {}: {error}", lock.display()))?;
    script("assets", version).read()
}

/// Running servers. Dropping this stops them and deletes their data.
pub(crate) struct Servers {
    /// Parent of the servers' folders. Its name contains the process id, so that two runs don't collide.
    folder: PathBuf,
    version: Option<String>,
    /// Names of the running servers.
    names: Vec<String>,
}

impl Servers {
    /// Builds the binaries. If this machine lacks something that the build needs, records that in the gate and returns
    /// `None`.
    ///
    /// # Errors
    /// The Go modules are available but don't compile.
    pub(crate) fn prepare(gate: &mut Gate, version: Option<&str>) -> Result<Option<Self>> {
        let missing = ["bash", "curl", "openssl", "python3"].into_iter().find(|program| find(program).is_none());
        // Binaries of an unknown version can't replace binaries of the selected one.
        let has_assets = version.is_none() && std::env::var_os("KUBEBUILDER_ASSETS").is_some();
        let missing = missing.or_else(|| (!has_assets && find("go").is_none()).then_some("go"));
        let left_out = match missing {
            Some(program) => format!("{program} is not installed"),
            None => match assets(version) {
                Ok(_folder) => {
                    let folder = scratch("servers")?.join(std::process::id().to_string());
                    return Ok(Some(Self { folder, version: version.map(str::to_owned), names: Vec::new() }));
                }
                // Modules that can't be downloaded are something that this machine lacks. Modules that don't compile
                // are an error.
                Err(error) => {
                    let modules = Run::new("go").args(["mod", "download"]).folder(root().join("tests/envtest"));
                    if modules.succeeds() {
                        return Err(error);
                    }
                    "the Go modules of Kubernetes are not available".to_owned()
                }
            },
        };
        gate.leave_out(format!("{left_out}: nothing is tried against a real API server"), &["KUBECONFIG"]);
        Ok(None)
    }

    /// Returns the folder of a server.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts a server and returns its kubeconfig.
    pub(crate) fn up(&mut self, name: &str) -> Result<OsString> {
        self.up_by(name, script("up", self.version.as_deref()))
    }

    /// Starts a server with more flags of kube-apiserver.
    fn up_with(&mut self, name: &str, flags: &str) -> Result<OsString> {
        self.up_by(name, script("up", self.version.as_deref()).env("KUBE_APISERVER_FLAGS", flags))
    }

    fn up_by(&mut self, name: &str, script: Run) -> Result<OsString> {
        self.names.push(name.to_owned());
        let printed = script.env("GOGC", GOGC).arg(self.path(name)).read()?;
        printed.lines().last().map(Into::into).ok_or_else(|| format!("server {name} printed no kubeconfig"))
    }

    /// Stops the server of this name. A failure is only printed, so that the other servers are stopped too.
    pub(crate) fn down(&mut self, name: &str) {
        self.names.retain(|running| running != name);
        if let Err(error) = script("down", None).arg(self.path(name)).run_quietly() {
            eprintln!("{error}");
        }
    }

    /// Returns the command that crashes a server, which is back after a second.
    pub(crate) fn crash_command(&self, name: &str) -> String {
        format!("{} {} 1", root().join("tests/envtest/restart").display(), self.path(name).display())
    }

    /// Starts a control plane and two members, and returns the environment variables with their kubeconfigs.
    fn fleet(&mut self, name: &str) -> Result<[(&'static str, OsString); 3]> {
        Ok([
            ("KUBECONFIG", self.up(name)?),
            ("KUBECONFIG_MEMBER1", self.up(&format!("{name}-member1"))?),
            ("KUBECONFIG_MEMBER2", self.up(&format!("{name}-member2"))?),
        ])
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for name in self.names.clone() {
            self.down(&name);
        }
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// Stops the server of a folder. Does nothing if it does not run.
fn stop(folder: &Path) {
    let _stopped = script("down", None).arg(folder).run_quietly();
}

/// Stops the servers of a process that was killed, and deletes their data. Does nothing if it left none.
pub(crate) fn stop_servers_of(process: u32) {
    let Ok(folder) = scratch("servers").map(|servers| servers.join(process.to_string())) else { return };
    for server in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        stop(&server.path());
    }
    let _left = std::fs::remove_dir_all(&folder);
}

/// Returns the arguments for libtest that skip a test with kubectl if this machine lacks it, and records that.
fn skips_without_kubectl(gate: &mut Gate, test: &'static str) -> Vec<&'static str> {
    if find("kubectl").is_some() {
        return Vec::new();
    }
    gate.leave_out("kubectl is not installed: manifests are not applied with it", &["KUBECONFIG and kubectl"]);
    vec!["--skip", test]
}

/// Builds the server and Helm, so that the suites that need them don't wait.
///
/// # Errors
/// The Go modules of the server are available but don't compile.
pub(crate) fn prepare(gate: &mut Gate) -> Result {
    let _servers = Servers::prepare(gate, None)?;
    let _path = path_with_helm(gate);
    Ok(())
}

/// Compares a real server of the recorded version with the recorded answers that the embedded one has to give.
///
/// # Errors
/// A server does not start, or a test fails.
pub(crate) fn conformance(gate: &mut Gate) -> Result {
    conformance_of(gate, None)
}

/// Does the same with another version, `None` for the recorded one. Other minor versions of Kubernetes answer differently, so a
/// later patch version is the only useful one.
///
/// # Errors
/// A server does not start, or a test fails.
pub(crate) fn conformance_of(gate: &mut Gate, version: Option<&str>) -> Result {
    let Some(mut servers) = Servers::prepare(gate, version)? else { return Ok(()) };
    let skips = skips_without_kubectl(gate, "example_manifests_apply_to_real_server");
    let server = servers.up_with("conformance", "--feature-gates=ShardedListAndWatch=true")?;
    cargo_test(&["--test", "conformance", "--test", "definitions", "--", "--include-ignored"])
        .args(&skips)
        .env("KUBECONFIG", &server)
        .env(REAL_SERVER, &server)
        .env("EMBEDDED", "0")
        .env("KEEP_NAMESPACES", "1")
        .tests(&mut gate.ledger, 150)?;
    // It needs the feature gate as well.
    cargo_test(&["--test", "manager", "on_a_real_server", "--", "--ignored"])
        .env("KUBECONFIG", server)
        .tests(&mut gate.ledger, 1)
}

/// Runs the suites of operators and clients, each with its own servers. Examples use the same kind names, and no
/// controller there empties deleted namespaces.
///
/// # Errors
/// A server does not start, or a test fails.
pub(crate) fn suites(gate: &mut Gate, version: Option<&str>) -> Result {
    let Some(mut servers) = Servers::prepare(gate, version)? else { return Ok(()) };
    let named = |kubeconfig| [("KUBECONFIG", kubeconfig)];

    let podset = named(servers.up("podset")?);
    let crash = servers.crash_command("podset");
    cargo_test(&["--test", "operator", "cluster::", "--", "--ignored"])
        .envs(&podset)
        .env("KCTL_CRASH_API_SERVER", crash)
        .tests(&mut gate.ledger, 2)?;
    servers.down("podset");
    let operator = named(servers.up("operator")?);
    cargo_test(&["--lib", "operator_works_on_a_real_api_server", "--", "--ignored"])
        .envs(&operator)
        .tests(&mut gate.ledger, 1)?;
    cargo_test(&["--test", "website", "real_server", "--", "--ignored"]).envs(&operator).tests(&mut gate.ledger, 1)?;
    servers.down("operator");
    let webhooks = servers.up("webhooks")?;
    cargo_test(&["--test", "webhooks", "--", "--include-ignored"])
        .env(REAL_SERVER, webhooks)
        .env("EMBEDDED", "0")
        .tests(&mut gate.ledger, 20)?;
    servers.down("webhooks");
    let clients = named(servers.up("clients")?);
    clients_in_other_languages(gate, &clients)?;
    servers.down("clients");
    if cfg!(target_os = "linux") {
        // The program stops its server, unless the step took too long and the program was killed.
        shards::short_chaos(version).inspect_err(|_error| stop(&shards::server()))?;
    } else {
        gate.leave_out("this machine does not run Linux: replicas with shards are not killed and frozen", &[]);
    }

    // Helm only manages CRDs that it has installed itself, and the earlier programs have left the same CRDs.
    let Some(path) = path_with_helm(gate) else { return Ok(()) };
    let charts = named(servers.up("charts")?);
    cargo_test(&["--test", "deploy", "helm::chart_lifecycle_on_a_real_server", "--", "--ignored"])
        .envs(&charts)
        .env("PATH", path)
        .tests(&mut gate.ledger, 1)
}

/// Runs programs with only their generated roles, on a control plane and two members: each role is sufficient and minimal.
///
/// # Errors
/// A server does not start, or a test fails.
pub(crate) fn roles(gate: &mut Gate, version: Option<&str>) -> Result {
    let Some(mut servers) = Servers::prepare(gate, version)? else { return Ok(()) };
    let roles = servers.fleet("roles")?;
    cargo_test(&["--test", "fleet", "on_real_api_servers", "--", "--ignored"])
        .envs(&roles)
        .tests(&mut gate.ledger, 1)?;
    cargo_test(&["--tests", "role_is_minimal_on_a_real_server", "--", "--ignored"])
        .envs(&roles)
        .tests(&mut gate.ledger, 7)
}

/// Runs operators as their manifests deploy them, and a new project, on a control plane and two members.
///
/// # Errors
/// A server does not start, or a test fails.
pub(crate) fn deploy(gate: &mut Gate, version: Option<&str>) -> Result {
    let Some(mut servers) = Servers::prepare(gate, version)? else { return Ok(()) };
    // Deployed programs watch all namespaces, so an earlier test must not leave a terminating namespace.
    let deploy = servers.fleet("deploy")?;
    let skips = skips_without_kubectl(gate, "new_project_is_deployed_on_a_real_server");
    cargo_test(&["--test", "deploy", "on_a_real_server", "--", "--ignored", "--skip", "helm::"])
        .args(&skips)
        .envs(&deploy)
        .env(third_party::VARIABLE, new_project::tables()?)
        .tests(&mut gate.ledger, 5 - usize::from(!skips.is_empty()))
}

/// Runs the clients that have a test against a real server: Go and fabric8.
fn clients_in_other_languages(gate: &mut Gate, server: &[(&str, OsString)]) -> Result {
    let clients = clients(gate);
    let is_skipped = |part: &str| clients.skips.contains(&part);
    let n_tests = usize::from(!is_skipped("go::")) + usize::from(!is_skipped("fabric8::"));
    cargo_test(&["--test", "interop", "real_server", "--", "--ignored"])
        .args(&clients.skips)
        .envs(&clients.variables)
        .envs(server)
        .tests(&mut gate.ledger, n_tests)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn server_of_a_killed_program_is_stopped() {
        let folder = scratch("stopped-server").unwrap();
        let mut server = Run::new("sleep").arg("600").start(&folder.join("etcd.log")).unwrap();
        std::fs::write(folder.join("etcd.pid"), server.id().to_string()).unwrap();
        // The script waits until the process is gone.
        let end = std::thread::spawn(move || server.wait().unwrap());
        stop(&folder);
        assert!(!end.join().unwrap().success());
        assert!(!folder.join("etcd.pid").exists());
    }
}
