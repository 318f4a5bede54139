//! The manifests of the app's webhooks: configurations, the Service, the Deployment's port and
//! probes, and the certificate.
//!
//! The certificate comes from cert-manager, or the program creates it in a Secret.

use std::{
    io::Read,
    net::IpAddr,
    path::{Path, PathBuf},
};

use kctl_apimachinery::url::Url;
use kctl_runtime::{
    manifest::{self, Manifest, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};
use kctl_webhook::admission::ClientConfig;
use serde_json::{Value, json};

use super::App;
use crate::app::{names, webhook_functions::Address};

const SERVICE_PORT: u16 = 443;
/// Port of the container, as for controller-runtime's webhooks.
const CONTAINER_PORT: u16 = 9443;
/// Folder of the certificate in the container.
const CERTIFICATES: &str = "/var/run/webhook-tls";

/// The address of the webhooks in generated manifests.
#[derive(clap::Args, Default, Clone, Debug)]
pub(in crate::app) struct RegisterOptions {
    /// The URL of the webhooks; by default the Service with the name of the roles
    #[arg(long, value_name = "URL", value_parser = names::webhook_url, conflicts_with = "helm")]
    webhook_url: Option<String>,
    /// A file with the CA of the certificate. By default, the program writes its own CA into the configurations of admission
    /// functions and conversions
    #[cfg_attr(feature = "karmada", doc = "(and Karmada verifies interpreters with the roots of its system)")]
    #[arg(long, value_name = "FILE", conflicts_with = "helm")]
    webhook_ca_file: Option<PathBuf>,
}

impl RegisterOptions {
    /// Returns `true` if a file has the CA of the certificate.
    pub(in crate::app) fn has_authority(&self) -> bool {
        self.webhook_ca_file.is_some()
    }
}

/// Maximum size of a file of certificates in bytes, about ten times the size of a system's roots.
const AUTHORITY_LEN_MAX: u64 = 4 << 20;

/// Reads the certificates of an authority.
///
/// # Errors
/// The file contains no certificate, or is too long.
fn authority(file: &Path) -> Result<String> {
    let mut pem = String::new();
    let opened = std::fs::File::open(file).context(file.display())?;
    let len = opened.take(AUTHORITY_LEN_MAX + 1).read_to_string(&mut pem).context(file.display())?;
    if len as u64 > AUTHORITY_LEN_MAX {
        return Err(Error::from(format!("{}: longer than {AUTHORITY_LEN_MAX} bytes", file.display())));
    }
    if pem.contains("-----BEGIN CERTIFICATE-----") {
        return Ok(pem);
    }
    Err(Error::from(format!("{}: contains no PEM certificate", file.display())))
}

impl App {
    /// Registers the app's Service as the converter in CRDs. Without an option that names the
    /// Service, an address in `#[resource]` wins.
    pub(in crate::app) fn convert_by_service(
        &self,
        names: &RbacOptions,
        is_named: Named,
        manifests: &mut [Manifest],
    ) -> Result<()> {
        let RbacOptions { name, namespace, .. } = names;
        let client = ClientConfig::Service { namespace: namespace.clone(), name: name.clone(), port: SERVICE_PORT };
        let address = match is_named {
            Named::ByDefault => Address::Default(client),
            Named::ByOptions => Address::Given { client, origin: "--name and --namespace" },
        };
        self.convert_manifests(manifests, &address, None)
    }

    /// Adds the manifests that register the webhooks and make them reachable, and changes the
    /// Deployment and CRDs among `all`.
    pub(in crate::app) fn webhook_manifests(
        &self,
        names: &RbacOptions,
        options: &RegisterOptions,
        issued: CertificateIssuer,
        all: &mut Vec<Manifest>,
    ) -> Result<()> {
        if !self.has_webhooks() {
            return Ok(());
        }
        let RbacOptions { name, namespace, .. } = names;
        let by_service =
            || ClientConfig::Service { namespace: namespace.clone(), name: name.clone(), port: SERVICE_PORT };
        let (client, origin) = match &options.webhook_url {
            Some(url) => (ClientConfig::Url(url.clone()), "--webhook-url"),
            None => (by_service(), "the generated Service"),
        };
        let authority = options.webhook_ca_file.as_deref().map(authority).transpose()?;
        let source = match issued {
            CertificateIssuer::Elsewhere => Source::CertManager,
            CertificateIssuer::Here if !self.makes_certificate() || authority.is_some() => Source::Files,
            CertificateIssuer::Here => Source::Secret,
        };
        let probed = match (self.controllers.is_empty(), source) {
            (true, Source::Files | Source::CertManager) => Probed::WebhookAlone,
            (false, _) if self.webhook_functions.is_empty() => Probed::Manager,
            (true, Source::Secret) | (false, _) => Probed::Webhook,
        };
        let address = Address::Given { client: client.clone(), origin };
        self.convert_manifests(all, &address, authority.as_deref())?;
        for manifest in all.iter_mut().filter(|manifest| manifest.object["kind"] == "Deployment") {
            let mut object = manifest.object.take();
            serve_in(&mut object, name, source, probed);
            if let Some(url) = &options.webhook_url {
                call_by_url(&mut object, url);
            }
            *manifest = Manifest::new(std::mem::take(&mut manifest.file), object)?;
        }
        let configurations = self.configurations(name, &client, authority.as_deref())?;
        if source == Source::Secret {
            all.extend(manifest::webhook_rbac(names, &self.own_certificate(names)?)?);
        }
        for object in configurations {
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            all.push(Manifest::new(format!("webhook/{kind}-{name}.yaml"), object)?);
        }
        all.push(Manifest::new(format!("webhook/service-{name}.yaml"), service(names))?);
        if issued == CertificateIssuer::Elsewhere {
            let certificate = certificate_of_cert_manager(names, options.webhook_url.as_deref());
            issued_by_cert_manager(names, certificate, |definition| self.converts(definition), all)?;
        }
        Ok(())
    }
}

/// The source of the Service's name and namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Named {
    /// The app's name and `default`.
    ByDefault,
    /// `--name` or `--namespace`.
    ByOptions,
}

