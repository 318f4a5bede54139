//! The app's webhooks: admission functions, conversions and interpreters on one port.
//!
//! A webhook server starts before the manager, since caches may need its conversions, and ends
//! after it, since the last writes of workers may need its admission functions.

#[cfg(feature = "karmada")]
mod interpreters;
mod manifests;

use std::{
    io::{ErrorKind, Read},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use kctl_runtime::{
    manager::{Manager, metrics},
    manifest::{self, Permission, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};
use kctl_webhook::{
    admission::ClientConfig,
    connections::loopback_if_unspecified,
    server::{Certificate, Routes, Served, Server, ServerError, ServerOptions},
};
use serde_json::Value;

use self::manifests::secret_name;
pub(super) use self::manifests::{CertificateIssuer, Named, RegisterOptions};
use super::{
    App,
    certificates::{Certificates, READ_INTERVAL, trusting_paths},
    names,
    rbac_check::ExtraRole,
    replace::replace,
    webhook_functions::{check_service, hosts},
};

/// First line of a file that kctl wrote and may replace.
const WRITTEN_BY: &str = "# Written by kctl: this file is replaced at each start.\n";

/// A server in a cluster accepts connections for this long after the signal, until its callers have
/// learned that it stops.
const LINGER: Duration = Duration::from_secs(5);

/// Options of the server of webhooks.
#[derive(clap::Args, Default, Clone, Debug)]
pub(super) struct ServeOptions {
    /// Serve the webhooks on this address, such as :9443; by default on a free loopback port
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    webhook_bind_address: Option<SocketAddr>,
    /// A folder with tls.crt and tls.key, which are read every 10 seconds, and optionally ca.crt, which is read at the
    /// start; by default a certificate is created at the start
    #[arg(long, value_name = "DIR")]
    webhook_cert_dir: Option<PathBuf>,
    /// Create and renew the certificate in this Secret of the program's namespace, and write its CA into the app's webhook
    /// configurations and CRDs. A Secret that something else fills is used and never written
    #[arg(long, value_name = "NAME", value_parser = names::secret, conflicts_with = "webhook_cert_dir")]
    webhook_secret: Option<String>,
    /// The name of the Service, and of the webhook configurations; by default the name of the app
    #[arg(long, value_name = "NAME", value_parser = names::service)]
    webhook_service: Option<String>,
    /// The URL at which the API server reaches the webhooks, such as `https://192.0.2.1:9443`; by default the address
    #[arg(long, value_name = "URL", value_parser = names::webhook_url)]
    webhook_url: Option<String>,
    /// Write the manifests that register this server: webhook configurations, and the CRDs of kinds that the app converts. Apply them
    /// with `kubectl apply --server-side -f FILE`; a file that kctl did not write is never replaced
    #[arg(long, value_name = "FILE")]
    write_webhook_config: Option<PathBuf>,
    /// Folder for the CA of a certificate that is created at the start: `--data` of `dev`.
    #[arg(skip)]
    pub(super) persist_in: Option<PathBuf>,
    /// `true` for `dev`, which registers the address with the embedded API server.
    #[arg(skip)]
    pub(super) is_registered: bool,
}

/// Parses `IP:PORT`, or `:PORT` for all addresses of the machine, IPv6 and IPv4.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
    let everywhere = port.map(|port| (Ipv6Addr::UNSPECIFIED, port).into());
    everywhere.or_else(|| text.parse().ok()).ok_or_else(|| {
        "not an IP address with a port; write for example `127.0.0.1:9443`, or `:9443` for all addresses".to_owned()
    })
}

/// Returns the error of a server that does not start. An address that can't be listened on is named with its flag.
fn not_started(error: ServerError) -> Error {
    let ServerError::AddressUnusable { address, source, .. } = &error else { return error.into() };
    let port = address.port();
    let problem = match source.kind() {
        ErrorKind::AddrInUse => format!("port {port} is in use; stop what uses it, or choose another port"),
        ErrorKind::PermissionDenied => {
            format!("this process may not listen on port {port}; choose one above 1023")
        }
        _ => format!("this machine cannot listen there: {source}"),
    };
    Error::from(format!("--webhook-bind-address={address}: {problem}"))
}

/// File with the namespace of a Pod, next to its `ServiceAccount` token.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

impl ServeOptions {
    /// Checks that configurations can be written for a server on this address.
    ///
    /// # Errors
    /// The file has the name `-`, or no URL leads to the server: certificates are not valid for unspecified addresses.
    fn check_written(&self, address: SocketAddr) -> Result<()> {
        let Some(file) = &self.write_webhook_config else { return Ok(()) };
        if file == Path::new("-") {
            return Err(Error::from(
                "--write-webhook-config does not write to standard output\nhelp: name a file, which is replaced at each start",
            ));
        }
        if address.ip().is_unspecified() && self.webhook_url.is_none() {
            return Err(Error::from(format!(
                "--write-webhook-config needs a URL that API servers can call, and {address} is every address of this machine\n\
                 help: add --webhook-url https://ADDRESS:{}",
                address.port()
            )));
        }
        Ok(())
    }

    /// Returns the hosts under which API servers call a server on this address, as far as the options name them.
    ///
    /// `namespace` is the Pod's namespace, if the program runs in a cluster.
    fn called_hosts(&self, address: SocketAddr, namespace: Option<&str>) -> Vec<String> {
        if let Some(url) = &self.webhook_url {
            return host_of(url).into_iter().collect();
        }
        if self.is_registered || self.write_webhook_config.is_some() {
            return vec![loopback_if_unspecified(address).ip().to_string()];
        }
        let service = self.webhook_service.as_ref().zip(namespace);
        service.map(|(name, namespace)| format!("{name}.{namespace}.svc")).into_iter().collect()
    }

    /// Returns how to register a server whose new certificate no API server trusts; empty for other servers.
    fn registration_hint(&self) -> &'static str {
        let is_registered = self.is_registered || self.write_webhook_config.is_some();
        if is_registered || self.webhook_cert_dir.is_some() || self.webhook_secret.is_some() {
            return "";
        }
        "; no API server calls them yet: add --write-webhook-config FILE and apply that file"
    }

    /// Returns `true` if the certificate is in a Secret.
    #[cfg(feature = "dev")]
    pub(super) fn has_secret(&self) -> bool {
        self.webhook_secret.is_some()
    }
}

