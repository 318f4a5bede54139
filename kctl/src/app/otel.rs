//! Spans sent to a collector by OTLP: a reconcile has the same trace id there, in the log and in
//! the audit log of the API server.

use std::sync::OnceLock;

use kctl_runtime::{
    reconcile::{Error, Result},
    trace::Trace,
};
use opentelemetry::{Key, KeyValue, SpanId, TraceId, trace::TracerProvider as _};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider, TracerProviderBuilder},
};
use tracing::Subscriber;
use tracing_subscriber::{Layer, registry::LookupSpan};

/// Kept so that pending spans can be sent when the program ends.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Environment variables with the address of a collector; without any of them nothing is sent.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The attribute with the name of the program.
const SERVICE_NAME: &str = "service.name";

/// Uses the trace id of the current reconcile, and random ids elsewhere.
///
/// The context sends the same ids in `traceparent`, so a collector joins the spans of the program and of the API
/// server.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        Trace::current().map_or_else(|| self.0.new_trace_id(), |trace| TraceId::from_bytes(trace.id().to_be_bytes()))
    }

    fn new_span_id(&self) -> SpanId {
        Trace::first_span().map_or_else(|| self.0.new_span_id(), |span| SpanId::from_bytes(span.to_be_bytes()))
    }
}

/// Returns a layer that turns `tracing` spans into OpenTelemetry spans, if the environment names a
/// collector.
///
/// The exporter reads its other settings from the variables of the OpenTelemetry specification.
///
/// # Errors
/// The address of the collector is not a URL.
pub(super) fn layer<S>(app: &str) -> Result<Option<impl Layer<S>>>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if !ENDPOINTS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_tonic().build();
    let exporter = exporter.map_err(|error| Error::from(format!("OTEL_EXPORTER_OTLP_ENDPOINT: {error}")))?;
    Trace::set_sampled(true);
    let provider = provider(app, SdkTracerProvider::builder().with_batch_exporter(exporter));
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("kctl"));
    let _already = PROVIDER.set(provider);
    Ok(Some(layer))
}

/// Returns a provider whose spans carry `service.name`: the app's name, unless the environment sets one.
fn provider(app: &str, builder: TracerProviderBuilder) -> SdkTracerProvider {
    // `Resource::builder` reads both `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`. The app's name is only a
    // default.
    let detected = Resource::builder().build();
    let name = KeyValue::new(SERVICE_NAME, app.to_owned());
    let resource = if is_named(&detected) { detected } else { Resource::builder().with_attribute(name).build() };
    builder.with_id_generator(Ids::default()).with_resource(resource).build()
}

/// Returns `true` if the environment names the program. Otherwise the SDK makes up a name such as `unknown_service:web`.
fn is_named(detected: &Resource) -> bool {
    let name = detected.get(&Key::from_static_str(SERVICE_NAME));
    name.is_some_and(|name| !name.as_str().starts_with("unknown_service"))
}

/// Sends pending spans; the exporter's timeout bounds the wait.
pub(super) async fn flush() {
    let Some(provider) = PROVIDER.get() else { return };
    if let Err(error) = shut_down(provider.clone()).await {
        tracing::warn!(%error, "the last spans were not sent");
    }
}

