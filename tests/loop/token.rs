//! A controller that declares `token` requests tokens of a `ServiceAccount`, and its role allows that.

use kctl::{
    k8s::api::authentication::v1::TokenRequestSpec,
    kube::{Api, api::PostParams},
    prelude::*,
    testing::Trial,
};

/// Writes when the token of the `ServiceAccount` of the same name expires.
#[controller(reads = ServiceAccount(token), primary(patch))]
async fn tokens(config: Arc<ConfigMap>, cx: Context<tokens>) -> Result<Action> {
    if config.data.as_ref().is_some_and(|data| data.contains_key("until")) {
        return Ok(Action::await_change());
    }
    let accounts = cx.store::<ServiceAccount>();
    let Some(account) = accounts.get(&Key::namespaced(&config.namespace().unwrap_or_default(), &config.name_any()))
    else {
        return Ok(Action::await_change());
    };
    let spec = TokenRequestSpec { expiration_seconds: Some(700), ..TokenRequestSpec::default() };
    let token = cx.objects::<ServiceAccount>().token(&account, spec).await?;
    assert!(token.token.is_some_and(|token| !token.is_empty()));
    cx.patch(kctl::json!({ "data": { "until": token.expiration_timestamp } })).await?;
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("tokens").controller::<tokens>()
}

async fn token_of_a_service_account_is_requested(trial: &Trial) -> Result<()> {
    let configs = Api::<ConfigMap>::default_namespaced(trial.client());
    let accounts = Api::<ServiceAccount>::default_namespaced(trial.client());
    let meta = || ObjectMeta { name: Some("robot".into()), ..ObjectMeta::default() };
    accounts.create(&PostParams::default(), &ServiceAccount { metadata: meta(), ..ServiceAccount::default() }).await?;
    // A kind that is only read queues no keys, so the account must be in the cache before its `ConfigMap` is created.
    trial.idle().await?;
    configs.create(&PostParams::default(), &ConfigMap { metadata: meta(), ..ConfigMap::default() }).await?;
    trial.idle().await?;
    let noted = configs.get("robot").await?.data.unwrap_or_default();
    assert!(noted.contains_key("until"), "{noted:?}");
    Ok(())
}

kctl::role_tests!(app, token_of_a_service_account_is_requested);
