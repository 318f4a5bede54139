//! Checks that the two addresses for the conversions of a kind agree: the one of `conversion(…)` in
//! `#[resource]`, and the program with the functions of `App::conversion`.
//!
//! If they differ, neither takes precedence: it is an error.

use kctl_runtime::reconcile::{Error, Result};
use kctl_webhook::{admission::ClientConfig, conversion};
use serde_json::{Value, json};

/// Default port of a Service reference, as in the API.
const SERVICE_PORT: u16 = 443;

/// The address of conversions in manifests.
#[derive(Debug)]
pub(in crate::app) enum Address<'a> {
    /// Built from defaults: an address in `#[resource]` wins.
    Default(ClientConfig),
    /// From a generated Service or from options.
    Given {
        client: ClientConfig,
        /// The options that it comes from.
        origin: &'a str,
    },
}

impl Address<'_> {
    pub(in crate::app) fn client(&self) -> &ClientConfig {
        match self {
            Self::Default(client) | Self::Given { client, .. } => client,
        }
    }
}

/// Returns the `clientConfig` that a CRD has from `conversion(…)` in `#[resource]`.
pub(super) fn client_config(definition: &Value) -> Option<Value> {
    definition.pointer("/spec/conversion/webhook/clientConfig").filter(|config| !config.is_null()).cloned()
}

/// Fails if a CRD sends conversions to a path where `App::conversion` does not answer.
pub(in crate::app) fn check_path(definition: &Value) -> Result<()> {
    let Some(written) = client_config(definition) else { return Ok(()) };
    let path = match written["url"].as_str() {
        Some(url) => url.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map_or("/", |(_, path)| path),
        None => written["service"]["path"].as_str().unwrap_or("/"),
    };
    let (path, ours) = (path.trim_matches('/'), conversion::PATH.trim_matches('/'));
    // A reverse proxy may add a prefix to the path.
    if path == ours || path.ends_with(conversion::PATH) {
        return Ok(());
    }
    Err(Error::from(format!(
        "{}: `{}` in #[resource] sends conversions to the path /{path}, and the functions of `App::conversion` answer at {}\n\
         help: leave the path out, or all of `conversion(…)`: `App::conversion` is enough",
        name(definition),
        format_client_config(&written),
        conversion::PATH,
    )))
}

/// Fails if a CRD sends conversions to another address than the program's.
pub(super) fn check_same(definition: &Value, written: &Value, client: &ClientConfig, origin: &str) -> Result<()> {
    let own_config = client.config(conversion::PATH, None);
    if is_same_endpoint(written, &own_config) {
        return Ok(());
    }
    let options = match (written["service"]["name"].as_str(), written["service"]["namespace"].as_str()) {
        (Some(name), Some(namespace)) if is_usual_port(written) => {
            format!(", or write `--name {name} --namespace {namespace}`")
        }
        _ => String::new(),
    };
    Err(Error::from(format!(
        "{}: `{}` in #[resource] names another converter than {origin}, through which the functions of `App::conversion` are reached: \
         `{}`\nhelp: leave `conversion(…)` out of #[resource]: `App::conversion` is enough{options}",
        name(definition),
        format_client_config(written),
        format_client_config(&own_config),
    )))
}

/// Fails if a CRD sends conversions to another Service than the one that the certificate is for.
pub(in crate::app) fn check_service(definition: &Value, service: &str, namespace: &str) -> Result<()> {
    let Some(written) = client_config(definition).filter(|written| written["service"].is_object()) else {
        return Ok(());
    };
    let of = &written["service"];
    if of["name"] == service && of["namespace"] == namespace {
        return Ok(());
    }
    let name_of = of["name"].as_str().unwrap_or_default();
    Err(Error::from(format!(
        "{}: `{}` in #[resource] names another converter than this program, which makes its certificate for the Service \
         {namespace}/{service} (--webhook-service)\nhelp: leave `conversion(…)` out of #[resource]: `App::conversion` is \
         enough; or run it in the namespace of that Service with `--webhook-service {name_of}`",
        name(definition),
        format_client_config(&written),
    )))
}

/// Returns the hosts under which API servers call the converter of a CRD: the certificate has to be valid for them.
pub(in crate::app) fn hosts(definition: &Value) -> Vec<String> {
    let Some(written) = client_config(definition) else { return Vec::new() };
    if let Some(url) = written["url"].as_str() {
        let url = url.parse::<http::Uri>().ok();
        return url
            .as_ref()
            .and_then(http::Uri::host)
            .map(|host| host.trim_matches(['[', ']']).into())
            .into_iter()
            .collect();
    }
    let text = |name: &str| written["service"][name].as_str().unwrap_or_default().to_owned();
    vec![format!("{}.{}.svc", text("name"), text("namespace"))]
}

/// Returns `true` if two `clientConfig`s name the same endpoint, whatever their `caBundle`.
fn is_same_endpoint(one: &Value, other: &Value) -> bool {
    let address_of = |config: &Value| {
        let service = &config["service"];
        let path = service["path"].as_str().unwrap_or("/").trim_matches('/').to_owned();
        let port = service["port"].as_u64().unwrap_or(SERVICE_PORT.into());
        json!([config["url"], service["name"], service["namespace"], port, path])
    };
    address_of(one) == address_of(other)
}

