//! Selection of a replica's objects by the API server: the parameter `shardSelector` (KEP-5866).
//!
//! It saves the transfer of objects that the [`Filter`](super::Filter) would skip. The filter decides in any case, so a
//! server that ignores the parameter only sends more. A server that rejects it is asked without it from then on.
//!
//! A watch selects what its request named. So it is requested again when slots have moved, from its last version. For a
//! gained slot this comes before the list of the slot. A watch without the slot could pass the version of that list,
//! and what happened to the slot's objects in between would never arrive. A watch without the parameter receives the
//! events of all slots, so it continues.

use std::{sync::atomic::Ordering, time::Duration};

use kube::client::Body;

use super::{
    Source,
    filter::{CacheBug, Filter},
    selection_state::{ALL_SLOTS, SelectedBy},
};
use crate::{
    store::NamespaceScope,
    transport::{self, ApiError, Operation},
};

/// Longest wait for the request of a watch, before the caller decides whether to wait further.
const WATCH_REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

impl Source {
    /// Returns the filter if the API server can select its objects.
    fn selectable(&self) -> Option<&Filter> {
        self.filter().filter(|filter| filter.is_selectable())
    }

    /// Returns the `shardSelector` of the next request. `None` if the API server can't select the objects.
    pub(super) fn shard_selector(&self) -> Option<String> {
        self.filter().filter(|filter| !filter.selection.is_rejected())?.shard_selector()
    }

    /// Sends the request of a list, again without its `shardSelector` if the API server rejects that.
    ///
    /// A list that fails without it too is rejected for another reason, such as its length. Its first error is returned.
    ///
    /// # Errors
    /// The list fails.
    pub(super) async fn send_list(
        &self,
        operation: &Operation,
        scope: &NamespaceScope,
        query: &str,
        accept: &str,
    ) -> Result<Body, ApiError> {
        let selector = self.shard_selector();
        let path = self.path_with(scope, query, selector.as_deref());
        let rejection = match transport::list_all(self.client(), operation, &path, accept).await {
            Err(error) if selector.is_some() && error.may_reject_shard_selector() => error,
            response => return response,
        };
        let path = self.path_with(scope, query, None);
        let Ok(body) = transport::list_all(self.client(), operation, &path, accept).await else {
            return Err(rejection);
        };
        self.record_rejected(&rejection);
        Ok(body)
    }

    /// Opens a watch in the same way. A proxy may reject the parameter of watches alone.
    ///
    /// # Errors
    /// The server rejects the watch, with and without the parameter, or does not answer.
    pub(super) async fn open_watch(&self, scope: &NamespaceScope, query: &str, accept: &str) -> Result<Body, ApiError> {
        let (operation, selector) = (self.watching(), self.shard_selector());
        let path = self.path_with(scope, query, selector.as_deref());
        let rejection = match transport::open(self.client(), &operation, &path, accept).await {
            Err(error) if selector.is_some() && error.may_reject_shard_selector() => error,
            response => return response,
        };
        let path = self.path_with(scope, query, None);
        let Ok(body) = transport::open(self.client(), &operation, &path, accept).await else {
            return Err(rejection);
        };
        self.record_rejected(&rejection);
        self.record_selection(scope);
        Ok(body)
    }

    /// Records that the API server rejects the parameter.
    fn record_rejected(&self, rejection: &ApiError) {
        let Some(filter) = self.selectable() else { return };
        if filter.selection.is_rejected.swap(true, Ordering::Relaxed) {
            return;
        }
        filter.selection.by.store(SelectedBy::Replica as u8, Ordering::Relaxed);
        tracing::warn!(
            kind = self.config().kind.plural,
            error = %rejection,
            "the API server rejects shardSelector; this replica receives all objects and skips the objects of other replicas"
        );
    }

    /// Records that the next request of a scope selects the present slots. Call it before the path of the request is
    /// made.
    ///
    /// A rejection is final. So a request that is recorded with all slots never has a selector.
    pub(super) fn record_selection(&self, scope: &NamespaceScope) {
        if let Some(filter) = self.selectable() {
            let n_moves = if filter.selection.is_rejected() { ALL_SLOTS } else { filter.n_moves() };
            filter.selection.record(scope, n_moves);
        }
    }

    /// Forgets the request of a scope that was removed. Added again, it waits for its own first request.
    pub(super) fn forget_selection(&self, scope: &NamespaceScope) {
        if let Some(filter) = self.selectable() {
            filter.selection.forget(scope);
        }
    }

    /// Returns `true` if slots have moved since the request of a scope, so that its watch selects the wrong objects.
    pub(super) fn is_reselected(&self, scope: &NamespaceScope) -> bool {
        let Some(filter) = self.selectable().filter(|filter| filter.bug != Some(CacheBug::WatchKept)) else {
            return false;
        };
        filter.selection.moves_at_request(scope).is_none_or(|requested| requested < filter.n_moves())
    }

