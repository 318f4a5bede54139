//! A multi-cluster control plane in one process: it distributes objects from the control plane to member clusters.

/// mimalloc, because interpreter scripts allocate many small strings.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> kctl::Result<()> {
    multicluster::app().main().await
}
