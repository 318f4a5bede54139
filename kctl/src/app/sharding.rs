//! An app whose replicas share its keys.

use kctl_runtime::shard::ShardBy;

use super::App;

impl App {
    /// Makes `run` share the keys among all replicas, by a number of slots from 1 to 256.
    ///
    /// Use it when one process is too small. Use at least four slots per replica: 24, the number of `--shards` without a
    /// value, divide into equal shares for two, three, four and six replicas. Each slot is a Lease that is renewed every
    /// 2 s, so 24 slots cost 12 writes per second. `--shards N` sets another number, and `--shards 0` or `--leader-elect`
    /// turns sharding off. All replicas need the same settings. `dev` and [`App::manager`] ignore them.
    ///
    /// ```
    /// use kctl::{app::ShardBy, prelude::*};
    ///
    /// #[controller]
    /// async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("idler").controller::<idle>().sharded(24, ShardBy::Namespace);
    /// # let _ = app;
    /// ```
    #[must_use]
    pub fn sharded(mut self, slots: u32, by: ShardBy) -> Self {
        self.shards = Some((slots, by));
        self
    }

    /// Makes each replica of a sharded program cache all objects of `K`, not only the objects of its slots.
    ///
    /// Call it for a primary or an owned kind that a reconcile reads with `cx.store::<K>()`. Without it such a read
    /// panics where it asks for objects of other replicas, rather than return that they do not exist. Kinds with
    /// `reads` or `watches` are whole anyway. It has no effect without shards.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// /// Compares a ConfigMap with all others.
    /// #[controller]
    /// async fn unique(config: Arc<ConfigMap>, cx: Context<unique>) -> Result<Action> {
    ///     let same = cx.store::<ConfigMap>().iter().filter(|other| other.data == config.data).count();
    ///     tracing::info!("{} others have its data", same - 1);
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("unique").controller::<unique>().cache_whole::<ConfigMap>();
    /// # let _ = app;
    /// ```
    #[must_use]
    pub fn cache_whole<K: kctl_runtime::object::Object>(mut self) -> Self {
        self.whole.push(kctl_runtime::object::Kind::of::<K>());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_slots_are_rejected() {
        let check = |slots| App::new("idler").sharded(slots, ShardBy::Object).check();
        check(256).unwrap();
        let error = check(257).unwrap_err().to_string();
        assert_eq!(error, "App::sharded(257, …): at most 256 slots are possible");
    }
}
