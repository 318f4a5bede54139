//! Names of objects: what waits in queues and finds objects in stores.

use std::{fmt, hash::Hash, marker::PhantomData, sync::Arc};

/// Names an object of a kind that the context knows: a namespace, absent for cluster-scoped kinds, and a name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ObjectKey {
    /// `None` for cluster-scoped objects.
    pub namespace: Option<Arc<str>>,
    /// The object's name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// Names the object `name` in `namespace`.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self { namespace: namespace.filter(|ns| !ns.is_empty()).map(Arc::from), name: Arc::from(name) }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Names an object of the kind `K`.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::key::Key;
/// assert_eq!(Key::<Pod>::namespaced("default", "web-0").to_string(), "default/web-0");
/// ```
pub struct Key<K> {
    object: ObjectKey,
    kind: PhantomData<fn() -> K>,
}

impl<K> Key<K> {
    /// Names an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        ObjectKey::new(Some(namespace), name).into()
    }

    /// Names a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        ObjectKey::new(None, name).into()
    }

    /// The namespace, `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.object.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.object.name
    }

    /// The same without its kind.
    pub fn object(&self) -> &ObjectKey {
        &self.object
    }
}

impl<K: kube::Resource> Key<K> {
    /// The key of an object.
    pub fn of(object: &K) -> Self {
        let meta = object.meta();
        ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default()).into()
    }
}

impl<K> From<ObjectKey> for Key<K> {
    fn from(object: ObjectKey) -> Self {
        Self { object, kind: PhantomData }
    }
}

impl<K> Clone for Key<K> {
    fn clone(&self) -> Self {
        self.object.clone().into()
    }
}
impl<K> PartialEq for Key<K> {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}
impl<K> Eq for Key<K> {}
impl<K> Hash for Key<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.object.hash(state);
    }
}
impl<K> PartialOrd for Key<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Key<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.object.cmp(&other.object)
    }
}
impl<K> fmt::Display for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
impl<K> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
