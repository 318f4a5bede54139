//! The app's interpreters as a webhook: its options, how it starts, and the configuration that registers it.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use kctl_interpreter::webhook::{Certificate, ClientConfig, Configuration, Webhook, WebhookOptions};
use kctl_runtime::{
    manifest::{Manifest, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};

use serde_json::{Value, json};

use super::App;

/// How long Karmada waits for an answer: what its documentation names as the default, which its code does not have.
const TIMEOUT_SECONDS: u32 = 10;
/// The port of the Service.
const SERVICE_PORT: u16 = 443;
/// The port of the container: that of controller-runtime's webhooks.
const CONTAINER_PORT: u16 = 9443;
/// Where the container finds its certificate.
const CERTIFICATES: &str = "/var/run/webhook-tls";
/// The first line of a file that kctl wrote, and may write again.
const WRITTEN_BY: &str = "# Written by kctl: this file is replaced at each start.\n";

/// How interpreters are served.
#[derive(clap::Args, Default, Clone, Debug)]
pub(super) struct ServeOptions {
    /// Serve the interpreters here; by default on any free port of loopback
    #[arg(long, value_name = "IP:PORT")]
    webhook_bind_address: Option<SocketAddr>,
    /// A folder with tls.crt and tls.key (and ca.crt), read again when they change; by default a certificate is made
    #[arg(long, value_name = "DIR")]
    webhook_cert_dir: Option<PathBuf>,
    /// The URL that Karmada reaches the interpreters at, such as `https://192.0.2.1:9443`; by default the address
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// Write the `ResourceInterpreterWebhookConfiguration` for the running server; a file that kctl did not write is never replaced
    #[arg(long, value_name = "FILE")]
    write_webhook_config: Option<PathBuf>,
}

/// How Karmada is told to reach the interpreters.
#[derive(clap::Args, Default, Clone, Debug)]
pub(super) struct RegisterOptions {
    /// The URL that Karmada reaches the interpreters at; by default the Service of the name of the roles
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// The authority that has signed the certificate of the interpreters; by default Karmada trusts the roots of its system
    #[arg(long, value_name = "FILE")]
    webhook_ca_file: Option<PathBuf>,
}

impl App {
    /// Listens for Karmada and says where; nothing for an app without interpreters.
    pub(super) async fn webhook(&self, options: &ServeOptions) -> Result<Option<Webhook>> {
        if self.interpreters.is_empty() {
            return match &options.write_webhook_config {
                Some(_) => Err(Error::from(
                    "there is no webhook to configure: the app has no interpreters\nhelp: add them by `App::interpreter`",
                )),
                None => Ok(None),
            };
        }
        let mut webhook = WebhookOptions::default();
        webhook.address = options.webhook_bind_address.unwrap_or(webhook.address);
        webhook.certificate = match &options.webhook_cert_dir {
            Some(folder) => Certificate::in_folder(folder),
            None => Certificate::SelfMade(self.names(options, webhook.address)),
        };
        let webhook = Webhook::listen(self.interpreters.clone(), webhook).await?;
        let url = options.webhook_url.clone().unwrap_or_else(|| format!("https://{}", webhook.address()));
        let client = ClientConfig::Url(url.clone());
        let configuration = Configuration {
            name: &self.name,
            client,
            authority: webhook.authority(),
            timeout_seconds: TIMEOUT_SECONDS,
        };
        let object = configuration.object(&self.interpreters)?;
        if let Some(file) = &options.write_webhook_config {
            write(file, &kctl_runtime::manifest::yaml(&[object])?)?;
        }
        eprintln!("{}: interpreters at {url}", self.name);
        Ok(Some(webhook))
    }

    /// What a certificate is made for: the hosts by which the webhook may be reached.
    fn names(&self, options: &ServeOptions, address: SocketAddr) -> Vec<String> {
        let mut names = vec!["localhost".into(), "127.0.0.1".into(), self.name.clone()];
        if !address.ip().is_unspecified() {
            names.push(address.ip().to_string());
        }
        let url = options.webhook_url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
        names.extend(url.as_ref().and_then(http::Uri::host).map(|host| host.trim_matches(['[', ']']).to_owned()));
        names.sort();
        names.dedup();
        names
    }

    /// The manifests that register the interpreters and bring Karmada to them; none for an app without. The Deployment
    /// among `all` is told to serve.
    pub(super) fn webhook_manifests(
        &self,
        names: &RbacOptions,
        options: &RegisterOptions,
        all: &mut Vec<Manifest>,
    ) -> Result<()> {
        if self.interpreters.is_empty() {
            return Ok(());
        }
        let RbacOptions { name, namespace, .. } = names;
        let client = match &options.webhook_url {
            Some(url) => ClientConfig::Url(url.clone()),
            None => ClientConfig::Service { namespace: namespace.clone(), name: name.clone(), port: SERVICE_PORT },
        };
        let read = |file: &PathBuf| std::fs::read_to_string(file).context(file.display());
        let authority = options.webhook_ca_file.as_ref().map(read).transpose()?;
        let configuration =
            Configuration { name, client, authority: authority.as_deref(), timeout_seconds: TIMEOUT_SECONDS };
        let controllers = if self.controllers.is_empty() { Controllers::None } else { Controllers::Some };
        for manifest in all.iter_mut().filter(|manifest| manifest.object["kind"] == "Deployment") {
            let mut object = manifest.object.take();
            serve_in(&mut object, name, controllers);
            *manifest = Manifest::new(std::mem::take(&mut manifest.file), object)?;
        }
        let file = format!("webhook/resourceinterpreterwebhookconfiguration-{name}.yaml");
        all.push(Manifest::new(file, configuration.object(&self.interpreters)?)?);
        all.push(Manifest::new(format!("webhook/service-{name}.yaml"), service(names))?);
        Ok(())
    }
}

/// Whether the app has controllers beside its interpreters: only then does it run a manager.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Controllers {
    None,
    Some,
}

