//! Watches that are opened while the program runs, for kinds or clusters that were not known when it was compiled.
//!
//! A controller's caches are declared and open at the start. Use [`Watches`] for everything else: a policy engine that
//! watches the kinds which its policies name, or a program that joins clusters at run time. A [`Watch`] is a stream of
//! changes and a cache to read. All watches and controllers share informers: two users of the same kind, namespaces and
//! selectors cause one list and one watch.
//!
//! This follows dynamic informers in client-go (`dynamic/dynamicinformer`), and adds what they lack: an informer ends
//! when its last user drops it.

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
pub(crate) use informers::{CloseOnDrop, InformerHandle, Informers};
pub use projection::Projection;
pub use watch::Watch;

pub use crate::handler::CHANGES_WAITING_MAX;
use crate::{
    manifest::{Permission, PermissionScope, PermissionTarget, permissions},
    object::Kind,
    source::WatchConfig,
    spec::ControllerSpec,
    writer::ApiError,
};

/// The reason why a watch cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The role of the program does not allow it: neither the controller's relations nor its `rbac(…)` contain the
    /// rule.
    #[error(
        "controller `{controller}` may not {verb} {resource} {scope}; add a rule with `list` and `watch` on it to its `rbac(…)`"
    )]
    #[non_exhaustive]
    NotDeclared {
        /// The controller that wants to watch.
        controller: String,
        /// The missing verb: `list` or `watch`.
        verb: &'static str,
        /// The resource, as `plural.group`.
        resource: String,
        /// The namespace, or all namespaces.
        scope: String,
    },
    /// The type does not represent the kind of the watch config.
    #[error("objects of {kind} cannot be read as {requested}; ask for that kind, or for `DynamicObject`")]
    #[non_exhaustive]
    OtherKind {
        /// The kind of the watch config.
        kind: Kind,
        /// The name of the Rust type.
        requested: &'static str,
    },
    /// No cluster of this name was added to the app.
    #[error("there is no cluster `{0}`; add it by `App::cluster`, or bring its client by `Watches::on`")]
    NoCluster(String),
    /// The API server does not serve the kind now.
    #[error("the API server has no kind {kind} in {api_version}; install its CRD")]
    #[non_exhaustive]
    UnknownKind {
        /// The name of the kind.
        kind: String,
        /// Group and version.
        api_version: String,
    },
    /// The discovery request failed.
    #[error(transparent)]
    Discovery(#[from] ApiError),
    /// No controller is limited to namespaces, so none can be added or removed.
    #[error("no controller is limited to namespaces: all namespaces are watched")]
    NotLimited,
    /// The namespace to add has no name.
    #[error("the name of the namespace to add is empty; declare no `namespaces` to watch all of them")]
    EmptyNamespace,
    /// [`INFORMERS_MAX`] informers are open.
    #[error("{INFORMERS_MAX} informers are open, which is the maximum; drop watches that are not needed")]
    TooMany,
    /// The manager has ended, and all watches with it.
    #[error("the manager has ended")]
    Closed,
}

/// Opens watches while the program runs. Clones share the same informers.
///
/// Users that ask for the same cluster, kind, namespaces and selectors share one list and one watch, even if they read
/// the objects as different types. An informer ends when its last user drops its [`Watch`].
///
/// The value that a controller gets from its `Env` may watch what the role of that controller allows: the kinds that it
/// declares, and those in `rbac(…)`.
#[derive(Clone)]
pub struct Watches {
    informers: Informers,
    clients: BTreeMap<String, Client>,
    /// The rules of the role by cluster; `None` allows everything.
    allowed: Option<Arc<Allowed>>,
}

impl std::fmt::Debug for Watches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watches").field("clusters", &self.clients.keys()).finish_non_exhaustive()
    }
}

struct Allowed {
    controller: String,
    permissions: BTreeMap<String, Vec<Permission>>,
}

impl Watches {
    pub(crate) fn new(informers: Informers, client: Client, mut clients: BTreeMap<String, Client>) -> Self {
        clients.insert(String::new(), client);
        Self { informers, clients, allowed: None }
    }

