//! Patches that need to know the shape of an object.

mod bounds;
pub mod json;
mod merge;
mod order;
pub mod strategic;

pub(crate) use bounds::PatchBounds;
pub(crate) use json::json_patch;
pub(crate) use merge::merge;
pub(crate) use strategic::{BAD_RETAIN_KEYS, strategic_merge};