/// Name of the check of `/readyz` that the webhooks have a certificate.
pub(super) const CERTIFICATE_CHECK: &str = "webhook-certificate";

/// Time within which functions of cancelled requests end: they stop at their next `.await`.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Webhooks that listen on an address.
pub(super) struct Serving {
    pub(super) server: Server,
    #[cfg(feature = "dev")]
    client: ClientConfig,
    /// The certificates in a Secret, with `--webhook-secret`.
    pub(super) certificates: Option<Certificates>,
    linger: Duration,
    pub(super) functions: Functions,
}

/// Returns descriptions of the running functions.
type ListRunning = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Lists the running functions of all webhooks.
#[derive(Clone, Default)]
pub(super) struct Functions(Vec<ListRunning>);

/// Number of functions that the error at the end of the program names.
const NAMED_MAX: usize = 3;

impl Functions {
    /// Waits until no function runs, which is soon after their requests have ended.
    ///
    /// # Errors
    /// A function blocks its thread, so only the end of the process can stop it.
    pub(super) async fn wait_until_idle(&self) -> Result<()> {
        let until = tokio::time::Instant::now() + CANCEL_TIMEOUT;
        loop {
            let running: Vec<String> = self.0.iter().flat_map(|running| running()).collect();
            if running.is_empty() {
                return Ok(());
            }
            if tokio::time::Instant::now() >= until {
                return Err(still_running(&running));
            }
            tokio::time::sleep(CANCEL_TIMEOUT / 20).await;
        }
    }
}

