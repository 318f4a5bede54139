//! The key of an object among those of its resource.

/// Namespace (empty for a cluster-scoped object) and name.
pub(crate) type Key = (String, String);
