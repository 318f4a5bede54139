//! Runs an `exec` plugin of the kubeconfig for a token or a certificate.
//!
//! It runs again when the credential has expired, and when a server rejects it, since a plugin need not say
//! how long a token is valid (client-go, `plugin/pkg/client/auth/exec`).
//!
//! The plugin is a program: `aws eks get-token`, `gke-gcloud-auth-plugin`, `kubelogin`. It reads
//! `KUBERNETES_EXEC_INFO` and writes an `ExecCredential` to stdout:
//!
//! ```json
//! {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
//!  "status": {"token": "…", "expirationTimestamp": "2030-01-01T00:00:00Z"}}
//! ```
//!
//! kube runs a plugin too, once per client. Here clients with the same `exec` section share a [`Plugin`]. A plugin may
//! open a browser, and a program with two clients would open it twice.
//!
//! | Event | Reaction |
//! |---|---|
//! | credential ends within 10 s | next request runs the plugin first |
//! | server answers 401 | the response is passed on; the next request runs the plugin first |
//! | plugin fails | warning; requests continue to use the last credential |
//! | plugin failed or ran less than 5 s ago | it is not run again |
//! | plugin exceeds [`NON_INTERACTIVE_TIMEOUT`], or [`INTERACTIVE_TIMEOUT`] at a terminal | it is killed, and has failed |
//!
//! client-go has no time limit. Here all requests wait for the plugin, so one that hangs would stop the program without
//! an error.

use std::{
    io::{ErrorKind, IsTerminal},
    process::{Command, ExitStatus, Output, Stdio},
    sync::{Arc, Weak},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;
use k8s_openapi::jiff::Timestamp;
use kube::{
    Config,
    config::{AuthInfo, ExecConfig, ExecInteractiveMode},
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout},
};

use super::plugin_process::PluginProcess;

/// A credential that expires within this time is renewed, because a request takes its time.
const BEFORE_END: Duration = Duration::from_secs(10);
/// Time limit of a plugin without a terminal, as in a Pod. It only has to request a token from a server.
const NON_INTERACTIVE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of a plugin that may ask the user. Logging in by a browser takes minutes.
const INTERACTIVE_TIMEOUT: Duration = Duration::from_secs(600);
/// Time after which the log says that the start waits for the plugin.
const SLOW_AFTER: Duration = Duration::from_secs(5);

/// The reason why a plugin returned no credential.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum PluginError {
    /// The `exec` section has no `command`.
    #[error("`exec` of the kubeconfig names no command")]
    NoCommand,
    /// The plugin wants to prompt the user, and the program runs without a terminal, as in a Pod.
    #[error(
        "the plugin `{command}` of the kubeconfig is interactive (`interactiveMode: Always`), and stdin is not a terminal"
    )]
    NoTerminal { command: String },
    /// The operating system could not run the command. `installHint` of the kubeconfig is shown if the file is missing.
    #[error("the plugin `{command}` of the kubeconfig can't be started{hint}")]
    NotStarted { command: String, hint: String, source: std::io::Error },
    /// The exit status is not zero. The plugin's stderr is inherited, so its own message is on the terminal.
    #[error("the plugin `{command}` of the kubeconfig ended with {status}")]
    Failed { command: String, status: ExitStatus },
    /// It ran longer than [`NON_INTERACTIVE_TIMEOUT`] or [`INTERACTIVE_TIMEOUT`], and was killed.
    #[error(
        "the plugin `{command}` of the kubeconfig did not end within {limit:?} and was killed; run it by hand to see what it waits for"
    )]
    TimedOut { command: String, limit: Duration },
    /// Its output is not an `ExecCredential` of the requested version, or has no usable credential.
    #[error("the plugin `{command}` of the kubeconfig wrote something to stdout that is not an ExecCredential: {why}")]
    Unreadable { command: String, why: String },
}

pub(super) struct Credential {
    /// Value of the `Authorization` header, marked as sensitive so that debug output hides it.
    pub(super) token: Option<HeaderValue>,
    /// Certificate and key, in base64 as kube reads them.
    identity: Option<(String, String)>,
    /// Expiry. `None` if the plugin named no time: then only a 401 ends it.
    end: Option<Timestamp>,
}

