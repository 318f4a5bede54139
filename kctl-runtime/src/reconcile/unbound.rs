//! What a helper function without bounds finds in the place of `cx.owned` and `cx.objects`: methods that are always there, so that
//! the compiler names the bound that is missing, instead of saying that the methods do not exist.
//!
//! The result of the real ones depends on the declaration. For a type of which nothing is known the compiler cannot write it
//! down, and looks on: these come after them, and hold for nothing that the real ones do not hold for. `owned` asks for [`Owns`],
//! because rustc advises the bound that it finds here: with `Declares` the helper would compile up to its first write.

use super::{Allows, Context, Objects, Owned, Owns, Writes};
use crate::{
    __private::Seal,
    object::{Object, Readable},
};

/// A grant of every verb: a missing bound is one error, not one for each operation.
#[derive(Debug)]
pub struct Everything;

impl<V, C: ?Sized, K> Allows<V, C, K> for Everything {
    const SEAL: Seal = Seal;
}

/// Brought by the prelude without its name.
pub trait WithoutBounds<C> {
    #[doc(hidden)]
    fn owned<K: Object>(&self) -> Owned<C, K, Everything>
    where
        C: Owns<K>;
    #[doc(hidden)]
    fn objects<K: Readable>(&self) -> Objects<C, K, Everything>
    where
        C: Writes<K>;
}

impl<C> WithoutBounds<C> for Context<C> {
    fn owned<K: Object>(&self) -> Owned<C, K, Everything>
    where
        C: Owns<K>,
    {
        Self::owned::<K>(self).with_grant()
    }

    fn objects<K: Readable>(&self) -> Objects<C, K, Everything>
    where
        C: Writes<K>,
    {
        Self::objects::<K>(self).with_grant()
    }
}
