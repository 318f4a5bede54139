//! Methods that users look for and that do not exist, such as `cx.create(…)`. They are declared here with bounds that
//! no type meets, so that the compiler says where the operation is instead of "no method named `create`".
//!
//! No type implements these traits, so no method here can be called. [`K0021EachKindIsDeclaredOnce`] is a different
//! case: its name is the message.

use std::sync::Arc;

use super::{ApiRequest, Context, DeleteRequest, Live, Objects, OnCluster, Owned, Result, missing_bounds::AllVerbs};
use crate::store::Store;

macro_rules! nowhere {
    ($(#[$doc:meta])* $name:ident<$($of:ident),*>: $message:literal, $label:literal, $help:literal) => {
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = $label, note = $help, note = "code: K0116")]
        pub trait $name<$($of),*> {
            #[doc(hidden)]
            fn never<T>() -> T;
        }
    };
}

/// A controller that declares the kind `K` once.
///
/// Generated code implements it for kinds that end in one name, such as `Pod` and `other::Pod`. If two of them are one
/// type, rustc reports E0119 for this trait: declare the kind once (K0021).
pub trait K0021EachKindIsDeclaredOnce<K> {}

nowhere! {
    /// A kind that [`Context`] itself would change or read.
    OfContext<C>:
    "the context of `{C}` does nothing with `{Self}` by itself",
    "a handle does, which has the verbs that are declared",
    "help: write `cx.owned::<{Self}>()` before it, with `owns = {Self}`; or `cx.objects::<{Self}>()`, with `reads = {Self}(verb)`; what is cached is in `cx.store::<{Self}>()`"
}
nowhere! {
    /// A kind that [`Context`] itself would write as a whole object.
    WholeByContext<C>:
    "the context of `{C}` does nothing with `{Self}` by itself",
    "a handle does, which has the verbs that are declared",
    "help: write `cx.owned::<{Self}>()` before it, with `owns = {Self}`; or `cx.objects::<{Self}>()`, with `reads = {Self}(verb)`"
}
nowhere! {
    /// The primary, which its controller changes by a patch.
    PatchedPrimary<C, K>:
    "`{C}` changes its primary `{K}` by a patch, not as a whole",
    "the primary is patched",
    "help: write `cx.patch(kctl::json!({{ \"metadata\": {{ \"labels\": {{ \"a\": \"b\" }} }} }})).await?` with `#[controller(primary(patch))]`; its status is written by `cx.patch_status(…).await?`"
}
nowhere! {
    /// A status that would be written as a whole.
    StatusByContext<>:
    "a status is patched: a context has no `update_status`",
    "the status is patched",
    "help: write `cx.patch_status(…).await?` with the whole status, which is compared with the one that is there"
}
nowhere! {
    /// A kind whose store would be listed, although a store has no list method.
    ListOfStore<>:
    "a store of `{Self}` is iterated: it has no list",
    "a store is iterated",
    "help: write `cx.store::<{Self}>().iter()`; `in_namespace(…)` and `by_index(index, value)` find some of them"
}
nowhere! {
    /// A kind that a store would change.
    OfStore<>:
    "a store of `{Self}` is only read",
    "a store changes nothing",
    "help: write `cx.objects::<{Self}>()`, with the verb in the parentheses of `{Self}` in `#[controller(…)]`; owned kinds are changed by `cx.owned::<{Self}>()`"
}
nowhere! {
    /// A kind that would be listed past the cache.
    OfLive<>:
    "`{Self}` is read live by its name: it is not listed",
    "there is no list of what is read live",
    "help: write `#[controller(reads = {Self})]` and `cx.store::<{Self}>()`; or `get(name)`"
}
nowhere! {
    /// A kind that would be read through the handle that changes it.
    ReadOfObjects<>:
    "`cx.objects` changes `{Self}`: it reads nothing",
    "this handle only writes",
    "help: write `cx.store::<{Self}>()`, with `.get(&key)` or `.iter()`; a request that kctl has no method for, such as for logs, is sent by `cx.client()`, with `rbac(rule())`"
}
nowhere! {
    /// A kind whose owned objects would be listed, although they are in the handle.
    ListOfOwned<>:
    "owned objects of `{Self}` are iterated: there is no request for a list",
    "owned objects are iterated",
    "help: write `cx.owned::<{Self}>().iter()`, or `.get(name)` for one of them"
}
nowhere! {
    /// A kind whose owned objects would be deleted by a selector, which may select objects of other owners.
    CollectionOfOwned<>:
    "owned objects of `{Self}` are deleted one by one: a selector may select objects of other owners",
    "owned objects are deleted one by one",
    "help: write `cx.owned::<{Self}>().delete(&object)` in a loop over `.iter()`, or `.converge(Vec::<{Self}>::new())`"
}
nowhere! {
    /// A kind that would be owned on another cluster.
    OfCluster<C, M>:
    "`{C}` can't own `{Self}` on `{M}`: owner references do not cross clusters",
    "owner references do not cross clusters",
    "help: write `cx.cluster({M}).objects::<{Self}>()`, with `watches = {Self}(map = …, create, delete, on = {M})`"
}

