//! Sends the steps of a case to a server in order, and returns the responses in a comparable form.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    time::Duration,
};

use flate2::read::GzDecoder;
use http::{Request, header};
use serde_json::{Value, json};

use crate::{
    case::{Case, Step, Topic},
    digest, headers,
    normal::Normal,
    server::Server,
};

/// `timeoutSeconds` of a watch with `meanwhile` at the first attempt: longer than those steps take on a real server that
/// is not busy.
const LIFE_OF_LONG_WATCHES: usize = 10;
/// Maximum number of requests for a step with `until` or `awaits`.
const ATTEMPTS_MAX: usize = 600;
/// Pause between these requests.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause before each step of `meanwhile`: the watch is open by then, and has sent the event of the previous step.
const OPENED_AFTER: Duration = Duration::from_secs(1);
/// Length of the string `$LONG`: a response that contains it twice is compressed.
const LONG_LEN: usize = 70_000;

/// The values of `$name` variables in requests.
#[derive(Clone, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Variables {
    fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.into(), value);
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn fill(&self, text: &str) -> String {
        // In reverse order, so that a name is replaced before shorter names that are its prefixes.
        self.0.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// Creates a namespace and returns the variables with it as `$NS`.
    pub(crate) async fn in_namespace(mut self, server: &Server, name: &str) -> Self {
        let name = format!("{name}-{}", self.get("RUN"));
        let body = json!({ "metadata": { "name": name } }).to_string();
        let request = Request::post("/api/v1/namespaces").body(body.into_bytes()).expect("the request is valid");
        let (code, _, response) = server.send(request).await;
        assert_eq!(code, 201, "{}", String::from_utf8_lossy(&response));
        self.set("NS", name);
        self
    }

    /// Returns the variables for another attempt of a case. Watches with `meanwhile` last longer each time, because
    /// the controllers of a busy server write late.
    pub(crate) fn for_attempt(mut self, attempt: usize) -> Self {
        self.set("LIFE", (LIFE_OF_LONG_WATCHES * attempt * attempt).to_string());
        self
    }

    /// Returns the seconds after which a watch with `meanwhile` ends.
    fn watch_timeout(&self) -> u64 {
        self.get("LIFE").parse().expect("`prepare` sets it")
    }

    pub(crate) async fn clean_up(&self, server: &Server) {
        let request = Request::delete(format!("/api/v1/namespaces/{}", self.get("NS"))).body(Vec::new());
        server.send(request.expect("the request is valid")).await;
    }
}

/// Sends the setup of a topic and returns the variables for its cases.
pub(crate) async fn prepare(server: &Server, topic: &Topic, run: &str) -> Variables {
    let mut variables = Variables::default().for_attempt(1);
    variables.set("RUN", run.into());
    variables.set("LONG", "long ".repeat(LONG_LEN / 5));
    variables.set("GROUP", format!("{run}.example.com"));
    variables.set("HOOK", server.hook_url.clone());
    variables.set("TRUSTED", server.hook_trusted.clone());
    let mut variables = variables.in_namespace(server, "setup").await;
    for step in &topic.setup {
        let response = send_step(server, step, &mut variables, &mut Normal::default()).await;
        let code = response["code"].as_u64().unwrap_or_default();
        assert!(code < 300, "the setup of {} fails: {}: {response}", topic.name, step.request);
    }
    variables
}

/// Deletes the cluster-scoped objects that the setup of a topic created.
pub(crate) async fn clean_up(server: &Server, topic: &Topic, variables: &Variables) {
    variables.clean_up(server).await;
    for step in &topic.setup {
        let (method, path, _) = step.request();
        let name = variables.fill(step.body["metadata"]["name"].as_str().unwrap_or_default());
        if method == "POST" && !name.is_empty() {
            let request = Request::delete(format!("{}/{name}", variables.fill(&path))).body(Vec::new());
            server.send(request.expect("the request is valid")).await;
        }
    }
}

