//! `PodSet`: so many pods of one template.

mod kinds;
mod pods;
mod reconcile;

use kctl::App;

pub use kinds::{PodSet, PodSetSpec, PodSetStatus};

/// The program.
pub fn app() -> App {
    App::new("podset").controller::<reconcile::podset>()
}

#[cfg(test)]
mod tests {
    use kctl::prelude::Pod;

    use crate::reconcile::podset;

    kctl::grants_test!(podset; owns Pod);
}
