//! Replicas with a TLS server each, and an embedded API server that calls them while certificates
//! change.

mod foreign_secret;
mod leader_writes;
mod sharded;
mod two_replicas;

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{api::core::v1::ConfigMap, jiff::SignedDuration};
use kctl_apiserver::{ApiServer, User};
use kctl_runtime::{
    manager::lease::{ElectionConfig, Elector},
    manifest::{ManagerOptions, Manifest, RbacOptions, manager_rbac, webhook_permissions, webhook_rbac},
};
use kctl_webhook::{
    FunctionInfo, Metrics,
    admission::{Action, ClientConfig, Configurations, Options, Webhook},
    server::{Certificate, Server, ServerOptions},
};
use kube::{Api, client::Body};
use tokio::time::Instant;
use tower::ServiceExt;

use super::*;
use crate::{
    App,
    app::files::{FromFile, apply},
};

pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn app() -> App {
    let about = FunctionInfo::new("anything", file!(), line!());
    let rule =
        Webhook::object::<ConfigMap, _, _>(about, Options::new(Action::Validate), |config, _| async { Ok(config) });
    let mut app = App::new("web");
    app.webhook_functions.admission.push(rule);
    app
}

pub(super) fn account(name: &str) -> User {
    User::service_account("default", name)
}

pub(super) async fn install(server: &ApiServer, objects: impl IntoIterator<Item = Value>) {
    let origin = || "the test".to_owned();
    let files: Vec<_> = objects.into_iter().map(|object| FromFile { object, origin: origin() }).collect();
    apply(&Client::new(server.service(), "default"), &files).await.unwrap();
}

/// The part of a replica in the election.
#[derive(Clone, Copy)]
pub(super) enum ElectionRole {
    /// It leads, without an election.
    Leader,
    /// It takes part in an election that it has not won.
    Standby,
}

/// Starts a replica that serves webhooks and keeps its certificates under the generated role.
pub(super) async fn start_replica(server: &ApiServer, role: ElectionRole) -> (CertificateMaintainer, ClientConfig) {
    let served = Arc::new(Served::default());
    let mut options = ServerOptions::default();
    options.certificate = Certificate::Provided(served.clone());
    let listening = Server::listen(app().webhook_routes(&Metrics::default()).unwrap(), options).await.unwrap();
    let reached = ClientConfig::Url(format!("https://{}", listening.address()));
    tokio::spawn(listening.serve(std::future::pending()));
    let client = Client::new(server.service_as(account("web")), "default");
    let elector = Elector::new(client.clone(), ElectionConfig::new("web", "default", "b"), Arc::new(Timestamp::now));
    let certificates = Certificates {
        served,
        secret: "web-webhook-tls".into(),
        service: "web".into(),
        names: vec!["127.0.0.1".into()],
        trusting: vec![PATH.into()],
        manager: "web-webhook".into(),
        clock: Arc::new(Timestamp::now),
        read_every: READ_INTERVAL,
    };
    let path = "/api/v1/namespaces/default/secrets/web-webhook-tls".into();
    let leader = match role {
        ElectionRole::Leader => Leader::Itself,
        ElectionRole::Standby => Leader::Elected(elector.unwrap().leadership()),
    };
    let (namespace, reported) = ("default".into(), Mutex::default());
    (CertificateMaintainer { certificates, path, namespace, client, leader, reported }, reached)
}

pub(super) const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/web";

/// Starts an API server with the generated role and one webhook per replica. Both webhooks have to
/// admit each write.
pub(super) async fn world([first, second]: [ElectionRole; 2]) -> (ApiServer, [CertificateMaintainer; 2]) {
    let server = ApiServer::on_system_time();
    let ((one, at_one), (two, at_two)) = (start_replica(&server, first).await, start_replica(&server, second).await);
    let webhooks = |client: &ClientConfig| {
        let rules = app().webhook_functions.admission;
        Configurations { name: "web", client, authority: None }.objects(&rules).remove(0)
    };
    let (mut configuration, mut second) = (webhooks(&at_one), webhooks(&at_two));
    second["webhooks"][0]["name"] = "second.example.com".into();
    configuration["webhooks"].as_array_mut().unwrap().push(second["webhooks"][0].take());
    let roles = roles(&configuration);
    install(&server, roles.into_iter().chain([configuration])).await;
    (server, [one, two])
}

/// Returns the RBAC objects that the generated manifests contain for the program.
pub(super) fn roles(configuration: &Value) -> Vec<Value> {
    let names = RbacOptions::new("web", "default");
    let permissions = webhook_permissions("default", "web-webhook-tls", std::slice::from_ref(configuration), &[]);
    let mut all = webhook_rbac(&names, &permissions).unwrap();
    all.extend(manager_rbac(&names, ManagerOptions::default().with_leader_election()).unwrap());
    all.into_iter().map(|Manifest { object, .. }| object).collect()
}

