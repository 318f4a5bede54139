//! A label selector is written as for `kubectl get -l`.
use kctl::prelude::*;

#[admission(validate, object_selector = "team in web)")]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {
    let _app = App::new("web").admission::<rules>();
}
