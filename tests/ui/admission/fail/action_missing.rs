//! The attribute needs `validate` or `mutate`.
use kctl::prelude::*;

#[admission]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {
    let _app = App::new("web").admission::<rules>();
}
