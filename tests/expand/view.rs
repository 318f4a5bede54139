//! A view with a field and a key of a map.
use kctl::prelude::*;

#[view(of = Pod)]
pub struct Placed {
    /// The node of the pod.
    #[view(spec.node_name)]
    pub node: Option<String>,
    #[view(metadata.annotations["example.com/team"])]
    pub team: Option<String>,
}
