//! Patches that need to know the shape of an object.

mod go_text;
mod order;
pub mod strategic;

pub(crate) use strategic::strategic_merge;
