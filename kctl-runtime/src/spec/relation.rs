//! A relation while it is being declared: typed, so that a wrong mapper is an error at the mapper.

use std::{any::type_name_of_val, marker::PhantomData, sync::Arc};

use super::{RelationKind, RelationSpec, owned_by::OwnedBy};
use crate::{
    key::Key,
    object::{FieldMask, Kind, Readable, ViewOf, is_namespaced},
    reconcile::{Cluster, Controller},
    source::{DecodeCheck, Presence},
    store::{Change, SharedStore, Store, decode_checked, index_values},
};

/// A relation of the controller `C` to the kind `K`, while its options are being set.
///
/// `B` is `()` for a relation built alone, or the [`SpecBuilder`](super::SpecBuilder) before it. The mapper
/// and the predicate of a relation get typed objects:
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kctl_runtime::{key::Key, spec::Relation};
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
///
/// let relation = Relation::<Settings, Secret>::watched("watches = Secret(map = f)")
///     .map(|secret, _settings| {
///         // The ConfigMap of the same name.
///         let meta = &secret.metadata;
///         let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
///         namespace.zip(name).map(|(namespace, name)| Key::namespaced(namespace, name)).into_iter().collect()
///     })
///     .selector("app=web")
///     .erase();
/// assert!(relation.map.is_some());
/// assert_eq!(relation.labels, "app=web");
/// ```
pub struct Relation<C, K, B = ()> {
    spec: RelationSpec,
    before: B,
    kinds: PhantomData<fn() -> (C, K)>,
}

impl<C, K, B> std::fmt::Debug for Relation<C, K, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relation").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Verbs of `owns = T` without parentheses. `types_and_role_of_bare_owns_agree` in `tests/loop/role.rs` compares them with
/// the permission types of the macro.
const OWNED_VERBS: [&str; 5] = ["create", "update", "patch", "apply", "delete"];

/// The bounds are on the methods, so that a type that is not a kind is one error, at the declaration.
impl<C: Controller, K> Relation<C, K> {
    fn new(declared_as: RelationKind, text: &str) -> Self
    where
        K: Readable,
    {
        Self {
            spec: RelationSpec {
                declared_as,
                kind: Kind::of::<K>(),
                namespaced: is_namespaced::<K>(),
                text: text.into(),
                verbs: Vec::new(),
                map: None,
                when: None,
                indexes: Vec::new(),
                labels: String::new(),
                fields: String::new(),
                cluster: String::new(),
                block_owner_deletion: false,
                by_type: false,
                presence: Presence::Required,
                check: DecodeCheck::fits::<K>(),
                field_mask: FieldMask::whole(),
                crd: None,
                schema: None,
            },
            before: (),
            kinds: PhantomData,
        }
    }

    pub(crate) fn primary() -> Self
    where
        K: Readable,
    {
        Self::new(RelationKind::Primary, "")
    }

    /// Returns `owns = K`, with the default verbs. `text` is the declaration, for messages.
    pub fn owned(text: &str) -> Self
    where
        K: OwnedBy<C>,
    {
        Self::new(RelationKind::Owned, text).verbs(&OWNED_VERBS)
    }

    /// Returns `watches = K(…)`, still without a mapper.
    pub fn watched(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(RelationKind::Watched, text)
    }

    /// Returns `reads = K`.
    pub fn read(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(RelationKind::Read, text)
    }

    /// Returns `reads = K(live)`.
    pub fn read_live(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(RelationKind::Live, text)
    }

    /// Returns `reads = K(live(cluster))`.
    pub fn read_live_cluster(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(RelationKind::LiveCluster, text)
    }

    pub(super) fn after<B>(self, before: B) -> Relation<C, K, B> {
        Relation { spec: self.spec, before, kinds: PhantomData }
    }
}

