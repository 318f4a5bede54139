//! The ReplicaSet algorithm for a kind of its own: adopts, releases, creates in growing batches, deletes the least useful
//! pods first.

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    podset::app().main().await
}
