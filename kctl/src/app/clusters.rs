//! The clusters of an app in addition to the one that it starts against.

use std::sync::Arc;

use kctl_runtime::reconcile::{Result, ResultExt};
use kube::Client;

use super::{App, Boxed};

pub(super) type Connect = Arc<dyn Fn() -> Boxed<'static, Result<Client>> + Send + Sync>;

impl App {
    /// Adds a cluster to the one that the program starts against: relations name it with `on = "name"`.
    ///
    /// The closure creates its client at each start of `run`; `dev` and tests start an embedded API
    /// server for it.
    ///
    /// `--dry-run`, `--kube-api-qps` (per cluster) and `--request-timeout` apply to this client,
    /// and its requests count in `rest_client_requests_total` under the name of the cluster.
    /// `--as`, `--as-group` and `--proxy-url` don't apply: the closure decides how to connect.
    /// `run` logs a warning when they are set.
    ///
    /// ```
    /// use kctl::{kube::{Config, config::KubeConfigOptions}, prelude::*};
    ///
    /// /// Counts the Pods of the cluster `edge`.
    /// #[controller(reads = Pod(on = "edge"))]
    /// async fn watching(_config: Arc<ConfigMap>, cx: Context<watching>) -> Result<Action> {
    ///     println!("{} pods", cx.store::<Pod>().len());
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("watcher").controller::<watching>().cluster("edge", || async {
    ///     let edge = KubeConfigOptions { context: Some("edge".into()), ..KubeConfigOptions::default() };
    ///     Ok(kctl::client(Config::from_kubeconfig(&edge).await?)?)
    /// });
    /// ```
    ///
    /// A type that implements [`Cluster`](crate::reconcile::Cluster) names the cluster where it is
    /// written to, or where one kind is declared on several clusters:
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// struct Edge;
    /// impl Cluster for Edge {
    ///     const NAME: &'static str = "edge";
    /// }
    ///
    /// /// Deletes the copies at the edge that a `ConfigMap` names.
    /// #[controller(reads = Secret(delete, on = Edge))]
    /// async fn revokes(config: Arc<ConfigMap>, cx: Context<revokes>) -> Result<Action> {
    ///     let edge = cx.cluster(Edge);
    ///     for secret in edge.store::<Secret>().iter().filter(|secret| secret.name_any() == config.name_any()) {
    ///         edge.objects::<Secret>().delete(&secret).await?;
    ///     }
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("revokes").controller::<revokes>().cluster(Edge::NAME, || async { Err("no kubeconfig".into()) });
    /// assert_eq!(app.specs()[0].relations[0].cluster, "edge");
    /// ```
    #[must_use]
    pub fn cluster<F, Fut>(mut self, name: &str, client: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Client>> + Send + 'static,
    {
        self.clusters.push((name.into(), Arc::new(move || Box::pin(client()))));
        self
    }

    /// Returns the clients of the other clusters, by name. Errors name the cluster.
    pub(crate) async fn connect_clusters(&self) -> Result<Vec<(String, Client)>> {
        let mut clusters = Vec::new();
        for (name, connect) in &self.clusters {
            clusters.push((name.clone(), connect().await.context(format!("cluster {name}"))?));
        }
        Ok(clusters)
    }
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::*;

    #[tokio::test]
    async fn unreadable_kubeconfig_is_named_once_with_its_cluster() {
        let app = App::new("web").cluster("edge", || async {
            let _never = Kubeconfig::read_from("/nonexistent/config").context("EDGE=/nonexistent/config")?;
            Err("the file exists".into())
        });
        let error = app.connect_clusters().await.err().unwrap().to_string();
        let expected = "cluster edge: EDGE=/nonexistent/config: failed to read the kubeconfig: ";
        assert!(error.starts_with(expected) && error.matches("/nonexistent").count() == 1, "{error}");
    }
}
