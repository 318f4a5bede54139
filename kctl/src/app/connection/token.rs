//! A bearer token in a file that another program renews, as a client layer: read again every
//! minute, and after a 401.
//!
//! kube's client notices a new token only after a minute, which is longer than a Lease lasts.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use kube::{client::Body, config::AuthInfo};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// Maximum age of a token that was read (client-go, `NewCachedFileTokenSource`).
const TOKEN_TTL: Duration = Duration::from_secs(60);

/// The token of a file. Clones share what was read.
#[derive(Clone)]
pub(in crate::app) struct TokenFile {
    file: PathBuf,
    cached: Arc<Mutex<CachedToken>>,
}

/// The last token that was read, as a header.
struct CachedToken {
    header: HeaderValue,
    /// `None` once a server has rejected the token.
    read_at: Option<Instant>,
}

impl TokenFile {
    /// Takes a readable token file out of the configuration, with the token and plugin that it
    /// takes precedence over (client-go, `rest.Config`).
    pub(super) fn take(auth: &mut AuthInfo) -> Option<Self> {
        let file = PathBuf::from(auth.token_file.as_ref()?);
        let header = read(&file)?;
        (auth.token_file, auth.token, auth.exec) = (None, None, None);
        Some(Self { file, cached: Arc::new(Mutex::new(CachedToken { header, read_at: Some(Instant::now()) })) })
    }

    /// Returns the current token. If the file is no longer readable, the last token is kept.
    fn authorization_header(&self) -> HeaderValue {
        let mut cached = self.cached.lock();
        if cached.read_at.is_none_or(|read_at| read_at.elapsed() >= TOKEN_TTL) {
            cached.header = read(&self.file).unwrap_or_else(|| cached.header.clone());
            cached.read_at = Some(Instant::now());
        }
        cached.header.clone()
    }

    /// Records a 401 for a request that began at this time. A token that was read later may be
    /// valid.
    fn record_rejection(&self, begun: Instant) {
        let mut cached = self.cached.lock();
        cached.read_at = cached.read_at.filter(|read_at| *read_at > begun);
    }
}

fn read(file: &Path) -> Option<HeaderValue> {
    let token = std::fs::read_to_string(file).ok()?;
    let mut header =
        HeaderValue::try_from(format!("Bearer {}", token.trim())).ok().filter(|_| !token.trim().is_empty())?;
    header.set_sensitive(true);
    Some(header)
}

impl<S> Layer<S> for TokenFile {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken { inner, token: self.clone() }
    }
}

/// A service that adds the token.
pub(in crate::app) struct WithToken<S> {
    inner: S,
    token: TokenFile,
}

impl<S, B> Service<Request<Body>> for WithToken<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError, Future: Send + 'static>,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let begun = Instant::now();
        request.headers_mut().insert(AUTHORIZATION, self.token.authorization_header());
        let (token, response) = (self.token.clone(), self.inner.call(request));
        Box::pin(async move {
            let response = response.await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                token.record_rejection(begun);
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let file = std::env::temp_dir().join(format!("kctl-token-{name}-{}", std::process::id()));
            std::fs::write(&file, text).unwrap();
            Self(file)
        }

        fn write(&self, text: &str) {
            std::fs::write(&self.0, text).unwrap();
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            // A test may have removed it.
            let _gone = std::fs::remove_file(&self.0);
        }
    }

    fn token_file(file: &File) -> TokenFile {
        let mut auth = AuthInfo {
            token_file: Some(file.0.display().to_string()),
            token: Some("inline".to_owned().into()),
            ..AuthInfo::default()
        };
        let token = TokenFile::take(&mut auth).unwrap();
        assert!(auth.token_file.is_none() && auth.token.is_none(), "kube's client would put them over it");
        token
    }

    /// Sends a request to a server that accepts one token. Returns its header `Authorization`, and the status code.
    async fn ask(token: &TokenFile, accepted: &'static str) -> (String, u16) {
        let server = tower::service_fn(move |request: Request<Body>| async move {
            let seen = request.headers()[AUTHORIZATION].to_str().unwrap().to_owned();
            let status = if seen == format!("Bearer {accepted}") { 200 } else { 401 };
            Ok::<_, BoxError>(Response::builder().status(status).body(seen).unwrap())
        });
        let response = token.layer(server).oneshot(Request::new(Body::empty())).await.unwrap();
        (response.body().clone(), response.status().as_u16())
    }

    #[tokio::test(start_paused = true)]
    async fn token_is_reread_after_a_401_response() {
        let file = File::new("rejected", "one\n");
        let token = token_file(&file);
        assert_eq!(ask(&token, "one").await, ("Bearer one".into(), 200));
        file.write("two\n");
        assert_eq!(ask(&token, "one").await, ("Bearer one".into(), 200), "it is not read for each request");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ask(&token, "two").await, ("Bearer one".into(), 401));
        assert_eq!(ask(&token, "two").await, ("Bearer two".into(), 200));
    }

    #[tokio::test(start_paused = true)]
    async fn token_is_reread_every_minute_and_outlives_file() {
        let file = File::new("minute", "one");
        let token = token_file(&file);
        file.write("two");
        tokio::time::advance(TOKEN_TTL.checked_sub(Duration::from_millis(1)).unwrap()).await;
        assert_eq!(ask(&token, "one").await.1, 200);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(ask(&token, "two").await.1, 200);
        std::fs::remove_file(&file.0).unwrap();
        tokio::time::advance(TOKEN_TTL).await;
        assert_eq!(ask(&token, "two").await.1, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn response_to_an_older_token_causes_no_reread() {
        let file = File::new("older", "one");
        let token = token_file(&file);
        let begun = Instant::now();
        tokio::time::advance(TOKEN_TTL).await;
        assert_eq!(ask(&token, "one").await.1, 200);
        token.record_rejection(begun);
        file.write("two");
        assert_eq!(ask(&token, "one").await.1, 200, "it is still the one of a moment ago");
    }

    #[test]
    fn unreadable_token_file_is_reported_by_the_client() {
        let empty = File::new("empty", " \n");
        for file in ["/nowhere/token", empty.0.to_str().unwrap()] {
            let mut auth = AuthInfo { token_file: Some(file.into()), ..AuthInfo::default() };
            assert!(TokenFile::take(&mut auth).is_none() && auth.token_file.is_some(), "{file}");
        }
    }
}
