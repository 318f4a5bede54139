//! Sources: they list and watch the objects of one kind, and feed a store with deltas.
//!
//! A [`Source`] is the reflector of client-go (`tools/cache/reflector.go`) for one [`WatchConfig`]: a kind, its namespaces
//! and its selectors. The protocol itself is [`Reflector`], a state machine without I/O. It gets each response as an
//! [`Input`], names the next [`Request`], and returns the [`Effect`]s to perform. This way every sequence of responses
//! can be tested without a server:
//!
//! ```
//! use std::time::Duration;
//! use kctl_runtime::{source::{Effect, Input, Reflector, Request}, store::Delta};
//!
//! let mut reflector = Reflector::new(None);
//! assert_eq!(reflector.request(), &Request::Whole { version: None });
//!
//! // The list arrives: the store gets it, and the watch begins at its version.
//! let effects = reflector.handle(Input::Page { objects: Vec::new(), version: "7".into(), token: None });
//! assert!(matches!(&effects[..], [Effect::Emit(Delta::Replace(..)), Effect::Next]));
//! assert_eq!(reflector.request(), &Request::Watch { version: "7".into() });
//!
//! // The watch after one that ends after five minutes continues from the last version.
//! reflector.handle(Input::Bookmark("9".into()));
//! reflector.handle(Input::Closed { lasted: Duration::from_secs(300), any: true });
//! assert_eq!(reflector.request(), &Request::Watch { version: "9".into() });
//! ```
//!
//! # The life of a source
//!
//! 1. **List.** The whole newest state is requested, by about four sources of a process at a time ([`ListLimiter`]). Items
//!    are decoded as their bytes arrive.
//! 2. **Check.** Each object is reduced to the parts that readers need, and must fit every type that reads it
//!    ([`DecodeCheck`]). The store gets the list as one [`Delta::Replace`](crate::store::Delta::Replace).
//! 3. **Watch.** Events go to the store one by one. The server ends a watch after 5 to 10 minutes, and the next one
//!    begins at the last version.
//! 4. **Recover.** An expired version (410) leads to a new list. A source whose server is down keeps its cache, which
//!    remains readable.
//!
//! A source never gives up. Failed requests are retried with exponential backoff and jitter, from 0.8 s to 30 s;
//! [`Source::health`] reports the present failure. Objects that do not fit a type that reads them are logged and left
//! out, and their last valid state is kept.
//!
//! # Differences from client-go
//!
//! | | client-go | here |
//! |---|---|---|
//! | first list | `resourceVersion=0`: any state in the watch cache | newest state: a restart sees its own writes |
//! | size of a list | pages of 500 for the newest state | whole; pages if the server rejects that or breaks off twice |
//! | initial state as a stream | by default | on request, [`Source::stream_state`] |
//! | no response to a watch | the watch is opened again | a list with `limit=1` first, to detect a restored backup |
//! | object that does not fit its type | the whole list fails | its last readable state is kept; it gets an event |
//! | kind not served | retried indefinitely | counts as deleted after about twelve seconds, see [`Presence`] |
//!
//! # Bounds
//!
//! | Bound | At the bound |
//! |---|---|
//! | 16 MiB per watch event or list item | the response ends, and the state is listed again or watched again |
//! | 60 s without a byte of a list | the list fails and is retried |
//! | life of a watch and 5 s without a byte | the watch counts as dead and is opened again |
//! | [`UNREADABLE_MAX`] unreadable objects | further ones are counted and logged only |
//! | a full store ([`DELTAS_MAX`](crate::store::DELTAS_MAX)) | the source stops reading its watch until there is room |

mod catch_up;
mod check;
mod condition;
mod driver;
mod event;
mod filter;
mod items;
mod jitter;
mod lines;
mod list_limiter;
mod pages;
mod reflector;
#[cfg(test)]
mod reflector_model;
mod refresh;
mod scopes;
mod selection_state;
mod server_selection;
mod unreadable;

pub use check::DecodeCheck;
pub use condition::Health;
pub use driver::Source;
pub(crate) use filter::{BelongsTo, CacheBug, Filter};
pub use list_limiter::ListLimiter;
pub use reflector::{Effect, Input, Reflector, Request};
pub use unreadable::UNREADABLE_MAX;
pub(crate) use unreadable::Unreadable;

use std::hash::{Hash, Hasher};

use kube::Resource;

use crate::{object::Kind, transport::Operation};

/// Number of objects in one page of a list, as in client-go. Lists are paged only if the API server does not return
/// them whole.
///
/// It is `defaultPageSize` in client-go's `tools/pager/pager.go`.
pub(crate) const PAGE_LEN: u32 = 500;

