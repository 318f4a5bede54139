//! Injected faults over TLS, as an ordinary client sees them.

use k8s_openapi::api::core::v1::ConfigMap;
use kctl_apiserver::{
    ApiServer, ServeOptions,
    faults::{Faults, Moment, RequestFault, Rule},
};
use kube::{
    Api, Client, Config,
    api::{ListParams, ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // kube's retries would hide the faults.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

fn config(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

#[tokio::test]
async fn requests_recover_from_broken_tls_connections() {
    // The second value is `true` if the request takes effect.
    let cases = [
        (RequestFault::Reset(Moment::Before), false),
        (RequestFault::Reset(Moment::After), true),
        (RequestFault::Crash(Moment::After), true),
        (RequestFault::Half, true),
        (RequestFault::Reject { code: 503, retry_after: None, moment: Moment::Before }, false),
    ];
    for (fault, took_effect) in cases {
        let faults = Faults::seeded(0);
        faults.add(Rule::request(fault, |request| request.verb == "create").nth(1));
        let listening = ApiServer::on_system_time().listen(ServeOptions::default()).await.unwrap().with_faults(&faults);
        let configs = Api::<ConfigMap>::default_namespaced(client(&listening.kubeconfig()).await);
        let serving = tokio::spawn(listening.serve());
        let first = configs.create(&PostParams::default(), &config("a")).await;
        assert!(first.is_err(), "{fault:?}: {first:?}");
        configs.create(&PostParams::default(), &config("b")).await.unwrap();
        let there: Vec<_> = configs.list(&ListParams::default()).await.unwrap().items;
        let names: Vec<_> = there.into_iter().filter_map(|config| config.metadata.name).collect();
        assert_eq!(names, if took_effect { vec!["a", "b"] } else { vec!["b"] }, "{fault:?}");
        serving.abort();
    }
}
