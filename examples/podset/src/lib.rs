//! `PodSet`: keeps a number of pods from one template. It follows the ReplicaSet controller.
//!
//! ```text
//! cargo run -p podset -- dev -f examples/podset/web.yaml
//! ```
//!
//! It shows adoption and release of Pods, batches of writes, the `scale` subresource and terminal errors. Its tests run
//! it in the simulator, with its generated role, and in a soak test on a real API server.

mod kinds;
mod pods;
mod reconcile;

use kctl::App;

pub use kinds::{PodSet, PodSetSpec, PodSetStatus};

/// Returns the program, which `main`, the tests and the simulator share.
pub fn app() -> App {
    App::new("podset").controller::<reconcile::podset>()
}

#[cfg(test)]
mod tests {
    use kctl::prelude::Pod;

    use crate::reconcile::podset;

    kctl::permissions_test!(podset; owns Pod);
}
