//! Tests the graceful shutdown of the program, and its identity in the cluster.

use std::net::TcpListener;

use kctl::{
    apiserver::ApiServer,
    k8s::api::{
        admissionregistration::v1::ValidatingWebhookConfiguration,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    kube::{Api, Client, api::PostParams},
};
use podset::PodSet;
use tokio::time::Instant;

use super::program::{Running, TIMEOUT, eventually, install, ready, start_server};

/// A `ClusterRole` with the permissions of the program.
const ROLE: &str = "
metadata: {name: podset}
rules:
- {apiGroups: [apps.example.com], resources: ['*'], verbs: ['*']}
- {apiGroups: ['', events.k8s.io], resources: [pods, events], verbs: ['*']}
";
const BINDING: &str = "
metadata: {name: podset}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: podset}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: operators}]
";
/// A webhook configuration that delays the creation of pods.
const WEBHOOK: &str = "
metadata: {name: silent}
webhooks:
- name: silent.example.com
  clientConfig: {url: 'https://ADDRESS/'}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 30
";

async fn web(client: &Client) {
    let web: PodSet = kctl::from_yaml(include_str!("../../../web.yaml")).unwrap();
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &web).await.unwrap();
}

/// Registers a webhook that accepts connections and never responds.
async fn silent_webhook(client: &Client) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = WEBHOOK.replace("ADDRESS", &listener.local_addr().unwrap().to_string());
    let webhook: ValidatingWebhookConfiguration = kctl::from_yaml(&text).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &webhook).await.unwrap();
    listener
}

fn has_requested(server: &ApiServer, user: &str, verb: &str, resource: &str) -> bool {
    server.requests().iter().any(|r| (&*r.user, r.verb, &*r.resource) == (user, verb, resource))
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_ends_the_graceful_stop_at_once() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let (server, kubeconfig, _serving) = start_server("second").await;
        let client = Client::new(server.service(), "default");
        install(&client).await;
        let webhook = silent_webhook(&client).await;
        web(&client).await;
        let program = Running::start(&["run", "--kubeconfig", &kubeconfig]);
        let (call, _from) = tokio::task::spawn_blocking(move || webhook.accept().unwrap()).await.unwrap();
        program.signal(first);
        program.says("another signal ends the process at once");
        let at = Instant::now();
        program.signal(second);
        program.says("ended by a second signal");
        assert_eq!(program.wait_for_exit(), Some(1), "{first}, then {second}");
        assert!(at.elapsed() < TIMEOUT / 3, "the create still waits for its webhook");
        drop(call);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_during_the_first_connection_ends_at_once() {
    let (server, kubeconfig, _serving) = start_server("early").await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("server: https://{}", silent.local_addr().unwrap());
    let text = std::fs::read_to_string(&*kubeconfig).unwrap();
    let old = text.lines().find(|line| line.contains("server: ")).unwrap().trim().to_owned();
    std::fs::write(&*kubeconfig, text.replace(&old, &address)).unwrap();
    drop(server);
    let program = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    let (call, _from) = tokio::task::spawn_blocking(move || silent.accept().unwrap()).await.unwrap();
    let at = Instant::now();
    assert_eq!(program.terminate(), Some(0), "nothing ran that would have to be finished");
    assert!(at.elapsed() < TIMEOUT / 3);
    drop(call);
}

#[tokio::test(flavor = "multi_thread")]
async fn impersonated_user_limits_the_program() {
    let (server, kubeconfig, _serving) = start_server("as").await;
    let client = Client::new(server.service(), "default");
    install(&client).await;
    web(&client).await;
    let role: ClusterRole = kctl::from_yaml(ROLE).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &role).await.unwrap();
    let binding: ClusterRoleBinding = kctl::from_yaml(BINDING).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &binding).await.unwrap();

    let alone = Running::start(&["run", "--kubeconfig", &kubeconfig, "--as", "jane"]);
    let line = alone.says("may not");
    assert!(line.contains("in all namespaces, which `"), "{line}");
    assert!(alone.says("help: ").contains("--user='jane'"));
    assert_eq!(alone.terminate(), Some(0));
    assert!(!has_requested(&server, "jane", "create", "pods"));

    let _member = Running::start(&["run", "--kubeconfig", &kubeconfig, "--as", "jane", "--as-group", "operators"]);
    ready(&client, 3).await;
    eventually("the status is written", || async { has_requested(&server, "jane", "create", "pods") }).await;
    assert!(has_requested(&server, "jane", "watch", "podsets"), "watches are hers as well");
}
