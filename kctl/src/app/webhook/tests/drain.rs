//! Tests the shutdown of a program whose workers write objects that its own webhook admits.

use k8s_openapi::api::core::v1::ConfigMap;
use kctl_apiserver::ApiServer;
use kctl_webhook::{
    FunctionInfo,
    admission::{Action as On, Options, Webhook},
};
use kube::{Api, api::PostParams};
use tokio::{net::TcpStream, sync::Notify, sync::watch};

use super::*;
use crate::{
    app::files::{FromFile, apply},
    prelude::{Action, Context, Reconcile, controller},
};

/// A server that stops at the signal has stopped after this time.
const STOP_IS_KNOWN: Duration = Duration::from_millis(300);

/// A controller that waits at its first object, then writes a second one.
#[controller(crate = crate, of = ConfigMap)]
struct Slow {
    client: kube::Client,
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Reconcile for Slow {
    async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        if config.metadata.name.as_deref() == Some("first") {
            self.begun.notify_one();
            self.go_on.notified().await;
            create(&self.client, "second").await?;
        }
        Ok(Action::await_change())
    }
}

async fn create(client: &kube::Client, name: &str) -> std::result::Result<(), kube::Error> {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.into());
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &config).await.map(drop)
}

async fn come(mut stopped: watch::Receiver<bool>) {
    let _came = stopped.wait_for(|stopped| *stopped).await;
}

#[tokio::test]
async fn webhooks_serve_until_workers_finish_on_shutdown() {
    let server = ApiServer::on_system_time();
    let client = kube::Client::new(server.service(), "default");
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = (client.clone(), begun.clone(), go_on.clone());
    let mut app = App::new("web").controller_with(move |_env| {
        let (client, begun, go_on) = slow.clone();
        async { Ok(Slow { client, begun, go_on }) }
    });
    let about = FunctionInfo::new("anything", file!(), line!());
    let rule = Webhook::object::<ConfigMap, _, _>(about, Options::new(On::Validate), |config, _| async { Ok(config) });
    app.webhook_functions.admission.push(rule);
    let webhook = app.webhook(&ServeOptions::default()).await.unwrap().unwrap();
    let (reached, authority) = webhook.client_config();
    let installed = app.admission_configurations("web", &reached, authority.as_deref());
    let files: Vec<_> = installed.into_iter().map(|object| FromFile { object, origin: "the test".into() }).collect();
    apply(&client, &files).await.unwrap();

    let (stop, stopped) = watch::channel(false);
    let manager = app.manager(client.clone()).await.unwrap().run(come(stopped.clone()));
    let address = webhook.server.address();
    let ended = tokio::spawn(webhook.serve_beside(async { Ok(manager.await?) }, come(stopped)));
    create(&client, "first").await.unwrap();
    begun.notified().await;
    stop.send_replace(true);
    tokio::time::sleep(STOP_IS_KNOWN).await;
    go_on.notify_one();
    ended.await.unwrap().unwrap();
    assert!(server.object("", "configmaps", "default", "second").is_some(), "the app admitted what its worker wrote");
    assert!(TcpStream::connect(address).await.is_err(), "no request is served once the workers are done");
}