/// Has the container of a Deployment serve interpreters, with the certificate of a Secret, such as cert-manager writes it.
fn serve_in(deployment: &mut Value, name: &str, controllers: Controllers) {
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["volumes"] = json!([{ "name": "webhook-tls", "secret": { "secretName": format!("{name}-webhook-tls") } }]);
    let container = &mut pod["containers"][0];
    if let Some(args) = container["args"].as_array_mut() {
        args.push(format!("--webhook-bind-address=0.0.0.0:{CONTAINER_PORT}").into());
        args.push(format!("--webhook-cert-dir={CERTIFICATES}").into());
    }
    if let Some(ports) = container["ports"].as_array_mut() {
        ports.push(json!({ "name": "webhook", "containerPort": CONTAINER_PORT, "protocol": "TCP" }));
    }
    if controllers == Controllers::None {
        // There is no manager that the kubelet could ask.
        for probe in ["livenessProbe", "readinessProbe"] {
            container[probe]["httpGet"] = json!({ "scheme": "HTTPS", "path": "/readyz", "port": "webhook" });
        }
    }
    container["volumeMounts"] = json!([{ "name": "webhook-tls", "mountPath": CERTIFICATES, "readOnly": true }]);
}

fn service(names: &RbacOptions) -> Value {
    let RbacOptions { name, namespace, .. } = names;
    let labels = json!({ "app.kubernetes.io/name": name });
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "selector": labels,
            "ports": [{ "name": "webhook", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": "webhook" }],
        },
    })
}

