//! A program whose caches need its own conversion webhook.

use kctl::{
    apiserver::ApiServer,
    json,
    kube::{Api, Client, api::PostParams},
    manifest::{Descriptions, definitions},
    prelude::*,
};
use kctl_webhook::{
    Metrics,
    admission::ClientConfig,
    conversion::PATH,
    server::{Server, ServerOptions},
};
use tokio::sync::mpsc;

use crate::{
    kinds::{Site, app, v1alpha1},
    world::apply,
};

/// Sends the hosts of each reconciled site.
#[controller(of = Site)]
struct Seen(mpsc::UnboundedSender<Vec<String>>);

impl Reconcile for Seen {
    async fn reconcile(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<Action> {
        self.0.send(site.spec.hosts.clone())?;
        Ok(Action::await_change())
    }
}

#[tokio::test]
async fn controller_starts_while_old_versions_are_stored() {
    let server = ApiServer::on_system_time();
    let client = Client::new(server.service(), "default");
    let hooks =
        Server::listen(app().webhook_routes(&Metrics::default()).unwrap(), ServerOptions::default()).await.unwrap();
    let reached = ClientConfig::Url(format!("https://{}", hooks.address()));
    let mut definition = json!(definitions(&app().kinds(), Descriptions::Own).unwrap()[0]);
    definition["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
        "clientConfig": reached.config(PATH, hooks.authority()), "conversionReviewVersions": ["v1"],
    } });

    // An object that was stored when v1alpha1 was the storage version.
    let mut before = definition.clone();
    for version in before["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = (version["name"] == "v1alpha1").into();
    }
    apply(&client, &before).await;
    let old = v1alpha1::Site::new("old", v1alpha1::SiteSpec { host: "old.example.com".into(), size: 1 });
    Api::<v1alpha1::Site>::default_namespaced(client.clone()).create(&PostParams::default(), &old).await.unwrap();
    apply(&client, &definition).await;

    // The caches can only fill once the program serves conversions, so it must serve them before its caches are filled.
    let (saw, mut seen) = mpsc::unbounded_channel();
    let app = app().controller_with(move |_env| std::future::ready(Ok(Seen(saw.clone()))));
    let manager = app.manager(client).await.unwrap();
    tokio::spawn(manager.run(std::future::pending()));
    let early = tokio::time::timeout(Duration::from_millis(500), seen.recv()).await;
    assert!(early.is_err(), "no webhook converts yet: {early:?}");
    tokio::spawn(hooks.serve(std::future::pending()));
    let hosts = tokio::time::timeout(Duration::from_secs(30), seen.recv()).await.expect("caches fill");
    assert_eq!(hosts, Some(vec!["old.example.com".to_owned()]));
}