/// The issuer of certificates in a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum CertificateIssuer {
    /// The program, which can also make configurations trust it.
    Here,
    /// cert-manager.
    Elsewhere,
}

/// The place of the container's certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Files of a Secret that a user or another program writes.
    Files,
    /// Files of the Secret that cert-manager writes.
    CertManager,
    /// A Secret that the program writes.
    Secret,
}

impl Source {
    fn secret(self, name: &str) -> String {
        match self {
            Self::CertManager => secret_of_cert_manager(name),
            Self::Files | Self::Secret => secret_name(name),
        }
    }
}

/// The server that answers the kubelet's probes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probed {
    Manager,
    /// The webhook for readiness; the manager for liveness.
    Webhook,
    /// The webhook for both, in a program without a manager.
    WebhookAlone,
}

pub(super) fn secret_name(name: &str) -> String {
    format!("{name}-webhook-tls")
}

/// Returns the name of the Secret that cert-manager writes. It differs from [`secret_name`], so that one issuer can
/// replace the other: cert-manager leaves its Secret behind, and Helm adopts no Secret that it did not create. The
/// program never renews a certificate of cert-manager.
fn secret_of_cert_manager(name: &str) -> String {
    format!("{name}-webhook-cert-manager")
}

/// Adds arguments, port, volume and probes for webhooks to a Deployment.
fn serve_in(deployment: &mut Value, name: &str, source: Source, probed: Probed) {
    let pod = &mut deployment["spec"]["template"]["spec"];
    let secret = source.secret(name);
    if source != Source::Secret {
        pod["volumes"] = json!([{ "name": "webhook-tls", "secret": { "secretName": secret } }]);
        pod["containers"][0]["volumeMounts"] =
            json!([{ "name": "webhook-tls", "mountPath": CERTIFICATES, "readOnly": true }]);
    }
    let container = &mut pod["containers"][0];
    if let Some(args) = container["args"].as_array_mut() {
        // All addresses, as for probes and metrics: Pods of an IPv6 cluster have no IPv4 address.
        args.push(format!("--webhook-bind-address=:{CONTAINER_PORT}").into());
        match source {
            Source::Files | Source::CertManager => args.push(format!("--webhook-cert-dir={CERTIFICATES}").into()),
            Source::Secret => args.push(format!("--webhook-secret={secret}").into()),
        }
        args.push(format!("--webhook-service={name}").into());
    }
    if let Some(ports) = container["ports"].as_array_mut() {
        ports.push(json!({ "name": "webhook", "containerPort": CONTAINER_PORT, "protocol": "TCP" }));
    }
    // A Service sends requests to ready Pods only. Caches may need conversions, so readiness must not wait for the
    // caches.
    let probes: &[&str] = match probed {
        Probed::Manager => &[],
        Probed::Webhook => &["readinessProbe"],
        Probed::WebhookAlone => &["livenessProbe", "readinessProbe"],
    };
    for probe in probes {
        container[*probe]["httpGet"] = json!({ "scheme": "HTTPS", "path": "/readyz", "port": "webhook" });
    }
}

