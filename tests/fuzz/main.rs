//! Sends invalid requests, which are seeded mutations of valid ones. None may crash the server.
//!
//! `FUZZ_REQUESTS` sets their number (3,000 by default) and `FUZZ_SEED` the seed. `FUZZ_TRACE=1` prints each request
//! before it is sent, so that the last one is known if the process crashes.

mod senders;

use std::{
    convert::Infallible,
    env,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use kctl_apiserver::ApiServer;
use kctl_tests::Rng;
use tower::ServiceExt;

const REQUESTS_DEFAULT: u64 = 3_000;
/// Time limit of a request in simulated time, which only a request that hangs reaches.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum nesting depth of a generated body. Parsers give up at 128 or 10,000.
const DEPTH_MAX: usize = 20_000;
/// The server is restarted after this many requests, so that growing memory indicates a leak.
const ROUND_LEN: u64 = 10_000;

/// Maximum growth of memory after the first two rounds. Allocators keep freed memory, so some growth is normal.
const GROWTH_KB_MAX: u64 = 64 * 1024;

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"];
const MEDIA: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
];
const PATHS: &[&str] = &[
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/openapi/v3/apis/apps/v1",
    "/apis",
];
const SUFFIXES: &[&str] =
    &["", "", "/a", "/a", "/a", "/a/status", "/a/scale", "/a/binding", "/a/eviction", "/a/token", "/%ff", "/a/b/c"];
const QUERIES: &[&str] = &[
    "",
    "?fieldManager=f",
    "?fieldManager=f&force=true",
    "?dryRun=All",
    "?fieldValidation=Strict",
    "?limit=1",
    "?limit=-99999999999999999999",
    "?continue=AAAA",
    "?labelSelector=a%3Db,!c,d%20in%20(e",
    "?fieldSelector=metadata.name%3D%ff",
    "?watch=true&timeoutSeconds=1",
    "?watch=true&timeoutSeconds=1&resourceVersion=0&allowWatchBookmarks=true",
    "?resourceVersion=18446744073709551616",
    "?resourceVersionMatch=Exact&resourceVersion=1",
    "?&&==&=%",
];

const BODIES: &[&str] = &[
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"env":[{"name":"A","value":"b"}]}],"volumes":[{"name":"v","emptyDir":{}}]}}"#,
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#,
    r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"targetPort":"http"}],"type":"NodePort"}}"#,
    r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1},"name":{"type":"string","pattern":"^a+$"}},"x-kubernetes-validations":[{"rule":"self.size < 10"}]}}}}}]}}"#,
    r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3,"name":"aaa"}}"#,
    r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"a"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]},"variables":[{"name":"x","expression":"object.metadata.name"}],"validations":[{"expression":"variables.x != 'b' && object.spec.size > 1","messageExpression":"'no ' + variables.x"}]}}"#,
    r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"a"},"spec":{"policyName":"a","validationActions":["Warn","Audit"]}}"#,
    r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"a"},"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://hook.example.com/x"},"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}],"sideEffects":"None","failurePolicy":"Ignore","admissionReviewVersions":["v1"]}]}"#,
    r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"},"eventTime":"2026-01-02T03:04:05.678901Z","reportingController":"example.com/c","reportingInstance":"i","action":"A","reason":"R","regarding":{"kind":"Pod","namespace":"default","name":"p"},"type":"Normal"}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Foreground","preconditions":{"uid":"x"}}"#,
    r#"[{"op":"add","path":"/data/x","value":"y"},{"op":"test","path":"/metadata/name","value":"a"},{"op":"move","from":"/data","path":"/metadata/labels"},{"op":"remove","path":"/spec/containers/0"}]"#,
    r#"{"metadata":{"labels":{"x":"y"},"finalizers":["example.com/a"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"u"}]},"spec":{"$patch":"replace","containers":[{"$patch":"delete","name":"c"}],"$setElementOrder/containers":[{"name":"c"}]}}"#,
    "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: a}\ndata: {k: 'v', l: !!str 3, <<: *m}\n",
    "",
];

