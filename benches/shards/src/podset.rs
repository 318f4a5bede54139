//! The program `podset` of the examples, with the division of keys that the chaos run chooses.
//!
//! `BENCH_SHARD_BY` is `object`, the default, `namespace` or `namespace-range`. No flag sets the division, and `--shards`
//! sets the number of slots.

use kctl::app::ShardBy;

/// Number of slots without `--shards`.
const N_SLOTS: u32 = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    let by = match std::env::var("BENCH_SHARD_BY").as_deref() {
        Ok("object") | Err(_) => ShardBy::Object,
        Ok("namespace") => ShardBy::Namespace,
        Ok("namespace-range") => ShardBy::NamespaceRange,
        Ok(other) => return Err(format!("BENCH_SHARD_BY has the unknown value `{other}`").into()),
    };
    podset::app().sharded(N_SLOTS, by).main().await
}