/// Returns the error of a program that ends while functions run.
fn still_running(functions: &[String]) -> Error {
    let named = functions.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    Error::from(match functions.len() {
        1 => format!("1 webhook function is cut off: it blocks its thread and its request has ended: {named}"),
        n => {
            let others = n.saturating_sub(NAMED_MAX);
            let others = if others == 0 { String::new() } else { format!(" and {others} more") };
            format!(
                "{n} webhook functions are cut off: they block their threads and their requests have ended: {named}{others}"
            )
        }
    })
}

impl Serving {
    /// Returns the address of the webhooks, and the authority of their certificate.
    #[cfg(feature = "dev")]
    pub(super) fn client_config(&self) -> (ClientConfig, Option<String>) {
        (self.client.clone(), self.server.authority().map(str::to_owned))
    }

    /// Returns a function that returns an error until there is a certificate: handshakes fail without one.
    pub(super) fn is_served(&self) -> impl Fn() -> Result<String, String> + Send + Sync + use<> {
        let certificate = self.server.certificate();
        move || {
            if certificate.is_set() {
                Ok("a certificate is served".to_owned())
            } else {
                Err("there is no certificate yet; the log has the reason".to_owned())
            }
        }
    }

    /// Returns a function that adds [`is_served`](Self::is_served) to the readiness of a manager.
    pub(super) fn ready_when_served(&self) -> impl FnOnce(&mut Manager) + Send + use<> {
        let is_served = self.is_served();
        move |manager: &mut Manager| manager.ready_when(CERTIFICATE_CHECK, is_served)
    }

    /// Returns a function that adds the certificate's read counters to the metrics.
    pub(super) fn count_reads(&self) -> impl FnOnce(&metrics::Metrics) + Send + use<> {
        let certificate = self.server.certificate();
        let reads = move || {
            let (total, errors) = certificate.reads();
            let mut reads = metrics::CertificateReads::default();
            (reads.total, reads.errors) = (total, errors);
            reads
        };
        move |metrics: &metrics::Metrics| metrics.certificate_reads(reads)
    }

    /// Serves until `stopped` is ready, and a little longer in a cluster.
    pub(super) async fn serve(self, stopped: impl Future<Output = ()>) -> Result<()> {
        self.server.serve_lingering(stopped, tokio::time::sleep(self.linger)).await?;
        self.functions.wait_until_idle().await
    }

    /// Serves concurrently with a manager and ends after it: the last writes of its workers may need the app's own
    /// conversions and admission functions.
    pub(super) async fn serve_beside(
        self,
        manager: impl Future<Output = Result<()>>,
        stopped: impl Future<Output = ()>,
    ) -> Result<()> {
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let manager = async {
            manager.await?;
            drop(end);
            Ok::<_, Error>(())
        };
        let linger = async {
            let _both = tokio::join!(tokio::time::sleep(self.linger), ended);
        };
        let serve = async { Ok::<_, Error>(self.server.serve_lingering(stopped, linger).await?) };
        tokio::try_join!(manager, serve)?;
        self.functions.wait_until_idle().await
    }
}

impl App {
    /// Returns `true` if the app has functions for Karmada.
    #[cfg(not(feature = "karmada"))]
    #[expect(clippy::unused_self, reason = "the same method with the feature reads a field")]
    fn has_interpreters(&self) -> bool {
        false
    }

    /// Returns `true` if the app has functions that an API server or Karmada calls.
    pub(super) fn has_webhooks(&self) -> bool {
        self.has_interpreters() || !self.webhook_functions.is_empty()
    }

