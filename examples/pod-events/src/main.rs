//! Prints changes of the pods of a cluster: client-go's `examples/workqueue`, built from the parts of `kctl-runtime`.
//!
//! The module `controller` combines the parts. This file contains the command line, the client and the callbacks.
//!
//! ```text
//! KUBECONFIG=… cargo run -p pod-events
//! ```
//!
//! Use `kctl-runtime` without `kctl` for a program that reads a cluster and has no primary kind. This program needs
//! `list` and `watch` on Pods.

mod controller;

use std::{num::NonZeroUsize, sync::Arc};

use clap::Parser;
use controller::{Failure, PodController, RETRIES_MAX, SyncHandler, on_node};
use k8s_openapi::api::core::v1::Pod;
use kctl_runtime::{key::Key, store::Store};
use kube::{Client, Config, client::ClientBuilder};

#[derive(Parser)]
#[command(about = "Prints what happens to the pods of the cluster that KUBECONFIG names")]
struct Options {
    /// Number of keys that are handled at once
    #[arg(long, default_value = "2", value_name = "N")]
    workers: NonZeroUsize,
}

/// Prints each key.
///
/// Keys go to standard output, so that a script can read them. Reports and errors go to standard error.
struct Print;

impl SyncHandler for Print {
    /// Reports the size of the first list. No key is handled before it is complete.
    fn synced(&self, pods: &Store<Pod>) {
        eprintln!("{} pods, {} of them on no node", pods.len(), pods.by_index(on_node, "").count());
    }

    /// Prints the key. An error, such as a closed standard output, requeues the key.
    async fn sync(&self, key: &Key<Pod>, pod: Option<Arc<Pod>>) -> Result<(), Failure> {
        print(&line(key, pod.as_deref()))
    }

    /// Reports a key that failed too often. The key is handled again at the next change of its Pod.
    fn dropped(&self, key: &Key<Pod>, error: &Failure) {
        eprintln!("Pod {key} given up after {RETRIES_MAX} retries: {error}");
    }
}

/// Returns the line for a key, with the wording of client-go's example.
fn line(key: &Key<Pod>, pod: Option<&Pod>) -> String {
    match pod {
        Some(_) => format!("Sync/Add/Update for Pod {key}"),
        None => format!("Pod {key} does not exist anymore"),
    }
}

/// Prints a line. Unlike `println!`, it returns an error instead of panicking if standard output is closed.
fn print(line: &str) -> Result<(), Failure> {
    use std::io::Write;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let options = Options::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().init();
    let config = Config::infer().await?;
    eprintln!("watching the pods of {}", config.cluster_url);
    let client: Client = ClientBuilder::try_from(config)?.build();
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    PodController::new(client, Print).run(options.workers, interrupted).await;
    Ok(())
}
