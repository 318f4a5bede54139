//! Patches over plain JSON: reads an object, its schema and a patch, and hands on the patched object.

mod go_text;
mod order;
pub mod strategic;