fn is_usual_port(config: &Value) -> bool {
    config["service"]["port"].as_u64().is_none_or(|port| port == u64::from(SERVICE_PORT))
}

/// Formats a `clientConfig` as the option of `#[resource]`.
fn format_client_config(config: &Value) -> String {
    if let Some(url) = config["url"].as_str() {
        return format!("conversion(url = \"{url}\")");
    }
    let service = &config["service"];
    let text = |name: &str| service[name].as_str().unwrap_or_default().to_owned();
    let mut parts = format!("service = \"{}\", namespace = \"{}\"", text("name"), text("namespace"));
    if !is_usual_port(config) {
        parts += &format!(", port = {}", service["port"]);
    }
    if text("path") != conversion::PATH {
        parts += &format!(", path = \"{}\"", text("path"));
    }
    format!("conversion({parts})")
}

fn name(definition: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}.{}", text(&definition["spec"]["names"]["kind"]), text(&definition["spec"]["group"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(config: &Value) -> Value {
        json!({
            "metadata": { "name": "pages.example.com" },
            "spec": {
                "group": "example.com",
                "names": { "kind": "Page" },
                "conversion": { "strategy": "Webhook", "webhook": { "clientConfig": config } },
            },
        })
    }

    fn service(name: &str, path: &str) -> Value {
        json!({ "service": { "name": name, "namespace": "pages", "path": path } })
    }

    #[test]
    fn unserved_conversion_path_is_rejected() {
        let url = |path: &str| json!({ "url": format!("https://a.example.com{path}") });
        for good in [service("a", "/convert"), service("a", "/x/convert"), url("/convert"), url("/x/convert")] {
            assert!(check_path(&crd(&good)).is_ok(), "{good}");
        }
        let expected = "Page.example.com: `conversion(service = \"a\", namespace = \"pages\", path = \"/pages\")` in #[resource] sends \
                        conversions to the path /pages, and the functions of `App::conversion` answer at /convert\n\
                        help: leave the path out, or all of `conversion(…)`: `App::conversion` is enough";
        assert_eq!(check_path(&crd(&service("a", "/pages"))).unwrap_err().to_string(), expected);
        for bad in [service("a", "/"), service("a", "/reconvert"), url(""), url("/"), url("/reconvert")] {
            let error = check_path(&crd(&bad)).unwrap_err().to_string();
            assert!(error.contains("the functions of `App::conversion` answer at /convert"), "{error}");
        }
    }

    #[test]
    fn mismatched_conversion_webhook_error_names_both_addresses() {
        let ours =
            |name: &str| ClientConfig::Service { namespace: "pages".into(), name: name.into(), port: SERVICE_PORT };
        let check = |config: &Value, client: &ClientConfig| {
            check_same(&crd(config), config, client, "the generated Service").map_err(|error| error.to_string())
        };
        let written = service("web", "/convert");
        assert_eq!(check(&written, &ours("web")), Ok(()));
        let error = check(&written, &ours("pages")).unwrap_err();
        let expected = "Page.example.com: `conversion(service = \"web\", namespace = \"pages\")` in #[resource] names another \
                        converter than the generated Service, through which the functions of `App::conversion` are reached: \
                        `conversion(service = \"pages\", namespace = \"pages\")`\n\
                        help: leave `conversion(…)` out of #[resource]: `App::conversion` is enough, or write `--name web \
                        --namespace pages`";
        assert_eq!(error, expected);
        let mut other_port = written.clone();
        other_port["service"]["port"] = 9443.into();
        let error = check(&other_port, &ours("web")).unwrap_err();
        assert!(error.contains("port = 9443") && !error.contains("--name"), "{error}");
        let url = json!({ "url": "https://a.example.com/convert" });
        assert_eq!(check(&url, &ClientConfig::Url("https://a.example.com/".into())), Ok(()));
        let error = check(&url, &ClientConfig::Url("https://b.example.com".into())).unwrap_err();
        for both in [
            "conversion(url = \"https://a.example.com/convert\")",
            "conversion(url = \"https://b.example.com/convert\")",
        ] {
            assert!(error.contains(both), "{error}");
        }
    }

    #[test]
    fn certificate_for_another_service_is_rejected() {
        let crd = crd(&service("web", "/convert"));
        assert!(check_service(&crd, "web", "pages").is_ok());
        for (service, namespace) in [("pages", "pages"), ("web", "default")] {
            let error = check_service(&crd, service, namespace).unwrap_err().to_string();
            assert!(error.contains(&format!("for the Service {namespace}/{service} (--webhook-service)")), "{error}");
            assert!(error.contains("`conversion(service = \"web\", namespace = \"pages\")`"), "{error}");
        }
    }

    #[test]
    fn certificate_is_for_the_hosts_that_attributes_name() {
        let cases = [
            (service("web", "/convert"), vec!["web.pages.svc"]),
            (json!({ "url": "https://a.example.com:9443/convert" }), vec!["a.example.com"]),
            (json!({ "url": "https://[::1]:9443/convert" }), vec!["::1"]),
            (Value::Null, vec![]),
        ];
        for (config, expected) in cases {
            assert_eq!(hosts(&crd(&config)), expected, "{config}");
        }
    }
}