    /// Starts listening and prints the address; `None` for an app without webhooks.
    pub(super) async fn webhook(&mut self, options: &ServeOptions) -> Result<Option<Serving>> {
        if !self.has_webhooks() {
            return match &options.write_webhook_config {
                Some(_) => Err(Error::from(
                    "there is no webhook to configure: the app has no admission functions, no conversions and no interpreters\n\
                     help: add them by `App::admission`, `App::conversion` or `App::interpreter`",
                )),
                None => Ok(None),
            };
        }
        let mut server = ServerOptions::default();
        server.address = options.webhook_bind_address.unwrap_or(server.address);
        options.check_written(server.address)?;
        let namespace = std::fs::read_to_string(NAMESPACE_FILE).ok();
        server.hosts = options.called_hosts(server.address, namespace.as_deref().map(str::trim));
        let served = Arc::new(Served::default());
        server.certificate = self.certificate(options, server.address, &served)?;
        let is_new_each_start = matches!(server.certificate, Certificate::SelfSigned(_));
        let in_cluster = options.webhook_cert_dir.is_some() || options.webhook_secret.is_some();
        let (routes, functions) = self.routes()?;
        let server = Server::listen(routes, server).await;
        let is_folder_error = options.webhook_cert_dir.is_some() && matches!(server, Err(ServerError::Certificate(_)));
        let server = server.map_err(not_started);
        let server = if is_folder_error { server.context("--webhook-cert-dir")? } else { server? };
        let url_of = |address: SocketAddr| options.webhook_url.clone().unwrap_or_else(|| format!("https://{address}"));
        let client = ClientConfig::Url(url_of(loopback_if_unspecified(server.address())));
        // Without `--write-webhook-config` too, because Karmada may reject the address.
        let configurations = self.configurations(&self.name, &client, server.authority())?;
        if let Some(file) = &options.write_webhook_config {
            // CRDs come first: objects of other versions than the stored one can't be read without their conversion.
            let mut objects = self.converted_definitions()?;
            for definition in &mut objects {
                self.convert_by(definition, &client, server.authority());
            }
            objects.extend(configurations);
            write(file, &manifest::yaml(&objects)?).context("--write-webhook-config")?;
            if is_new_each_start {
                print_or_log!(
                    "{}: the webhooks' certificate is new at each start, and so is {}: apply it again after a start, or keep the \
                     certificate with `dev --data DIR`, or with --webhook-cert-dir DIR",
                    self.name,
                    file.display()
                );
            }
        }
        let certificates = options.webhook_secret.as_ref().map(|secret| self.certificates(options, secret, served));
        print_or_log!("{}: webhooks at {}{}", self.name, url_of(server.address()), options.registration_hint());
        let linger = if in_cluster { LINGER } else { Duration::ZERO };
        Ok(Some(Serving {
            server,
            #[cfg(feature = "dev")]
            client,
            certificates: certificates.transpose()?,
            linger,
            functions,
        }))
    }

    /// Returns the certificate of the server: from a folder or a Secret, or else self-signed.
    fn certificate(&self, options: &ServeOptions, address: SocketAddr, served: &Arc<Served>) -> Result<Certificate> {
        Ok(match (&options.webhook_cert_dir, &options.webhook_secret, &options.persist_in) {
            (Some(folder), _, _) => Certificate::in_folder(folder),
            (None, Some(_), _) => Certificate::Provided(served.clone()),
            (None, None, Some(folder)) => {
                Certificate::Persisted { names: self.names(options, address)?, folder: folder.clone() }
            }
            (None, None, None) => Certificate::SelfSigned(self.names(options, address)?),
        })
    }

    /// Returns all routes. Their metrics are added to the app's metrics.
    fn routes(&mut self) -> Result<(Routes, Functions)> {
        let (mut all, mut functions) = (Routes::default(), Functions::default());
        #[cfg(feature = "karmada")]
        if self.has_interpreters() {
            let counted = kctl_interpreter::webhook::Metrics::default();
            all = all.and(self.interpreter_routes(&counted)?);
            let running = counted.clone();
            functions.0.push(Arc::new(move || running.running_functions()));
            self.metrics.push(Box::new(move |registry| counted.register(registry)));
        }
        if !self.webhook_functions.is_empty() {
            let counted = kctl_webhook::Metrics::default();
            all = all.and(self.webhook_routes(&counted)?);
            let running = counted.clone();
            functions.0.push(Arc::new(move || running.running_functions()));
            self.metrics.push(Box::new(move |registry| counted.register(registry)));
        }
        Ok((all, functions))
    }

