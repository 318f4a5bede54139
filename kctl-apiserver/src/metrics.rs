//! `/metrics`: counts completed requests, and exposes the counters and the number of objects under kube-apiserver's
//! names.
//!
//! The names, labels and label values of upstream are kept for all metrics that this server has, so that dashboards for
//! kube-apiserver work. The endpoint needs the permission to `get` the path `/metrics`.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Method, StatusCode};

use crate::{
    faults::Connection,
    registry::Resource,
    request::{RequestInfo, Verb},
    status::GroupResource,
};

/// Maximum number of label sets of the request counter. Requests with further label sets are counted together, with the
/// resource `other`. A client that requests many resources of CRDs with many codes could otherwise fill the memory.
const LABEL_SETS_MAX: usize = 20_000;

/// A request that has its response.
#[derive(Clone, Copy)]
pub(crate) struct CompletedRequest<'a> {
    /// The request, which has most of the labels.
    pub(crate) info: &'a RequestInfo,
    /// The status of the response; 200 for a watch.
    pub(crate) code: StatusCode,
    /// `true` if nothing was stored (`dryRun=All`).
    pub(crate) dry_run: bool,
}

/// Returns the labels of `apiserver_request_total` for a request, in alphabetical order. A create has the scope
/// `resource` although its path has no name (`CleanScope`). The version is the one of the request, not of the storage.
fn labels_of(CompletedRequest { info, code, dry_run }: CompletedRequest<'_>) -> String {
    let is_apply = info.applies();
    let verb = match info.verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if is_apply => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
    };
    let scope = match (info.name.is_empty() && info.verb != Verb::Create, info.namespace.is_empty()) {
        (false, _) => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    };
    let Resource { id: GroupResource { group, resource }, version, .. } = &*info.resource;
    let (code, subresource, dry_run) = (code.as_u16(), info.subresource.as_str(), if dry_run { "All" } else { "" });
    format!(
        "code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"{group}\",resource=\"{resource}\",\
         scope=\"{scope}\",subresource=\"{subresource}\",verb=\"{verb}\",version=\"{version}\""
    )
}

/// The labels of the requests beyond [`LABEL_SETS_MAX`].
const OTHER_LABELS: &str = "code=\"0\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"other\",scope=\"\",\
    subresource=\"\",verb=\"\",version=\"\"";

/// The counters of a server, since its start.
#[derive(Default)]
pub(crate) struct Counts {
    /// The request counter by its labels. It is ordered, so that two scrapes have the same order. Invariant: at
    /// most [`LABEL_SETS_MAX`] entries, and the one of [`OTHER_LABELS`].
    requests: BTreeMap<String, u64>,
    /// Requests in flight that may change something. Upstream bounds them by `--max-mutating-requests-inflight`; here
    /// they are only counted.
    mutating: Arc<AtomicUsize>,
    /// Reads in flight, by their HTTP method. A watch counts until its response begins.
    read_only: Arc<AtomicUsize>,
}

/// Counts a request as being handled until it is dropped. It lives as long as the future of the request, and ends as
/// well if the client drops the future. The counter is atomic and shared, because a request ends without the lock.
pub(crate) struct Handling(Arc<AtomicUsize>);

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    /// Counts a request as being handled.
    pub(crate) fn begin(&self, method: &Method) -> Handling {
        let is_read = [Method::GET, Method::HEAD].contains(method);
        let counter = if is_read { &self.read_only } else { &self.mutating };
        counter.fetch_add(1, Ordering::Relaxed);
        Handling(counter.clone())
    }

    /// Counts a completed request.
    pub(crate) fn add(&mut self, request: CompletedRequest<'_>) {
        let mut labels = labels_of(request);
        if self.requests.len() >= LABEL_SETS_MAX && !self.requests.contains_key(&labels) {
            labels = OTHER_LABELS.into();
        }
        *self.requests.entry(labels).or_default() += 1;
        debug_assert!(self.requests.len() <= LABEL_SETS_MAX + 1, "requests beyond the bound share one entry");
    }
}

