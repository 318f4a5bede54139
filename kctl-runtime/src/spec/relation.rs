//! A relation while it is being declared: typed, so that a wrong mapper is an error at the mapper.

use std::{any::type_name_of_val, marker::PhantomData, sync::Arc};

use super::{RelationSpec, Role};
use crate::{
    key::Key,
    object::{Keep, Kind, OwnedBy, Readable, ViewOf, is_namespaced},
    reconcile::{Cluster, Controller},
    source::{Check, Presence},
    store::{Change, SharedStore, Store, index_values, view},
};

/// A relation of the controller `C` to the kind `K`: alone, or the last one of a declaration (`B` is what was declared before).
pub struct Relation<C, K, B = ()> {
    spec: RelationSpec,
    before: B,
    kinds: PhantomData<fn() -> (C, K)>,
}

/// A relation as data.
pub type Erased = RelationSpec;

/// Verbs of `owns = T` without parentheses.
const OWNED_VERBS: [&str; 5] = ["create", "update", "patch", "apply", "delete"];

/// The bounds stand on the methods: a type that is no kind is one error, where the declaration names it.
impl<C: Controller, K> Relation<C, K> {
    fn new(role: Role, text: &str) -> Self
    where
        K: Readable,
    {
        Self {
            spec: RelationSpec {
                role,
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
                check: Check::fits::<K>(),
                keep: Keep::whole(),
                crd: None,
                schema: None,
            },
            before: (),
            kinds: PhantomData,
        }
    }

    /// The primary.
    pub(crate) fn primary() -> Self
    where
        K: Readable,
    {
        Self::new(Role::Primary, "")
    }

    /// `owns = K`.
    pub fn owned(text: &str) -> Self
    where
        K: OwnedBy<C>,
    {
        Self::new(Role::Owned, text).verbs(&OWNED_VERBS)
    }

    /// `watches = K(map = f)`.
    pub fn watched(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(Role::Watched, text)
    }

    /// `reads = K`.
    pub fn read(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(Role::Read, text)
    }

    /// `reads = K(live)`.
    pub fn read_live(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(Role::Live, text)
    }

    /// `reads = K(live(cluster))`.
    pub fn read_live_cluster(text: &str) -> Self
    where
        K: Readable,
    {
        Self::new(Role::LiveCluster, text)
    }

    /// Makes it the last one of a declaration.
    pub(super) fn after<B>(self, before: B) -> Relation<C, K, B> {
        Relation { spec: self.spec, before, kinds: PhantomData }
    }
}

impl<C: Controller, K, B> Relation<C, K, B> {
    /// The verbs in the parentheses, instead of the default ones.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&'static str]) -> Self {
        self.spec.verbs = verbs.to_vec();
        self
    }

    /// `map = f`: which primaries an object concerns. Called for the old and the new state of an update.
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

    /// `when = f`: which changes are worth a reconcile.
    #[must_use]
    pub fn when(mut self, f: impl Fn(&Change<K>) -> bool + Send + Sync + 'static) -> Self
    where
        K: Readable,
    {
        self.spec.when = Some(Arc::new(move |change| {
            let typed = change.try_map(|object| view::<K>(object).ok_or(()));
            typed.is_ok_and(|change| f(&change))
        }));
        self
    }

    /// `index = f`: read back by `store.by(f, value)`. The function's path names the index.
    #[must_use]
    pub fn index(mut self, f: impl Fn(&K) -> Vec<String> + Send + Sync + 'static, _text: &str) -> Self
    where
        K: Readable,
    {
        let name = type_name_of_val(&f);
        self.spec.indexes.push((name, index_values(f)));
        self
    }

    /// `selector = "…"`: only objects with these labels.
    #[must_use]
    pub fn selector(mut self, selector: impl Into<String>) -> Self {
        self.spec.labels = selector.into();
        self
    }

    /// `fields = "…"`: only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.spec.fields = selector.into();
        self
    }

    /// `owns = K(block_owner_deletion)`: a deletion of the primary in the foreground waits for these objects.
    #[must_use]
    pub fn block_owner_deletion(mut self) -> Self {
        self.spec.block_owner_deletion = true;
        self
    }

    /// `reads = K(optional)`: the controller works without the kind, and sees it once the API server serves it.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.spec.presence = Presence::Optional;
        self
    }

    /// `on = name`: in another cluster.
    #[must_use]
    pub fn on(mut self, cluster: impl Into<String>) -> Self {
        self.spec.cluster = cluster.into();
        self
    }

    /// `on = Name`: in the cluster that a type names, to be reached by `cx.cluster(Name)`.
    #[must_use]
    pub fn on_cluster<M: Cluster>(mut self) -> Self {
        self.spec.by_type = true;
        self.on(M::NAME)
    }

    /// `reads = K(metadata)`: nothing but the metadata is asked for and kept.
    #[must_use]
    pub fn metadata(mut self) -> Self {
        self.spec.keep = Keep::metadata();
        self
    }

    /// `reads = K(as = V)`: no more is kept than the fields of the view.
    #[must_use]
    pub fn view<V: ViewOf<K>>(self) -> Relation<C, V, B> {
        let spec = RelationSpec { keep: V::places().keep(), check: Check::fits::<V>(), ..self.spec };
        Relation { spec, before: self.before, kinds: PhantomData }
    }

    /// What was declared before, and this one as data.
    pub(super) fn taken(self) -> (B, Erased) {
        (self.before, self.spec)
    }

    /// As data.
    pub fn erase(self) -> Erased {
        self.spec
    }
}
