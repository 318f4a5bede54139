//! Patches that depend on the structure of an object.
//!
//! Merge patch and JSON patch work on JSON alone; strategic merge patch needs the schema of a built-in kind.
//! Server-side apply is in `apply`. All of them change a copy that the caller decodes again afterwards.

mod bounds;
pub(crate) mod json;
mod merge;
mod order;
pub(crate) mod strategic;

pub(crate) use bounds::PatchBounds;
pub(crate) use json::json_patch;
pub(crate) use merge::merge;
pub(crate) use strategic::{StrategicMergeError, strategic_merge};