/// Shuts a provider down. It blocks another thread, because the exporter's connection is a task of this runtime, which may
/// have one thread alone.
async fn shut_down(provider: SdkTracerProvider) -> Result<(), String> {
    let ended = tokio::task::spawn_blocking(move || provider.shutdown()).await;
    ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use std::{process::Stdio, time::Duration};

    use opentelemetry::trace::Tracer as _;
    use opentelemetry_otlp::WithExportConfig;
    use opentelemetry_sdk::{
        error::{OTelSdkError, OTelSdkResult},
        trace::{SpanData, SpanExporter},
    };
    use parking_lot::Mutex;
    use tokio::{
        io::{AsyncBufReadExt, BufReader},
        sync::{mpsc, oneshot},
    };
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::{app::World, prelude::*};

    /// Keeps what a collector would get.
    #[derive(Debug, Clone, Default)]
    struct Kept(Arc<Mutex<Vec<SpanData>>>);

    impl SpanExporter for Kept {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().extend(batch);
            Ok(())
        }
    }

    /// Opens another span.
    #[controller(crate = crate)]
    async fn does(_config: Arc<ConfigMap>, _cx: Context<does>) -> Result<Action> {
        let _inner = tracing::info_span!("inner", trace = %Trace::current().unwrap()).entered();
        Ok(Action::await_change())
    }

    async fn reconcile(provider: &SdkTracerProvider) {
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("kctl"));
        let _traced = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        let world = World::start(&crate::App::new("does").controller::<does>()).await.unwrap();
        // Another test that enters a span while this subscriber is being set may cache that the span is disabled.
        tracing::callsite::rebuild_interest_cache();
        let mut object = ConfigMap::default();
        object.metadata.name = Some("web".into());
        crate::kube::Api::default_namespaced(world.client.clone())
            .create(&crate::kube::api::PostParams::default(), &object)
            .await
            .unwrap();
        world.idle(Duration::from_secs(10)).await.unwrap();
    }

    #[tokio::test]
    #[ignore = "needs Go: cargo xtask interop"]
    async fn foreign_collector_receives_the_spans() {
        let mut collector = tokio::process::Command::new("go");
        collector.args(["run", "."]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/interop/otlp"));
        collector.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut collector = collector.spawn().expect("go is there");
        let mut lines = BufReader::new(collector.stdout.take().unwrap()).lines();
        let endpoint = format!("http://{}", lines.next_line().await.unwrap().expect("the address"));
        let exporter =
            opentelemetry_otlp::SpanExporter::builder().with_tonic().with_endpoint(endpoint).build().unwrap();
        let provider = provider("does", SdkTracerProvider::builder().with_batch_exporter(exporter));
        reconcile(&provider).await;
        shut_down(provider).await.unwrap();
        drop(collector.stdin.take());
        let mut received = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            received.push(line);
        }
        let trace = |name: &str| {
            let line = received.iter().find_map(|line| line.strip_prefix(&format!("does {name} trace=")));
            line.map(|line| line.split(' ').next().unwrap().to_owned())
        };
        assert!(trace("reconcile").is_some(), "{received:?}");
        assert_eq!(trace("reconcile"), trace("inner"), "{received:?}");
    }

    /// Exports by a task of the runtime, as a connection does.
    #[derive(Debug)]
    struct ByTask(mpsc::UnboundedSender<oneshot::Sender<()>>);

    impl SpanExporter for ByTask {
        async fn export(&self, _batch: Vec<SpanData>) -> OTelSdkResult {
            let failed = |error: String| OTelSdkError::InternalFailure(error);
            let (done, sent) = oneshot::channel();
            self.0.send(done).map_err(|error| failed(error.to_string()))?;
            sent.await.map_err(|error| failed(error.to_string()))
        }
    }

    #[tokio::test]
    async fn runtime_with_one_thread_sends_the_last_spans() {
        let (exporter, mut batches) = mpsc::unbounded_channel();
        let connection = tokio::spawn(async move {
            let batch: Option<oneshot::Sender<()>> = batches.recv().await;
            batch.is_some_and(|done| done.send(()).is_ok())
        });
        let provider = provider("does", SdkTracerProvider::builder().with_batch_exporter(ByTask(exporter)));
        provider.tracer("kctl").in_span("last", |_context| {});
        shut_down(provider).await.unwrap();
        assert!(connection.await.unwrap(), "the span was exported");
    }

    #[test]
    fn made_up_service_name_is_ignored() {
        for (name, expected) in [("shop", true), ("unknown_service:web", false), ("unknown_service", false)] {
            let detected = Resource::builder_empty().with_attribute(KeyValue::new(SERVICE_NAME, name)).build();
            assert_eq!(is_named(&detected), expected, "{name}");
        }
        assert!(!is_named(&Resource::builder_empty().build()));
    }

    #[tokio::test]
    async fn reconcile_span_has_the_ids_of_its_requests() {
        let exporter = Kept::default();
        let provider = provider("does", SdkTracerProvider::builder().with_simple_exporter(exporter.clone()));
        reconcile(&provider).await;
        let spans = exporter.0.lock().clone();
        let inner = spans.iter().find(|span| span.name == "inner").expect("the inner span");
        let outer = spans.iter().find(|span| span.span_context.span_id() == inner.parent_span_id).expect("its parent");
        assert_eq!(outer.name, "reconcile");
        let trace_id = inner.attributes.iter().find(|pair| pair.key.as_str() == "trace").unwrap().value.to_string();
        assert_eq!(outer.span_context.trace_id().to_string(), trace_id);
        assert_eq!(inner.span_context.trace_id(), outer.span_context.trace_id());
    }
}