/// Replacements for parts of a body.
const PIECES: &[&str] = &[
    "null",
    "-1",
    "1e999",
    "99999999999999999999999999999999999999",
    "-9223372036854775809",
    "0.1e-400",
    "true",
    "[]",
    "{}",
    "[[[]]]",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\\uffff\u{202e}\u{0301}\u{1f4a9}\"",
    "\"$(A)\"",
    "\"${{object.}}\"",
    "\"Object{a: 1}\"",
    "\"[1,2].map(x, Foo{y: x})\"",
    "\"((((((((((1))))))))))\"",
    "\"9223372036854775807 + 1 == object.x\"",
    "\"^(a+)+$\"",
    "\"1Ei\"",
    "\"2026-13-99T99:99:99Z\"",
    "{\"a\":1,\"a\":2}",
    "}",
    "]",
    ",",
    "\u{feff}",
];

fn mutate(rng: &mut Rng, body: &str) -> Vec<u8> {
    let mut bytes = body.as_bytes().to_vec();
    for _ in 0..=rng.index(3) {
        let len = bytes.len();
        match rng.index(9) {
            // Replace a value.
            0..=2 => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let colons: Vec<usize> = text.match_indices(':').map(|(at, _)| at).collect();
                if !colons.is_empty() {
                    let at = colons[rng.index(colons.len())] + 1;
                    let end = text[at..].find([',', '}', ']', '\n']).map_or(text.len(), |end| at + end);
                    bytes = format!("{}{}{}", &text[..at], rng.pick(PIECES), &text[end..]).into_bytes();
                }
            }
            3 => bytes.truncate(rng.index(len + 1)),
            4 if len > 0 => {
                let at = rng.index(len);
                bytes[at] = u8::try_from(rng.index(256)).unwrap();
            }
            5 if len > 0 => {
                let (from, to) = (rng.index(len), rng.index(len));
                let piece = bytes[from.min(to)..from.max(to)].to_vec();
                let at = rng.index(len);
                bytes.splice(at..at, piece);
            }
            6 => {
                let depth = 1 + rng.index(DEPTH_MAX);
                let open = rng.pick(&["[", "{\"a\":", "{\"spec\":", "- ", "("]);
                let at = rng.index(len + 1);
                bytes.splice(at..at, open.repeat(depth / open.len()).into_bytes());
            }
            7 => {
                let at = rng.index(len + 1);
                bytes.splice(at..at, rng.pick(PIECES).bytes());
            }
            _ => {}
        }
    }
    bytes
}

/// A body that arrives in pieces with pauses, and may end with an error.
struct Slow {
    pieces: Vec<Bytes>,
    pause: Option<Pin<Box<tokio::time::Sleep>>>,
    breaks_off: bool,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(context));
        }
        self.pause = Some(Box::pin(tokio::time::sleep(Duration::from_millis(50))));
        Poll::Ready(match self.pieces.pop() {
            None if self.breaks_off => Some(Err(std::io::ErrorKind::ConnectionReset.into())),
            None => None,
            Some(piece) => Some(Ok(Frame::data(piece))),
        })
    }
}

/// Paths of the collections to which the bodies belong, in the same order.
const HOMES: &[&str] = &[
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/services",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/events.k8s.io/v1/namespaces/default/events",
];

