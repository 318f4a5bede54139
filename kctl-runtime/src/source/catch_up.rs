//! Brings a cache that was filled long ago up to date, when this process becomes the leader. It lists the metadata of
//! the newest state, and lists the objects again only if the cache differs.
//!
//! A standby replica fills its caches before it leads, so that it takes over quickly. Its watch may lag behind by the
//! last writes of the former leader. In controller-runtime the same feature is `EnableWarmup`, which starts with
//! whatever the cache holds. Here the first reconcile sees at least everything that existed when the Lease was
//! acquired.
//!
//! The comparison costs one metadata list per scope. An idle cache cannot avoid it: without events a watch does not
//! show how far it is.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde::Deserialize;

use super::{
    METADATA_LIST, Source, condition::Activity, filter::CacheBug, jitter::Jitter, pages::each_item,
    reflector::wants_pages,
};
use crate::{
    key::ObjectKey,
    object::{Meta, Uid, Version},
    store::{Delta, ListedVersions, NamespaceScope},
    transport::ApiError,
};

/// First wait after a failure. The wait doubles up to [`RETRY_MAX`], and gets up to a quarter more as jitter.
const RETRY_MIN: Duration = Duration::from_millis(100);
/// Longest wait after a failure, without the jitter.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Number of comparisons of versions that are not numbers, before the objects are listed again. With the waits between
/// them, the watch gets about 40 s to bring the newest state.
const OPAQUE_TRIES: u32 = 12;
/// Interval and number of the checks whether the cache has caught up, before the objects are listed again. The missing
/// event is usually in flight.
const RECHECKS: (Duration, u32) = (Duration::from_millis(20), 10);

/// One item of a metadata list, with only its key, uid and version.
#[derive(Deserialize)]
struct Item {
    metadata: ItemMeta,
}

/// The version of one object.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ItemMeta {
    namespace: Option<String>,
    name: String,
    uid: Uid,
    #[serde(rename = "resourceVersion")]
    version: String,
}

/// The way to catch up if versions are not numbers, so that no order of two versions is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpaqueVersion {
    /// Wait for the watch.
    Wait,
    /// List the objects again.
    Relist,
}

/// A list in progress that is concurrent with the watch, for as long as this exists.
struct Listing<'a>(&'a AtomicU32);

