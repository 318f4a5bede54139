//! Checks that an object fits a type that reads it. They run before it is stored, so that readers never meet an object
//! that does not fit.

use crate::object::{DecodeError, Readable, Stored};

/// The way in which an object arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// In a watch event, or in the response to a write. Handlers read it at once, so its decoded form is kept for a
    /// while.
    Alone,
    /// In a list: the following objects would evict its decoded form before it is read.
    Listed,
    /// In a list that is concurrent with the watch, which may have brought a later state.
    ListedDuringWatch,
}

/// A check of objects before they are stored: see [`Source::add_check`](super::Source::add_check).
///
/// A check costs one decoding per object. In return `Store::get` has no error path, and a controller is not stopped by
/// an object of another client that its Rust type cannot hold.
#[derive(Clone, Copy)]
pub struct DecodeCheck(fn(&Stored, Arrival) -> Result<(), DecodeError>);

impl std::fmt::Debug for DecodeCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecodeCheck").finish_non_exhaustive()
    }
}

impl DecodeCheck {
    /// Returns the check that an object can be decoded as `K`. [`Source::view`](super::Source::view) adds it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::source::{DecodeCheck, WatchConfig, Source};
    ///
    /// # fn checked(client: kube::Client) {
    /// let source = Source::new(client, WatchConfig::of::<Pod>(), Arc::default());
    /// source.add_check(DecodeCheck::fits::<Pod>());
    /// assert!(source.accept(r#"{"metadata":{"name":"a"},"spec":{"containers":3}}"#).is_err());
    /// # }
    /// ```
    pub fn fits<K: Readable>() -> Self {
        Self(|object, arrival| match arrival {
            Arrival::Alone => object.decode::<K>().map(drop),
            Arrival::Listed | Arrival::ListedDuringWatch => object.decode_once::<K>(&K::kind(&())).map(drop),
        })
    }

    pub(super) fn check(self, object: &Stored, arrival: Arrival) -> Result<(), DecodeError> {
        self.0(object, arrival)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::Kind;

    #[test]
    fn listed_objects_are_not_in_the_decode_cache() {
        let json = r#"{"metadata":{"name":"a"},"spec":{"containers":[]}}"#;
        let is_kept = |arrival| {
            let object = Stored::accept(&Kind::of::<Pod>(), json).unwrap();
            DecodeCheck::fits::<Pod>().check(&object, arrival).unwrap();
            object.is_decoded()
        };
        assert!(is_kept(Arrival::Alone) && !is_kept(Arrival::Listed) && !is_kept(Arrival::ListedDuringWatch));
        for arrival in [Arrival::Alone, Arrival::Listed, Arrival::ListedDuringWatch] {
            let object = Arc::new(Stored::accept(&Kind::of::<Pod>(), r#"{"metadata":{"name":"a"},"spec":3}"#).unwrap());
            let error = DecodeCheck::fits::<Pod>().check(&object, arrival).unwrap_err();
            assert_eq!(error.to_string(), "Pod a cannot be decoded", "{arrival:?}");
        }
    }
}