/// Returns a random request. In half of them, method, path and media type fit the kind of the body.
fn request(rng: &mut Rng) -> Request<Slow> {
    let kind = rng.index(BODIES.len());
    let (mut method, mut path, mut media) = (rng.pick(METHODS), rng.pick(PATHS).to_owned(), rng.pick(MEDIA));
    match HOMES.get(kind) {
        Some(home) if rng.index(2) == 0 => {
            let name = if *home == HOMES[5] { "widgets.example.com" } else { "a" };
            let verb = rng.index(6);
            method = ["POST", "POST", "POST", "PUT", "PATCH", "DELETE"][verb];
            path = if verb < 3 { (*home).to_owned() } else { format!("{home}/{name}") };
            media = if verb == 4 { MEDIA[4 + rng.index(3)] } else { MEDIA[0] };
        }
        _ => path += rng.pick(SUFFIXES),
    }
    if rng.index(2) == 0 {
        path += rng.pick(QUERIES);
    }
    let template = BODIES[kind];
    let body = if rng.index(3) == 0 { template.as_bytes().to_vec() } else { mutate(rng, template) };
    let slow = rng.index(8) == 0;
    let pieces = if slow {
        body.chunks(64.max(body.len() / 16)).rev().map(Bytes::copy_from_slice).collect()
    } else {
        vec![body.into()]
    };
    let body = Slow { pieces, pause: None, breaks_off: slow && rng.index(2) == 0 };
    let accept = if rng.index(8) == 0 { rng.pick(MEDIA) } else { "application/json" };
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in [("content-type", media), ("accept", accept)] {
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    if rng.index(16) == 0 {
        request = request.header("impersonate-user", "system:serviceaccount:default:x");
    }
    request.body(body).unwrap()
}

/// A server whose controllers end when it is dropped.
struct Running {
    server: ApiServer,
    controllers: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Checks that no request has ended the controllers, such as the garbage collector. The server would continue
    /// without them.
    fn check(&self) {
        assert!(!self.controllers.is_finished(), "a controller of the server has panicked: see above");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

fn server() -> Running {
    let server = ApiServer::new();
    let controllers = tokio::spawn(server.controllers());
    server.serve_webhook("hook.example.com", |_| async { http::Response::new(Bytes::from_static(b"{}")) });
    Running { server, controllers }
}

async fn send_request(server: &ApiServer, request: Request<Slow>) -> StatusCode {
    let response = server.service().oneshot(request).await.unwrap_or_else(|never: Infallible| match never {});
    let code = response.status();
    response.into_body().collect().await.unwrap_or_else(|never| match never {});
    code
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

#[tokio::test(start_paused = true)]
async fn no_request_brings_the_server_down() {
    let (n_requests, seed) = (number("FUZZ_REQUESTS", REQUESTS_DEFAULT), number("FUZZ_SEED", 1));
    let mut running = server();
    let mut codes = std::collections::BTreeMap::new();
    let mut rounds = Vec::new();
    for index in 0..n_requests {
        // Each request has a separate seed, so that it can be reproduced alone.
        let mut rng = Rng::new(seed.wrapping_mul(1_000_003).wrapping_add(index));
        if index % ROUND_LEN == ROUND_LEN - 1 {
            running.check();
            running = server();
            rounds.push(resident_kb());
            eprintln!("{index}: {codes:?}, {} kB resident", resident_kb());
        }
        let request = request(&mut rng);
        let what = format!("request {index}: {} {}", request.method(), request.uri());
        if env::var_os("FUZZ_TRACE").is_some() {
            eprintln!("{what} {:?}", request.body().pieces);
        }
        let answered = tokio::time::timeout(TIMEOUT, send_request(&running.server, request)).await;
        let code = answered.unwrap_or_else(|_| panic!("{what} hangs"));
        *codes.entry(code.as_u16()).or_insert(0_u64) += 1;
    }
    eprintln!("{codes:?}, {} kB resident", resident_kb());
    assert_memory_stable(&rounds);
    assert!(codes.contains_key(&200) && codes.contains_key(&201) && codes.contains_key(&400), "{codes:?}");
    running.check();
    // The server still answers.
    let request =
        Request::get("/api/v1/namespaces/default").body(Slow { pieces: Vec::new(), pause: None, breaks_off: false });
    assert_eq!(send_request(&running.server, request.unwrap()).await, StatusCode::OK);
}

/// Checks that memory does not grow from round to round. The first two rounds are the baseline, so only the step `fuzz` of
/// the gate, with its ten rounds, checks something.
fn assert_memory_stable(rounds: &[u64]) {
    if let [first, second, .., last] = rounds {
        let most = first.max(second) + GROWTH_KB_MAX;
        assert!(*last <= most, "memory grows: {rounds:?} kB after each {ROUND_LEN} requests");
    }
}

/// Returns the resident memory of this process; 0 on systems without `/proc`.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
