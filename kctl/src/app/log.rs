//! Log output: lines for people, or JSON for machines, both on standard error.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    fmt,
    io::{IsTerminal, Write},
    sync::{Arc, OnceLock},
};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{Directive, LevelFilter},
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use super::settings::closest_name;

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Text without the time, for `dev`: the simulated time differs from the real one, and the output is reproducible.
    #[value(skip)]
    Timeless,
}

/// The format of the first call of [`begin`].
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Installs the log subscriber, filtered by `RUST_LOG` (default `info`), and, with the feature `otel` and a collector in the environment,
/// sends spans.
pub(super) fn begin(
    #[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "names what a collector gets"))] app: &str,
    format: LogFormat,
) {
    // kube's client logs each failed request a second time, without its name, and so does the verifier of certificates.
    let mut usual = "info,kube_client::client=off,rustls_platform_verifier=off".to_owned();
    if format == LogFormat::Timeless {
        // Leaves out the lines about the start: `dev` starts quickly and prints the writes of the controllers itself.
        usual += ",kctl_runtime::manager::lifecycle=warn";
    }
    let (filter, mistake) = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(directives) => filter(&directives, &usual),
        Err(_unset) => (EnvFilter::new(&usual), None),
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = std::io::stderr().is_terminal() && !no_color;
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colored).log_internal_errors(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match FORMAT.get_or_init(|| format) {
        LogFormat::Text => lines.boxed(),
        LogFormat::Timeless => lines.without_time().boxed(),
        LogFormat::Json => JsonLines { write: Arc::new(to_stderr) }.boxed(),
    };
    let all = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otel")]
    let (spans, problem) = super::otel::layer(app).map_or_else(|error| (None, Some(error)), |layer| (layer, None));
    #[cfg(feature = "otel")]
    let all = all.with(spans);
    let _already = all.with(filter).try_init();
    if is_json() {
        std::panic::set_hook(Box::new(log_panic));
    }
    if let Some(mistake) = mistake {
        print_or_log_warning(format_args!("{mistake}"));
    }
    #[cfg(feature = "otel")]
    if let Some(error) = problem {
        tracing::error!("no spans are sent: {error}");
    }
}

/// Returns the filter of `RUST_LOG`. With an invalid directive it is the usual one, and a line about the directive.
fn filter(directives: &str, usual: &str) -> (EnvFilter, Option<String>) {
    let invalid = directives.split(',').filter(|text| !text.is_empty()).find_map(|text| {
        let error = text.parse::<Directive>().err()?;
        Some(format!("RUST_LOG is ignored: `{text}` is not a directive ({error}); write for example `info,kctl=debug`"))
    });
    match invalid {
        Some(mistake) => (EnvFilter::new(usual), Some(mistake)),
        None => match misspelt_level(directives) {
            // The filter would drop the line about itself.
            Some(mistake) => (EnvFilter::new(format!("{directives},{}=warn", module_path!())), Some(mistake)),
            None => (EnvFilter::new(directives), None),
        },
    }
}

/// Logs a panic. The standard hook writes several lines of text instead. Backtraces follow `RUST_BACKTRACE` as there.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let location = panic.location().map(ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let thread = std::thread::current();
    let (location, backtrace, thread) = (location.as_deref(), backtrace.as_deref(), thread.name());
    tracing::error!(location, thread, backtrace, "panic: {}", text.unwrap_or("without a message"));
}

/// The names of levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Crates whose names look like a misspelt level.
const CRATES: [&str; 2] = ["tracing", "warp"];

/// Returns a line about a directive that looks like a misspelt level. It is the name of a target, and the log has no others.
fn misspelt_level(directives: &str) -> Option<String> {
    directives.split(',').map(str::trim).find_map(|text| {
        let is_level = text.parse::<LevelFilter>().is_ok();
        let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_level || !is_name || CRATES.contains(&text) {
            return None;
        }
        let name = text.to_ascii_lowercase();
        let longer = LEVELS.into_iter().find(|level| name.starts_with(level));
        let meant = longer.or_else(|| closest_name(&name, LEVELS.into_iter()))?;
        Some(format!("RUST_LOG: `{text}` selects the target of that name alone; is the level `{meant}` meant?"))
    })
}

/// Prints a line for people, or logs it if the log is JSON.
pub(super) fn print_or_log(text: fmt::Arguments<'_>) {
    if is_json() {
        tracing::info!("{text}");
    } else {
        to_stderr(&format!("{text}\n"));
    }
}

/// Prints a warning for people, or logs it if the log is JSON.
pub(super) fn print_or_log_warning(text: fmt::Arguments<'_>) {
    if is_json() {
        tracing::warn!("{text}");
    } else {
        to_stderr(&format!("{text}\n"));
    }
}

/// Prints why the program ends, as `main` would, or logs it if the log is JSON.
pub(super) fn print_or_log_error(error: &str) {
    if is_json() {
        tracing::error!("{error}");
    } else {
        to_stderr(&format!("Error: {error}\n"));
    }
}

