//! One call: a POST over TLS, within a time and a size.

use std::{error::Error, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use serde_json::Value;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{
    configuration::Webhook,
    dial::{Dial, ServiceUnusable, Services},
    error::{CallFailed, HookError},
    patch, request, verify,
};
use crate::operation::{Inputs, Operation};

/// How long a webhook is waited for that names no timeout.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// The longest answer, in bytes: an object of the size that etcd takes (1.5 MiB), as text in base64, and more.
pub const ANSWER_LEN_MAX: usize = 8 << 20;
/// What of the text of an HTTP error is shown, in characters.
const ERROR_SHOWN_MAX: usize = 512;
/// Connections that are kept between calls.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// How long they are kept. Servers close theirs later: a request on a connection that is being closed fails.
const IDLE_CONNECTION_FOR: Duration = Duration::from_secs(30);

/// Calls one webhook.
pub(super) struct Caller {
    name: String,
    versions: Vec<String>,
    timeout: Duration,
    /// Or why it can't be called, which is told by each call.
    target: Result<Target, String>,
}

struct Target {
    uri: Uri,
    client: Client<HttpsConnector<Dial>, Full<Bytes>>,
}

impl Caller {
    pub(super) fn new(name: &str, webhook: &Webhook, services: Arc<dyn Services>) -> Self {
        let seconds = webhook.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        Self {
            name: name.to_owned(),
            versions: webhook.interpreter_context_versions.clone(),
            timeout: seconds.unwrap_or(TIMEOUT_DEFAULT),
            target: Target::new(webhook, seconds.unwrap_or(TIMEOUT_DEFAULT), services),
        }
    }

    /// Asks, and returns the answer in the form of [`Op::answer`](crate::operation::Op::answer).
    pub(super) async fn call(&self, operation: Operation, inputs: &Inputs) -> Result<Value, HookError> {
        let failed = |reason| HookError::Call { name: self.name.clone(), reason };
        let answer = self.answer(operation, inputs).await.map_err(failed)?;
        let object = inputs.object().unwrap_or(&Value::Null);
        let answered = patch::applied(operation, object, answer);
        answered.map_err(|problem| HookError::Patch { name: self.name.clone(), problem })
    }

    async fn answer(&self, operation: Operation, inputs: &Inputs) -> Result<verify::Answer, CallFailed> {
        let uid = request::uid()?;
        let body = request::body(&uid, &self.versions, operation, inputs)?;
        let target = self.target.as_ref().map_err(|problem| CallFailed::ClientUnusable(problem.clone()))?;
        let post = |problem: String| CallFailed::Request(format!("Post \"{}\": {problem}", target.uri));
        let answer = match tokio::time::timeout(self.timeout, target.post(body)).await {
            Ok(answer) => answer.map_err(|failed| match failed {
                PostFailed::Service(error) => CallFailed::Service(error),
                PostFailed::Network(problem) => post(problem),
                PostFailed::Http(problem) => CallFailed::Request(problem),
            })?,
            Err(_elapsed) => return Err(post("context deadline exceeded".into())),
        };
        verify::verify(&uid, operation, &answer)
    }
}

enum PostFailed {
    Service(ServiceUnusable),
    Network(String),
    Http(String),
}

impl Target {
    fn new(webhook: &Webhook, timeout: Duration, services: Arc<dyn Services>) -> Result<Self, String> {
        let config = &webhook.client_config;
        // As in Karmada, a Service goes before a URL.
        let (url, service) = match (&config.service, &config.url) {
            (Some(service), _) => {
                let (name, namespace, port) = (&service.name, &service.namespace, service.port);
                let path = service.path.trim_start_matches('/');
                (format!("https://{name}.{namespace}.svc:{port}/{path}"), Some((service.clone(), services)))
            }
            (None, Some(url)) => (url.clone(), None),
            (None, None) => return Err("webhook configuration must have either service or URL".into()),
        };
        let uri: Uri = url.parse().map_err(|error| format!("Unparsable webhook URL {url:?}: {error}"))?;
        if uri.scheme_str() != Some("https") || uri.host().is_none_or(str::is_empty) {
            return Err(format!("webhook URL {url:?} must begin with https:// and a host"));
        }
        let query = format!("{}?timeout={}s", uri.path(), timeout.as_secs());
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(query.parse().map_err(|error| format!("webhook path {query:?}: {error}"))?);
        let uri = Uri::from_parts(parts).map_err(|error| error.to_string())?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&config.ca_bundle)?)
            .https_only()
            // One connection a request at a time: a webhook that hangs holds back nothing but that request.
            .enable_http1()
            .wrap_connector(Dial::new(service));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION_FOR)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        Ok(Self { uri, client })
    }

    async fn post(&self, body: Vec<u8>) -> Result<Bytes, PostFailed> {
        let request = Request::post(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, concat!("kctl-interpreter/", env!("CARGO_PKG_VERSION")))
            .body(Full::from(body))
            .map_err(|error| PostFailed::Network(error.to_string()))?;
        let response = self.client.request(request).await.map_err(|error| not_sent(&error))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LEN_MAX).collect().await.map_err(|error| {
            PostFailed::Network(match error.downcast_ref::<LengthLimitError>() {
                Some(_) => format!("the answer has more than {ANSWER_LEN_MAX} bytes"),
                None => chained(error.as_ref()),
            })
        })?;
        accepted(&Response::from_parts(parts, body.to_bytes())).map_err(PostFailed::Http)
    }
}

