//! Watches that are opened while a program runs: kinds that nobody knew when it was compiled. Reads the stores of shared
//! informers, hands changes on to whoever asked.

mod discovery;
mod informers;
mod projection;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::{Client, core::GroupVersionKind};

pub use informers::INFORMERS_MAX;
pub(crate) use informers::{Closing, Held, Informers};
pub use projection::Projection;
pub use watch::Watch;

pub use crate::handler::CHANGES_WAITING_MAX;
use crate::{
    effect::ApiError,
    manifest::{Grant, On, Place, grants},
    object::Kind,
    source::Identity,
    spec::ControllerSpec,
};

/// The reason why a watch can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The role of the program does not have it.
    #[error(
        "controller `{controller}` may not {verb} {resource} {place}; add a rule with `list` and `watch` on it to its `rbac(…)`"
    )]
    NotDeclared {
        /// The controller that asked.
        controller: String,
        /// What it may not.
        verb: &'static str,
        /// On what: `plural.group`.
        resource: String,
        /// Where.
        place: String,
    },
    /// The type does not stand for the kind.
    #[error("objects of {kind} cannot be read as {asked}; ask for that kind, or for `DynamicObject`")]
    OtherKind {
        /// The kind that is watched.
        kind: Kind,
        /// The type.
        asked: &'static str,
    },
    /// There is no such cluster.
    #[error("there is no cluster `{0}`; add it by `App::cluster`, or bring its client by `Watches::on`")]
    NoCluster(String),
    /// The API server has no such kind now.
    #[error("the API server has no kind {kind} in {api_version}; install its definition")]
    UnknownKind {
        /// The kind.
        kind: String,
        /// Group and version.
        api_version: String,
    },
    /// The API server did not say what kinds it has.
    #[error(transparent)]
    Discovery(#[from] ApiError),
    /// Nothing is limited to namespaces.
    #[error("no controller is limited to namespaces: all of them are watched")]
    NotLimited,
    /// Too many are open.
    #[error("{INFORMERS_MAX} informers are open, which is the most; drop watches that are not needed")]
    TooMany,
    /// The manager has ended, and all watches with it.
    #[error("the manager has ended")]
    Closed,
}

/// Opens watches while the program runs. Whoever asks for the same (cluster, kind, namespaces, selectors) shares one list and
/// one watch, whatever type it reads the objects as; they end when the last one drops its [`Watch`]. Clones are the same.
///
/// From `Env` it may watch what the role of that controller allows: kinds that it declares, and those in `rbac(…)`.
#[derive(Clone)]
pub struct Watches {
    informers: Informers,
    clients: BTreeMap<String, Client>,
    /// What the role allows, by cluster; `None` allows everything.
    allowed: Option<Arc<Allowed>>,
}

struct Allowed {
    controller: String,
    grants: BTreeMap<String, Vec<Grant>>,
}

impl Watches {
    pub(crate) fn new(informers: Informers, client: Client, mut clients: BTreeMap<String, Client>) -> Self {
        clients.insert(String::new(), client);
        Self { informers, clients, allowed: None }
    }

    /// The same, for what a controller declares alone.
    #[must_use]
    pub fn allowed_by(mut self, spec: &ControllerSpec) -> Self {
        let of = |cluster: &String| (cluster.clone(), grants(std::slice::from_ref(spec), cluster));
        let grants = self.clients.keys().map(of).collect();
        self.allowed = Some(Arc::new(Allowed { controller: spec.name.clone(), grants }));
        self
    }

    /// Adds a cluster that is known only at run time. Its client's permissions decide what can be watched; users of the same watch share the
    /// client that opened it.
    #[must_use]
    pub fn on(mut self, cluster: &str, client: Client) -> Self {
        self.clients.insert(cluster.into(), client);
        self
    }

