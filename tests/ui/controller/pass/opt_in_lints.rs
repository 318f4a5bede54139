//! Generated code passes lints that crates turn on.
#![deny(unused_qualifications)]
use kctl::prelude::*;

pub(crate) struct Edge;

impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

/// Does nothing.
#[controller(owns = Secret(metadata), reads = Pod(metadata), primary(on = Edge))]
pub(crate) async fn linted(_config: Arc<ConfigMap>, _cx: Context<linted>) -> Result<Action> {
    Ok(Action::await_change())
}

pub(crate) fn app() -> App {
    App::new("linted").controller::<linted>()
}