/// Writes a file, unless it is somebody else's.
fn write(file: &Path, yaml: &str) -> Result<()> {
    match std::fs::read_to_string(file) {
        Ok(text) if !text.starts_with(WRITTEN_BY) => {
            return Err(Error::from(format!(
                "{}: kctl did not write this file and does not replace it\nhelp: remove it, or name another one",
                file.display()
            )));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).context(file.display()),
        _ => {}
    }
    std::fs::write(file, format!("{WRITTEN_BY}{yaml}")).context(file.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use kctl_interpreter::{
        function::{About, IsHealth, Rule},
        operation::Operation,
    };

    fn app() -> App {
        let about = About::new(Operation::InterpretHealth, "health", file!(), line!());
        let rule = Rule::read::<Deployment, _, _>(about, |_object| async { IsHealth::answer(true) });
        let mut app = App::new("web");
        app.interpreters.push(rule);
        app
    }

    #[tokio::test]
    async fn the_written_configuration_fits_the_server_and_is_replaced_only_where_kctl_wrote_it() {
        let file = std::env::temp_dir().join(format!("kctl-webhook-config-{}.yaml", std::process::id()));
        let options = ServeOptions { write_webhook_config: Some(file.clone()), ..ServeOptions::default() };
        for _start in 0..2 {
            let webhook = app().webhook(&options).await.unwrap().unwrap();
            let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            let client = &object["webhooks"][0]["clientConfig"];
            assert_eq!(client["url"], format!("https://{}/interpreter-deployment", webhook.address()));
            assert!(client["caBundle"].as_str().is_some_and(|bundle| bundle.len() > 100), "{client}");
        }
        std::fs::write(&file, "mine").unwrap();
        let error = app().webhook(&options).await.err().unwrap().to_string();
        assert!(error.contains("kctl did not write this file"), "{error}");
        let error = App::new("none").webhook(&options).await.err().unwrap().to_string();
        assert!(error.contains("the app has no interpreters"), "{error}");
        std::fs::remove_file(&file).unwrap();
    }

    fn manifests(app: &App, options: &RegisterOptions) -> Result<Vec<Manifest>> {
        let names = RbacOptions { name: "web".into(), namespace: "system".into(), ..RbacOptions::default() };
        let deployment = json!({ "kind": "Deployment", "spec": { "template": { "spec": { "containers": [{ "args": ["run"], "ports": [] }] } } } });
        let mut all = vec![Manifest::new("manager/deployment-web.yaml".into(), deployment)?];
        app.webhook_manifests(&names, options, &mut all)?;
        Ok(all)
    }

    #[test]
    fn the_manifests_bring_karmada_to_the_deployment() {
        let all = manifests(&app(), &RegisterOptions::default()).unwrap();
        let [deployment, configuration, service] = all.as_slice() else { panic!("{all:?}") };
        let container = &deployment.object["spec"]["template"]["spec"]["containers"][0];
        let args = ["run", "--webhook-bind-address=0.0.0.0:9443", "--webhook-cert-dir=/var/run/webhook-tls"];
        assert_eq!(container["args"], json!(args));
        assert!(deployment.yaml.contains("secretName: web-webhook-tls"), "{}", deployment.yaml);
        let expected = json!({ "service": {
            "namespace": "system", "name": "web", "port": 443, "path": "/interpreter-deployment",
        }});
        assert_eq!(configuration.object["webhooks"][0]["clientConfig"], expected);
        assert_eq!(service.object["spec"]["ports"][0]["targetPort"], container["ports"][0]["name"]);
        assert_eq!(container["readinessProbe"]["httpGet"]["port"], container["ports"][0]["name"]);
        assert_eq!(manifests(&App::new("none"), &RegisterOptions::default()).unwrap().len(), 1);
    }

    #[test]
    fn the_manifest_of_the_configuration_may_name_a_url_that_karmada_takes() {
        let url = |url: &str| RegisterOptions { webhook_url: Some(url.into()), webhook_ca_file: None };
        let all = manifests(&app(), &url("https://a:1")).unwrap();
        assert_eq!(all[1].object["webhooks"][0]["clientConfig"]["url"], "https://a:1/interpreter-deployment");
        let error = manifests(&app(), &url("http://a")).unwrap_err().to_string();
        assert!(error.contains("'https' is the only allowed URL scheme"), "{error}");
    }

    #[tokio::test]
    async fn two_functions_for_the_same_are_refused_before_any_command() {
        let mut app = app();
        app.interpreters.push(app.interpreters[0].clone());
        let error = app.main().await.unwrap_err().to_string();
        assert!(error.starts_with("InterpretHealth of \"apps/v1, Kind=Deployment\" has two functions"), "{error}");
        assert!(error.ends_with("code: K0070"), "{error}");
    }
}
