//! Tests `run` outside of a cluster. With the file of `--write-webhook-config`, an API server calls the program for
//! admission and conversion.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use kctl::{
    Json,
    apiserver::{ApiServer, ServeOptions},
    json,
    kube::{
        Api, Client,
        api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
        config::{Config, KubeConfigOptions, Kubeconfig},
        core::GroupVersionKind,
    },
};

/// Longest wait for a file or a state.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The running program, which is killed on drop.
struct Running(Child);

impl Running {
    fn start(kubeconfig: &Path, written: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_website"));
        command.env_remove("KUBECONFIG").env_remove("RUST_LOG").args(["run", "--kubeconfig"]).arg(kubeconfig);
        Self(command.arg("--write-webhook-config").arg(written).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

fn api(client: &Client, version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind == "Website" {
        Api::default_namespaced_with(client.clone(), &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

/// Repeats a request until it succeeds. A server applies a new CRD or webhook configuration a moment after it has
/// stored it.
async fn until_done<T, F: Future<Output = kctl::kube::Result<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let done = async {
        loop {
            match ask().await {
                Ok(done) => return done,
                Err(error) => eprintln!("{what}: {error}"),
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, done).await.unwrap_or_else(|_elapsed| panic!("{what}: not within {TIMEOUT:?}"))
}

async fn converts(client: Client, kubeconfig: &Path) {
    let written = std::env::temp_dir().join(format!(
        "kctl-website-outside-{}-{}.yaml",
        std::process::id(),
        kubeconfig.as_os_str().len()
    ));
    let _before = std::fs::remove_file(&written);
    let program = Running::start(kubeconfig, &written);
    let read = || async {
        let text = std::fs::read_to_string(&written).map_err(kctl::kube::Error::ReadEvents)?;
        Ok(serde_saphyr::from_multiple::<Json>(&text).unwrap())
    };
    let objects = until_done("the file is written", read).await;
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]);
    let config = &objects[0]["spec"]["conversion"]["webhook"]["clientConfig"];
    let url = config["url"].as_str().unwrap();
    assert!(url.starts_with("https://127.0.0.1:") && url.ends_with("/convert"), "{config}");
    assert!(config["caBundle"].as_str().is_some_and(|bundle| bundle.len() > 100), "{config}");
    for object in &objects {
        let api = api(&client, object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap();
        api.patch(name, &PatchParams::apply("outside").force(), &Patch::Apply(object)).await.unwrap();
    }
    let (old, new) = (api(&client, "example.com/v1alpha1", "Website"), api(&client, "example.com/v1", "Website"));
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "example.com/v1alpha1", "kind": "Website", "metadata": { "name": "outside" },
        "spec": { "host": "old.example.com" },
    }))
    .unwrap();
    until_done("an object of the old version", || async { old.create(&PostParams::default(), &object).await }).await;
    let read = until_done("the object in the new version", || async { new.get("outside").await }).await;
    assert_eq!(read.data["spec"], json!({ "hosts": ["old.example.com"], "replicas": 2 }));

    // Delete the configurations before the program ends, so that the server calls no webhook that is gone.
    until_done("its end", || async { new.delete("outside", &DeleteParams::default()).await.map(drop) }).await;
    for object in objects.iter().rev() {
        let api = api(&client, object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        api.delete(object["metadata"]["name"].as_str().unwrap(), &DeleteParams::default()).await.unwrap();
    }
    drop(program);
    std::fs::remove_file(&written).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_cluster_conversion_works_on_embedded_server() {
    let server = ApiServer::on_system_time();
    let client = Client::new(server.service(), "default");
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    let kubeconfig = std::env::temp_dir().join(format!("kctl-website-outside-{}", std::process::id()));
    listening.write_kubeconfig(&kubeconfig).unwrap();
    let _serving = tokio::spawn(async move { listening.serve().await.unwrap() });
    converts(client, &kubeconfig).await;
    std::fs::remove_file(kubeconfig).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG: cargo xtask real-server"]
async fn out_of_cluster_conversion_works_on_real_server() {
    let file = PathBuf::from(std::env::var_os("KUBECONFIG").expect("KUBECONFIG names an API server"));
    let kubeconfig = Kubeconfig::read_from(&file).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    converts(Client::try_from(config).unwrap(), &file).await;
}