impl<'a> Listing<'a> {
    fn begin(n_lists: &'a AtomicU32) -> Self {
        n_lists.fetch_add(1, Ordering::Release);
        Self(n_lists)
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Source {
    /// Returns once the store has everything that existed at the first call. All controllers share that call, because a
    /// process begins to lead only once. It costs one request if the cache is up to date, and is retried until it
    /// succeeds.
    ///
    /// # Cancel safety
    /// Safe: if the future is dropped during the first call, the next call starts again.
    pub(crate) async fn catch_up_once(&self) {
        self.compared.get_or_init(|| self.compare()).await;
    }

    /// Returns once the store has everything that existed at this call.
    pub(crate) async fn compare(&self) {
        let _one_at_a_time = self.moving.lock().await;
        self.compare_scopes(0).await;
    }

    /// Returns once the store has everything that existed when the last of `n_begun` tenures began.
    ///
    /// Controllers that share the cache wait for one comparison: the others find it done, if it was begun after that tenure.
    pub(crate) async fn compare_since(&self, n_begun: u64) {
        let _one_at_a_time = self.moving.lock().await;
        if self.listed_gains.load(Ordering::Relaxed) < n_begun {
            self.compare_scopes(n_begun).await;
        }
    }

    /// Compares scope by scope, and retries each indefinitely. A scope that is removed during the comparison counts as
    /// done.
    ///
    /// A filtered cache lacks the objects of slots that were gained since the last comparison, so it lists all.
    async fn compare_scopes(&self, n_begun: u64) {
        let (gained, n_moves) = (self.n_gained().max(n_begun), self.n_moves());
        let has_gained = self.filter().is_some() && self.listed_gains.load(Ordering::Relaxed) != gained;
        'scopes: for scope in self.scopes().all() {
            let mut jitter = Jitter::new(self.jitter_seed(), (self.config(), &scope, "current"));
            let (mut wait, mut n_opaque) = (RETRY_MIN, 0);
            // Retries end when the namespace is removed from the scopes; its deletion may be why the list fails.
            while self.scopes().has(&scope) {
                if has_gained && !self.reopen_watch(&scope, n_moves).await {
                    continue;
                }
                let current = async {
                    if has_gained {
                        return self.relist(&scope).await.map(|()| true);
                    }
                    let opaque = if n_opaque < OPAQUE_TRIES { OpaqueVersion::Wait } else { OpaqueVersion::Relist };
                    self.catch_up(&scope, opaque).await
                };
                match current.await {
                    Ok(true) => break,
                    Ok(false) => n_opaque += 1,
                    Err(error) if self.confirm_absence(&scope, &error) => {
                        self.condition.record_absent(self.config(), &scope);
                        continue 'scopes;
                    }
                    // The next requests of the reflector decide if the kind counts as absent.
                    Err(error) if self.is_optional_kind_missing(&error) => {}
                    Err(error) => self.condition.record_failure(self.config(), &scope, Activity::Compare, &error),
                }
                tokio::time::sleep(jitter.wait(wait)).await;
                wait = (wait * 2).min(RETRY_MAX);
            }
            self.condition.record_success(self.config(), &scope, Activity::Compare);
        }
        self.listed_gains.fetch_max(gained, Ordering::Relaxed);
    }

    /// Returns `true` if the store is as new as the API server's state, or newer. An idle cache cannot know what its
    /// watch has not delivered yet, so this sends one list request per scope.
    ///
    /// Use it in a test that has to wait for a cache, or before a decision that must not rest on old state. A live read
    /// of a single object is cheaper.
    ///
    /// ```
    /// use kctl_runtime::{writer::ApiError, source::Source};
    ///
    /// async fn report(source: &Source) -> Result<(), ApiError> {
    ///     let state = if source.is_current().await? { "up to date" } else { "behind" };
    ///     println!("{}: {state}", source.config().kind.plural);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The request fails.
    ///
    /// # Cancel safety
    /// Safe: the store is not changed.
    pub async fn is_current(&self) -> Result<bool, ApiError> {
        for scope in self.scopes().all() {
            if !self.store().has_all(&scope, &self.list_versions(&scope).await?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if the store has the newest state.
    ///
    /// The metadata is listed whole. If a server rejects such a list, or a proxy cuts it, the objects are listed in pages.
    ///
    /// # Errors
    /// The metadata list fails, or the list of objects after it.
    async fn catch_up(&self, scope: &NamespaceScope, opaque: OpaqueVersion) -> Result<bool, ApiError> {
        let present = match self.list_versions(scope).await {
            Err(error) if wants_pages(&error) || matches!(error, ApiError::Unreadable { .. }) => {
                return self.relist(scope).await.map(|()| true);
            }
            present => present?,
        };
        if self.store().has_all(scope, &present) {
            return Ok(true);
        }
        if present.version.is_none() && opaque == OpaqueVersion::Wait {
            return Ok(false);
        }
        if self.has_all_soon(scope, &present).await {
            return Ok(true);
        }
        self.relist(scope).await.map(|()| true)
    }

    /// Waits for a moment until the watch has brought the rest of the listed state. Returns `false` if it has not.
    async fn has_all_soon(&self, scope: &NamespaceScope, present: &ListedVersions) -> bool {
        for _look in 0..RECHECKS.1 {
            tokio::time::sleep(RECHECKS.0).await;
            if self.store().has_all(scope, present) {
                return true;
            }
        }
        false
    }

    /// Lists the names and versions of the newest state.
    ///
    /// Each item is compared with the store as it arrives. So memory holds one item and the names of objects that
    /// differ, not a second copy of the kind.
    async fn list_versions(&self, scope: &NamespaceScope) -> Result<ListedVersions, ApiError> {
        let operation = self.config().operation("list");
        // Only metadata is requested: names and versions are enough to compare.
        let body = self.send_list(&operation, scope, "", METADATA_LIST).await?;
        let mut present = ListedVersions { keys: HashSet::default(), missing: Vec::new(), version: None };
        let take = |item: &str| {
            if self.not_selected(item).is_some() {
                return Ok(());
            }
            let Item { metadata } = serde_json::from_str(item)?;
            let (key, version) = (ObjectKey::new(metadata.namespace.as_deref(), &metadata.name), &*metadata.version);
            let version = Version::from(version);
            if self.store().has(&key, &metadata.uid, &version)
                || self.is_known_unreadable(&key, &metadata.uid, &version)
            {
                // Shares the key of the cached object instead of allocating an equal one.
                present.keys.insert(self.store().get(&key).map_or(key, |cached| cached.key().clone()));
            } else {
                present.keys.insert(key.clone());
                present.missing.push((key, metadata.uid, version));
            }
            Ok(())
        };
        let listed = each_item(&operation, body, || {}, take).await?;
        present.version = listed.resource_version.parse().ok();
        Ok(present)
    }

    /// Returns `true` for an object that cannot be decoded, in the state that was reported: the store never has it.
    fn is_known_unreadable(&self, key: &ObjectKey, uid: &Uid, version: &Version) -> bool {
        let is_listed = |known: &Meta| known.uid == *uid && known.resource_version == *version;
        self.unreadable(key).is_some_and(|known| is_listed(known.stored.meta()))
    }

    /// Lists a scope concurrently with its watch. Older events of the watch change nothing after that.
    ///
    /// The watch continues during the list, and may be past it when it arrives. The store still applies it: a filtered
    /// cache has dropped the events of objects that it selects only now.
    ///
    /// The list is kept if a further slot is gained during the request. It has all objects of the slots that were
    /// gained before, and no controller works on the further one before the next comparison, which waits for this one.
    ///
    /// # Errors
    /// The list fails, or too much happened during it.
    async fn relist(&self, scope: &NamespaceScope) -> Result<(), ApiError> {
        // From before the store remembers deletes until it has the list.
        let _listing = Listing::begin(&self.n_lists);
        self.store().push_and_wait(Delta::Listing(scope.clone())).await;
        let (objects, version) = self.partial_state(scope).await?;
        if self.filter().is_some_and(|filter| filter.bug == Some(CacheBug::OvertakenListIgnored)) {
            self.store().push_and_wait(Delta::Replace(scope.clone(), objects, version)).await;
            return Ok(());
        }
        if self.store().join(scope.clone(), objects, version).await { Ok(()) } else { Err(self.list_overtaken()) }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::pending,
        sync::{Arc, Weak},
    };

    use k8s_openapi::api::core::v1::Pod;
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;
    use crate::{
        source::{BelongsTo, Filter, Reflector, WatchConfig},
        store::Share,
    };

    /// A replica without slots. A list for a slot that it gains begins while the filter looks at an event.
    struct GainsMeanwhile(Weak<Source>);

    impl Share for GainsMeanwhile {
        fn has(&self, _key: &ObjectKey) -> bool {
            self.0.upgrade().unwrap().n_lists.fetch_add(1, Ordering::Release);
            false
        }

        fn has_namespace(&self, _namespace: &str) -> bool {
            false
        }

        fn is_empty(&self) -> bool {
            true
        }

        fn n_gained(&self) -> u64 {
            0
        }
    }

    #[tokio::test]
    async fn list_begun_after_unselected_event_keeps_its_object() {
        let silent = service_fn(|_request: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>());
        let client = Client::new(silent, "default");
        let source = Arc::new_cyclic(|source| {
            let (share, rules) = (GainsMeanwhile(source.clone()), vec![BelongsTo::Itself { namespaced: true }]);
            let source = Source::new(client, WatchConfig::of::<Pod>(), Arc::default());
            source.select(Filter::new(Arc::new(share), rules, None));
            source
        });
        let event = br#"{"type":"MODIFIED","object":{"metadata":{"name":"x","namespace":"a","uid":"1","resourceVersion":"5"}}}"#;
        for n_unselected in [0, 1] {
            let mut left = Vec::new();
            source.read_event(event, &Reflector::new(None), &mut left).unwrap();
            assert_eq!(left.len(), n_unselected, "only a list that began before the event has to leave its object out");
        }
    }

    /// Returns a client of a server that answers each request with this list, and the number of requests.
    fn listing(item: &str) -> (Client, Arc<AtomicU32>) {
        let list = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{item}]}}"#);
        let n_lists = Arc::<AtomicU32>::default();
        let counted = n_lists.clone();
        let server = service_fn(move |_request: http::Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let body = Body::from(list.clone().into_bytes());
            async { Ok::<_, Infallible>(http::Response::new(body)) }
        });
        (Client::new(server, "default"), n_lists)
    }

