//! The first program of `guide/simulation.md`.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "it is the text of the guide")]

use kctl::{
    prelude::*,
    testing::{Scenario, Snapshot},
};

/// Keeps one Secret for every `ConfigMap`.
#[controller(owns = Secret(create))]
async fn keeper(config: Arc<ConfigMap>, cx: Context<keeper>) -> Result<Action> {
    let secrets = cx.owned::<Secret>();
    if secrets.is_empty() {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        secrets.create(Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("keeper").controller::<keeper>()
}

#[kctl::test(seeds = 64)]
fn keeper_survives(scenario: Scenario) -> Scenario {
    scenario
        .app(app)
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
        .invariant("one secret at most", one_secret_at_most)
}

fn one_secret_at_most(snapshot: &Snapshot) -> Result<(), String> {
    match snapshot.all::<Secret>().len() {
        0 | 1 => Ok(()),
        n => Err(format!("{n} secrets")),
    }
}
