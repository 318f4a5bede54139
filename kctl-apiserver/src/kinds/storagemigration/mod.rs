//! Kinds of `storagemigration.k8s.io`.
//!
//! The only kind is `StorageVersionMigration`. The controller that rewrites the objects is a client; it is not part of
//! this server.

pub(crate) mod storage_version_migration;