    /// Returns the same watches, restricted to what the controller of `spec` declares.
    #[must_use]
    pub fn allowed_by(mut self, spec: &ControllerSpec) -> Self {
        let with_permissions = |cluster: &String| (cluster.clone(), permissions(std::slice::from_ref(spec), cluster));
        let permissions = self.clients.keys().map(with_permissions).collect();
        self.allowed = Some(Arc::new(Allowed { controller: spec.name.clone(), permissions }));
        self
    }

    /// Adds a cluster that is known only at run time, under a name for [`WatchConfig::on`].
    ///
    /// The permissions of `client` decide what can be watched. Users of the same watch share the client that opened it.
    #[must_use]
    pub fn on(mut self, cluster: &str, client: Client) -> Self {
        self.clients.insert(cluster.into(), client);
        self
    }

    /// Opens a watch, or joins an open one, and returns its stream of changes.
    ///
    /// `T` is the type of the objects: the kind's own type, `PartialObjectMeta` of it, or `DynamicObject`. The first
    /// changes are the objects that exist; then each change comes once. The method does not wait for the API server. A
    /// kind that is not served, or that the role lacks, is retried with exponential backoff, and [`Watch::health`]
    /// reports the error. Nothing comes before the manager runs. In a sharded program the watch has the objects of all slots.
    ///
    /// ```
    /// use kctl_runtime::{source::WatchConfig, store::Change, watches::{WatchError, Watches}};
    /// use kube::core::{DynamicObject, GroupVersionKind};
    ///
    /// async fn print_all(watches: Watches, kind: GroupVersionKind) -> Result<(), WatchError> {
    ///     let kind = watches.kind(&kind).await?;
    ///     let config = WatchConfig::new(kind).in_namespaces(["default"]).labels("tier=web");
    ///     let mut changes = watches.watch::<DynamicObject>(config).await?;
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
    /// - [`OtherKind`](WatchError::OtherKind) if `T` does not represent the kind of the watch config;
    /// - [`NotDeclared`](WatchError::NotDeclared) if the controller's role lacks `list` or `watch`;
    /// - [`NoCluster`](WatchError::NoCluster) if the watch config names an unknown cluster;
    /// - [`TooMany`](WatchError::TooMany) at [`INFORMERS_MAX`] open informers;
    /// - [`Closed`](WatchError::Closed) after the end of the manager.
    pub async fn watch<T: Projection>(&self, mut config: WatchConfig) -> Result<Watch<T>, WatchError> {
        config.namespaces.sort();
        config.namespaces.dedup();
        if !T::is_of(&config.kind) {
            return Err(WatchError::OtherKind { kind: config.kind, requested: std::any::type_name::<T>() });
        }
        self.check(&config)?;
        let client = self.client(&config.cluster)?;
        let handle = self.informers.acquire(config, client)?;
        Ok(Watch::open(handle).await)
    }

    /// Looks up a kind by discovery and returns it with the name of its resource (`plural`), which a [`WatchConfig`]
    /// needs.
    ///
    /// ```
    /// use kctl_runtime::watches::{WatchError, Watches};
    /// use kube::core::GroupVersionKind;
    ///
    /// async fn plural_of_sites(watches: &Watches) -> Result<String, WatchError> {
    ///     Ok(watches.kind(&GroupVersionKind::gvk("example.com", "v1", "Site")).await?.plural)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`UnknownKind`](WatchError::UnknownKind) if the API server does not serve the kind,
    /// [`Discovery`](WatchError::Discovery) if the request fails.
    pub async fn kind(&self, kind: &GroupVersionKind) -> Result<Kind, WatchError> {
        self.kind_on("", kind).await
    }

    /// Looks up a kind on another cluster, like [`kind`](Self::kind).
    ///
    /// # Errors
    /// The errors of [`kind`](Self::kind), and [`NoCluster`](WatchError::NoCluster).
    pub async fn kind_on(&self, cluster: &str, kind: &GroupVersionKind) -> Result<Kind, WatchError> {
        Ok(discovery::find(self.client(cluster)?, kind).await?.kind)
    }

