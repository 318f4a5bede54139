//! A client for webhooks of others: a POST over TLS with a deadline and a size limit, as Go's
//! clients send it.
//!
//! An embedded API server or a control plane calls webhooks with it.
//!
//! Differences from Go: a redirect is followed to https only, the certificate must always be valid for the called host,
//! and a response has at most [`RESPONSE_LEN_MAX`] bytes.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//! use bytes::Bytes;
//! use kctl_webhook::client::{Client, check_response};
//! use tokio::time::Instant;
//!
//! # async fn call(ca_bundle: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let uri = "https://web.default.svc/validate?timeout=10s".parse()?;
//! // The address of the Service, for the host name of the URI:
//! let client = Client::new(uri, ca_bundle, "kube-apiserver-admission", Arc::new(|_uri| Ok(Some("10.0.0.7:443".into()))))?;
//! let response = client.call(&Bytes::from("{}"), Instant::now() + Duration::from_secs(10)).await?;
//! println!("{:?}", check_response(&response)?);
//! # Ok(())
//! # }
//! ```

mod accept;
mod connect;
mod patch_form;
mod patch_limits;
mod redirect;
#[cfg(test)]
mod tests;

use std::{error::Error, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::{
    ClientConfig,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use self::connect::Connect;
pub use self::{
    accept::{ResponseError, check_response},
    connect::Resolve,
    patch_form::normalize_operation,
    patch_limits::{CopyBudget, CopyLimitError, PATCH_COPIED_LEN_MAX, PATCH_OPERATIONS_MAX},
};
use crate::{
    error_chain::{causes, error_chain},
    trust::Trust,
};

/// Maximum length of a response in bytes: an object of the maximum size of etcd (1.5 MiB) as
/// base64, with room to spare.
pub const RESPONSE_LEN_MAX: usize = 8 << 20;
/// Maximum number of retries after a `Retry-After` in one call, as in client-go.
const RETRIES_MAX: u32 = 10;
const IDLE_CONNECTIONS_MAX: usize = 8;
/// Lifetime of an idle connection. Servers close theirs later: a request on a connection that is
/// being closed fails.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one webhook, with a pool of connections to it.
pub struct Client {
    uri: Uri,
    user_agent: HeaderValue,
    http: legacy::Client<HttpsConnector<Connect>, Full<Bytes>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("host", &self.uri.host()).finish_non_exhaustive()
    }
}

/// A request without a response. The message has the URL and the causes.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct ClientError {
    problem: String,
    source: Option<legacy::Error>,
}

impl ClientError {
    /// Returns the error of [`Resolve`], if that is the cause.
    pub fn resolver_error<E: Error + 'static>(&self) -> Option<&E> {
        causes(self.source.as_ref()?).find_map(|error| error.downcast_ref())
    }
}

impl From<String> for ClientError {
    fn from(problem: String) -> Self {
        Self { problem, source: None }
    }
}

impl Client {
    /// Creates a client.
    ///
    /// `uri` is the address with its query. `ca_bundle` is base64-encoded PEM, as in webhook
    /// configurations; if it is empty, the system's roots are trusted. `resolve` returns the
    /// address to connect to.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kctl_webhook::client::Client;
    ///
    /// let client = Client::new("https://example.com/".parse().unwrap(), "!", "test", Arc::new(|_uri| Ok(None)));
    /// assert!(client.err().is_some_and(|error| error.contains("caBundle")));
    /// ```
    ///
    /// # Errors
    /// `ca_bundle` is invalid; the message says why.
    pub fn new(uri: Uri, ca_bundle: &str, user_agent: &'static str, resolve: Resolve) -> Result<Self, String> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(ca_bundle)?)
            .https_only()
            // HTTP/1.1 has one request per connection at a time, so a webhook that hangs delays only that request.
            .enable_http1()
            .wrap_connector(Connect::new(resolve));
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        Ok(Self { uri, user_agent: HeaderValue::from_static(user_agent), http })
    }

    /// Sends a request and returns the response, which may be a rejection: see [`check_response`].
    ///
    /// Like client-go, it sends the request again after a response with `Retry-After`, at most ten
    /// times. The deadline ends it in any case.
    ///
    /// # Errors
    /// The webhook did not respond, or not in time.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection; the webhook may have received the request.
    pub async fn call(&self, body: &Bytes, deadline: Instant) -> Result<Response<Bytes>, ClientError> {
        let mut n_again = 0;
        loop {
            let response = self.follow(body, deadline).await?;
            let Some(wait) = accept::retry_after(&response).filter(|_| n_again < RETRIES_MAX) else {
                return Ok(response);
            };
            n_again += 1;
            timeout_at(deadline, tokio::time::sleep(wait)).await.map_err(|_elapsed| timeout_error(&self.uri))?;
        }
    }

    /// Sends a request and follows redirects. Errors name the method of the first request, `Post`, even if a redirect
    /// made it a GET.
    async fn follow(&self, body: &Bytes, deadline: Instant) -> Result<Response<Bytes>, ClientError> {
        let (mut method, mut uri) = (Method::POST, self.uri.clone());
        for _ in 0..redirect::REQUESTS_MAX {
            let body = if method == Method::POST { body.clone() } else { Bytes::new() };
            let sent =
                timeout_at(deadline, self.send(&method, &uri, body)).await.map_err(|_elapsed| timeout_error(&uri))?;
            let (parts, body) = sent?.into_parts();
            match redirect::follow(&parts, &method, &uri)? {
                None => return Ok(Response::from_parts(parts, read(body, deadline).await?)),
                Some(next) => (method, uri) = (next.method, next.to),
            }
        }
        Err(format!("Post \"{uri}\": stopped after {} redirects", redirect::REQUESTS_MAX).into())
    }

    async fn send(&self, method: &Method, to: &Uri, body: Bytes) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(to)
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, &self.user_agent);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::from(body)).map_err(|error| format!("Post \"{to}\": {error}"))?;
        self.http.request(request).await.map_err(|error| {
            let problem = format!("Post \"{to}\": {}", error_chain(&error));
            ClientError { problem, source: Some(error) }
        })
    }
}

fn timeout_error(uri: &Uri) -> ClientError {
    format!("Post \"{uri}\": context deadline exceeded").into()
}

/// Reads a body to its end, its maximum length, or the deadline.
async fn read(body: Incoming, deadline: Instant) -> Result<Bytes, ClientError> {
    let broken = |problem: String| Err(format!("failed to read the response: {problem}").into());
    match timeout_at(deadline, Limited::new(body, RESPONSE_LEN_MAX).collect()).await {
        Err(_elapsed) => broken("context deadline exceeded".into()),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(format!("the response has more than {RESPONSE_LEN_MAX} bytes").into())
        }
        Ok(Err(error)) => broken(error_chain(error.as_ref())),
    }
}

/// Returns the TLS settings for the authorities of the configuration, or for the system's authorities if it names none.
fn tls(ca_bundle: &str) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if ca_bundle.is_empty() {
        let builder = builder.with_native_roots().map_err(|error| format!("the roots of the system: {error}"))?;
        return Ok(builder.with_no_client_auth());
    }
    let pem = STANDARD.decode(ca_bundle).map_err(|error| format!("caBundle: it is not base64: {error}"))?;
    let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let authorities = authorities.map_err(|error| format!("caBundle: it is not PEM: {error}"))?;
    if authorities.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let trust = Trust::new(authorities, provider).map_err(|error| format!("caBundle: {error}"))?;
    let trust = Arc::new(trust);
    Ok(builder.dangerous().with_custom_certificate_verifier(trust).with_no_client_auth())
}