    /// Ends watches whose slots have moved. They are requested again at once, and others continue: a watch that was
    /// requested a moment ago has the present slots.
    pub(super) fn reopen_outdated_watches(&self) {
        if self.selectable().is_some_and(|filter| filter.bug != Some(CacheBug::WatchKept)) {
            self.reopen.notify_waiters();
        }
    }

    /// Requests the watch of a scope again if slots have moved, and returns `true` once it is requested with the slots after
    /// `n_moves`. Returns `false` if that takes long, such as while the API server is down.
    ///
    /// A kind that is not served has no watch, and needs none.
    pub(super) async fn reopen_watch(&self, scope: &NamespaceScope, n_moves: u64) -> bool {
        let Some(filter) = self.selectable().filter(|_| !self.is_absent()) else { return true };
        if filter.bug == Some(CacheBug::WatchKept) {
            return true;
        }
        self.reopen_outdated_watches();
        tokio::time::timeout(WATCH_REQUEST_TIMEOUT, filter.selection.requested_after(scope, n_moves)).await.is_ok()
    }

    /// Records whether the API server confirmed the `shardSelector` of a list.
    pub(super) fn record_selected(&self, is_confirmed: bool) {
        let Some(filter) = self.selectable() else { return };
        let by = if is_confirmed { SelectedBy::Server } else { SelectedBy::Replica };
        if filter.selection.by.swap(by as u8, Ordering::Relaxed) == by as u8 {
            return;
        }
        let kind = &self.config().kind.plural;
        if is_confirmed {
            tracing::info!(kind, "the API server selects the objects of this replica's slots");
        } else {
            tracing::info!(
                kind,
                "the API server ignores shardSelector (feature gate ShardedListAndWatch); this replica receives all \
                 objects and skips the objects of other replicas"
            );
        }
    }

