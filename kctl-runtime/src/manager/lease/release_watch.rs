//! Notices that a Lease was released, by watching it, so that a candidate need not wait for its next try.
//!
//! A rolling update stops the leader and waits for the next one. client-go's candidates find a released Lease at
//! their next try, up to 4.4 s later. With this watch it takes about one round trip.
//!
//! The watch is a hint and never a reason: a candidate that is woken reads the Lease before it acts. A Lease that
//! was *deleted* does not count, since its former holder may still be at work.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::sync::Notify;

use super::{ElectionConfig, Holders, Record};
use crate::{
    object::Stored,
    source::{Source, WatchConfig},
    store::{Change, Handler, SharedStore},
};

/// Wakes `released` each time the Lease has no holder. If processes hold it together, also when the first of them
/// acquires it, so that those that waited begin at the same time.
///
/// `role` has the options of `generate-rbac` that print the permission.
/// Without the permission to list and watch Leases it does nothing; the candidate's tries find out then.
/// Never returns.
pub(super) async fn watch_for_release(
    client: Client,
    config: &ElectionConfig,
    holders: Holders,
    role: &str,
    released: Arc<Notify>,
) {
    let leases = WatchConfig {
        namespaces: vec![config.namespace.clone()],
        fields: format!("metadata.name={}", config.name),
        ..WatchConfig::of::<Lease>()
    };
    let store = SharedStore::for_namespaces(&leases.namespaces);
    let source = Source::new(client, leases, Arc::new(store)).with_role(role);
    source.seed_jitter(config.seed);
    let store = source.store().clone();
    let shared = Some(config.identity.clone()).filter(|_| holders == Holders::Together);
    let handler: Handler = Arc::new(move |change, _origin| {
        let (before, holder) = match change {
            // The last holder may still be at work.
            Change::Deleted { .. } => return,
            Change::Added(lease) => (None, holder_of(lease)),
            Change::Updated { old, new } => (holder_of(old), holder_of(new)),
        };
        let is_free = holder.as_deref() == Some("");
        if is_free || (shared.is_some() && holder == shared && before != holder) {
            released.notify_one();
        }
    });
    let subscribe = async { drop(store.subscribe(handler).await) };
    tokio::join!(store.clone().write(), subscribe, source.run());
}

/// Returns the holder of a Lease, an empty string if it is free, and `None` if the Lease cannot be read.
fn holder_of(lease: &Stored) -> Option<String> {
    serde_json::from_str(&lease.json()).ok().map(|lease| Record::read(&lease).holder().to_owned())
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending, time::Duration};

    use kube::client::Body;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn release_before_the_first_list_is_noticed() {
        for (holder, is_noticed) in [("", true), ("b", false)] {
            let server = tower::service_fn(move |request: http::Request<Body>| async move {
                if request.uri().query().is_some_and(|query| query.contains("allowWatchBookmarks")) {
                    return pending().await;
                }
                let meta = r#"{"name":"web","namespace":"shop","uid":"1","resourceVersion":"7"}"#;
                let lease = format!(r#"{{"metadata":{meta},"spec":{{"holderIdentity":"{holder}"}}}}"#);
                let list = format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{lease}]}}"#);
                Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes())))
            });
            let (config, released) = (ElectionConfig::new("web", "shop", "a"), Arc::<Notify>::default());
            let client = Client::new(server, "default");
            let watch = watch_for_release(client, &config, Holders::One, "", released.clone());
            tokio::select! {
                () = watch => panic!("it never ends"),
                noticed = timeout(Duration::from_secs(1), released.notified()) => {
                    assert_eq!(noticed.is_ok(), is_noticed, "`{holder}`");
                }
            }
        }
    }
}