    /// Returns the webhook configurations of admission functions and interpreters.
    #[cfg_attr(not(feature = "karmada"), expect(clippy::unnecessary_wraps, reason = "Karmada may reject an address"))]
    fn configurations(&self, name: &str, client: &ClientConfig, authority: Option<&str>) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        #[cfg(feature = "karmada")]
        if self.has_interpreters() {
            objects.push(self.interpreter_configuration(name, client, authority)?);
        }
        objects.extend(self.admission_configurations(name, client, authority));
        Ok(objects)
    }

    fn certificates(&self, options: &ServeOptions, secret: &str, served: Arc<Served>) -> Result<Certificates> {
        let name = options.webhook_service.as_ref().unwrap_or(&self.name);
        let configurations = self.admission_configurations(name, &ClientConfig::Url(String::new()), None);
        Ok(Certificates {
            served,
            secret: secret.to_owned(),
            service: name.clone(),
            names: self.names(options, (Ipv4Addr::UNSPECIFIED, 0).into())?,
            trusting: trusting_paths(&configurations, self.converted_crd_names()?),
            manager: format!("{}-webhook", self.name),
            clock: Arc::new(Timestamp::now),
            read_every: READ_INTERVAL,
        })
    }

    /// Returns the permissions for creating the certificate, with the names of the generated
    /// manifests.
    pub(super) fn own_certificate(&self, names: &RbacOptions) -> Result<Vec<Permission>> {
        self.certificate_in(&secret_name(&names.name), &names.name, &names.namespace)
    }

    /// Returns the role that `run` needs to create its certificate in a namespace.
    ///
    /// # Errors
    /// `#[resource]` names another Service for conversions.
    pub(super) fn certificate_role(&self, options: &ServeOptions, namespace: &str) -> Result<Option<ExtraRole>> {
        let Some(secret) = options.webhook_secret.as_ref().filter(|_| self.has_webhooks()) else { return Ok(None) };
        let service = options.webhook_service.as_ref().unwrap_or(&self.name);
        for definition in self.converted_definitions()? {
            check_service(&definition, service, namespace)?;
        }
        Ok(Some(ExtraRole {
            role: "webhook",
            generate: "".into(),
            permissions: self.certificate_in(secret, service, namespace)?,
            run: vec![
                ("--webhook-secret", secret.clone(), |_, name| secret_name(name)),
                ("--webhook-service", service.clone(), |_, name| name.to_owned()),
            ],
        }))
    }

    fn certificate_in(&self, secret: &str, service: &str, namespace: &str) -> Result<Vec<Permission>> {
        let trusted = self.admission_configurations(service, &ClientConfig::Url(String::new()), None);
        Ok(manifest::webhook_permissions(namespace, secret, &trusted, &self.converted_crd_names()?))
    }

    /// Returns `true` if the program creates a certificate itself: for admission functions and
    /// conversions.
    pub(super) fn makes_certificate(&self) -> bool {
        !self.webhook_functions.is_empty()
    }

    /// Returns the names of CRDs whose objects the app converts.
    fn converted_crd_names(&self) -> Result<Vec<String>> {
        let name = |definition: &Value| definition["metadata"]["name"].as_str().map(ToOwned::to_owned);
        Ok(self.converted_definitions()?.iter().filter_map(name).collect())
    }

    /// Returns the host names and addresses that the certificate is valid for.
    fn names(&self, options: &ServeOptions, address: SocketAddr) -> Result<Vec<String>> {
        let mut names = vec!["localhost".into(), "127.0.0.1".into(), self.name.clone()];
        names.push(loopback_if_unspecified(address).ip().to_string());
        names.extend(options.webhook_url.as_deref().and_then(host_of));
        names.extend(self.converted_definitions()?.iter().flat_map(hosts));
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// Returns the host of a URL, an IPv6 address without its brackets.
fn host_of(url: &str) -> Option<String> {
    let url = url.parse::<http::Uri>().ok()?;
    url.host().map(|host| host.trim_matches(['[', ']']).to_owned())
}

/// Writes a file, unless it exists with contents that kctl did not write. Its readers see the old text or the new one.
fn write(file: &Path, yaml: &str) -> Result<()> {
    let beginning = match std::fs::metadata(file) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(Error::from(format!(
                "{}: it is a folder, a device or a pipe\nhelp: name a file, which is replaced at each start",
                file.display()
            )));
        }
        Ok(_) => {
            let mut start = Vec::new();
            let opened = std::fs::File::open(file).context(file.display())?;
            opened.take(WRITTEN_BY.len() as u64).read_to_end(&mut start).context(file.display())?;
            Some(start)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).context(file.display()),
    };
    match beginning {
        // A link whose target is missing is not followed: `create_new` fails on it. An empty file is replaced below.
        None => drop(std::fs::File::create_new(file).context(file.display())?),
        // `mktemp` creates an empty file.
        Some(start) if start.is_empty() || start == WRITTEN_BY.as_bytes() => {}
        Some(_) => {
            return Err(Error::from(format!(
                "{}: kctl did not write this file and does not replace it\nhelp: remove it, or name another file",
                file.display()
            )));
        }
    }
    let text = format!("{WRITTEN_BY}{yaml}");
    let written = replace(file, &text).or_else(|error| match error.kind() {
        // A file in a folder that takes no second one, or a file that is a mount, can only be written in place.
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::ResourceBusy => {
            std::fs::write(file, &text)
        }
        _ => Err(error),
    });
    written.context(file.display())
}

