//! A struct with state and a finalizer.
use kctl::prelude::*;

#[controller(of = ConfigMap, owns = Pod(create, delete), finalizer = "example.com/configs")]
pub struct Configs {
    db: String,
}