    /// Compares a cache of one Pod with a server that has a newer state of it, which the watch delivers after `wait`.
    /// Returns the number of lists.
    async fn n_lists_if_event_comes_after(wait: Duration) -> usize {
        let item = |version| {
            format!(
                r#"{{"metadata":{{"name":"x","namespace":"a","uid":"1","resourceVersion":"{version}"}},"spec":{{"containers":[]}}}}"#
            )
        };
        let (client, n_lists) = listing(&item(9));
        let source = Source::new(client, WatchConfig::of::<Pod>(), Arc::default());
        tokio::spawn(source.store().clone().write());
        let cached = source.accept(&item(5)).unwrap();
        source.store().push_and_wait(Delta::Replace(None, vec![cached], "8".into())).await;
        let event = async {
            tokio::time::sleep(wait).await;
            source.store().push_and_wait(Delta::Written(source.accept(&item(9)).unwrap())).await;
        };
        tokio::join!(source.compare(), event);
        n_lists.load(Ordering::Relaxed) as usize
    }

    #[tokio::test(start_paused = true)]
    async fn event_on_its_way_saves_second_list() {
        for (millis, n_lists) in [(0, 1), (100, 1), (300, 2)] {
            assert_eq!(n_lists_if_event_comes_after(Duration::from_millis(millis)).await, n_lists, "{millis} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cache_is_compared_although_whole_lists_fail() {
        let list = r#"{"metadata":{"resourceVersion":"10"},"items":[]}"#;
        for (code, whole) in [(413_u16, ""), (200, &list[..list.len() / 2])] {
            let server = service_fn(move |request: http::Request<Body>| {
                let is_page = request.uri().query().is_some_and(|query| query.contains("limit="));
                let (code, list) = if is_page { (200, list) } else { (code, whole) };
                let response = http::Response::builder().status(code).body(Body::from(list.as_bytes().to_vec()));
                async move { Ok::<_, Infallible>(response.unwrap()) }
            });
            let source = Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default());
            tokio::spawn(source.store().clone().write());
            source.store().push_and_wait(Delta::Replace(None, Vec::new(), "8".into())).await;
            let compared = tokio::time::timeout(Duration::from_secs(60), source.compare()).await;
            assert!(compared.is_ok(), "{code}: {:?}", source.health().failure);
            assert!(source.refresh(&None).await.is_ok(), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn optional_kind_is_absent_once_reflector_agrees() {
        let empty = || Delta::Replace(None, Vec::new(), "10".into());
        for (known, n_expected, n_checks) in [(empty(), 2, 1), (Delta::Absent(None), 1, 0)] {
            let n_lists = Arc::<AtomicU32>::default();
            let counted = n_lists.clone();
            let starting = service_fn(move |_request: http::Request<Body>| {
                let code = if counted.fetch_add(1, Ordering::Relaxed) == 0 { 404 } else { 200 };
                let list = br#"{"metadata":{"resourceVersion":"10"},"items":[]}"#;
                let response = http::Response::builder().status(code).body(Body::from(list.to_vec())).unwrap();
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let config = WatchConfig::of::<Pod>().optional();
            let source = Source::new(Client::new(starting, "default"), config, Arc::default());
            tokio::spawn(source.store().clone().write());
            source.store().push_and_wait(known).await;
            source.compare().await;
            assert_eq!(n_lists.load(Ordering::Relaxed), n_expected);
            assert_eq!(source.n_served_checks.load(Ordering::Relaxed), n_checks);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn controllers_of_one_cache_share_a_comparison() {
        let (client, n_lists) = listing("");
        let source = Source::new(client, WatchConfig::of::<Pod>(), Arc::default());
        tokio::spawn(source.store().clone().write());
        source.store().push_and_wait(Delta::Replace(None, Vec::new(), "10".into())).await;
        for (n_begun, n_expected) in [(4, 1), (4, 1), (3, 1), (5, 2)] {
            tokio::join!(source.compare_since(n_begun), source.compare_since(n_begun));
            assert_eq!(n_lists.load(Ordering::Relaxed), n_expected, "{n_begun} tenures have begun");
        }
        source.compare().await;
        assert_eq!(n_lists.load(Ordering::Relaxed), 3, "without tenures it compares at each call");
    }

    #[tokio::test(start_paused = true)]
    async fn reported_unreadable_object_causes_no_second_list() {
        let item = r#"{"metadata":{"name":"x","namespace":"a","uid":"1","resourceVersion":"9"},"spec":false}"#;
        for (is_reported, n_expected) in [(true, 1), (false, 2)] {
            let (client, n_lists) = listing(item);
            let source = Source::new(client, WatchConfig::of::<Pod>(), Arc::default());
            let _readers = source.view::<Pod>();
            tokio::spawn(source.store().clone().write());
            source.store().push_and_wait(Delta::Replace(None, Vec::new(), "10".into())).await;
            if is_reported {
                let event = format!(r#"{{"type":"ADDED","object":{item}}}"#);
                source.read_event(event.as_bytes(), &Reflector::new(None), &mut Vec::new()).unwrap();
            }
            source.compare().await;
            assert_eq!(n_lists.load(Ordering::Relaxed), n_expected, "{is_reported}");
        }
    }
}
