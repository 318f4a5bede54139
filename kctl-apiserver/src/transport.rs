//! The way to webhooks: in-process ones by their host, all others over TLS when the server has sockets.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};

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
}
