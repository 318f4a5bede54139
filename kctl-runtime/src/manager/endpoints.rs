//! The pages that a manager serves: health, metrics and debugging, each on a listener of the caller.

use kube::Client;
use tokio::net::TcpListener;

use super::{Manager, serve};

pub(super) enum Page {
    Health,
    Metrics,
    /// With the client that sends the reviews.
    SecureMetrics(Client, serve::Tls),
    /// The debug page, and the hosts that requests may name in addition to loopback.
    Debug(Vec<String>),
}

impl Manager {
    /// Answers `/healthz`, `/livez` and `/readyz` on this listener ([`serve::bind`]) while the manager runs.
    ///
    /// A kubelet probes from outside the Pod, so listen on all addresses, as in `:8081`.
    #[must_use]
    pub fn serve_health(mut self, listener: TcpListener) -> Self {
        self.servers.push((listener, Page::Health));
        self
    }

    /// Answers `/metrics` on this listener over plain HTTP, to every client that can reach it.
    ///
    /// Meant for loopback; on other addresses prefer [`serve_metrics_securely`](Self::serve_metrics_securely).
    #[must_use]
    pub fn serve_metrics(mut self, listener: TcpListener) -> Self {
        self.servers.push((listener, Page::Metrics));
        self
    }

    /// Serves `/metrics` over TLS, to clients whose token the API server knows (`TokenReview`) and that may
    /// `get` `/metrics` (`SubjectAccessReview`). controller-runtime calls this `SecureServing` with
    /// `WithAuthenticationAndAuthorization`.
    ///
    /// The scraper needs a `ClusterRole` with `nonResourceURLs: ["/metrics"]` and the verb `get`. This process needs to
    /// create `TokenReview`s and `SubjectAccessReview`s, which `system:auth-delegator` allows.
    ///
    /// # Errors
    /// [`TlsError`](serve::TlsError) if the certificate cannot be read or created.
    pub fn serve_metrics_securely(
        self,
        listener: TcpListener,
        certificate: serve::Certificate,
    ) -> Result<Self, serve::TlsError> {
        let client = self.client.clone();
        self.serve_metrics_securely_by(client, listener, certificate)
    }

    /// Does the same with a separate client for the reviews. Then requests with wrong tokens take nothing from the
    /// rate limit of the controllers.
    ///
    /// # Errors
    /// As [`serve_metrics_securely`](Self::serve_metrics_securely).
    pub fn serve_metrics_securely_by(
        mut self,
        client: Client,
        listener: TcpListener,
        certificate: serve::Certificate,
    ) -> Result<Self, serve::TlsError> {
        let tls = serve::Tls::new(certificate)?;
        tls.count_in(&self.metrics);
        self.servers.push((listener, Page::SecureMetrics(client, tls)));
        Ok(self)
    }

    /// Answers `/debug/` on this listener: a page about controllers, queues, caches and the last reconciles.
    ///
    /// It is served without authentication, to requests that name loopback or one of these hosts. Reconciles
    /// are only recorded for the page if this was called.
    #[must_use]
    pub fn serve_debug(mut self, listener: TcpListener, hosts: Vec<String>) -> Self {
        self.history.enable();
        self.servers.push((listener, Page::Debug(hosts)));
        self
    }
}
