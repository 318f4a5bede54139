//! The key of an object among those of its resource.

/// Namespace and name. The namespace is empty for a cluster-scoped object.
pub(crate) type Key = (String, String);
