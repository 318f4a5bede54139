//! Division of replicas over clusters: by weights, by free capacity, or the full number for each cluster.
//!
//! The results equal the results of Karmada's scheduler (`pkg/scheduler/core` and `pkg/util/helper/webstermethod.go`).
//! Everything here is a pure function: the same inputs have the same result.
//!
//! In a Karmada control plane, Karmada's scheduler decides. This module only offers its function to programs that
//! schedule without Karmada, such as `examples/multicluster`, or that test its decisions.
//!
//! ```
//! use kctl_interpreter::division::{Candidate, Mode, Strategy, assign};
//!
//! let candidate = |name: &str, available| Candidate { name: name.to_owned(), available };
//! let candidates = [candidate("a", 18), candidate("b", 12), candidate("c", 6)];
//! let divided = assign(&Strategy::DynamicWeight, Mode::Steady, 12, &candidates, &[], "uid")?;
//! assert_eq!(divided.iter().map(|cluster| cluster.replicas).collect::<Vec<_>>(), [6, 4, 2]);
//! # Ok::<_, kctl_interpreter::division::DivisionError>(())
//! ```

mod strategy;
mod webster;

use serde::{Deserialize, Serialize};

pub use self::{
    strategy::{Candidate, DivisionError, Mode, StaticWeight, Strategy, assign},
    webster::divide,
};

/// The number of replicas that one cluster gets, as `spec.clusters` of a `ResourceBinding` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetCluster {
    /// The name of the cluster.
    pub name: String,
    /// The number of its replicas.
    #[serde(default)]
    pub replicas: i32,
}
