//! A multi-cluster control plane in one process: what is applied once is divided over member clusters.

#[tokio::main]
async fn main() -> kctl::Result<()> {
    multicluster::app().main().await
}