    /// Returns `true` if the kind is namespaced, by discovery from the program's own API server.
    ///
    /// # Errors
    /// The errors of [`kind`](Self::kind).
    pub async fn is_namespaced(&self, kind: &GroupVersionKind) -> Result<bool, WatchError> {
        Ok(discovery::find(self.client("")?, kind).await?.namespaced)
    }

    /// Returns the watch configs of all open informers with the number of their users: informers of controllers and
    /// informers opened at run time.
    pub fn open(&self) -> Vec<(WatchConfig, usize)> {
        self.informers.open().into_iter().map(|(source, n_users)| (source.config().clone(), n_users)).collect()
    }

    /// Returns the namespaces to which controllers are limited now, by their declaration or by `--namespace`. Empty if
    /// they are not limited, or after the last namespace was removed.
    pub fn namespaces(&self) -> Vec<String> {
        self.informers.namespaces()
    }

    /// Adds a namespace to every controller that is limited to namespaces.
    ///
    /// The controllers pause until their caches contain the objects of the namespace. The role for it must exist
    /// already: without it they remain paused, and [`Source::health`] reports the error.
    ///
    /// ```
    /// use kctl_runtime::watches::{WatchError, Watches};
    ///
    /// /// Moves all controllers from one tenant's namespace to another one.
    /// async fn move_to(watches: &Watches, from: &str, to: &str) -> Result<(), WatchError> {
    ///     watches.add_namespace(to).await?;
    ///     watches.remove_namespace(from).await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`NotLimited`](WatchError::NotLimited) if no controller is limited to namespaces,
    /// [`EmptyNamespace`](WatchError::EmptyNamespace) if the name is empty.
    ///
    /// # Cancel safety
    /// The change is completed even if the future is dropped, unless it still waits for an earlier change.
    ///
    /// [`Source::health`]: crate::source::Source::health
    pub async fn add_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        self.informers.add_namespace(namespace).await
    }

    /// Removes a namespace from every controller that is limited to namespaces.
    ///
    /// After the return nothing is written there on the basis of cached objects: a reconcile that still runs gets
    /// [`ApiError::NotWatched`]. The objects leave the caches as deletions. After the last namespace was removed, the
    /// controllers have nothing to do.
    ///
    /// # Errors
    /// [`NotLimited`](WatchError::NotLimited) if no controller is limited to namespaces.
    ///
    /// # Cancel safety
    /// The change is completed even if the future is dropped, unless it still waits for an earlier change.
    pub async fn remove_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        self.informers.remove_namespace(namespace).await
    }

    fn client(&self, cluster: &str) -> Result<&Client, WatchError> {
        self.clients.get(cluster).ok_or_else(|| WatchError::NoCluster(cluster.into()))
    }

    /// Checks the watch config against the role. The API server would reject the request as well, unless the program runs
    /// as an administrator.
    fn check(&self, config: &WatchConfig) -> Result<(), WatchError> {
        let Some(allowed) = &self.allowed else { return Ok(()) };
        let Some(permissions) = allowed.permissions.get(&config.cluster) else { return Ok(()) };
        let Kind { group, plural, .. } = &config.kind;
        let target = PermissionTarget::Resource { group: group.clone(), resource: plural.clone(), name: String::new() };
        let mut scopes: Vec<PermissionScope> =
            config.namespaces.iter().cloned().map(PermissionScope::Namespace).collect();
        if scopes.is_empty() {
            scopes.push(PermissionScope::Everywhere);
        }
        for (scope, verb) in scopes.iter().flat_map(|scope| [(scope, "list"), (scope, "watch")]) {
            let (scope, target) = (scope.clone(), target.clone());
            let required = Permission { scope, target, verb: verb.into(), because: BTreeSet::new(), framework: true };
            if permissions.iter().any(|permission| permission.covers(&required)) {
                continue;
            }
            return Err(WatchError::NotDeclared {
                controller: allowed.controller.clone(),
                verb,
                resource: config.kind.resource(),
                scope: match &required.scope {
                    PermissionScope::Everywhere => "in all namespaces".into(),
                    PermissionScope::Namespace(namespace) => format!("in namespace {namespace}"),
                },
            });
        }
        Ok(())
    }
}
