//! The types as which the objects of one watch can be read: the full type, its metadata, or an untyped object.

use std::{any::Any, collections::HashMap, sync::Arc};

use kube::Resource;
use serde::de::DeserializeOwned;

use crate::{
    key::ObjectKey,
    object::{DecodeError, Kind, Stored},
    store::Change,
};

/// A type as which the objects of a [`Watch`](super::Watch) can be read. Users that read the same objects as different
/// types share one watch.
///
/// It is implemented for all types of kinds, for `PartialObjectMeta<K>` and `DynamicObject` of kube, and for
/// [`Stored`], the form in the cache.
///
/// Objects are received and cached whole, whatever they are read as. `PartialObjectMeta` saves its reader the decoding
/// of spec and status, but no bytes on the wire and no memory. A second watch of the same kind would cost more.
pub trait Projection: Sized + Send + Sync + 'static {
    /// Returns the object as this type.
    ///
    /// # Errors
    /// The object does not fit the type.
    fn project(object: &Arc<Stored>) -> Result<Arc<Self>, DecodeError>;

    /// Returns `true` if the type represents objects of this kind. Untyped types represent every kind.
    fn is_of(kind: &Kind) -> bool;
}

impl<K> Projection for K
where
    K: Resource<DynamicType: 'static> + DeserializeOwned + Send + Sync + 'static,
{
    fn project(object: &Arc<Stored>) -> Result<Arc<Self>, DecodeError> {
        match static_type::<K>() {
            Some(kind) => object.decode_as(&K::kind(kind)),
            // Not cached: the decode cache is for the types that controllers read.
            None => object.decode_once("object").map(Arc::new),
        }
    }

    fn is_of(kind: &Kind) -> bool {
        let Some(fixed) = static_type::<K>() else { return true };
        K::group(fixed) == kind.group && K::version(fixed) == kind.version && K::kind(fixed) == kind.kind
    }
}

/// Returns the unit value that names the kind of a static type, or `None` for untyped ones.
fn static_type<K: Resource<DynamicType: 'static>>() -> Option<&'static K::DynamicType> {
    (&() as &dyn Any).downcast_ref()
}

/// The object as it is in the cache, without `managedFields`.
impl Projection for Stored {
    fn project(object: &Arc<Stored>) -> Result<Arc<Self>, DecodeError> {
        Ok(object.clone())
    }

    fn is_of(_kind: &Kind) -> bool {
        true
    }
}

/// Converts changes to a type. An object that no longer fits keeps its last good state for this reader.
pub(super) struct Reader<T> {
    /// The last good states of objects that do not fit now.
    unfit: HashMap<ObjectKey, Arc<T>>,
}

impl<T: Projection> Reader<T> {
    pub(super) fn new() -> Self {
        Self { unfit: HashMap::new() }
    }

    /// Returns the change as this reader sees it, or `None` if it sees none.
    pub(super) fn read(&mut self, change: &Change<Stored>) -> Option<Change<T>> {
        match change {
            Change::Added(new) => fits(new).map(Change::Added),
            Change::Updated { old, new } => {
                let previous = self.unfit.remove(old.key()).or_else(|| T::project(old).ok());
                match (previous, fits(new)) {
                    (Some(old), Some(new)) => Some(Change::Updated { old, new }),
                    (None, Some(new)) => Some(Change::Added(new)),
                    (Some(previous), None) => {
                        self.unfit.insert(new.key().clone(), previous);
                        None
                    }
                    (None, None) => None,
                }
            }
            Change::Deleted { last } => {
                let previous = self.unfit.remove(last.key());
                T::project(last).ok().or(previous).map(|last| Change::Deleted { last })
            }
        }
    }
}

fn fits<T: Projection>(object: &Arc<Stored>) -> Option<Arc<T>> {
    let read = T::project(object);
    if let Err(error) = &read {
        tracing::error!(%error, cause = %error.source, "object can't be deserialized; the watch keeps its last readable state");
    }
    read.ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};
    use kube::core::{DynamicObject, PartialObjectMeta};

    use super::*;

    fn pod(version: u32) -> Arc<Stored> {
        with_spec(version, r#"{"containers":[]}"#)
    }

    /// Returns a Pod that can't be deserialized.
    fn unfit(version: u32) -> Arc<Stored> {
        with_spec(version, r#"{"containers":3}"#)
    }

    fn with_spec(version: u32, spec: &str) -> Arc<Stored> {
        let json = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","uid":"1","resourceVersion":"{version}"}},"spec":{spec}}}"#
        );
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    }

    fn version(pod: &Pod) -> &str {
        pod.metadata.resource_version.as_deref().unwrap()
    }

    #[test]
    fn unfitting_object_keeps_its_last_good_state() {
        let update = |old, new| Change::Updated { old, new };
        let cases = [
            (vec![Change::Added(unfit(1)), update(unfit(1), pod(2))], "+2"),
            (vec![Change::Added(pod(1)), update(pod(1), unfit(2))], "+1"),
            (vec![update(pod(1), unfit(2)), update(unfit(2), pod(3))], "1~3"),
            (vec![update(pod(1), unfit(2)), Change::Deleted { last: unfit(3) }], "-1"),
            (vec![Change::Added(unfit(1)), Change::Deleted { last: unfit(1) }], ""),
        ];
        for (changes, expected) in cases {
            let mut reader = Reader::<Pod>::new();
            let seen = changes.iter().filter_map(|change| reader.read(change)).map(|change| match &change {
                Change::Added(new) => format!("+{}", version(new)),
                Change::Updated { old, new } => format!("{}~{}", version(old), version(new)),
                Change::Deleted { last } => format!("-{}", version(last)),
            });
            assert_eq!(seen.collect::<Vec<_>>().join(" "), expected);
        }
    }

    #[test]
    fn object_is_readable_typed_partial_and_dynamic() {
        let stored = pod(1);
        assert_eq!(Pod::project(&stored).unwrap().metadata.name.as_deref(), Some("a"));
        assert_eq!(PartialObjectMeta::<Pod>::project(&stored).unwrap().metadata.name.as_deref(), Some("a"));
        assert_eq!(DynamicObject::project(&stored).unwrap().types.as_ref().unwrap().kind, "Pod");
        let pods = Kind::of::<Pod>();
        assert!(Pod::is_of(&pods) && PartialObjectMeta::<Pod>::is_of(&pods) && DynamicObject::is_of(&pods));
        assert!(!Node::is_of(&pods), "a type belongs to its own kind only");
    }
}
