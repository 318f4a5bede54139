//! Kinds of `apiextensions.k8s.io`.
//!
//! The only kind is `CustomResourceDefinition`. Its rules are in the module `crd`, because custom resources need them
//! too.

pub(crate) mod custom_resource_definition;