/// The `Accept` header of lists that need only metadata. Servers without that form send whole objects.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// The same for watches.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// The handling of a kind that the API server does not serve.
///
/// A kind is missing when list or watch answers 404: its CRD is not installed, or was deleted.
///
/// | | `Required` | `Optional` |
/// |---|---|---|
/// | never served | the source waits; readiness of the process reports it | after two 404s: an empty, complete cache |
/// | CRD deleted later | after five 404s all its objects count as deleted | the same, and the cache is complete |
/// | CRD installed again | found within about 5 s | the same |
///
/// ```
/// use kctl_runtime::source::Presence;
/// assert_eq!(Presence::default(), Presence::Required);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Presence {
    /// The kind must exist: until it is served, its cache is not complete and its controllers wait.
    #[default]
    Required,
    /// The kind may be missing: its cache is empty and complete then. It is listed and watched once it is served.
    Optional,
}

/// The hash of a watch config seeds the jitter of its requests. A required kind adds nothing to it. So a seed of a
/// simulation that was recorded before optional kinds existed still produces the same run.
impl Hash for Presence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if *self == Self::Optional {
            state.write_u8(1);
        }
    }
}

/// The kind, namespaces and selectors of an informer. Users with equal watch configs share one list and one watch.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::source::WatchConfig;
///
/// let web = WatchConfig::of::<Pod>().in_namespaces(["default"]).labels("tier=web");
/// assert_eq!(web.kind.plural, "pods");
/// assert_eq!((web.labels.as_str(), web.fields.as_str()), ("tier=web", ""));
/// ```
///
/// Two controllers of one program that watch Pods with the same selector therefore cost one watch and one copy in
/// memory. A second selector costs a second of both: prefer a wider selector and a predicate where the sets overlap
/// much.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WatchConfig {
    /// Name of the cluster; an empty string is the cluster that the program was started against.
    ///
    /// The name is local to the program: it finds the client, and never goes to the API server.
    pub cluster: String,
    /// The kind with its resource. Its group and version make the URL, so two versions of a kind are two informers.
    pub kind: Kind,
    /// The namespaces; empty for all. Each one has a list and a watch.
    ///
    /// With many namespaces one watch of all is cheaper, if the role permits it. The set may change at run time
    /// ([`Source::namespaces`]).
    pub namespaces: Vec<String>,
    /// The label selector; empty selects all objects.
    ///
    /// An object whose labels stop matching leaves the cache as a deletion, as the API server reports it.
    pub labels: String,
    /// The field selector; empty selects all objects. Fields other than name and namespace depend on the kind.
    pub fields: String,
    /// The handling of a missing kind. Watch configs that differ in it share nothing.
    pub presence: Presence,
}

impl WatchConfig {
    /// Creates the watch config for all objects of a kind that is known at run time.
    ///
    /// ```
    /// use kctl_runtime::{object::Kind, source::WatchConfig};
    ///
    /// let kind = Kind {
    ///     group: "example.com".into(),
    ///     version: "v1".into(),
    ///     kind: "Site".into(),
    ///     plural: "sites".into(),
    /// };
    /// assert!(WatchConfig::new(kind).namespaces.is_empty());
    /// ```
    pub fn new(kind: Kind) -> Self {
        Self {
            cluster: String::new(),
            kind,
            namespaces: Vec::new(),
            labels: String::new(),
            fields: String::new(),
            presence: Presence::Required,
        }
    }

    /// Creates the watch config for all objects of the kind `K`.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kctl_runtime::source::WatchConfig;
    ///
    /// let config = WatchConfig::of::<Deployment>();
    /// assert_eq!((config.kind.api_version().as_str(), config.kind.plural.as_str()), ("apps/v1", "deployments"));
    /// ```
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self::new(Kind::of::<K>())
    }

    /// Restricts it to these namespaces; an empty list means all.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::source::WatchConfig;
    /// assert_eq!(WatchConfig::of::<Pod>().in_namespaces(["a", "b"]).namespaces, ["a", "b"]);
    /// ```
    #[must_use]
    pub fn in_namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Restricts it to objects with these labels: a selector as in `kubectl get -l`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::source::WatchConfig;
    /// let web = WatchConfig::of::<Pod>().labels("tier=web,env!=test");
    /// assert_ne!(web, WatchConfig::of::<Pod>(), "another selector is another informer");
    /// ```
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Restricts it to objects with these fields: a selector as in `kubectl get --field-selector`. API servers support
    /// few fields; each kind supports `metadata.name` and, if it is namespaced, `metadata.namespace`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::source::WatchConfig;
    /// let on_node = WatchConfig::of::<Pod>().fields("spec.nodeName=node-1");
    /// assert_eq!(on_node.fields, "spec.nodeName=node-1");
    /// ```
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Accepts that the API server does not serve the kind: see [`Presence::Optional`].
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::source::{WatchConfig, Presence};
    /// assert_eq!(WatchConfig::of::<Pod>().optional().presence, Presence::Optional);
    /// ```
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }

    /// Selects another cluster by its name.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::source::WatchConfig;
    ///
    /// let member = WatchConfig::of::<Pod>().on("member-1");
    /// assert_ne!(member, WatchConfig::of::<Pod>(), "each cluster has an informer");
    /// ```
    #[must_use]
    pub fn on(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = cluster.into();
        self
    }

    /// Returns an operation on all objects, such as a list.
    pub(crate) fn operation(&self, verb: &str) -> Operation {
        Operation::on_kind(verb, &self.cluster, &self.kind)
    }
}
