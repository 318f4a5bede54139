//! Finds the API server of a command: a kubeconfig as kubectl finds it, or the cluster around the
//! Pod. Adds identity and proxy.

mod proxy;
mod token;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kctl_runtime::{
    connection::kubeconfig,
    reconcile::{Error, Result},
};
use kube::{
    Client,
    config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tokio::time::timeout;

use self::proxy::Proxy;
pub(super) use self::token::TokenFile;

/// A cluster and how it is reached.
pub(super) struct Connection {
    /// The name of the kubeconfig's context, or `(in the cluster)`.
    context: String,
    pub(super) config: Config,
    /// The file of the bearer token, if any; it is removed from the configuration, because kctl
    /// reads it itself.
    pub(super) token: Option<TokenFile>,
    /// The proxy from `--proxy-url`, else from the kubeconfig, else from the environment.
    proxy: Option<Proxy>,
}

impl Connection {
    /// Finds the cluster that the options name. `proxy_url` is the value of `--proxy-url`.
    ///
    /// # Errors
    /// No cluster is found, or a file that names one can't be read.
    pub(super) async fn find(
        file: Option<PathBuf>,
        context: Option<String>,
        proxy_url: Option<String>,
    ) -> Result<Self> {
        let from_flag = proxy_url.map(|url| Proxy::parse(&url, "--proxy-url")).transpose()?;
        let (context, mut config, of_kubeconfig) = match read(file.as_deref())? {
            Some(kubeconfig) => load_context(kubeconfig, context).await?,
            None => match Config::incluster() {
                Ok(config) if context.as_deref().is_none_or(str::is_empty) => ("(in the cluster)".into(), config, None),
                Ok(_) => return Err(no_cluster("there is no kubeconfig file with contexts")),
                Err(error) => return Err(no_cluster(not_found(&error))),
            },
        };
        let proxy = match from_flag.or(of_kubeconfig) {
            Some(proxy) => Some(proxy),
            None => proxy::proxy_from_environment(&config.cluster_url, |name| std::env::var(name).ok())?,
        };
        config.proxy_url = proxy.as_ref().map(|proxy| proxy.url.clone());
        let token = TokenFile::take(&mut config.auth_info);
        Ok(Self { context, config, token, proxy })
    }

    /// Describes the cluster and the proxy for a person.
    pub(super) fn describe(&self) -> String {
        let through = self.proxy.as_ref().map_or(String::new(), |proxy| format!(", through the proxy {proxy}"));
        format!("context {}, server {}{through}", self.context, self.config.cluster_url)
    }
}

/// Longest time from the first request of a command that only reads to its last response.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster for a command that only reads.
pub(super) struct ReadCluster {
    pub(super) client: Client,
    /// The URL of the API server, for errors.
    pub(super) server: String,
}

impl ReadCluster {
    /// Runs the requests of the command.
    ///
    /// # Errors
    /// They fail, or don't end within [`READ_TIMEOUT`]: the client waits for a response without a limit.
    pub(super) async fn read<T>(&self, requests: impl Future<Output = Result<T>>) -> Result<T> {
        let server = &self.server;
        timeout(READ_TIMEOUT, requests).await.unwrap_or_else(|_elapsed| {
            Err(Error::from(format!(
                "no response from {server} within {READ_TIMEOUT:?}\n\
                 help: check that the context's server is a healthy API server"
            )))
        })
    }
}

/// Returns an error if `--proxy-url` is not the URL of a proxy.
pub(super) fn check_proxy(url: &str) -> Result<()> {
    Proxy::parse(url, "--proxy-url").map(drop)
}

/// Reads the named kubeconfig, or the user's default kubeconfig; `None` if neither exists.
///
/// As for kubectl, missing files of `KUBECONFIG` count as empty, and existing ones have to be
/// readable.
fn read(file: Option<&Path>) -> Result<Option<Kubeconfig>> {
    match file {
        Some(file) => read_file(file)
            .map(Some)
            .map_err(|error| no_cluster_with(&format!("--kubeconfig {error}"), "name another file with --kubeconfig")),
        None => read_merged(&kubeconfig::default_files()),
    }
}

/// Merges kubeconfig files; `None` without files. The first value that is not empty wins, as for kubectl.
fn read_merged(files: &[PathBuf]) -> Result<Option<Kubeconfig>> {
    let mut merged = None;
    for file in files {
        let mut next = read_file(file).map_err(no_cluster)?;
        // kubectl writes `current-context: ""` into a file without one.
        kubeconfig::unset_empty(&mut next);
        merged = Some(match merged {
            None => next,
            Some(before) => Kubeconfig::merge(before, next).map_err(|error| no_cluster(causes(&error)))?,
        });
    }
    Ok(merged)
}

/// Reads one kubeconfig file. The error names the file and the problem.
fn read_file(file: &Path) -> std::result::Result<Kubeconfig, String> {
    Kubeconfig::read_from(file).map_err(|error| format!("{}: {}", file.display(), problem_of_file(&error)))
}

/// Returns the name of the context, its configuration, and the proxy that the kubeconfig has for
/// its cluster.
async fn load_context(mut kubeconfig: Kubeconfig, context: Option<String>) -> Result<(String, Config, Option<Proxy>)> {
    kubeconfig::unset_empty(&mut kubeconfig);
    // As for kubectl, an empty name counts as absent: a template may have left a variable empty.
    let given = context.filter(|name| !name.is_empty());
    let context = given.or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
    let selected = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    // As for kubectl, the `proxy-url` of a kubeconfig applies even if `NO_PROXY` matches.
    let mut direct = kubeconfig.clone();
    for cluster in direct.clusters.iter_mut().filter_map(|cluster| cluster.cluster.as_mut()) {
        cluster.proxy_url = None;
    }
    let config = Config::from_custom_kubeconfig(direct, &selected).await;
    let mut config = config.map_err(|error| no_context(&error, &context, &kubeconfig))?;
    if config.accept_invalid_certs && config.root_cert.is_some() {
        return Err(Error::from(format!(
            "the cluster of the context `{context}` has a certificate authority and `insecure-skip-tls-verify`, which contradict \
             each other, also for kubectl: remove one of them from the kubeconfig"
        )));
    }
    kubeconfig::choose_credentials(&mut config.auth_info)?;
    let named = |name: &str| kubeconfig.contexts.iter().find(|context| context.name == name)?.context.as_ref();
    let cluster = named(&context).and_then(|of| kubeconfig.clusters.iter().find(|cluster| cluster.name == of.cluster));
    let url = cluster.and_then(|cluster| cluster.cluster.as_ref()?.proxy_url.clone()).filter(|url| !url.is_empty());
    if let Some(exec_cluster) = config.auth_info.exec.as_mut().and_then(|exec| exec.cluster.as_mut()) {
        exec_cluster.proxy_url.clone_from(&url);
    }
    let proxy = url.map(|url| Proxy::parse(&url, "`proxy-url` of the kubeconfig")).transpose()?;
    Ok((context, config, proxy))
}

/// Returns the problem of a kubeconfig whose path the caller names. kube's messages repeat the path, or have an excerpt of the
/// file.
fn problem_of_file(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(source, _path) => format!("failed to read the kubeconfig: {source}"),
        KubeconfigError::Parse(error) => format!("the kubeconfig is not valid YAML: {}", error.without_snippet()),
        other => causes(other),
    }
}

