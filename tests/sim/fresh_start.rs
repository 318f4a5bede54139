//! Apps whose objects after the steps are compared with the objects of a fresh start.

use kctl::{
    kube::{
        Api, Client,
        api::{Patch, PatchParams},
    },
    prelude::*,
    testing::{Scenario, Sim},
};

/// Creates a Secret with the color of its `ConfigMap`, and never updates it.
#[controller(owns = Secret(create))]
async fn creates(config: Arc<ConfigMap>, cx: Context<creates>) -> Result<Action> {
    if cx.owned::<Secret>().is_empty() {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        cx.owned::<Secret>().create(Secret { metadata, string_data: config.data.clone(), ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

/// Does the same, and updates it.
#[controller(owns = Secret(apply))]
async fn applies(config: Arc<ConfigMap>, cx: Context<applies>) -> Result<Action> {
    let secret = kctl::json!({ "metadata": { "name": config.name_any() }, "stringData": config.data });
    cx.owned::<Secret>().apply(secret).await?;
    Ok(Action::await_change())
}

async fn set_blue(client: Client) -> Result<()> {
    let blue = Patch::Merge(kctl::json!({ "data": { "color": "blue" } }));
    Api::<ConfigMap>::default_namespaced(client).patch("a", &PatchParams::default(), &blue).await?;
    Ok(())
}

fn scenario(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red}}")
        .step("set blue", set_blue)
}

/// No rule says so, and other runs end in the same state.
#[test]
fn object_that_is_never_updated_is_found() {
    let scenario = scenario(|| App::new("creates").controller::<creates>());
    let report = Sim::seeds(0..0).run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    let report = Sim::seeds(0..0).run(&scenario.comparing_with_fresh_start()).unwrap();
    let failure = report.failure().expect("the Secret is still red");
    assert_eq!((failure.checker(), failure.seed()), ("a change reaches all objects", "none"), "{failure}");
    let message = r#"secrets default/a: .data.color is "cmVk" after the steps, and "Ymx1ZQ==" if the app starts"#;
    assert!(failure.message().starts_with(message), "{failure}");
}

#[test]
fn updated_object_matches_a_fresh_start() {
    let scenario = scenario(|| App::new("applies").controller::<applies>()).comparing_with_fresh_start();
    let report = Sim::seeds(0..2).run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
}