impl Credential {
    /// Copies the certificate, if there is one, to where kube's TLS setup reads it.
    pub(super) fn identify(&self, auth: &mut AuthInfo) {
        if let Some((certificate, key)) = &self.identity {
            (auth.client_certificate, auth.client_key) = (None, None);
            auth.client_certificate_data = Some(certificate.clone());
            auth.client_key_data = Some(key.clone().into());
        }
    }

    /// Returns `true` if both have the same certificate. Then connections of one serve the other too.
    pub(super) fn has_identity_of(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

/// A plugin and its last credential.
pub(super) struct Plugin {
    /// The section of the kubeconfig.
    exec: ExecConfig,
    /// Shortest time between two runs.
    every: Duration,
    /// The result of the last run. The lock is never held while the plugin runs.
    cached: Mutex<CachedCredential>,
    /// `true` while the plugin runs.
    running: watch::Sender<bool>,
}

/// The last credential and what is known about it.
struct CachedCredential {
    credential: Arc<Credential>,
    /// `true` after a 401 with this credential.
    is_rejected: bool,
    /// End of the last run, successful or not.
    last_run_at: Instant,
}

/// All plugins in use. Clients of one cluster share a run, because some plugins ask the user.
///
/// Two `exec` sections are the same if their JSON is, including the cluster if the plugin asked for it. Entries of
/// plugins that no client uses any more are removed by the next [`Plugin::take_from`].
static IN_USE: Mutex<Vec<(Value, PluginEntry)>> = Mutex::new(Vec::new());

/// The entry of one plugin. Its lock is held while the plugin runs for the first time.
type PluginEntry = Arc<Mutex<Weak<Plugin>>>;

/// Returns the entry of a plugin, and removes entries that no client uses.
fn entry_of(identity: Value) -> PluginEntry {
    let mut in_use = IN_USE.lock();
    // A locked entry is in use: its plugin is running.
    in_use.retain(|(_, entry)| {
        Arc::strong_count(entry) > 1 || entry.try_lock().is_none_or(|plugin| plugin.strong_count() > 0)
    });
    if let Some((_, entry)) = in_use.iter().find(|(known, _)| *known == identity) {
        return entry.clone();
    }
    let entry = PluginEntry::default();
    in_use.push((identity, entry.clone()));
    entry
}

impl Plugin {
    /// Removes the plugin from a configuration, and runs it unless another client did.
    ///
    /// It blocks while the plugin runs, with the lock of this plugin held. Two clients that are created at the same
    /// time ask the user once. Clients with another plugin do not wait.
    ///
    /// # Errors
    /// The plugin cannot be started, fails, takes too long, or returns no valid credential.
    pub(super) fn take_from(config: &mut Config, every: Duration) -> Result<Option<Arc<Self>>, PluginError> {
        let Some(exec) = config.auth_info.exec.take() else { return Ok(None) };
        Self::new_shared(exec, every, &PluginProcess::default()).map(Some)
    }

    /// Does the same as [`take_from`](Self::take_from) on another thread. A plugin that takes long is logged.
    ///
    /// The thread is not one of the runtime, which would wait for it at the end of the program.
    ///
    /// # Errors
    /// The errors of [`take_from`](Self::take_from).
    ///
    /// # Cancel safety
    /// Dropping the future kills the plugin before the drop returns, because the program may end then.
    pub(super) async fn take_on_thread(config: &mut Config, every: Duration) -> Result<Option<Arc<Self>>, PluginError> {
        let Some(exec) = config.auth_info.exec.take() else { return Ok(None) };
        let command = exec.command.clone().unwrap_or_default();
        let not_started = |source| PluginError::NotStarted { command: command.clone(), hint: String::new(), source };
        let process = Arc::new(PluginProcess::default());
        let _killed_at_drop = KillAtDrop(process.clone());
        let (sender, mut receiver) = oneshot::channel();
        let run = move || {
            // The receiver is dropped if the future is.
            let _unread = sender.send(Self::new_shared(exec, every, &process));
        };
        std::thread::Builder::new().name("kubeconfig-plugin-run".into()).spawn(run).map_err(not_started)?;
        let result = match timeout(SLOW_AFTER, &mut receiver).await {
            Ok(result) => result,
            Err(_elapsed) => {
                tracing::info!(
                    "waiting for the plugin `{command}` of the kubeconfig, which has run for {SLOW_AFTER:?}"
                );
                receiver.await
            }
        };
        // The sender is dropped without a result only if the thread panicked.
        result.map_err(|panicked| not_started(std::io::Error::other(panicked)))?.map(Some)
    }

    /// Returns the plugin of an `exec` section. If no client uses it, it runs first, as the given process.
    fn new_shared(exec: ExecConfig, every: Duration, process: &PluginProcess) -> Result<Arc<Self>, PluginError> {
        let identity = json!([exec, exec.cluster]);
        let entry = entry_of(identity);
        let mut plugin_ref = entry.lock();
        if let Some(plugin) = plugin_ref.upgrade() {
            return Ok(plugin);
        }
        let credential = Arc::new(run_plugin(&exec, process)?);
        let cached = Mutex::new(CachedCredential { credential, is_rejected: false, last_run_at: Instant::now() });
        let plugin = Arc::new(Self { exec, every, cached, running: watch::Sender::new(false) });
        *plugin_ref = Arc::downgrade(&plugin);
        Ok(plugin)
    }

    /// Returns the current credential, renewing it if needed. If the plugin fails, the last one is kept.
    ///
    /// The plugin runs on a blocking thread. Requests that arrive during the run wait for the same run, and find a
    /// fresh credential when it ends.
    ///
    /// Clients on several runtimes share a plugin, and one of these may be blocked by a reconcile. So a run needs no task,
    /// and no lock is handed from one waiting request to the next.
    ///
    /// # Cancel safety
    /// Safe: the next request waits for a plugin that is running, and does not start another.
    pub(super) async fn credential(self: &Arc<Self>) -> Arc<Credential> {
        if self.is_due() {
            let mut running = self.running.subscribe();
            if let Some(run) = PluginRun::begin(self) {
                tokio::task::spawn_blocking(move || run.0.renew_if_due());
            }
            // The sender is a part of the plugin.
            let _ended = running.wait_for(|running| !running).await;
        }
        self.last_credential()
    }

    /// Returns the last credential, valid or not.
    pub(super) fn last_credential(&self) -> Arc<Credential> {
        self.cached.lock().credential.clone()
    }

    /// Notes that a server rejected this credential. Has no effect for an older one.
    pub(super) fn invalidate(&self, credential: &Arc<Credential>) {
        let mut cached = self.cached.lock();
        cached.is_rejected |= Arc::ptr_eq(&cached.credential, credential);
    }

    /// Returns `true` if the credential expires soon or was rejected, and the plugin has not run just now.
    fn is_due(&self) -> bool {
        let cached = self.cached.lock();
        let ends = || cached.credential.end.is_some_and(|end| Timestamp::now() + BEFORE_END >= end);
        cached.last_run_at.elapsed() >= self.every && (cached.is_rejected || ends())
    }

    /// Runs the plugin, unless the run before this one was just now. Blocks until it ends. A failure is logged, and the
    /// last credential is kept.
    fn renew_if_due(&self) {
        if !self.is_due() {
            return;
        }
        let result = run_plugin(&self.exec, &PluginProcess::default());
        let mut cached = self.cached.lock();
        cached.last_run_at = Instant::now();
        match result {
            Ok(credential) => {
                tracing::debug!("the plugin of the kubeconfig gave a new credential");
                (cached.credential, cached.is_rejected) = (Arc::new(credential), false);
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
                tracing::warn!("{error}{cause}; requests continue to use its last credential");
            }
        }
    }
}

/// Kills a process when it is dropped.
struct KillAtDrop(Arc<PluginProcess>);

impl Drop for KillAtDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// The run of a plugin: at most one at a time. Dropping it wakes the waiting requests, also after a panic, and when a
/// runtime shuts down before it begins.
struct PluginRun(Arc<Plugin>);

impl PluginRun {
    /// Returns `None` if the plugin runs already.
    fn begin(plugin: &Arc<Plugin>) -> Option<Self> {
        let is_first = plugin.running.send_if_modified(|running| !std::mem::replace(running, true));
        is_first.then(|| Self(plugin.clone()))
    }
}

impl Drop for PluginRun {
    fn drop(&mut self) {
        self.0.running.send_replace(false);
    }
}

/// The output of a plugin (`client.authentication.k8s.io`, `v1` or `v1beta1`). YAML is accepted as well as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: Option<String>,
    status: Option<ExecCredentialStatus>,
}

/// The credential in an `ExecCredential`. An empty string counts as absent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredentialStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the plugin and reads its credential.
///
/// Blocks until the plugin ends, at most for [`NON_INTERACTIVE_TIMEOUT`], or [`INTERACTIVE_TIMEOUT`] at a terminal.
fn run_plugin(exec: &ExecConfig, process: &PluginProcess) -> Result<Credential, PluginError> {
    run_plugin_within(exec, process, if uses_terminal(exec)? { INTERACTIVE_TIMEOUT } else { NON_INTERACTIVE_TIMEOUT })
}

/// Runs a plugin like [`run_plugin`], with the given time limit.
fn run_plugin_within(exec: &ExecConfig, process: &PluginProcess, limit: Duration) -> Result<Credential, PluginError> {
    let command = exec.command.clone().ok_or(PluginError::NoCommand)?;
    let output = run_command(exec, &command, process, limit)?;
    if !output.status.success() {
        return Err(PluginError::Failed { command, status: output.status });
    }
    let read = |why: String| PluginError::Unreadable { command: command.clone(), why };
    let output: ExecCredential =
        serde_saphyr::from_slice(&output.stdout).map_err(|error| read(first_line(&error.to_string())))?;
    accept(output, exec).map_err(read)
}

/// Returns `true` if the plugin gets the terminal: with `interactiveMode: IfAvailable`, the default here, if there is one.
///
/// # Errors
/// [`PluginError::NoTerminal`] if it needs a terminal and there is not one.
fn uses_terminal(exec: &ExecConfig) -> Result<bool, PluginError> {
    let is_terminal = std::io::stdin().is_terminal();
    match &exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => Ok(false),
        Some(ExecInteractiveMode::Always) if !is_terminal => {
            Err(PluginError::NoTerminal { command: exec.command.clone().unwrap_or_default() })
        }
        _ => Ok(is_terminal),
    }
}

