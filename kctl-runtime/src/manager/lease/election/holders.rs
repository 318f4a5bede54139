//! The processes that may hold a Lease under one identity, and what tells them apart.

use serde_json::Value;

use crate::manager::lease::Record;

/// The processes that may hold the Lease under one identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manager) enum Holders {
    /// Only this process: no other one has its identity.
    One,
    /// Processes that hold it together: a renewal by one of them counts for all.
    Together,
    /// One process at a time, but others may have its identity: an earlier process of the same Pod, or one that was
    /// misconfigured. An annotation with the number of the process tells them apart.
    Numbered { process: u64 },
}

impl Holders {
    /// Reads the record of a Lease. If another process holds it under the same identity, the holder in the record says so.
    pub(in crate::manager) fn record(self, identity: &str, lease: &Value) -> Record {
        let mut record = Record::read(lease);
        if let Self::Numbered { process } = self
            && record.holder() == identity
            && lease["metadata"]["annotations"][PROCESS] != process_number(process)
        {
            record.holder_identity = Some(other_process(identity));
        }
        record
    }

    /// Does the same for a process that leads. A record without a number is its own: an edit has removed the annotation, and
    /// any other process would have written its number.
    pub(super) fn record_of_leader(self, identity: &str, lease: &Value) -> Record {
        let is_numbered = !lease["metadata"]["annotations"][PROCESS].is_null();
        if is_numbered { self.record(identity, lease) } else { Record::read(lease) }
    }
}

/// Returns the holder of a Lease that another process holds under the same identity.
pub(in crate::manager) fn other_process(identity: &str) -> String {
    format!("another process with the identity {identity}")
}

pub(super) fn process_number(process: u64) -> String {
    format!("{process:016x}")
}

/// Annotation of a Lease with a number of the process that holds it.
pub const PROCESS: &str = "kctl.dev/process";
