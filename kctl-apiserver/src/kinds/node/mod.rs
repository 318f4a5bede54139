//! Kinds of `node.k8s.io`.
//!
//! The only kind is `RuntimeClass`. `Node` itself belongs to the core group.

pub(crate) mod runtime_class;