/// Returns `true` if the log is JSON: then nothing else is written to standard error.
pub(super) fn is_json() -> bool {
    FORMAT.get() == Some(&LogFormat::Json)
}

/// Writes to standard error; a closed reader is not an error.
fn to_stderr(line: &str) {
    let _unread = std::io::stderr().write_all(line.as_bytes());
}

/// Writes a JSON object per event: time, level, target and message, with the fields of its spans
/// and its own.
///
/// Fields of inner spans replace fields of outer spans, and the event's own come last.
struct JsonLines {
    write: Arc<dyn Fn(&str) + Send + Sync>,
}

/// The fields of a span or event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    /// Adds a field; the last value of a name counts.
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.clone());
            }
        }
        event.record(&mut line);
        // These members describe the event, so they replace fields of the same name.
        let own = [
            ("timestamp", Timestamp::now().to_string()),
            ("level", event.metadata().level().to_string()),
            ("target", event.metadata().target().to_owned()),
        ];
        line.0.extend(own.map(|(name, value)| (name.to_owned(), value.into())));
        (self.write)(&format!("{}\n", Value::Object(line.0)));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// Returns the lines that are written while `what` runs, as objects without their times.
    pub(crate) fn capture_logs(what: impl FnOnce()) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(String::new()));
        let written = lines.clone();
        let layer = JsonLines { write: Arc::new(move |line| written.lock().push_str(line)) };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::callsite::rebuild_interest_cache();
            what();
        });
        let text = lines.lock().clone();
        let parsed = text.lines().map(|line| {
            let mut object: Value = serde_json::from_str(line).unwrap();
            let time = object.as_object_mut().unwrap().remove("timestamp").unwrap();
            time.as_str().unwrap().parse::<Timestamp>().unwrap();
            object
        });
        parsed.collect()
    }

    #[test]
    fn invalid_directive_of_rust_log_is_named() {
        for valid in ["", "debug", "info,kctl=debug", "warn,,kctl[reconcile]=trace"] {
            let (_filter, mistake) = filter(valid, "info");
            assert_eq!(mistake, None, "{valid}");
        }
        let (usual, mistake) = filter("info,kctl=loud", "warn");
        assert_eq!(usual.to_string(), "warn");
        let mistake = mistake.unwrap();
        assert!(mistake.starts_with("RUST_LOG is ignored: `kctl=loud` is not a directive ("), "{mistake}");
    }

    #[test]
    fn misspelt_level_of_rust_log_is_named() {
        for (directives, meant) in
            [("warning", "warn"), ("info,kctl=debug,INFORMATION", "info"), ("dbug", "debug"), ("eror", "error")]
        {
            let (filter, mistake) = filter(directives, "info");
            let mistake = mistake.unwrap_or_else(|| panic!("{directives}"));
            assert!(mistake.ends_with(&format!("alone; is the level `{meant}` meant?")), "{directives}: {mistake}");
            assert!(filter.to_string().contains("kctl::app::log=warn"), "{filter}");
        }
        for directives in ["my_app", "kctl", "hyper", "tower", "tracing", "warn", "WARN", "kctl::app", "3"] {
            assert_eq!(filter(directives, "info").1, None, "{directives}");
        }
    }

    #[test]
    fn panic_is_one_json_line() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(log_panic));
        let lines = capture_logs(|| {
            let _panicked = std::panic::catch_unwind(|| panic!("it broke\nin two lines"));
        });
        std::panic::set_hook(usual);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0]["level"], "ERROR");
        assert_eq!(lines[0]["message"], "panic: it broke\nin two lines");
        let location = lines[0]["location"].as_str().unwrap();
        assert!(location.contains("log.rs:"), "{location}");
    }

    #[test]
    fn json_line_has_fields_of_spans_and_event() {
        let lines = capture_logs(|| {
            let outer = tracing::info_span!("reconcile", controller = "odd", key = %"default/web", later = tracing::field::Empty);
            outer.record("later", 7);
            let _outer = outer.entered();
            let _inner = tracing::info_span!("call", attempt = 2_u64, controller = "inner").entered();
            tracing::warn!(ratio = 0.5, ok = true, "a \"quoted\"\nline with \u{1b}[31m");
        });
        let expected = serde_json::json!({
            "level": "WARN", "target": "kctl::app::log::tests", "message": "a \"quoted\"\nline with \u{1b}[31m",
            "controller": "inner", "key": "default/web", "later": 7, "attempt": 2, "ratio": 0.5, "ok": true,
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn log_fields_cannot_override_level_or_target() {
        let lines = capture_logs(|| tracing::info!(level = "low", target = 5, error = %"it broke", "message"));
        let expected = serde_json::json!({
            "level": "INFO", "target": "kctl::app::log::tests", "message": "message", "error": "it broke",
        });
        assert_eq!(lines, [expected]);
    }
}