/// Adds the argument that makes the program expect calls by URL. Its certificate has to cover the host.
fn call_by_url(deployment: &mut Value, url: &str) {
    if let Some(args) = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array_mut() {
        args.push(format!("--webhook-url={url}").into());
    }
}

/// Adds cert-manager's Issuer and Certificate, and the annotations that make it inject the CA bundle.
fn issued_by_cert_manager(
    names: &RbacOptions,
    certificate: Value,
    converts: impl Fn(&Value) -> bool,
    all: &mut Vec<Manifest>,
) -> Result<()> {
    let RbacOptions { name, namespace, .. } = names;
    let trusts = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind.ends_with("ingWebhookConfiguration") || kind == "CustomResourceDefinition" && converts(object)
    };
    for manifest in all.iter_mut().filter(|manifest| trusts(&manifest.object)) {
        let mut object = manifest.object.take();
        object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] =
            format!("{namespace}/{}", secret_name(name)).into();
        *manifest = Manifest::new(std::mem::take(&mut manifest.file), object)?;
    }
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": { "name": format!("{name}-webhook"), "namespace": namespace },
        "spec": { "selfSigned": {} },
    });
    all.push(Manifest::new(format!("webhook/issuer-{name}-webhook.yaml"), issuer)?);
    all.push(Manifest::new(format!("webhook/certificate-{}.yaml", secret_name(name)), certificate)?);
    Ok(())
}

/// Returns cert-manager's Certificate for the names of the Service, and for the host of a URL.
fn certificate_of_cert_manager(names: &RbacOptions, url: Option<&str>) -> Value {
    let RbacOptions { name, namespace, .. } = names;
    let mut spec = json!({
        "secretName": secret_of_cert_manager(name),
        "dnsNames": [format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")],
        "issuerRef": { "kind": "Issuer", "name": format!("{name}-webhook") },
    });
    if let Some(url) = url.and_then(Url::parse) {
        let host = url.host_and_port().0;
        match (host.parse::<IpAddr>(), spec["dnsNames"].as_array_mut()) {
            (Ok(_address), _) => spec["ipAddresses"] = json!([host]),
            (Err(_), Some(names)) if !names.iter().any(|name| name == host) => names.push(host.into()),
            (Err(_), _) => {}
        }
    }
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": { "name": secret_name(name), "namespace": namespace },
        "spec": spec,
    })
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

