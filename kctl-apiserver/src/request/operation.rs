//! The operations of admission: `CREATE`, `UPDATE`, `DELETE` and `CONNECT`.
//!
//! Unlike verbs they name the effect: server-side apply of a new object is the verb `patch` and the
//! operation `CREATE`. Upstream: `k8s.io/apiserver/pkg/admission/interfaces.go`.

/// The effect of a request on an object, as admission names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A new object is stored, by POST, or by a PUT or an apply that finds none.
    Create,
    /// An existing object is replaced or patched, possibly through `status` or `scale`.
    Update,
    /// An object is removed or marked. Each object of a `deletecollection` is admitted separately.
    Delete,
    /// A stream is opened: `exec`, `attach`, `portforward`, `proxy`.
    Connect,
}

impl Operation {
    /// Returns the name in admission reviews and rules.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}