/// Sends the steps of a case and returns the responses. Deletes cluster-scoped objects and finalizers that the case
/// leaves behind.
pub(crate) async fn run_case(server: &Server, case: &Case, mut variables: Variables) -> Vec<Value> {
    let mut normal = Normal::new(variables.get("NS"), variables.get("RUN"));
    normal.learn_hook(&server.hook_url, &server.hook_trusted);
    let mut responses = Vec::new();
    let mut held = BTreeSet::new();
    let mut made = BTreeSet::new();
    for step in &case.steps {
        if !step.meanwhile.is_empty() {
            responses.extend(run_watch(server, step, &mut variables, &mut normal).await);
            continue;
        }
        let response = send_step(server, step, &mut variables, &mut normal).await;
        held.extend(held_object(step, &variables, &response));
        made.extend(cluster_scoped_path(step, &variables));
        responses.push(response);
    }
    // An object with finalizers would keep the namespace from being deleted.
    for path in held {
        let request = Request::patch(path).header(header::CONTENT_TYPE, "application/merge-patch+json");
        let request = request.body(br#"{"metadata":{"finalizers":null}}"#.to_vec());
        server.send(request.expect("the request is valid")).await;
    }
    for path in made {
        let request = Request::delete(path).body(Vec::new());
        server.send(request.expect("the request is valid")).await;
    }
    responses
}

/// Sends generated steps one by one, with shared variables and placeholders.
pub(crate) struct Session<'a> {
    server: &'a Server,
    variables: Variables,
    normal: Normal,
}

impl<'a> Session<'a> {
    pub(crate) fn new(server: &'a Server, variables: Variables) -> Self {
        let normal = Normal::new(variables.get("NS"), variables.get("RUN"));
        Self { server, variables, normal }
    }

    pub(crate) async fn send(&mut self, step: &Step) -> Value {
        send_step(self.server, step, &mut self.variables, &mut self.normal).await
    }

    /// Returns a value that a step saved.
    pub(crate) fn variable(&self, name: &str) -> &str {
        self.variables.get(name)
    }
}

/// Returns the response to a watch, followed by the responses to the steps in its `meanwhile`.
async fn run_watch(server: &Server, step: &Step, variables: &mut Variables, normal: &mut Normal) -> Vec<Value> {
    let (begun, life) = (tokio::time::Instant::now(), variables.watch_timeout());
    let (mut of_watch, mut own) = (variables.clone(), Normal::new(variables.get("NS"), variables.get("RUN")));
    let watch = async {
        let mut response = send_step(server, step, &mut of_watch, &mut own).await;
        response["ended"] = if begun.elapsed().as_secs() < life { "early" } else { "at its time" }.into();
        response
    };
    let others = async {
        let mut responses = Vec::new();
        for step in &step.meanwhile {
            tokio::time::sleep(OPENED_AFTER).await;
            responses.push(send_step(server, step, variables, normal).await);
        }
        responses
    };
    let (watch, others) = futures::join!(watch, others);
    std::iter::once(watch).chain(others).collect()
}

/// Returns the path of a created object that is not deleted with the case's namespace.
fn cluster_scoped_path(step: &Step, variables: &Variables) -> Option<String> {
    let (method, path, _) = step.request();
    let name = step.body["metadata"]["name"].as_str().filter(|name| name.contains("$NS") && method == "POST")?;
    let path = variables.fill(path.split('?').next().unwrap_or(&path));
    (!path.contains("/namespaces")).then(|| format!("{path}/{}", variables.fill(name)))
}

/// Returns the path of an object that a step created with finalizers.
fn held_object(step: &Step, variables: &Variables, response: &Value) -> Option<String> {
    let (method, path, _) = step.request();
    let holds = [&response["body"], &step.body]
        .iter()
        .any(|object| object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()));
    let name = step.body["metadata"]["name"].as_str().filter(|_| holds && method == "POST")?;
    let path = variables.fill(&path);
    Some(format!("{}/{}", path.split('?').next().unwrap_or(&path), variables.fill(name)))
}

