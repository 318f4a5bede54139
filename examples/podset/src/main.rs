//! The program. The operator, which follows the ReplicaSet controller, is in the library.

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    podset::app().main().await
}