    /// Returns what leaves out the objects of other replicas. `None` if the cache has all objects.
    pub(crate) fn selected_by(&self) -> Option<SelectedBy> {
        let filter = self.filter()?;
        Some(if filter.is_selectable() { filter.selection.by() } else { SelectedBy::Replica })
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
    use k8s_openapi::api::core::v1::Pod;
    use kube::{Client, client::Body};
    use parking_lot::Mutex;
    use tokio::time::{Instant, sleep, timeout};
    use tower::service_fn;

    use super::*;
    use crate::{
        source::{BelongsTo, WatchConfig},
        store::{AllSlots, SharedStore},
    };

    /// The requests that a server rejects, and its response.
    #[derive(Clone, Copy)]
    struct Rejects {
        /// Selects the requests by path and query.
        selects: fn(&str) -> bool,
        code: u16,
        message: &'static str,
    }

    impl Rejects {
        /// Rejects with 422.
        fn invalid(selects: fn(&str) -> bool) -> Self {
            Self { selects, code: 422, message: "" }
        }

        /// Rejects with 500.
        fn internal(selects: fn(&str) -> bool, message: &'static str) -> Self {
            Self { selects, code: 500, message }
        }
    }

    /// An API server without objects. A watch remains open.
    #[derive(Default)]
    struct FakeServer {
        /// Path, query and time of each watch.
        watches: Mutex<Vec<(String, Instant)>>,
        rejects: Mutex<Option<Rejects>>,
    }

    impl FakeServer {
        fn respond(&self, request: &http::Request<Body>) -> http::Response<UnsyncBoxBody<Bytes, Infallible>> {
            let full = |body: String| Full::new(Bytes::from(body)).boxed_unsync();
            let path = request.uri().to_string();
            let is_watch = path.contains("watch=true");
            let rejected_by = self.rejects.lock().filter(|rejects| (rejects.selects)(&path));
            if is_watch {
                self.watches.lock().push((path, Instant::now()));
            }
            if let Some(Rejects { code, message, .. }) = rejected_by {
                let status = format!(r#"{{"message":"{message}"}}"#);
                return http::Response::builder().status(code).body(full(status)).unwrap();
            }
            if !is_watch {
                return http::Response::new(full(r#"{"metadata":{"resourceVersion":"10"},"items":[]}"#.into()));
            }
            let silent = futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
            http::Response::new(StreamBody::new(silent).boxed_unsync())
        }

        /// Returns the delays of the watches since then, by namespace, if all of them have the selector of this move.
        fn delays(&self, since: Instant, n_moves: u64) -> BTreeMap<&'static str, Vec<Duration>> {
            let mut delays = BTreeMap::<_, Vec<_>>::new();
            for (path, at) in self.watches.lock().iter().filter(|(_, at)| *at >= since) {
                assert!(path.contains(&format!("shardSelector=moves-{n_moves}")), "{path}");
                let namespace = if path.contains("/namespaces/x/") { "x" } else { "y" };
                delays.entry(namespace).or_default().push(*at - since);
            }
            delays
        }
    }

    /// Runs a source of the Pods in two namespaces.
    async fn running(rejects: Option<Rejects>) -> (Arc<Source>, Arc<AllSlots>, Arc<FakeServer>) {
        let (server, share) = (Arc::<FakeServer>::default(), Arc::<AllSlots>::default());
        *server.rejects.lock() = rejects;
        let responding = server.clone();
        let service = service_fn(move |request: http::Request<Body>| {
            std::future::ready(Ok::<_, Infallible>(responding.respond(&request)))
        });
        let config = WatchConfig::of::<Pod>().in_namespaces(["x", "y"]);
        let store = SharedStore::for_namespaces(&config.namespaces);
        let source = Arc::new(Source::new(Client::new(service, "default"), config, Arc::new(store)));
        source.select(Filter::new(share.clone(), vec![BelongsTo::Itself { namespaced: true }], None));
        tokio::spawn(source.store().clone().write());
        let runs = source.clone();
        tokio::spawn(async move { runs.run().await });
        timeout(Duration::from_secs(60), source.store().wait_until_synced()).await.expect("the Pods are listed");
        sleep(Duration::from_secs(10)).await;
        (source, share, server)
    }

    #[tokio::test(start_paused = true)]
    async fn move_reopens_each_watch_once_without_delay() {
        let (source, share, server) = running(None).await;
        for n_moves in 1..=6 {
            let moved = Instant::now();
            share.n_gained.store(n_moves, Ordering::Relaxed);
            timeout(Duration::from_millis(300), source.compare()).await.expect("the slot is listed");
            // A second controller drops the objects of a slot that was lost.
            source.drop_lost().await;
            sleep(Duration::from_secs(10)).await;
            let delays = server.delays(moved, n_moves);
            assert_eq!(delays.keys().copied().collect::<Vec<_>>(), ["x", "y"], "move {n_moves}");
            let at_once = |delays: &Vec<Duration>| delays.len() == 1 && delays[0] < Duration::from_millis(100);
            assert!(delays.values().all(at_once), "move {n_moves}: {delays:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn watch_without_selector_continues_after_moves() {
        let (source, share, server) = running(None).await;
        *server.rejects.lock() = Some(Rejects::invalid(|path| path.contains("shardSelector=")));
        let mut n_opened = Vec::new();
        for n_moves in 1..=3 {
            share.n_gained.store(n_moves, Ordering::Relaxed);
            timeout(Duration::from_secs(1), source.compare()).await.expect("the slot is listed");
            source.drop_lost().await;
            sleep(Duration::from_secs(10)).await;
            let watches = server.watches.lock();
            n_opened.push(watches.iter().filter(|(path, _)| !path.contains("shardSelector=")).count());
        }
        assert_eq!(n_opened, [2, 2, 2], "the first move ends the watches of both namespaces, which had a selector");
    }

    #[tokio::test(start_paused = true)]
    async fn move_ends_the_wait_after_failed_watches() {
        let (source, share, server) = running(None).await;
        *server.rejects.lock() = Some(Rejects::invalid(|path| path.contains("watch=true")));
        source.check_served();
        // After six failures the wait is 25 s or longer.
        sleep(Duration::from_secs(40)).await;
        let n_failed = server.watches.lock().len();
        *server.rejects.lock() = None;
        sleep(Duration::from_secs(5)).await;
        assert_eq!(server.watches.lock().len(), n_failed, "both scopes wait");
        let moved = Instant::now();
        share.n_gained.store(1, Ordering::Relaxed);
        timeout(Duration::from_millis(300), source.compare()).await.expect("the slot is listed");
        sleep(Duration::from_millis(50)).await;
        assert_eq!(server.delays(moved, 1).len(), 2, "both are watched");
    }

    #[tokio::test(start_paused = true)]
    async fn check_of_kind_reopens_watches_without_move() {
        let (source, _share, server) = running(None).await;
        let checked = Instant::now();
        source.check_served();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(server.delays(checked, 0).len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn selector_is_dropped_only_if_it_is_rejected() {
        let by_list = |path: &str| !path.contains("watch=true") && path.contains("shardSelector=");
        let cases = [
            (Rejects::invalid(|path| path.contains("shardSelector=")), false),
            // A proxy that limits the length of a response.
            (Rejects::invalid(|path| !path.contains("watch=true") && !path.contains("limit=")), true),
            (
                Rejects::invalid(|path| {
                    !path.contains("watch=true") && (path.contains("shardSelector=") || !path.contains("limit="))
                }),
                false,
            ),
            (Rejects::invalid(|path| path.contains("watch=true") && path.contains("shardSelector=")), false),
            (Rejects::internal(by_list, "invalid shard selector: CEL parse error"), false),
            (Rejects::internal(|path| path.contains("watch=true"), "etcdserver: request timed out"), true),
        ];
        for (n, (rejects, is_selected)) in cases.into_iter().enumerate() {
            let (source, share, server) = running(Some(rejects)).await;
            share.n_gained.store(1, Ordering::Relaxed);
            timeout(Duration::from_secs(1), source.compare()).await.expect("the slot is listed");
            let watches = server.watches.lock().clone();
            let last = watches.last().map(|(path, _)| path.contains("shardSelector="));
            assert_eq!(last, Some(is_selected), "case {n}: {watches:?}");
        }
    }
}
