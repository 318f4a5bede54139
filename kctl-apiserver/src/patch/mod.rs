//! JSON patch, merge patch and strategic merge patch.
//!
//! JSON patch and merge patch work on JSON alone; strategic merge patch needs the schema of a built-in kind.
//! Server-side apply is in `apply`. The functions change a copy, which the caller decodes again afterwards.

mod bounds;
pub(crate) mod json;
mod merge;
mod order;
pub(crate) mod strategic;

pub(crate) use bounds::PatchBounds;
pub(crate) use json::json_patch;
pub(crate) use merge::merge;
pub(crate) use strategic::{StrategicMergeError, strategic_merge};