/// Joins an error with its sources, which kube's `Display` leaves out.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Returns the reason why neither a kubeconfig nor a cluster was found.
fn not_found(error: &dyn std::error::Error) -> String {
    let pod = match std::env::var_os("KUBERNETES_SERVICE_HOST") {
        Some(_) => causes(error),
        None => "this process does not run in a Pod".into(),
    };
    let named = std::env::var("KUBECONFIG").ok().filter(|list| !list.is_empty());
    match named {
        Some(list) => format!("no file in KUBECONFIG={list} exists, and {pod}"),
        None => format!("there is no ~/.kube/config, and {pod}"),
    }
}

/// Returns the error for a command that found no cluster. The remedies are `KUBECONFIG` and `dev`.
fn no_cluster(error: impl std::fmt::Display) -> Error {
    no_cluster_with(&error, "set KUBECONFIG")
}

/// Returns the error for a command that found no cluster, with a remedy in addition to `dev`.
fn no_cluster_with(error: &dyn std::fmt::Display, remedy: &str) -> Error {
    Error::from(format!(
        "no cluster to run against: {error}\nhelp: {remedy}, or try it without a cluster: `cargo run -- dev`"
    ))
}

/// Returns the error for a context that the kubeconfig does not have, with the names of its
/// contexts.
fn no_context(error: &KubeconfigError, context: &str, kubeconfig: &Kubeconfig) -> Error {
    let names: Vec<_> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
    match error {
        _ if names.is_empty() => no_cluster("the kubeconfig has no contexts"),
        KubeconfigError::CurrentContextNotSet | KubeconfigError::LoadContext(_) => {
            let wrong = match context {
                "" => "the kubeconfig names no current context; set --context".to_owned(),
                context => format!("the kubeconfig has no context `{context}`"),
            };
            Error::from(format!("{wrong}\nhelp: it has {}", names.join(", ")))
        }
        _ => Error::from(causes(error)),
    }
}