impl<C> Context<C> {
    #[doc(hidden)]
    pub fn create<K: OfContext<C>>(&self, _object: K) -> ApiRequest<()> {
        K::never()
    }

    #[doc(hidden)]
    pub fn update<K: WholeByContext<C>>(&self, _object: K) -> ApiRequest<()> {
        K::never()
    }

    #[doc(hidden)]
    pub fn replace<K: WholeByContext<C>>(&self, _object: K) -> ApiRequest<()> {
        K::never()
    }

    #[doc(hidden)]
    pub fn apply<K: WholeByContext<C>>(&self, _object: K) -> ApiRequest<()> {
        K::never()
    }

    #[doc(hidden)]
    pub fn update_status<S: StatusByContext>(&self, _status: S) -> ApiRequest<()> {
        S::never()
    }

    #[doc(hidden)]
    pub fn replace_status<S: StatusByContext>(&self, _status: S) -> ApiRequest<()> {
        S::never()
    }

    #[doc(hidden)]
    pub fn list<K: OfContext<C>>(&self) -> ApiRequest<Vec<K>> {
        K::never()
    }
}

/// Implements the trait for references as well, so that the message names the kind as it is declared.
macro_rules! through {
    ($($name:ident),*) => { $(
        impl<K: $name<C>, C> $name<C> for &K {
            fn never<T>() -> T {
                K::never()
            }
        }
        impl<K: $name<C>, C> $name<C> for Arc<K> {
            fn never<T>() -> T {
                K::never()
            }
        }
    )* };
}
through! { WholeByContext }

/// A list that is never created. It can be awaited and iterated, so that neither causes a second error.
pub struct Listed<K>(Vec<Arc<K>>);

impl<K> std::fmt::Debug for Listed<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listed").finish_non_exhaustive()
    }
}

impl<K> Iterator for Listed<K> {
    type Item = Arc<K>;

    fn next(&mut self) -> Option<Arc<K>> {
        self.0.pop()
    }
}

impl<K> IntoFuture for Listed<K> {
    type Output = Result<Vec<Arc<K>>>;
    type IntoFuture = std::future::Ready<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        std::future::ready(Ok(self.0))
    }
}

impl<K> Store<K> {
    #[doc(hidden)]
    pub fn list(&self) -> Listed<K>
    where
        K: ListOfStore,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn all(&self) -> Listed<K>
    where
        K: ListOfStore,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn state(&self) -> Listed<K>
    where
        K: ListOfStore,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn create(&self, _object: &K) -> ApiRequest<()>
    where
        K: OfStore,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn update(&self, _object: &K) -> ApiRequest<()>
    where
        K: OfStore,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn patch<P>(&self, _object: &K, _patch: P) -> ApiRequest<()>
    where
        K: OfStore,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn delete(&self, _object: &K) -> ApiRequest<()>
    where
        K: OfStore,
    {
        K::never()
    }
}

impl<K> Live<K> {
    #[doc(hidden)]
    pub fn list(&self) -> ApiRequest<Vec<K>>
    where
        K: OfLive,
    {
        K::never()
    }
}

impl<C: ?Sized, K, A> Objects<C, K, A> {
    #[doc(hidden)]
    pub fn get<Q>(&self, _name: Q) -> ApiRequest<Arc<K>>
    where
        K: ReadOfObjects,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn list(&self) -> Listed<K>
    where
        K: ReadOfObjects,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn logs<Q>(&self, _object: Q) -> ApiRequest<String>
    where
        K: ReadOfObjects,
    {
        K::never()
    }
}

impl<C: ?Sized, K, A> Owned<C, K, A> {
    #[doc(hidden)]
    pub fn list(&self) -> Listed<K>
    where
        K: ListOfOwned,
    {
        K::never()
    }

    #[doc(hidden)]
    pub fn delete_collection(&self, _namespace: Option<&str>, _labels: &str) -> DeleteRequest
    where
        K: CollectionOfOwned,
    {
        K::never()
    }
}

impl<C, M> OnCluster<C, M> {
    #[doc(hidden)]
    pub fn owned<K: OfCluster<C, M>>(&self) -> Owned<C, K, AllVerbs> {
        K::never()
    }
}
