//! Prints what happens to the pods of a cluster: the program of client-go's `examples/workqueue` on the parts of kctl.
//!
//! `controller` puts the parts together; here are the command line, the client and what is done with each key.

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
    /// How many keys are handled at once
    #[arg(long, default_value = "2", value_name = "N")]
    workers: NonZeroUsize,
}

/// Prints each key.
struct Print;

impl SyncHandler for Print {
    fn synced(&self, pods: &Store<Pod>) {
        eprintln!("{} pods, {} of them on no node", pods.len(), pods.by(on_node, "").count());
    }

    async fn sync(&self, key: &Key<Pod>, pod: Option<Arc<Pod>>) -> Result<(), Failure> {
        print(&line(key, pod.as_deref()))
    }

    fn dropped(&self, key: &Key<Pod>, error: &Failure) {
        eprintln!("Pod {key} given up after {RETRIES_MAX} retries: {error}");
    }
}

fn line(key: &Key<Pod>, pod: Option<&Pod>) -> String {
    match pod {
        Some(_) => format!("Sync/Add/Update for Pod {key}"),
        None => format!("Pod {key} does not exist anymore"),
    }
}

/// Unlike `println!` it fails, and does not panic, when nobody reads.
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