/// Returns `true` if a value of `KUBECONFIG` names an existing file; `/dev/null` names no cluster.
#[cfg(feature = "testing")]
pub(crate) fn names_a_file(list: &std::ffi::OsStr) -> bool {
    std::env::split_paths(list).any(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn read_of_a_silent_server_fails() {
        let silent = tower::service_fn(|_request: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, tower::BoxError>>()
        });
        let server = "https://192.0.2.1:6443/".to_owned();
        let cluster = ReadCluster { client: Client::new(silent, "default"), server };
        let error =
            cluster.read(async { Ok(cluster.client.apiserver_version().await?) }).await.unwrap_err().to_string();
        assert!(error.starts_with("no response from https://192.0.2.1:6443/ within 60s\nhelp: "), "{error}");
        let failed = cluster.read(async { Err::<(), _>(Error::from("it broke")) }).await;
        assert_eq!(failed.unwrap_err().to_string(), "it broke");
    }

    #[tokio::test]
    async fn empty_context_is_the_current_one() {
        let text = "current-context: here\n\
                    contexts: [{ name: here, context: { cluster: main, user: me } }]\n\
                    clusters: [{ name: main, cluster: { server: 'https://192.0.2.1:6443' } }]\n\
                    users: [{ name: me, user: {} }]\n";
        for context in [None, Some(String::new()), Some("here".to_owned())] {
            let found = load_context(Kubeconfig::from_yaml(text).unwrap(), context).await.unwrap();
            assert_eq!((found.0.as_str(), found.1.cluster_url.host()), ("here", Some("192.0.2.1")));
        }
        let other = load_context(Kubeconfig::from_yaml(text).unwrap(), Some("there".to_owned())).await;
        assert!(other.err().unwrap().to_string().starts_with("the kubeconfig has no context `there`"));
    }

    #[test]
    fn empty_context_of_first_file_is_not_merged() {
        let folder = std::env::temp_dir().join(format!("kctl-kubeconfig-merge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = ["first", "second"].map(|name| folder.join(name));
        for (file, context) in files.iter().zip(["''", "here"]) {
            std::fs::write(file, format!("current-context: {context}\n")).unwrap();
        }
        let merged = read_merged(&files).unwrap().unwrap();
        assert_eq!(merged.current_context.as_deref(), Some("here"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn missing_kubeconfig_is_named_with_its_flag() {
        let error = read(Some(Path::new("/nonexistent/config"))).err().unwrap().to_string();
        assert!(error.starts_with("no cluster to run against: --kubeconfig /nonexistent/config: "), "{error}");
        assert!(error.contains("help: name another file with --kubeconfig, or"), "{error}");
        assert!(!error.contains("KUBECONFIG"), "{error}");
        assert_eq!(error.matches("/nonexistent").count(), 1, "{error}");
    }
}
