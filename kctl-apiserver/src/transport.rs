//! The way to webhooks: in-process ones by their host, all others over TLS.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use kctl_webhook::client::{Client, accepted};
use tokio::time::Instant;

use crate::session::{Question, Reply};

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
        let outcome = self.answer(question, review.to_string().into()).await;
        let outcome = outcome.and_then(|response| accepted(&response).map_err(|refused| refused.to_string()));
        Reply { uid, outcome }
    }

    async fn answer(&self, question: &Question, review: Bytes) -> Result<Response<Bytes>, String> {
        let deadline = Instant::now() + question.timeout;
        let Some(handler) = self.handler(&question.url) else { return over_tls(question, &review, deadline).await };
        let request = Request::post(&question.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, USER_AGENT)
            .body(review)
            .map_err(|error| failed(question, &error.to_string()))?;
        let answered = tokio::time::timeout_at(deadline, handler(request)).await;
        answered.map_err(|_elapsed| failed(question, "context deadline exceeded"))
    }
}

/// As Go's HTTP client words it.
fn failed(question: &Question, why: &str) -> String {
    format!("Post {:?}: {why}", question.url)
}

/// A connection of its own for each question: webhooks of tests come and go, with other certificates on the same port.
async fn over_tls(question: &Question, review: &Bytes, deadline: Instant) -> Result<Response<Bytes>, String> {
    let uri: Uri = question.url.parse().map_err(|error: http::uri::InvalidUri| failed(question, &error.to_string()))?;
    let (asked, dial) = (uri.authority().cloned(), question.dial.clone());
    // Where a Service has redirected to stands for itself.
    let resolve = move |uri: &Uri| Ok(dial.clone().filter(|_| uri.authority() == asked.as_ref()));
    let client = Client::new(uri, &question.trusted, USER_AGENT, Arc::new(resolve))?;
    client.ask(review, deadline).await.map_err(|error| error.to_string())
}
