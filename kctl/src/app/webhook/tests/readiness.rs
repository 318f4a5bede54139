//! Tests that a program is not ready on any port before its webhooks have a certificate.

use http::Request;
use kctl_apiserver::ApiServer;
use kctl_runtime::manager::health::{Check, Health};
use kctl_webhook::{
    FunctionInfo,
    admission::{Action as On, Options, Webhook},
    rotation::{ReplicaRole, next_contents},
};
use kube::Config;

use super::*;

/// Returns the response of the webhook port to a kubelet, which verifies no certificate.
async fn readyz(address: SocketAddr) -> std::result::Result<String, kube::Error> {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    kube::Client::try_from(config)?.request_text(Request::get("/readyz").body(Vec::new()).unwrap()).await
}

fn check(health: &Health) -> std::result::Result<String, String> {
    let found = health.ready().into_iter().find(|Check { name, .. }| name == "webhook-certificate");
    found.expect("the check is there").result
}

/// Returns an app with one admission function.
pub(super) fn app() -> App {
    let mut app = App::new("web");
    let about = FunctionInfo::new("anything", file!(), line!());
    app.webhook_functions.admission.push(Webhook::object::<k8s_openapi::api::core::v1::ConfigMap, _, _>(
        about,
        Options::new(On::Validate),
        |config, _| async { Ok(config) },
    ));
    app
}

#[tokio::test]
async fn dev_registers_loopback_for_unspecified_address() {
    let options =
        ServeOptions { webhook_bind_address: Some((Ipv4Addr::UNSPECIFIED, 0).into()), ..ServeOptions::default() };
    let webhook = app().webhook(&options).await.unwrap().unwrap();
    let ClientConfig::Url(url) = webhook.client_config().0 else { panic!("a URL is registered") };
    assert_eq!(url, format!("https://127.0.0.1:{}", webhook.server.address().port()));
}

#[tokio::test]
async fn program_is_unready_before_its_webhooks_have_certificates() {
    let mut app = app();
    let options = ServeOptions { webhook_secret: Some("web-webhook-tls".into()), ..ServeOptions::default() };
    let webhook = app.webhook(&options).await.unwrap().unwrap();
    let client = kube::Client::new(ApiServer::on_system_time().service(), "default");
    let mut manager = app.manager(client).await.unwrap();
    webhook.ready_when_served()(&mut manager);
    let health = Health::new(manager.view(), manager.metrics().clone());
    let (address, certificates) = (webhook.server.address(), webhook.certificates.clone().unwrap());
    tokio::spawn(webhook.serve(std::future::pending()));

    let waits = check(&health).unwrap_err();
    assert!(waits.starts_with("there is no certificate yet"), "{waits}");
    readyz(address).await.unwrap_err();
    let made = next_contents(None, &certificates.names, Timestamp::now(), ReplicaRole::Standby).unwrap().unwrap();
    certificates.served.set(made.pair().clone()).unwrap();
    assert_eq!(check(&health), Ok("a certificate is served".to_owned()));
    assert_eq!(readyz(address).await.unwrap(), "ok");
}