    /// Watches what an identity says, read as `T`: a kind's own type, `PartialObjectMeta` of it, or `DynamicObject`. Its first
    /// changes are the objects that are there; then each change comes once. It returns at once: a kind that is not there, or
    /// that the role lacks, is asked for again with growing waits ([`Watch::health`]). Nothing comes before the manager runs.
    ///
    /// ```
    /// use kctl_runtime::{source::Identity, store::Change, watches::{WatchError, Watches}};
    /// use kube::core::{DynamicObject, GroupVersionKind};
    ///
    /// async fn print_all(watches: Watches, kind: GroupVersionKind) -> Result<(), WatchError> {
    ///     let kind = watches.kind(&kind).await?;
    ///     let identity = Identity::all(kind).in_namespaces(["default"]).labels("tier=web");
    ///     let mut changes = watches.watch::<DynamicObject>(identity).await?;
    ///     while let Some(change) = changes.next().await {
    ///         match change {
    ///             Change::Added(new) => println!("new: {:?}", new.metadata.name),
    ///             Change::Updated { old, new } => println!("{:?} → {:?}", old.data, new.data),
    ///             Change::Deleted { last } => println!("gone: {:?}", last.metadata.name),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the controller does not declare the kind, `T` does not stand for it, too many are open, or the manager has ended.
    pub async fn watch<T: Projection>(&self, mut identity: Identity) -> Result<Watch<T>, WatchError> {
        identity.namespaces.sort();
        identity.namespaces.dedup();
        if !T::is_of(&identity.kind) {
            return Err(WatchError::OtherKind { kind: identity.kind, asked: std::any::type_name::<T>() });
        }
        self.check(&identity)?;
        let client = self.client(&identity.cluster)?;
        let held = self.informers.hold(identity, client)?;
        Ok(Watch::open(held).await)
    }

    /// The kind of that name, as the API server of the program names its resource.
    ///
    /// # Errors
    /// When the API server has no such kind, or does not answer.
    pub async fn kind(&self, kind: &GroupVersionKind) -> Result<Kind, WatchError> {
        self.kind_on("", kind).await
    }

    /// The same on another cluster.
    ///
    /// # Errors
    /// As [`kind`](Self::kind); and when there is no such cluster.
    pub async fn kind_on(&self, cluster: &str, kind: &GroupVersionKind) -> Result<Kind, WatchError> {
        Ok(discovery::find(self.client(cluster)?, kind).await?.kind)
    }

    /// Whether the objects of the kind of that name are in namespaces, on the API server of the program.
    ///
    /// # Errors
    /// As [`kind`](Self::kind).
    pub async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WatchError> {
        Ok(discovery::find(self.client("")?, kind).await?.namespaced)
    }

    /// Returns the open watches, of controllers and at run time, with the number of users of each.
    pub fn open(&self) -> Vec<(Identity, usize)> {
        self.informers.open().into_iter().map(|(source, n_users)| (source.identity().clone(), n_users)).collect()
    }

    /// The namespaces that controllers are limited to now, by their declaration or `--namespace`; none without a limit.
    pub fn namespaces(&self) -> Vec<String> {
        self.informers.namespaces()
    }

    /// Has every controller that is limited to namespaces work in this one as well. They pause until their caches have it. The
    /// role in the new namespace has to be there: without it they stay where they are ([`Source::health`]).
    ///
    /// # Errors
    /// When no controller is limited to namespaces.
    ///
    /// [`Source::health`]: crate::source::Source::health
    pub async fn add_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        self.informers.add_namespace(namespace).await
    }

    /// Has no controller that is limited to namespaces work in this one any more. From the return on nothing is written there
    /// by what was cached: a reconcile that still runs gets [`ApiError::NotFollowed`]. Its objects leave the caches as
    /// deletes. Without the last namespace controllers have nothing to do.
    ///
    /// # Errors
    /// When no controller is limited to namespaces.
    pub async fn remove_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        self.informers.remove_namespace(namespace).await
    }

    fn client(&self, cluster: &str) -> Result<&Client, WatchError> {
        self.clients.get(cluster).ok_or_else(|| WatchError::NoCluster(cluster.into()))
    }

    /// The API server would refuse it as well, but for a program that runs as an administrator.
    fn check(&self, identity: &Identity) -> Result<(), WatchError> {
        let Some(allowed) = &self.allowed else { return Ok(()) };
        let Some(grants) = allowed.grants.get(&identity.cluster) else { return Ok(()) };
        let Kind { group, plural, .. } = &identity.kind;
        let on = On::Resource { group: group.clone(), resource: plural.clone(), name: String::new() };
        let mut places: Vec<Place> = identity.namespaces.iter().cloned().map(Place::Namespace).collect();
        if places.is_empty() {
            places.push(Place::Everywhere);
        }
        for (place, verb) in places.iter().flat_map(|place| [(place, "list"), (place, "watch")]) {
            let (place, on) = (place.clone(), on.clone());
            let wanted = Grant { place, on, verb: verb.into(), because: BTreeSet::new(), framework: true };
            if grants.iter().any(|grant| grant.covers(&wanted)) {
                continue;
            }
            return Err(WatchError::NotDeclared {
                controller: allowed.controller.clone(),
                verb,
                resource: identity.kind.resource(),
                place: match &wanted.place {
                    Place::Everywhere => "in all namespaces".into(),
                    Place::Namespace(namespace) => format!("in namespace {namespace}"),
                },
            });
        }
        Ok(())
    }
}