#[cfg(test)]
mod option_tests {
    use super::*;

    #[test]
    fn called_hosts_follow_from_the_options() {
        let address = "0.0.0.0:9443".parse().unwrap();
        let (plain, url) = (ServeOptions::default(), Some("https://[::1]:9443/path".to_owned()));
        let service = ServeOptions { webhook_service: Some("web".into()), ..plain.clone() };
        assert_eq!(service.called_hosts(address, Some("system")), ["web.system.svc"]);
        for (options, namespace) in [(&service, None), (&plain, Some("system"))] {
            assert!(options.called_hosts(address, namespace).is_empty(), "nothing names the Service");
        }
        let by_url = ServeOptions { webhook_url: url, ..service.clone() };
        assert_eq!(by_url.called_hosts(address, Some("system")), ["::1"]);
        let dev_options = ServeOptions { is_registered: true, ..plain };
        assert_eq!(dev_options.called_hosts(address, None), ["127.0.0.1"]);
    }

    #[test]
    fn certificate_covers_loopback_for_unspecified_addresses() {
        let app = App::new("web");
        for (address, called) in
            [("0.0.0.0:9443", "127.0.0.1:9443"), ("[::]:9443", "[::1]:9443"), ("192.0.2.1:9443", "192.0.2.1:9443")]
        {
            let (address, called): (SocketAddr, SocketAddr) = (address.parse().unwrap(), called.parse().unwrap());
            assert_eq!(loopback_if_unspecified(address), called);
            let names = app.names(&ServeOptions::default(), address).unwrap();
            assert!(names.contains(&called.ip().to_string()), "{names:?}");
        }
    }

    #[test]
    fn written_configuration_needs_a_file_and_an_address() {
        let check = |file: Option<&str>, url: Option<&str>, address: &str| {
            let options = ServeOptions {
                write_webhook_config: file.map(PathBuf::from),
                webhook_url: url.map(str::to_owned),
                ..ServeOptions::default()
            };
            options.check_written(address.parse().unwrap()).map_err(|error| error.to_string())
        };
        for address in ["0.0.0.0:9443", "[::]:9443"] {
            assert_eq!(check(None, None, address), Ok(()));
            assert_eq!(check(Some("a.yaml"), Some("https://192.0.2.1:9443"), address), Ok(()));
            let error = check(Some("a.yaml"), None, address).unwrap_err();
            assert!(error.ends_with("help: add --webhook-url https://ADDRESS:9443"), "{error}");
        }
        assert_eq!(check(Some("a.yaml"), None, "127.0.0.1:0"), Ok(()));
        let error = check(Some("-"), None, "127.0.0.1:0").unwrap_err();
        assert!(error.contains("does not write to standard output"), "{error}");
    }
}

#[cfg(all(test, any(feature = "dev", feature = "karmada")))]
mod tests;
