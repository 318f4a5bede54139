//! Sends the calls of webhooks: to handlers in this process by their host, to all others over TLS.
//!
//! Calls are made without the lock of the server. Their results go to the round of the request
//! (`webhook_round.rs`), which runs again with them.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use kctl_webhook::client::{Client, check_response};
use tokio::time::Instant;

use crate::webhook_round::{WebhookCall, WebhookReply};

/// The `User-Agent` that kube-apiserver sends to webhooks.
const USER_AGENT: &str = "kube-apiserver-admission";

/// The pending response of a handler.
type HandlerFuture = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;
/// A webhook that runs in this process. It gets the whole request and returns the whole response; streams are not
/// supported.
type Handler = Arc<dyn Fn(Request<Bytes>) -> HandlerFuture + Send + Sync>;

/// Handlers of webhooks that run in this process, by host or `host:port`.
#[derive(Clone, Default)]
pub(crate) struct Transport {
    /// The handlers, by `host` or `host:port`.
    in_process: HashMap<String, Handler>,
}

impl Transport {
    /// Registers a handler for a host, and replaces an earlier one.
    pub(crate) fn serve<F>(&mut self, host: &str, handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.in_process.insert(host.into(), Arc::new(move |request| Box::pin(handler(request))));
    }

    /// Returns `true` if a handler in this process serves the host of the URL.
    pub(crate) fn is_in_process(&self, url: &str) -> bool {
        self.handler(url).is_some()
    }

    /// Returns the handler for the authority of a URL, or else for its host without the port. A handler for `host:443`
    /// serves only that port, one for `host` any.
    fn handler(&self, url: &str) -> Option<&Handler> {
        let uri: Uri = url.parse().ok()?;
        let whole = uri.authority().map(http::uri::Authority::as_str);
        whole.and_then(|host| self.in_process.get(host)).or_else(|| self.in_process.get(uri.host()?))
    }

    /// Sends a call with this `request.uid`, and waits for the response at most `call.timeout`. The uid is set here and
    /// not in the call, so that calls can be compared between the runs of a request.
    pub(crate) async fn send(&self, call: &WebhookCall, uid: String) -> WebhookReply {
        let mut review = call.review.clone();
        review["request"]["uid"] = uid.clone().into();
        let outcome = self.send_review(call, review.to_string().into()).await;
        let outcome = outcome.and_then(|response| check_response(&response).map_err(|rejected| rejected.to_string()));
        WebhookReply { uid, outcome }
    }

    /// Returns the response of a handler in the process or of a server. The deadline of a handler in this process is
    /// the same as over the network, so a test sees the same timeout.
    async fn send_review(&self, call: &WebhookCall, review: Bytes) -> Result<Response<Bytes>, String> {
        let deadline = Instant::now() + call.timeout;
        let Some(handler) = self.handler(&call.url) else { return over_tls(call, &review, deadline).await };
        let request = Request::post(&call.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, USER_AGENT)
            .body(review)
            .map_err(|error| call_error(call, &error.to_string()))?;
        let answered = tokio::time::timeout_at(deadline, handler(request)).await;
        answered.map_err(|_elapsed| call_error(call, &format!("no response within {:?}", call.timeout)))
    }
}

/// Returns the error of a failed call. The client sees it in the error response to its request.
fn call_error(call: &WebhookCall, why: &str) -> String {
    format!("{}: {why}", call.url)
}

/// Sends a call over TLS on a new connection. Connections are not reused: tests start several webhooks on the same
/// port, with other certificates.
async fn over_tls(call: &WebhookCall, review: &Bytes, deadline: Instant) -> Result<Response<Bytes>, String> {
    let uri: Uri = call.url.parse().map_err(|error: http::uri::InvalidUri| call_error(call, &error.to_string()))?;
    let (authority, dial) = (uri.authority().cloned(), call.dial.clone());
    // The address of the Service replaces only the authority of the call. A redirect to another host is resolved by
    // name.
    let resolve = move |uri: &Uri| Ok(dial.clone().filter(|_| uri.authority() == authority.as_ref()));
    let client = Client::new(uri, &call.trusted, USER_AGENT, Arc::new(resolve))?;
    client.call(review, deadline).await.map_err(|error| error.to_string())
}
