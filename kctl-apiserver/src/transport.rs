//! The way to webhooks: in-process ones by their host, all others over TLS.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};

use crate::session::{Question, Reply};

/// Longest answer of a webhook that is read.
const ANSWER_LEN_MAX: usize = 3 * 1024 * 1024;
/// What requests call themselves.
const USER_AGENT: &str = "kube-apiserver-admission";

type Answering = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;
/// A webhook that lives in this process.
type Handler = Arc<dyn Fn(Request<Bytes>) -> Answering + Send + Sync>;

/// Who answers for which host.
#[derive(Clone, Default)]
pub(crate) struct Transport {
    in_process: HashMap<String, Handler>,
}

impl Transport {
    pub(crate) fn serve<F>(&mut self, host: &str, handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.in_process.insert(host.into(), Arc::new(move |request| Box::pin(handler(request))));
    }

    /// Whether a webhook in this process answers for the host of an URL.
    pub(crate) fn knows(&self, url: &str) -> bool {
        self.handler(url).is_some()
    }

    fn handler(&self, url: &str) -> Option<&Handler> {
        let uri: Uri = url.parse().ok()?;
        let whole = uri.authority().map(http::uri::Authority::as_str);
        whole.and_then(|host| self.in_process.get(host)).or_else(|| self.in_process.get(uri.host()?))
    }

    /// Asks, for as long as the question gives time.
    pub(crate) async fn ask(&self, question: &Question, uid: String) -> Reply {
        let mut review = question.review.clone();
        review["request"]["uid"] = uid.clone().into();
        let answered = tokio::time::timeout(question.timeout, self.answer(question, review.to_string().into())).await;
        let outcome = answered.unwrap_or_else(|_| Err(failed(question, "context deadline exceeded")));
        Reply { uid, outcome }
    }

    async fn answer(&self, question: &Question, review: Bytes) -> Result<(StatusCode, Bytes), String> {
        let request = Request::post(&question.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT)
            .body(review)
            .map_err(|error| failed(question, &error.to_string()))?;
        if let Some(handler) = self.handler(&question.url) {
            let response = handler(request).await;
            return Ok((response.status(), response.into_body()));
        }
        over_tls(question, request).await.map_err(|error| failed(question, &innermost(error.as_ref())))
    }
}

/// As Go's HTTP client words it.
fn failed(question: &Question, why: &str) -> String {
    format!("Post {:?}: {why}", question.url)
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A connection of its own for each question: webhooks of tests come and go, with other certificates on the same port.
async fn over_tls(question: &Question, request: Request<Bytes>) -> Result<(StatusCode, Bytes), AnyError> {
    let uri = request.uri().clone();
    let authority = uri.authority().ok_or("the URL has no host")?;
    let dial = question.dial.as_deref().unwrap_or(authority.as_str());
    let mut config = kube::Config::new(format!("https://{dial}").parse()?);
    config.default_retry = false;
    config.tls_server_name = question.dial.is_some().then(|| authority.host().to_owned());
    if !question.trusted.is_empty() {
        config.root_cert = Some(certificates(&question.trusted)?);
    }
    let client = kube::Client::try_from(config)?;
    let (mut head, body) = request.into_parts();
    head.uri = uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let response = client.send(Request::from_parts(head, kube::client::Body::from(body))).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_LEN_MAX).collect().await?;
    Ok((status, body.to_bytes()))
}

/// The certificates of a `caBundle`, as DER.
fn certificates(bundle: &str) -> Result<Vec<Vec<u8>>, AnyError> {
    let text = String::from_utf8(STANDARD.decode(bundle)?)?;
    let blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    let decoded = blocks.map(|block| {
        let end = block.find("-----END CERTIFICATE-----").ok_or("a certificate of the caBundle does not end")?;
        let letters: String = block[..end].chars().filter(|letter| !letter.is_whitespace()).collect();
        Ok::<_, AnyError>(STANDARD.decode(letters)?)
    });
    decoded.collect()
}
