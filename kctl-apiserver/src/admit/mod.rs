//! What the server does to an object before it is stored: fills in defaults and judges its metadata.

pub mod defaults;
pub mod metadata;
pub mod names;
pub mod quantity;