async fn send_step(server: &Server, step: &Step, variables: &mut Variables, normal: &mut Normal) -> Value {
    if step.request.starts_with("SEEN ") {
        let seen = server.hook.recorded_reviews(variables.get("NS")).into();
        return normal.normalize(json!({ "code": 200, "body": comparable_body(step, seen) }));
    }
    for attempt in 1.. {
        let (code, headers, bytes) = server.send(request(step, variables)).await;
        if step.until.is_some_and(|wanted| wanted != code) {
            assert!(attempt < ATTEMPTS_MAX, "{} never gets anything but {code}", step.request);
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let bytes = if headers.contains_key(header::CONTENT_ENCODING) { gunzip(&bytes) } else { bytes };
        let body = parse_body(&bytes, step.is_watch());
        let is_so = |(pointer, value): (&String, &Value)| {
            let found = body.pointer(pointer).unwrap_or(&Value::Null);
            match (value, found) {
                (Value::String(part), Value::String(found)) => found.contains(&variables.fill(part)),
                _ => found == value,
            }
        };
        if !step.awaits.iter().all(is_so) {
            assert!(attempt < ATTEMPTS_MAX, "{} never gets anything but {body}", step.request);
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        for (name, pointer) in &step.save {
            // A busy real server does not serve a new CRD for a moment. The case then fails, and is tried again.
            let value = match body.pointer(pointer) {
                Some(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                None if server.is_real() => {
                    eprintln!("{}: no {pointer} in {body}", step.request);
                    "missing".into()
                }
                None => panic!("{}: no {pointer} in {body}", step.request),
            };
            variables.set(name, value);
        }
        let mut response = json!({ "code": code });
        for (name, value) in headers::select_headers(&headers) {
            response[name] = value;
        }
        response["body"] = comparable_body(step, body);
        if !step.digest.is_empty() {
            response["body"] = digest::of_parts(&step.digest, normal.normalize(response["body"].take()));
        }
        return normal.normalize(response);
    }
    unreachable!("the last attempt fails")
}

/// Returns the parts of a body that `only` selects.
fn comparable_body(step: &Step, body: Value) -> Value {
    if step.only.is_empty() {
        return body;
    }
    let part_with_value = |part: &String| (part.clone(), body.pointer(part).cloned().unwrap_or_default());
    Value::Object(step.only.iter().map(part_with_value).collect())
}

/// Decompresses a gzip body.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).expect("the response is whole gzip");
    plain
}

/// Returns a body as JSON, the events of a watch as a list, and anything else as a string.
fn parse_body(bytes: &[u8], watches: bool) -> Value {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    match (serde_json::from_str::<Value>(&text), lines) {
        (Ok(value), _) if !watches || value["type"].is_null() => value,
        (_, Ok(events)) => Value::Array(events),
        _ => Value::String(text),
    }
}

fn request(step: &Step, variables: &Variables) -> Request<Vec<u8>> {
    let (method, path, media_type) = step.request();
    let body = match &step.body {
        Value::Null => String::new(),
        Value::String(text) => variables.fill(text),
        value => variables.fill(&value.to_string()),
    };
    let mut request = Request::builder().method(method).uri(variables.fill(&path)).header("user-agent", "conformance");
    let given = |name: &str| step.headers.keys().any(|key| key.eq_ignore_ascii_case(name));
    if !given("content-type") && !body.is_empty() {
        request = request.header(header::CONTENT_TYPE, media_type);
    }
    if !given("accept") {
        request = request.header(header::ACCEPT, "application/json");
    }
    for (name, value) in &step.headers {
        request = request.header(name, variables.fill(value));
    }
    request.body(body.into_bytes()).unwrap_or_else(|error| panic!("{}: {error}", step.request))
}