/// The authorities that are trusted: those of the configuration, or those of the system where it names none.
fn tls(ca_bundle: &str) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if ca_bundle.is_empty() {
        let builder = builder.with_native_roots().map_err(|error| format!("the roots of the system: {error}"))?;
        return Ok(builder.with_no_client_auth());
    }
    let pem = STANDARD.decode(ca_bundle).map_err(|error| format!("caBundle: it is no base64: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("caBundle: it is no PEM: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    if roots.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The answer of a status that is one. The texts of others are those of client-go.
fn accepted(response: &Response<Bytes>) -> Result<Bytes, String> {
    let (status, body) = (response.status(), response.body());
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if status.is_success() {
        if body.is_empty() {
            let (code, content) = (status.as_u16(), header(header::CONTENT_TYPE));
            return Err(format!("0-length response with status code: {code} and content type: {content}"));
        }
        return Ok(body.clone());
    }
    if status.is_redirection() {
        let to = header(header::LOCATION);
        let code = status.as_u16();
        return Err(format!("the webhook redirects ({code}) to {to:?}, which is not followed: write the last address"));
    }
    let shown: String = String::from_utf8_lossy(body).trim().chars().take(ERROR_SHOWN_MAX).collect();
    let text = match status {
        StatusCode::INTERNAL_SERVER_ERROR => {
            return Err(format!("an error on the server ({shown:?}) has prevented the request from succeeding"));
        }
        StatusCode::NOT_FOUND => "the server could not find the requested resource",
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials",
        StatusCode::METHOD_NOT_ALLOWED => "the server does not allow this method on the requested resource",
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later"
        }
        StatusCode::SERVICE_UNAVAILABLE => "the server is currently unable to handle the request",
        _ => &format!("the server responded with the status code {}", status.as_u16()),
    };
    Err(if shown.is_empty() { text.to_owned() } else { format!("{text} ({shown:?})") })
}

fn not_sent(error: &hyper_util::client::legacy::Error) -> PostFailed {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(unusable) = error.downcast_ref::<ServiceUnusable>() {
            return PostFailed::Service(unusable.clone());
        }
        cause = error.source();
    }
    // The outermost error is that of the client itself, and says nothing.
    PostFailed::Network(error.source().map_or_else(|| error.to_string(), chained))
}

/// An error with its causes in one line.
fn chained(error: &(dyn Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.dedup();
    texts.join(": ")
}
