//! One call: a POST over TLS, within a time and a size.

use std::{error::Error, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::{
    ClientConfig,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{
    accept,
    configuration::{ClientConfig as At, Webhook},
    dial::{Dial, ServiceUnusable, Services},
    error::{CallFailed, HookError},
    patch, redirect, request,
    trust::Trust,
    verify,
};
use crate::operation::{Inputs, Operation};

/// How long a webhook is waited for that names no timeout.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// The longest answer, in bytes: an object of the size that etcd takes (1.5 MiB), as text in base64, and more.
pub const ANSWER_LEN_MAX: usize = 8 << 20;
/// How often a webhook that says when is asked again in one call, as client-go has it.
const RETRIES_MAX: u32 = 10;
/// Connections that are kept between calls.
const IDLE_CONNECTIONS_MAX: usize = 8;
/// How long they are kept. Servers close theirs later: a request on a connection that is being closed fails.
const IDLE_CONNECTION_FOR: Duration = Duration::from_secs(30);

/// Calls one webhook.
pub(super) struct Caller {
    name: String,
    versions: Vec<String>,
    timeout: Duration,
    /// What the target was made of.
    at: At,
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
            at: webhook.client_config.clone(),
            target: Target::new(webhook, seconds.unwrap_or(TIMEOUT_DEFAULT), services),
        }
    }

    /// Whether it calls what a webhook has become, as that wants it: its connections are still good then.
    pub(super) fn is_of(&self, name: &str, webhook: &Webhook) -> bool {
        let seconds = webhook.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        self.name == name
            && self.versions == webhook.interpreter_context_versions
            && self.timeout == seconds.unwrap_or(TIMEOUT_DEFAULT)
            && self.at == webhook.client_config
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
        let answer = target.ask(&body.into(), Instant::now() + self.timeout).await.map_err(|failed| match failed {
            PostFailed::Service(error) => CallFailed::Service(error),
            PostFailed::Http(problem) => CallFailed::Request(problem),
        })?;
        verify::verify(&uid, operation, &answer)
    }
}

enum PostFailed {
    Service(ServiceUnusable),
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

    /// Asks; again where the webhook says when, as client-go does. The deadline ends it in any case.
    async fn ask(&self, body: &Bytes, deadline: Instant) -> Result<Bytes, PostFailed> {
        let mut n_again = 0;
        loop {
            let response = self.follow(body, deadline).await?;
            let Some(wait) = accept::retry_after(&response).filter(|_| n_again < RETRIES_MAX) else {
                return accept::accepted(&response).map_err(PostFailed::Http);
            };
            n_again += 1;
            timeout_at(deadline, tokio::time::sleep(wait)).await.map_err(|_elapsed| late(&self.uri))?;
        }
    }

    /// Sends a request, and goes where it is sent.
    async fn follow(&self, body: &Bytes, deadline: Instant) -> Result<Response<Bytes>, PostFailed> {
        let (mut method, mut at) = (Method::POST, self.uri.clone());
        let mut last = String::new();
        for _ in 0..redirect::REQUESTS_MAX {
            let body = if method == Method::POST { body.clone() } else { Bytes::new() };
            let sent = timeout_at(deadline, self.send(&method, &at, body)).await.map_err(|_elapsed| late(&at))?;
            let (parts, body) = sent?.into_parts();
            match redirect::of(&parts, &method, &at).map_err(PostFailed::Http)? {
                None => return Ok(Response::from_parts(parts, read(body, deadline).await?)),
                Some(next) => (method, at, last) = (next.method, next.to, next.said),
            }
        }
        Err(PostFailed::Http(format!("Post {last:?}: stopped after {} redirects", redirect::REQUESTS_MAX)))
    }

    async fn send(&self, method: &Method, to: &Uri, body: Bytes) -> Result<Response<Incoming>, PostFailed> {
        let mut request = Request::builder()
            .method(method)
            .uri(to)
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, concat!("kctl-interpreter/", env!("CARGO_PKG_VERSION")));
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let failed = |problem: String| PostFailed::Http(format!("Post \"{to}\": {problem}"));
        let request = request.body(Full::from(body)).map_err(|error| failed(error.to_string()))?;
        self.client.request(request).await.map_err(|error| not_sent(&error, failed))
    }
}

fn late(uri: &Uri) -> PostFailed {
    PostFailed::Http(format!("Post \"{uri}\": context deadline exceeded"))
}

/// Reads a body to its end, its bound, or the deadline.
async fn read(body: Incoming, deadline: Instant) -> Result<Bytes, PostFailed> {
    let broken = |problem: String| {
        let text = "unexpected error when reading response body. Please retry. Original error";
        PostFailed::Http(format!("{text}: {problem}"))
    };
    match timeout_at(deadline, Limited::new(body, ANSWER_LEN_MAX).collect()).await {
        Err(_elapsed) => Err(broken("context deadline exceeded".into())),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(match error.downcast_ref::<LengthLimitError>() {
            Some(_) => PostFailed::Http(format!("the answer has more than {ANSWER_LEN_MAX} bytes")),
            None => broken(chained(error.as_ref())),
        }),
    }
}

/// The authorities that are trusted: those of the configuration, or those of the system where it names none.
fn tls(ca_bundle: &str) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if ca_bundle.is_empty() {
        let builder = builder.with_native_roots().map_err(|error| format!("the roots of the system: {error}"))?;
        return Ok(builder.with_no_client_auth());
    }
    let pem = STANDARD.decode(ca_bundle).map_err(|error| format!("caBundle: it is no base64: {error}"))?;
    let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let authorities = authorities.map_err(|error| format!("caBundle: it is no PEM: {error}"))?;
    if authorities.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let trust = Arc::new(Trust::new(authorities, provider)?);
    Ok(builder.dangerous().with_custom_certificate_verifier(trust).with_no_client_auth())
}

fn not_sent(error: &hyper_util::client::legacy::Error, failed: impl FnOnce(String) -> PostFailed) -> PostFailed {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(unusable) = error.downcast_ref::<ServiceUnusable>() {
            return PostFailed::Service(unusable.clone());
        }
        cause = error.source();
    }
    // The outermost error is that of the client itself, and says nothing.
    failed(error.source().map_or_else(|| error.to_string(), chained))
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