/// Runs the plugin with `KUBERNETES_EXEC_INFO`, its arguments and environment, and waits for it.
///
/// `dropEnv`, kube's extension, removes variables after `env` has set them.
fn run_command(
    exec: &ExecConfig,
    command: &str,
    process: &PluginProcess,
    limit: Duration,
) -> Result<Output, PluginError> {
    let interactive = uses_terminal(exec)?;
    let mut spec = json!({ "interactive": interactive });
    if exec.provide_cluster_info {
        spec["cluster"] = json!(exec.cluster);
    }
    let info = json!({ "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec });
    let mut program = Command::new(command);
    program.args(exec.args.iter().flatten());
    let pairs = exec.env.iter().flatten().filter_map(|pair| Some((pair.get("name")?, pair.get("value")?)));
    program.envs(pairs).env("KUBERNETES_EXEC_INFO", info.to_string());
    for name in exec.drop_env.iter().flatten() {
        program.env_remove(name);
    }
    program.stdin(if interactive { Stdio::inherit() } else { Stdio::null() }).stderr(Stdio::inherit());
    let output = process.run(program.stdout(Stdio::piped()), limit).map_err(|source| {
        let hint = exec.install_hint.as_deref().filter(|_| source.kind() == ErrorKind::NotFound);
        let hint = hint.map_or(String::new(), |hint| format!(" ({})", hint.trim()));
        PluginError::NotStarted { command: command.into(), hint, source }
    })?;
    output.ok_or_else(|| PluginError::TimedOut { command: command.into(), limit })
}

/// Checks an `ExecCredential` by the rules of client-go.
///
/// The version must be the requested one, a certificate needs its key, and a token or a certificate must be present.
/// The message of the error completes a sentence of [`PluginError::Unreadable`].
fn accept(output: ExecCredential, exec: &ExecConfig) -> Result<Credential, String> {
    if output.api_version != exec.api_version {
        let text = |version: &Option<String>| version.clone().unwrap_or_default();
        let (wanted, given) = (text(&exec.api_version), text(&output.api_version));
        return Err(format!("the kubeconfig wants apiVersion `{wanted}`, and its apiVersion is `{given}`"));
    }
    let status = output.status.ok_or("it has no status")?;
    let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let identity = match (filled(status.client_certificate_data), filled(status.client_key_data)) {
        (Some(certificate), Some(key)) => Some((STANDARD.encode(certificate), STANDARD.encode(key))),
        (None, None) => None,
        _ => return Err("it has only one of clientCertificateData and clientKeyData, and both are needed".into()),
    };
    let token = filled(status.token).map(|token| header(token.trim())).transpose()?;
    if token.is_none() && identity.is_none() {
        return Err("its status has neither a token nor a certificate with its key".into());
    }
    Ok(Credential { token, identity, end: status.expiration_timestamp })
}

/// Creates the `Bearer` header of a token. A token with a line break or a control character is an error.
fn header(token: &str) -> Result<HeaderValue, String> {
    let mut header =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_error| "its token is not valid in a header")?;
    header.set_sensitive(true);
    Ok(header)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt;

    use super::*;

    const V1: &str = "client.authentication.k8s.io/v1";

    /// Returns the credential in an output, or the problem of the output.
    fn credential_or_problem(output: &str) -> String {
        let exec = ExecConfig { api_version: Some(V1.into()), ..ExecConfig::default() };
        let credential: ExecCredential = serde_saphyr::from_str(output).unwrap();
        match accept(credential, &exec) {
            Ok(Credential { token, identity, end }) => {
                let token = token.map(|token| token.to_str().unwrap().to_owned());
                let end = end.map_or(String::new(), |end| format!(" until {end}"));
                format!("{}{}{end}", token.unwrap_or_default(), if identity.is_some() { "certificate" } else { "" })
            }
            Err(why) => why,
        }
    }

    #[test]
    fn plugin_output_is_a_token_or_certificate() {
        let both = "it has only one of clientCertificateData and clientKeyData, and both are needed";
        let cases = [
            (json!({"token": "t1\n"}), "Bearer t1"),
            (
                json!({"token": "t1", "expirationTimestamp": "2030-01-01T00:00:00Z"}),
                "Bearer t1 until 2030-01-01T00:00:00Z",
            ),
            (json!({"clientCertificateData": "c", "clientKeyData": "k"}), "certificate"),
            (json!({"clientCertificateData": "c"}), both),
            (json!({"clientKeyData": "k", "token": "t1"}), both),
            (json!({}), "its status has neither a token nor a certificate with its key"),
            (json!({"token": " "}), "its status has neither a token nor a certificate with its key"),
            (json!({"token": "a\u{1}b"}), "its token is not valid in a header"),
            (Value::Null, "it has no status"),
        ];
        for (status, expected) in cases {
            let output = json!({"apiVersion": V1, "kind": "ExecCredential", "status": status}).to_string();
            assert_eq!(credential_or_problem(&output), expected, "{output}");
        }
        let other = json!({"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}).to_string();
        assert!(
            credential_or_problem(&other).starts_with("the kubeconfig wants apiVersion"),
            "{}",
            credential_or_problem(&other)
        );
    }

    #[test]
    fn failing_plugin_is_named_with_the_cause() {
        let config = |command: &str, args: &[&str]| ExecConfig {
            api_version: Some(V1.into()),
            command: Some(command.into()),
            args: Some(args.iter().map(ToString::to_string).collect()),
            interactive_mode: Some(ExecInteractiveMode::Never),
            install_hint: Some("get it from example.com".into()),
            ..ExecConfig::default()
        };
        let cases = [
            (config("/nowhere/plugin", &[]), "can't be started (get it from example.com)"),
            (config("sh", &["-c", "exit 3"]), "ended with exit status: 3"),
            (config("sh", &["-c", "echo nothing"]), "is not an ExecCredential"),
            (ExecConfig::default(), "`exec` of the kubeconfig names no command"),
        ];
        for (exec, expected) in cases {
            let error = run_plugin(&exec, &PluginProcess::default()).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    fn script(text: &str) -> ExecConfig {
        ExecConfig {
            api_version: Some(V1.into()),
            command: Some("sh".into()),
            args: Some(vec!["-c".into(), text.into()]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        }
    }

    #[test]
    fn plugin_that_hangs_is_killed_after_the_limit() {
        // The second script closes its stdout, the third one leaves it to a child process.
        for text in ["exec sleep 600", "exec >&-; exec sleep 600", "sleep 5 & wait"] {
            let error =
                run_plugin_within(&script(text), &PluginProcess::default(), Duration::from_millis(20)).err().unwrap();
            assert!(matches!(&error, PluginError::TimedOut { .. }), "{text}: {error}");
            assert!(error.to_string().contains("did not end within 20ms"), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn hanging_first_run_is_killed_when_dropped() {
        let file = std::env::temp_dir().join(format!("kctl-plugin-pid-{}", std::process::id()));
        let mut config = Config::new("https://localhost".parse().unwrap());
        config.auth_info.exec = Some(script(&format!("echo $$ > {}; exec sleep 600", file.display())));
        let pid = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
        let is_running = async {
            while pid().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // The first run leaves this thread to the other future.
        tokio::select! {
            _result = Plugin::take_on_thread(&mut config, Duration::ZERO) => panic!("the plugin ends only when it is killed"),
            () = is_running => {}
        }
        let process = std::path::PathBuf::from("/proc").join(pid().unwrap().trim());
        std::fs::remove_file(&file).unwrap();
        assert!(!process.exists(), "{} still runs", process.display());
    }

    #[test]
    fn endless_output_of_a_plugin_is_cut() {
        let error =
            run_plugin_within(&script("exec cat /dev/zero"), &PluginProcess::default(), Duration::from_secs(60))
                .err()
                .unwrap();
        assert!(matches!(&error, PluginError::Failed { .. }), "{error}");
    }

    #[test]
    fn blocked_runtime_delays_no_credential_of_another() {
        let credential = |end: &str| {
            let status = json!({ "token": "t", "expirationTimestamp": end });
            json!({ "apiVersion": V1, "kind": "ExecCredential", "status": status })
        };
        // The first credential has expired, and each later one has not.
        let ran = std::env::temp_dir().join(format!("kctl-plugin-ran-{}", std::process::id()));
        let (path, old, new) = (ran.display(), credential("2020-01-01T00:00:00Z"), credential("2100-01-01T00:00:00Z"));
        let mut config = Config::new("https://localhost".parse().unwrap());
        config.auth_info.exec =
            Some(script(&format!("if [ -e {path} ]; then echo '{new}'; else touch {path}; echo '{old}'; fi")));
        let plugin = Plugin::take_from(&mut config, Duration::ZERO).unwrap().unwrap();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (blocked, other) = (runtime(), runtime());
        let mut first = Box::pin(plugin.credential());
        // Nothing polls this runtime any more.
        blocked.block_on(async { assert!((&mut first).now_or_never().is_none(), "the plugin takes time") });
        let second = async { tokio::time::timeout(Duration::from_secs(30), plugin.credential()).await };
        let renewed = other.block_on(second).expect("a credential");
        assert_eq!(renewed.end.map(|end| end.to_string()).as_deref(), Some("2100-01-01T00:00:00Z"));
        std::fs::remove_file(ran).unwrap();
    }

    #[test]
    fn plugin_that_runs_holds_back_no_other() {
        let go = std::env::temp_dir().join(format!("kctl-plugins-{}", std::process::id()));
        let credential = json!({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}});
        let path = go.display();
        // The first script ends only after the second one has run.
        let texts = [
            format!("until [ -e {path} ]; do sleep 0.01; done; rm {path}; echo '{credential}'"),
            format!("touch {path}; echo '{credential}'"),
        ];
        let (sender, receiver) = mpsc::channel();
        for text in texts {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut config = Config::new("https://localhost".parse().unwrap());
                config.auth_info.exec = Some(script(&text));
                sender.send(Plugin::take_from(&mut config, Duration::ZERO).is_ok()).unwrap();
            });
        }
        for _ in 0..2 {
            assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(true));
        }
    }
}
