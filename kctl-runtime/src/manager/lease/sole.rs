//! Ensures that only one of `elect`, `shard` and `join_ring` is called.

use super::ElectionError;

/// The call of `elect`, `shard` or `join_ring` that gave a manager its Lease, or `None` before it.
///
/// A permit is bound to the first Lease for good, so that no writer is left with an older one. A second Lease would have
/// an election without a permit, and the first one a permit without an election: every write would be denied.
#[derive(Debug, Default)]
pub(in crate::manager) struct SoleLease(Option<&'static str>);

impl SoleLease {
    /// Records the call that gives the manager its Lease.
    ///
    /// # Errors
    /// An earlier call gave it one.
    pub(in crate::manager) fn set(&mut self, call: &'static str) -> Result<(), ElectionError> {
        match self.0.replace(call) {
            None => Ok(()),
            Some(first) => Err(ElectionError::SecondLease { first, second: call }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::{Client, client::Body};

    use crate::{
        manager::{Manager, lease::ElectionConfig, ring::RingConfig, shards::ShardConfig},
        shard::ShardBy,
        source::WatchConfig,
    };

    type SetLease = fn(Manager, Client) -> Result<Manager, String>;

    const CALLS: [(&str, SetLease); 3] = [("elect", elect), ("shard", shard), ("join_ring", join_ring)];
    const SEED: u64 = 7;

    fn lease() -> ElectionConfig {
        ElectionConfig { seed: SEED, ..ElectionConfig::new("web", "shop", "a") }
    }

    fn elect(manager: Manager, _client: Client) -> Result<Manager, String> {
        manager.elect(lease()).map_err(|error| error.to_string())
    }

    fn shard(manager: Manager, client: Client) -> Result<Manager, String> {
        let config = ShardConfig::new(lease(), 4, ShardBy::Object).unwrap();
        manager.shard(client, config).map_err(|error| error.to_string())
    }

    fn join_ring(manager: Manager, client: Client) -> Result<Manager, String> {
        let config = RingConfig::new("web", lease()).unwrap();
        manager.join_ring(client, config).map_err(|error| error.to_string())
    }

    fn client() -> Client {
        let service = tower::service_fn(|_request: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, Infallible>>()
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn lease_of_a_manager_seeds_its_jitter() {
        let client = client();
        for (call, set) in CALLS {
            let manager = Manager::new(client.clone(), "web", Arc::new(|_report| {}));
            let before = manager.informers.0.acquire(WatchConfig::of::<ConfigMap>(), &client).unwrap();
            let manager = set(manager, client.clone()).expect(call);
            let after = manager.informers.0.acquire(WatchConfig::of::<Secret>(), &client).unwrap();
            assert_eq!([before, after].map(|informer| informer.source().jitter_seed()), [SEED; 2], "{call}");
        }
    }

    #[tokio::test]
    async fn second_lease_of_a_manager_is_rejected() {
        let client = client();
        for (first, set_first) in CALLS {
            for (second, set_second) in CALLS {
                let manager = Manager::new(client.clone(), "web", Arc::new(|_report| {}));
                let manager = set_first(manager, client.clone()).expect(first);
                let expected = format!(
                    "`{second}` after `{first}`: a manager has one Lease; call one of `elect`, `shard` and `join_ring`, once"
                );
                assert_eq!(set_second(manager, client.clone()).err(), Some(expected));
            }
        }
    }
}
