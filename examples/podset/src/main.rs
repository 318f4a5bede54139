//! The ReplicaSet algorithm for a custom kind: adopts, releases, creates in growing batches, and deletes the least useful pods
//! first.

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    podset::app().main().await
}
