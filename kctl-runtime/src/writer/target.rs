//! The object of a write, with the cache that takes its response in.

use std::sync::Arc;

use crate::{key::ObjectKey, object::Kind, source::Source, transport::Operation};

/// The object of a write: enough to build the request path, and the cache that takes the response in.
pub(crate) struct Target<'a> {
    /// The key whose reconcile writes. A write of unknown outcome holds back this key alone.
    pub(crate) by: &'a ObjectKey,
    /// The source of the object's kind: its client sends the write, its store takes the response in.
    pub(crate) source: &'a Arc<Source>,
    /// `None` for a cluster-scoped object.
    pub(crate) namespace: Option<&'a str>,
    /// The object's name; only for messages where the request has no name in its path.
    pub(crate) name: &'a str,
}

impl Target<'_> {
    /// Returns the kind of the object, as its source lists it.
    pub(super) fn kind(&self) -> &Kind {
        &self.source.config().kind
    }

    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace, self.name)
    }

    /// Returns `patch Pod shop/web-0`, as it begins error messages.
    pub(crate) fn operation(&self, verb: impl Into<String>) -> Operation {
        Operation::on_object(verb, &self.source.config().cluster, self.kind(), self.key())
    }

    /// Returns the operation on the object, or on its subresource unless that is empty.
    pub(super) fn operation_at(&self, verb: &str, subresource: &str) -> Operation {
        let operation = self.operation(verb);
        if subresource.is_empty() { operation } else { operation.on_subresource() }
    }
}
