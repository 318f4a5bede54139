//! A multi-cluster control plane in one process: it distributes objects that are applied once over member clusters.

/// mimalloc, because scripts of interpreters allocate many small strings.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> kctl::Result<()> {
    multicluster::app().main().await
}
