//! A simulated kubelet and workload controllers, for an API server without nodes.
//!
//! [`Kubelet`] schedules Pods to a node and changes their status as if containers ran. [`Workloads`] creates the Pods
//! of Deployments, `ReplicaSets` and Jobs. Both are ordinary clients: they work with the embedded API server
//! (`for_server`) and with a real one (`new`).
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use kctl_apiserver::ApiServer;
//! use kctl_workloads::{Kubelet, Workloads};
//! use kube::{Api, Client, api::PostParams};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
//! # runtime.block_on(async {
//! let server = ApiServer::new();
//! tokio::spawn(Kubelet::for_server(&server).run());
//! tokio::spawn(Workloads::for_server(&server).run());
//! let deployments = Api::<Deployment>::default_namespaced(Client::new(server.service(), "default"));
//! let deployment = serde_json::from_value(json!({
//!     "metadata": { "name": "web" },
//!     "spec": {
//!         "replicas": 2,
//!         "selector": { "matchLabels": { "app": "web" } },
//!         "template": {
//!             "metadata": { "labels": { "app": "web" } },
//!             "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
//!         },
//!     },
//! }))?;
//! deployments.create(&PostParams::default(), &deployment).await?;
//! tokio::time::sleep(std::time::Duration::from_secs(5)).await;
//! let status = deployments.get("web").await?.status;
//! assert_eq!(status.and_then(|status| status.ready_replicas), Some(2));
//! # Ok(())
//! # })
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod errors;
mod kubelet;
mod timeout;
mod workloads;

pub use kubelet::Kubelet;
pub use workloads::Workloads;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
