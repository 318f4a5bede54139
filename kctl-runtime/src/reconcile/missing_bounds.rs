//! `cx.owned` and `cx.objects` for helper functions without bounds, so that the compiler names the missing bound
//! instead of reporting that the methods do not exist.
//!
//! The result type of the real methods depends on the declaration. For a type about which nothing is known the compiler
//! cannot name that result, and continues its search with these methods. They come after the real ones, and require
//! nothing less. `owned` requires [`Owns`], because rustc suggests the bound that it finds here: with `Declares` the
//! helper would compile up to its first write.

use super::{Allows, Context, Objects, Owned, Owns, Writes, seal::Seal};
use crate::object::{Object, Readable};

/// Every verb, so that a missing bound is one error and not one for each operation.
#[derive(Debug)]
pub struct AllVerbs;

impl<V, C: ?Sized, K> Allows<V, C, K> for AllVerbs {
    const SEAL: Seal = Seal;
}

/// The fallback methods. The prelude imports it without its name.
pub trait WithoutBounds<C> {
    #[doc(hidden)]
    fn owned<K: Object>(&self) -> Owned<C, K, AllVerbs>
    where
        C: Owns<K>;
    #[doc(hidden)]
    fn objects<K: Readable>(&self) -> Objects<C, K, AllVerbs>
    where
        C: Writes<K>;
}

/// Only the bounds are used. A function without them does not compile, and one with them calls the real methods.
impl<C> WithoutBounds<C> for Context<C> {
    fn owned<K: Object>(&self) -> Owned<C, K, AllVerbs>
    where
        C: Owns<K>,
    {
        unreachable!("`Context::owned` comes first")
    }

    fn objects<K: Readable>(&self) -> Objects<C, K, AllVerbs>
    where
        C: Writes<K>,
    {
        unreachable!("`Context::objects` comes first")
    }
}