impl<C: Controller, K, B> Relation<C, K, B> {
    /// Replaces the default verbs by those in the parentheses.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&'static str]) -> Self {
        self.spec.verbs = verbs.to_vec();
        self
    }

    /// Sets `map = f`, which returns the primaries that a changed object matters for.
    ///
    /// It is called for the old and the new state of an update, like controller-runtime's
    /// `EnqueueRequestsFromMapFunc`. It runs in its own task, so a slow one delays no other controller. While it runs,
    /// no other change of the kind reaches this controller, so it should be quick and send no requests. The second
    /// argument is the cache of the primaries; in a sharded program it may have only this replica's primaries.
    #[must_use]
    pub fn map(mut self, f: impl Fn(&K, &Store<C::Primary>) -> Vec<Key<C::Primary>> + Send + Sync + 'static) -> Self
    where
        K: Readable,
    {
        self.spec.map = Some(Arc::new(move |object, primaries: &Arc<SharedStore>| {
            let Ok(object) = object.decode::<K>() else { return Vec::new() };
            let keys = f(&object, &Store::new(primaries.clone()));
            keys.into_iter().map(|key| key.object().clone()).collect()
        }));
        self
    }

    /// Sets `when = f`: changes for which it returns `false` enqueue nothing. Objects that don't decode as `K` are
    /// left out.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
    /// # struct Settings;
    /// # impl Controller for Settings {
    /// #     type Primary = ConfigMap;
    /// #     type Verbs = ();
    /// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
    /// # }
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kctl_runtime::{spec::Relation, store::Change};
    ///
    /// // Only changes of the data, not of labels or annotations.
    /// let relation = Relation::<Settings, Secret>::watched("watches = Secret(map = f)").when(|change| match change {
    ///     Change::Updated { old, new } => old.data != new.data,
    ///     _ => true,
    /// });
    /// assert!(relation.erase().when.is_some());
    /// ```
    #[must_use]
    pub fn when(mut self, f: impl Fn(&Change<K>) -> bool + Send + Sync + 'static) -> Self
    where
        K: Readable,
    {
        self.spec.when = Some(Arc::new(move |change| {
            let typed = change.try_map(|object| decode_checked::<K>(object).ok_or(()));
            typed.is_ok_and(|change| f(&change))
        }));
        self
    }

    /// Sets `index = f`, to be read by `store.by_index(f, value)`. The path of the function is the index's name.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
    /// # struct Settings;
    /// # impl Controller for Settings {
    /// #     type Primary = ConfigMap;
    /// #     type Verbs = ();
    /// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
    /// # }
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::spec::Relation;
    ///
    /// fn by_node(pod: &Pod) -> Vec<String> {
    ///     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
    /// }
    ///
    /// let relation = Relation::<Settings, Pod>::read("reads = Pod(index = by_node)").index(by_node).erase();
    /// assert!(relation.indexes[0].0.ends_with("by_node"));
    /// ```
    #[must_use]
    pub fn index(mut self, f: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Self
    where
        K: Readable,
    {
        let name = type_name_of_val(&f);
        self.spec.indexes.push((name, index_values(f)));
        self
    }

    /// Sets `selector = "…"`: caches only objects that match the label selector.
    #[must_use]
    pub fn selector(mut self, selector: impl Into<String>) -> Self {
        self.spec.labels = selector.into();
        self
    }

    /// Sets `fields = "…"`: caches only objects that match the field selector.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.spec.fields = selector.into();
        self
    }

    /// Sets `blockOwnerDeletion` in owner references: foreground deletion of the primary waits for the object.
    #[must_use]
    pub fn block_owner_deletion(mut self) -> Self {
        self.spec.block_owner_deletion = true;
        self
    }

    /// Sets `optional`: the controller runs without the kind, and uses it once the API server serves it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
    /// # struct Settings;
    /// # impl Controller for Settings {
    /// #     type Primary = ConfigMap;
    /// #     type Verbs = ();
    /// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
    /// # }
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::{source::Presence, spec::Relation};
    ///
    /// let relation = Relation::<Settings, Pod>::read("reads = Pod(optional)").optional().erase();
    /// assert_eq!(relation.presence, Presence::Optional);
    /// ```
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.spec.presence = Presence::Optional;
        self
    }

    /// Sets `on = name`: the kind is in another cluster, which has this name.
    #[must_use]
    pub fn on(mut self, cluster: impl Into<String>) -> Self {
        self.spec.cluster = cluster.into();
        self
    }

    /// Sets `on = Name`: the kind is in the cluster that the type names, and reached by `cx.cluster(Name)`.
    #[must_use]
    pub fn on_cluster<M: Cluster>(mut self) -> Self {
        self.spec.by_type = true;
        self.on(M::NAME)
    }

    /// Sets `metadata`: only the metadata is requested and cached. An owned kind keeps its default verbs; the attribute
    /// narrows them by [`verbs`](Self::verbs), because `create` and `update` send whole objects.
    #[must_use]
    pub fn metadata(mut self) -> Self {
        self.spec.field_mask = FieldMask::metadata();
        self
    }

    /// Sets `as = V`: only the fields of the view are cached, and the kind is read as `V`.
    #[must_use]
    pub fn view<V: ViewOf<K>>(self) -> Relation<C, V, B> {
        let spec = RelationSpec { field_mask: V::paths().field_mask(), check: DecodeCheck::fits::<V>(), ..self.spec };
        Relation { spec, before: self.before, kinds: PhantomData }
    }

    /// Returns the declaration before this relation, and the relation as data.
    pub(super) fn into_parts(self) -> (B, RelationSpec) {
        (self.before, self.spec)
    }

    /// Returns the relation as data.
    pub fn erase(self) -> RelationSpec {
        self.spec
    }
}