/// Returns all metrics in Prometheus' exposition format: the counters, and the number of objects of each resource
/// (`sizes`). For a client under a plan of faults the number of injected faults is added. Each family has its `HELP`
/// and `TYPE` line even without samples. Label values are names of Kubernetes, which need no escapes.
pub(crate) fn to_text<'a>(
    Counts { requests, mutating, read_only }: &Counts,
    sizes: impl Iterator<Item = (&'a GroupResource, usize)>,
    faults: Option<&Connection>,
) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &mut dyn Iterator<Item = (String, String)>| {
        let _infallible = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _infallible = writeln!(text, "{name}{{{labels}}} {value}");
        }
    };
    let kinds = [("mutating", mutating), ("readOnly", read_only)];
    let help = "Requests that are being handled, by whether they change something.";
    let mut samples = kinds
        .iter()
        .map(|(kind, count)| (format!("request_kind=\"{kind}\""), count.load(Ordering::Relaxed).to_string()));
    family("apiserver_current_inflight_requests", "gauge", help, &mut samples);

    let help = "Requests for objects that were answered, by verb, dry run, group, version, resource, scope and code.";
    let mut samples = requests.iter().map(|(labels, count)| (labels.clone(), count.to_string()));
    family("apiserver_request_total", "counter", help, &mut samples);

    let help = "Objects that are stored, by group and resource.";
    let mut samples = sizes.map(|(group_resource, size)| {
        (format!("group=\"{}\",resource=\"{}\"", group_resource.group, group_resource.resource), size.to_string())
    });
    family("apiserver_resource_objects", "gauge", help, &mut samples);

    if let Some(connection) = faults {
        let counts = connection.counts().into_iter();
        let mut samples = counts.map(|(fault, count)| (format!("fault=\"{fault}\""), count.to_string()));
        family("kctl_faults_injected_total", "counter", "Faults on purpose that were injected.", &mut samples);
    }
    text
}

#[cfg(test)]
mod tests {
    use http::Request;
    use serde_json::{Value, json};

    use crate::ApiServer;

    #[tokio::test(start_paused = true)]
    async fn answered_requests_and_stored_objects_are_counted() {
        let server = ApiServer::new();
        let configs = "/api/v1/namespaces/default/configmaps";
        for name in ["a", "b"] {
            let config = json!({ "metadata": { "name": name } });
            assert_eq!(server.send_json("POST", configs, &config).await.0, 201);
        }
        let config = json!({ "metadata": { "name": "c" } });
        server.send_json("POST", &format!("{configs}?dryRun=All"), &config).await;
        server.send_json("PATCH", &format!("{configs}/a"), &json!({ "data": { "k": "v" } })).await;
        for path in [&format!("{configs}/none"), "/api/v1/configmaps", configs] {
            server.send_json("GET", path, &Value::Null).await;
        }
        let response = server.service().send_request(Request::get("/metrics"), "").await;
        assert_eq!(response.status(), 200);
        let text = response.body();
        let counted = |code: u16, dry_run: &str, scope: &str, verb: &str| {
            format!(
                "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"\",\
                 resource=\"configmaps\",scope=\"{scope}\",subresource=\"\",verb=\"{verb}\",version=\"v1\"}}"
            )
        };
        for (sample, value) in [
            (counted(201, "", "resource", "POST"), 2),
            (counted(201, "All", "resource", "POST"), 1),
            (counted(200, "", "resource", "PATCH"), 1),
            (counted(404, "", "resource", "GET"), 1),
            (counted(200, "", "cluster", "LIST"), 1),
            (counted(200, "", "namespace", "LIST"), 1),
            ("apiserver_resource_objects{group=\"\",resource=\"configmaps\"}".into(), 2),
            ("apiserver_resource_objects{group=\"\",resource=\"namespaces\"}".into(), 4),
            ("apiserver_current_inflight_requests{request_kind=\"mutating\"}".into(), 0),
            // The request for the metrics.
            ("apiserver_current_inflight_requests{request_kind=\"readOnly\"}".into(), 1),
        ] {
            let line = format!("{sample} {value}");
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