#[cfg(test)]
mod url_tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kctl_webhook::{
        FunctionInfo,
        admission::{Action, Options, Webhook},
    };

    use super::*;

    #[test]
    fn cert_manager_certificate_covers_the_host_of_url() {
        let names = RbacOptions::new("web", "system");
        let services = json!(["web.system.svc", "web.system.svc.cluster.local"]);
        let with_host = json!(["web.system.svc", "web.system.svc.cluster.local", "web.example.com"]);
        for (url, dns_names, addresses) in [
            (None, &services, Value::Null),
            (Some("https://web.system.svc:443"), &services, Value::Null),
            (Some("https://web.example.com:9443"), &with_host, Value::Null),
            (Some("https://192.0.2.1:9443"), &services, json!(["192.0.2.1"])),
            (Some("https://[::1]:9443/path"), &services, json!(["::1"])),
        ] {
            let spec = certificate_of_cert_manager(&names, url)["spec"].take();
            assert_eq!((&spec["dnsNames"], &spec["ipAddresses"]), (dns_names, &addresses), "{url:?}");
        }
    }

    #[test]
    fn deployment_has_the_url_for_its_certificate() {
        let names = RbacOptions::new("web", "system");
        let mut app = App::new("web");
        let about = FunctionInfo::new("anything", file!(), line!());
        let rule =
            Webhook::object::<ConfigMap, _, _>(about, Options::new(Action::Validate), |config, _| async { Ok(config) });
        app.webhook_functions.admission.push(rule);
        let url = "https://192.0.2.1:9443";
        let options = RegisterOptions { webhook_url: Some(url.into()), webhook_ca_file: None };
        for issued in [CertificateIssuer::Here, CertificateIssuer::Elsewhere] {
            let deployment = json!({ "kind": "Deployment", "spec": { "template": { "spec": { "containers": [{ "args": ["run"] }] } } } });
            let mut all = vec![Manifest::new("manager/deployment-web.yaml".into(), deployment).unwrap()];
            app.webhook_manifests(&names, &options, issued, &mut all).unwrap();
            let args = &all[0].object["spec"]["template"]["spec"]["containers"][0]["args"];
            let argument = json!(format!("--webhook-url={url}"));
            assert!(args.as_array().unwrap().contains(&argument), "{args}");
        }
    }
}

#[cfg(all(test, feature = "karmada"))]
mod tests {
    use super::{super::tests::app, *};

    fn manifests(app: &App, options: &RegisterOptions) -> Result<Vec<Manifest>> {
        let names = RbacOptions::new("web", "system");
        let deployment = json!({ "kind": "Deployment", "spec": { "template": { "spec": { "containers": [{ "args": ["run"], "ports": [] }] } } } });
        let mut all = vec![Manifest::new("manager/deployment-web.yaml".into(), deployment)?];
        app.webhook_manifests(&names, options, CertificateIssuer::Here, &mut all)?;
        Ok(all)
    }

    #[test]
    fn interpreter_manifests_connect_karmada_to_the_deployment() {
        let all = manifests(&app(), &RegisterOptions::default()).unwrap();
        let [deployment, configuration, service] = all.as_slice() else { panic!("{all:?}") };
        let container = &deployment.object["spec"]["template"]["spec"]["containers"][0];
        let args =
            ["run", "--webhook-bind-address=:9443", "--webhook-cert-dir=/var/run/webhook-tls", "--webhook-service=web"];
        assert_eq!(container["args"], json!(args));
        assert!(deployment.yaml.contains("secretName: web-webhook-tls"), "{}", deployment.yaml);
        let expected = json!({ "service": {
            "namespace": "system", "name": "web", "port": 443, "path": "/interpreter-deployment",
        }});
        assert_eq!(configuration.object["webhooks"][0]["clientConfig"], expected);
        assert_eq!(service.object["spec"]["ports"][0]["targetPort"], container["ports"][0]["name"]);
        for probe in ["livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe]["httpGet"]["port"], container["ports"][0]["name"], "there is no manager");
        }
        assert_eq!(manifests(&App::new("none"), &RegisterOptions::default()).unwrap().len(), 1);
    }

    #[test]
    fn configuration_manifest_may_name_a_url_karmada_accepts() {
        let url = |url: &str| RegisterOptions { webhook_url: Some(url.into()), webhook_ca_file: None };
        let all = manifests(&app(), &url("https://a:1")).unwrap();
        assert_eq!(all[1].object["webhooks"][0]["clientConfig"]["url"], "https://a:1/interpreter-deployment");
        let error = manifests(&app(), &url("http://a")).unwrap_err().to_string();
        assert!(error.contains("'https' is the only allowed URL scheme"), "{error}");
    }

    #[test]
    fn authority_file_without_a_certificate_is_rejected() {
        let file = std::env::temp_dir().join(format!("kctl-authority-{}", std::process::id()));
        for (text, expected) in [
            ("", Some("contains no PEM certificate")),
            ("-----BEGIN EC PRIVATE KEY-----", Some("contains no PEM certificate")),
            ("-----BEGIN CERTIFICATE-----\n", None),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = super::authority(&file).err().map(|error| error.to_string());
            assert_eq!(error, expected.map(|problem| format!("{}: {problem}", file.display())), "{text}");
        }
        std::fs::remove_file(&file).unwrap();
    }
}
