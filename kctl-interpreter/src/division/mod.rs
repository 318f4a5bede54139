//! How replicas are divided over clusters: by weights, by free capacity, or not at all.
//!
//! The numbers are those of Karmada's scheduler (`pkg/scheduler/core` and `pkg/util/helper/webstermethod.go`).

mod strategy;
mod webster;

use serde::{Deserialize, Serialize};

pub use self::{
    strategy::{Candidate, DivisionError, Mode, StaticWeight, Strategy, assign},
    webster::divide,
};

/// How many replicas a cluster gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetCluster {
    /// The name of the cluster.
    pub name: String,
    /// The number of its replicas.
    #[serde(default)]
    pub replicas: i32,
}
