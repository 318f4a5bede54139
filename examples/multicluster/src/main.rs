//! A multi-cluster control plane in one process: what is applied once is divided over member clusters.

/// Scripts of interpreters are many small texts, which this one makes and frees faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> kctl::Result<()> {
    multicluster::app().main().await
}