/// Writes an object, which both replicas have to admit.
pub(super) async fn write(server: &ApiServer) -> std::result::Result<(), kube::Error> {
    let configs: Api<ConfigMap> = Api::namespaced(Client::new(server.service(), "default"), "default");
    let mut config = ConfigMap::default();
    config.metadata.generate_name = Some("a-".into());
    configs.create(&kube::api::PostParams::default(), &config).await.map(drop)
}

pub(super) fn authorities(server: &ApiServer) -> usize {
    let configuration = server.object("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "web");
    let ByteString(bundle) =
        serde_json::from_value(configuration.unwrap()["webhooks"][1]["clientConfig"]["caBundle"].clone()).unwrap();
    String::from_utf8(bundle).unwrap().matches("BEGIN CERTIFICATE").count()
}

#[tokio::test]
async fn concurrent_replicas_create_one_secret_and_serve_it() {
    let (server, [one, two]) = world([ElectionRole::Standby, ElectionRole::Standby]).await;
    assert!(write(&server).await.is_err(), "no replica has a certificate");
    let now = Timestamp::now();
    let (first, second) = tokio::join!(one.pass(now), two.pass(now));
    // The second create is rejected, and that replica reads the Secret of the first one.
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
    for maintainer in [&one, &two] {
        maintainer.pass(now).await.unwrap();
    }
    write(&server).await.unwrap();
    assert_eq!(authorities(&server), 1);
}

#[tokio::test]
async fn object_of_another_service_is_left_unchanged() {
    for (name, namespace, is_own) in [("web", "default", true), ("other", "default", false), ("web", "other", false)] {
        let server = ApiServer::new();
        let client = ClientConfig::Service { namespace: namespace.into(), name: name.into(), port: 443 };
        let configuration = Configurations { name: "web", client: &client, authority: None };
        let configuration = configuration.objects(&app().webhook_functions.admission).remove(0);
        install(&server, roles(&configuration).into_iter().chain([configuration])).await;
        let (maintainer, _reached) = start_replica(&server, ElectionRole::Leader).await;
        maintainer.pass(Timestamp::now()).await.unwrap();
        let group = "admissionregistration.k8s.io";
        let stored = server.object(group, "validatingwebhookconfigurations", "", "web").unwrap();
        assert_eq!(stored["webhooks"][0]["clientConfig"]["caBundle"].is_string(), is_own, "{namespace}/{name}");
    }
}

#[tokio::test]
async fn no_request_fails_while_certificates_and_authorities_change() {
    let (server, [leader, standby]) = world([ElectionRole::Leader, ElectionRole::Standby]).await;
    let now = Timestamp::now();
    // Runs the rotation in the past, so that certificates were renewed and the successor of the authority is due today.
    for days in [186, 125, 64, 3] {
        leader.pass(now - DAY * days).await.unwrap();
        standby.pass(now - DAY * days).await.unwrap();
    }
    let written = Arc::<AtomicUsize>::default();
    let (writes_to, counted) = (server.clone(), written.clone());
    let writing = tokio::spawn(async move {
        loop {
            write(&writes_to).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    for minutes in [0, 1, 5, 11, 12] {
        for maintainer in [&leader, &standby] {
            maintainer.pass(now + SignedDuration::from_mins(minutes)).await.unwrap();
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 3 {
                assert!(!writing.is_finished(), "a request failed {minutes} minutes after the new authority");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        assert_eq!(authorities(&server), 2, "the first one is trusted until its last certificate has run out");
    }
    writing.abort();
    for (days, trusted) in [(65, 2), (86, 2), (88, 1)] {
        leader.pass(now + DAY * days).await.unwrap();
        assert_eq!(authorities(&server), trusted, "after {days} days");
    }
}

#[tokio::test]
async fn any_replica_restores_a_lost_ca_bundle() {
    let (server, [one, two]) = world([ElectionRole::Leader, ElectionRole::Standby]).await;
    let now = Timestamp::now();
    one.pass(now).await.unwrap();
    two.pass(now).await.unwrap();
    write(&server).await.unwrap();
    let configuration = server.object("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "web");
    let mut configuration = Value::clone(&configuration.unwrap());
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = Value::Null;
    }
    let version = configuration["metadata"]["resourceVersion"].clone();
    configuration["metadata"] = json!({ "name": "web", "resourceVersion": version });
    let admin = Client::new(server.service(), "default");
    let body = serde_json::to_vec(&configuration).unwrap();
    let request = Request::put(PATH).header("content-type", "application/json").body(body).unwrap();
    let _replaced: Value = admin.request(request).await.unwrap();
    assert!(write(&server).await.is_err(), "no authority is trusted");
    two.pass(now).await.unwrap();
    write(&server).await.unwrap();
}

/// Returns a client that changes the configuration before each of its patches of it arrives.
fn overtaken(server: &ApiServer) -> Client {
    let (service, other) = (server.service_as(User::admin()), Client::new(server.service(), "default"));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_overtaken = request.method() == Method::PATCH && request.uri().path() == PATH;
        let (service, other) = (service.clone(), other.clone());
        async move {
            if is_overtaken {
                let change = serde_json::to_vec(&json!({ "metadata": { "labels": { "team": "shop" } } })).unwrap();
                let change = Request::patch(PATH).header("content-type", "application/merge-patch+json").body(change);
                let _changed: Value = other.request(change.unwrap()).await.unwrap();
            }
            service.oneshot(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn changed_configuration_is_a_conflict() {
    let (server, [mut leader, _standby]) = world([ElectionRole::Leader, ElectionRole::Standby]).await;
    leader.client = overtaken(&server);
    let error = leader.pass(Timestamp::now()).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    leader.client = Client::new(server.service(), "default");
    leader.pass(Timestamp::now()).await.unwrap();
    assert_eq!(authorities(&server), 1);
}

/// Returns a client whose requests with this method get no response, except those about Leases.
fn silent_at(server: &ApiServer, method: Method) -> Client {
    let service = server.service_as(User::admin());
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_silent = request.method() == method && !request.uri().path().contains("/leases");
        let service = service.clone();
        async move {
            if is_silent {
                std::future::pending::<std::result::Result<_, Infallible>>().await
            } else {
                service.oneshot(request).await
            }
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn unanswered_requests_time_out_and_are_sent_again() {
    let config = ElectionConfig::new("web", "default", "a");
    let cases = [
        (Method::GET, false, RESPONSE_TIMEOUT),
        (Method::GET, true, RESPONSE_TIMEOUT),
        (Method::PATCH, false, RESPONSE_TIMEOUT),
        (Method::PATCH, true, config.write_timeout()),
    ];
    for (method, leads, within) in cases {
        let server = ApiServer::new();
        let client = silent_at(&server, method.clone());
        let elector = Elector::new(client.clone(), config.clone(), Arc::new(Timestamp::now)).unwrap();
        let leadership = elector.leadership();
        if leads {
            tokio::spawn(elector.run(std::future::pending()));
            assert!(leadership.wait_until_leading().await);
        }
        let (mut maintainer, _reached) = start_replica(&server, ElectionRole::Leader).await;
        (maintainer.client, maintainer.leader) = (client, Leader::Elected(leadership));
        for _ in 0..2 {
            let began = Instant::now();
            let error = maintainer.pass(Timestamp::now()).await.unwrap_err().to_string();
            let took = began.elapsed();
            assert!(error.ends_with(&format!("no response within {within:?}; retrying")), "{method}: {error}");
            assert!(took >= within && took < within + config.renew_deadline, "{method}, leads: {leads}: {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn replaced_leader_writes_nothing_in_its_pass() {
    let server = ApiServer::new();
    let client = Client::new(server.service_as(User::admin()), "default");
    let config = ElectionConfig::new("web", "default", "a");
    let elector = Elector::new(client.clone(), config.clone(), Arc::new(Timestamp::now)).unwrap();
    let leadership = elector.leadership();
    let running = tokio::spawn(elector.run(std::future::pending()));
    assert!(leadership.wait_until_leading().await);
    let (mut maintainer, _reached) = start_replica(&server, ElectionRole::Leader).await;
    (maintainer.client, maintainer.leader) = (client, Leader::Elected(leadership));
    let authority = maintainer.leader.authority();
    // Its Lease expires.
    running.abort();
    tokio::time::sleep(config.lease_duration).await;
    assert!(matches!(maintainer.leader.authority(), Authority::Standby), "a new pass knows it");
    let error = maintainer.create_empty_secret(&authority).await.unwrap_err();
    assert!(server.object("", "secrets", "default", "web-webhook-tls").is_none(), "{error}");
}

#[test]
fn errors_name_the_object_instead_of_its_path() {
    let cases = [
        ("/api/v1/namespaces/ops/secrets/web?fieldManager=a&force=true", "secrets ops/web"),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/web",
            "validatingwebhookconfigurations web",
        ),
        ("/api/v1/namespaces/ops", "namespaces ops"),
    ];
    for (path, expected) in cases {
        assert_eq!(super::describe_path(path), expected);
    }
}
