//! Keys identify objects in queues and stores.
//!
//! A key is a namespace and a name, like `types.NamespacedName` in Go. [`ObjectKey`] is the plain form, which the
//! untyped stages use: [`store`](crate::store), [`handler`](crate::handler) and [`queue`](crate::queue).
//! [`Key<K>`](Key) also carries the kind as a type, so that user code cannot look up a Pod by the key of a Node. Both
//! are cheap to clone: strings are shared.
//!
//! ```
//! use k8s_openapi::api::core::v1::Node;
//! use kctl_runtime::key::{Key, ObjectKey};
//!
//! let node = Key::<Node>::cluster_scoped("node-1");
//! let untyped: &ObjectKey = node.object();
//! assert_eq!(untyped, &ObjectKey::new(None, "node-1"));
//! assert_eq!(Key::<Node>::from(untyped.clone()), node);
//! ```

use std::{fmt, hash::Hash, marker::PhantomData, str::FromStr, sync::Arc};

use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label};

/// The namespace and name of an object whose kind is known from elsewhere, for example from the queue that holds the
/// key.
///
/// A key says nothing about the identity of an object over time. A new object of the same name has the same key and
/// another `uid`. Keys sort by namespace first, then by name; cluster-scoped objects come first.
///
/// ```
/// use kctl_runtime::key::ObjectKey;
///
/// let key = ObjectKey::new(Some("default"), "web-0");
/// assert_eq!(key.to_string(), "default/web-0");
/// assert!(ObjectKey::new(None, "z") < key);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ObjectKey {
    /// The namespace. `None` for cluster-scoped objects, never an empty string if the key was made by
    /// [`new`](ObjectKey::new).
    pub namespace: Option<Arc<str>>,
    /// The value of `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// Returns the key of the object `name` in `namespace`. An empty namespace, as in the metadata of cluster-scoped
    /// objects, counts as `None`.
    ///
    /// ```
    /// use kctl_runtime::key::ObjectKey;
    /// assert_eq!(ObjectKey::new(Some(""), "node-1"), ObjectKey::new(None, "node-1"));
    /// ```
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

/// Parses `NAMESPACE/NAME`, or the `NAME` of a cluster-scoped object: the form that [`Display`](fmt::Display) writes.
///
/// The rule for the name is the one that Kubernetes has for all kinds (`IsValidPathSegmentName`), because the kind is
/// not known here. Most kinds allow fewer names.
///
/// ```
/// use kctl_runtime::key::ObjectKey;
///
/// assert_eq!("default/web-0".parse(), Ok(ObjectKey::new(Some("default"), "web-0")));
/// assert_eq!("node-1".parse(), Ok(ObjectKey::new(None, "node-1")));
/// assert!("pods/default/web-0".parse::<ObjectKey>().is_err());
/// ```
impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        let (namespace, name) = match text.split_once('/') {
            Some((_, rest)) if rest.contains('/') => return Err(KeyError::Slashes(text.into())),
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if let Some(namespace) = namespace.filter(|namespace| !is_dns1123_label(namespace)) {
            return Err(KeyError::Namespace { key: text.into(), namespace: namespace.into() });
        }
        if ["", ".", ".."].contains(&name) || name.contains('%') {
            return Err(KeyError::Name { key: text.into(), name: name.into() });
        }
        Ok(Self::new(namespace, name))
    }
}

/// A string that is not the key of an object. The message names the valid form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The string is empty.
    #[error("the key is empty: write NAMESPACE/NAME, or NAME for a cluster-scoped object")]
    Empty,
    /// The string has more than one `/`, such as one that begins with a kind.
    #[error("the key {0} has more than one `/`: write NAMESPACE/NAME, or NAME for a cluster-scoped object")]
    Slashes(String),
    /// The part before the `/` is not the name of a namespace.
    #[error(
        "key {key}: `{namespace}` is not a valid namespace name: lower-case letters, digits and dashes, \
         {LABEL_LEN_MAX} at most; write NAME alone for a cluster-scoped object"
    )]
    #[non_exhaustive]
    Namespace {
        /// The whole string.
        key: String,
        /// The part before the `/`.
        namespace: String,
    },
    /// The part after the `/`, or the whole string without one, is not the name of an object.
    #[error("key {key}: `{name}` is not a valid object name: it must not be empty, `.` or `..`, or contain `%`")]
    #[non_exhaustive]
    Name {
        /// The whole string.
        key: String,
        /// The part after the `/`.
        name: String,
    },
}

/// The key of an object of kind `K`: an [`ObjectKey`] with the kind as a type parameter.
///
/// Mappers return keys of the primary, and [`Store::get`](crate::store::Store::get) takes the key of its kind.
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
    /// Returns the key of the object `name` in `namespace`. Use [`cluster_scoped`](Self::cluster_scoped) for kinds without
    /// namespaces.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::key::Key;
    ///
    /// let key = Key::<Pod>::namespaced("default", "web-0");
    /// assert_eq!((key.namespace(), key.name()), (Some("default"), "web-0"));
    /// ```
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        ObjectKey::new(Some(namespace), name).into()
    }

    /// Returns the key of a cluster-scoped object, such as a Node or a Namespace.
    pub fn cluster_scoped(name: &str) -> Self {
        ObjectKey::new(None, name).into()
    }

    /// Returns the namespace, or `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.object.namespace.as_deref()
    }

    /// Returns the value of `metadata.name`.
    pub fn name(&self) -> &str {
        &self.object.name
    }

    /// Returns the key without its kind, for the untyped stages such as [`SharedStore`](crate::store::SharedStore).
    pub fn object(&self) -> &ObjectKey {
        &self.object
    }
}

impl<K: kube::Resource> Key<K> {
    /// Returns the key of an object from its metadata. The name is empty if the object has none, for example before the
    /// API server has filled in `generateName`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kctl_runtime::key::Key;
    ///
    /// let mut config = ConfigMap::default();
    /// config.metadata.namespace = Some("default".into());
    /// config.metadata.name = Some("settings".into());
    /// assert_eq!(Key::from_object(&config), Key::namespaced("default", "settings"));
    /// ```
    pub fn from_object(object: &K) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_key_is_parsed_to_the_same_key() {
        let namespace = "n".repeat(LABEL_LEN_MAX);
        let keys = [(Some("default"), "web-0"), (None, "node-1"), (None, "system:node"), (Some(&*namespace), "web")];
        for (namespace, name) in keys {
            let key = ObjectKey::new(namespace, name);
            assert_eq!(key.to_string().parse(), Ok(key));
        }
    }

    #[test]
    fn wrong_key_is_rejected_with_the_remedy() {
        let too_long = format!("{}/web", "n".repeat(LABEL_LEN_MAX + 1));
        let cases = [
            ("", "the key is empty: write NAMESPACE/NAME, or NAME for a cluster-scoped object"),
            ("pods/default/web", "the key pods/default/web has more than one `/`: write NAMESPACE/NAME, or NAME"),
            ("default//", "the key default// has more than one `/`"),
            ("Shop/web", "key Shop/web: `Shop` is not a valid namespace name: lower-case letters, digits and dashes"),
            (&*too_long, "is not a valid namespace name"),
            ("/web", "key /web: `` is not a valid namespace name"),
            ("shop/", "key shop/: `` is not a valid object name: it must not be empty, `.` or `..`, or contain `%`"),
            ("shop/..", "key shop/..: `..` is not a valid object name"),
            ("default%2Fweb", "key default%2Fweb: `default%2Fweb` is not a valid object name"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<ObjectKey>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
