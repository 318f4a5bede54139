//! Drives a headless Chromium by chromedriver with the parts of the W3C `WebDriver` protocol that these tests need.

use std::{
    io::{BufRead, Read, Write},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Time limit of `until`.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Tab and Enter as `WebDriver` encodes keys.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";

/// A browser with one window, which is closed when the value is dropped.
pub(crate) struct Browser {
    driver: Child,
    /// Kept open, because chromedriver exits when its standard output is closed.
    _stdout_lines: std::io::Lines<std::io::BufReader<ChildStdout>>,
    port: u16,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the session, because chromedriver does not end its browser when it is killed.
        if let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", self.port)) {
            let _bounded = stream.set_read_timeout(Some(TIMEOUT));
            let _sent = stream.write_all(request("DELETE", &self.session, self.port, "").as_bytes());
            let _answered = stream.read(&mut [0; 64]);
        }
        let _killed = self.driver.kill();
        let _ended = self.driver.wait();
    }
}

/// Maximum number of restarts of a chromedriver that exits immediately.
const TRIES_MAX: usize = 4;

fn driver() -> Command {
    let mut driver = Command::new("chromedriver");
    driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
    driver
}

fn request(method: &str, path: &str, port: u16, body: &str) -> String {
    let kind = "content-type: application/json";
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: localhost:{port}\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

impl Browser {
    /// Starts chromedriver and a browser session.
    pub(crate) async fn start() -> Self {
        let mut n_tries = 0;
        let (driver, stdout_lines, port) = loop {
            let mut driver = match driver().spawn() {
                Ok(driver) => driver,
                Err(error) => panic!("chromedriver: {error}"),
            };
            let mut stdout_lines = std::io::BufReader::new(driver.stdout.take().unwrap()).lines();
            let mut lines = Vec::new();
            let port = stdout_lines.by_ref().map_while(Result::ok).find_map(|line| {
                let port = line.split("successfully on port ").nth(1).map(|rest| rest.trim_end_matches('.').parse());
                lines.push(line);
                port?.ok()
            });
            match port {
                Some(port) => break (driver, stdout_lines, port),
                // chromedriver picks a free port before it binds it. Another test's chromedriver may have bound it in
                // between.
                None if n_tries < TRIES_MAX => driver.wait().map(drop).unwrap(),
                None => panic!("chromedriver does not say its port: {lines:?}"),
            }
            n_tries += 1;
        };
        let mut browser = Self { driver, _stdout_lines: stdout_lines, port, session: String::new() };
        let chrome =
            json!({ "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900"] });
        let wanted = json!({ "goog:chromeOptions": chrome, "goog:loggingPrefs": { "browser": "ALL" } });
        let session = browser.post("/session", &json!({ "capabilities": { "alwaysMatch": wanted } })).await;
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        browser
    }

    /// Sends one request to chromedriver and returns the `value` of its response.
    async fn post(&self, path: &str, body: &Value) -> Value {
        let exchange = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
            stream.write_all(request("POST", path, self.port, &body.to_string()).as_bytes()).await.unwrap();
            // chromedriver keeps connections open even if asked to close them, so the body is read by its length.
            let (mut response, mut line, mut length) = (BufReader::new(stream), String::new(), 0);
            while line != "\r\n" {
                line.clear();
                response.read_line(&mut line).await.unwrap();
                if let Some(of) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = of.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            response.read_exact(&mut body).await.unwrap();
            let value: Value = serde_json::from_slice(&body).unwrap();
            assert!(value["value"]["error"].is_null(), "{path}: {}", value["value"]);
            value["value"].clone()
        };
        timeout(Duration::from_secs(60), exchange).await.expect("chromedriver answers")
    }

    async fn command(&self, name: &str, body: &Value) -> Value {
        self.post(&format!("{}{name}", self.session), body).await
    }

    pub(crate) async fn open(&self, url: &str) {
        self.command("/url", &json!({ "url": url })).await;
    }

    /// Returns the value of an expression in the page.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        self.command("/execute/sync", &json!({ "script": format!("return {expression}"), "args": [] })).await
    }

    /// Returns the value of a promise in the page.
    pub(crate) async fn eval_later(&self, promise: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {promise}.then(done)");
        self.command("/execute/async", &json!({ "script": script, "args": [] })).await
    }

    /// Runs statements in the page.
    pub(crate) async fn run(&self, script: &str) {
        self.command("/execute/sync", &json!({ "script": script, "args": [] })).await;
    }

    /// Waits until an expression in the page is true.
    pub(crate) async fn until(&self, expression: &str) {
        let seen = timeout(TIMEOUT, async {
            while self.eval(&format!("Boolean({expression})")).await != true {
                sleep(Duration::from_millis(50)).await;
            }
        });
        let seen = seen.await.is_ok();
        let page = if seen { String::new() } else { self.eval("document.body.innerText").await.to_string() };
        assert!(seen, "never: {expression}\n{page}");
    }

    /// Presses and releases a key.
    pub(crate) async fn press(&self, key: &str) {
        let keys = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let actions = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": keys }] });
        self.command("/actions", &actions).await;
    }

    /// Sets a media preference of the user, such as `prefers-color-scheme` to `dark`.
    pub(crate) async fn prefer(&self, feature: &str, value: &str) {
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": [{ "name": feature, "value": value }] })).await;
    }

    pub(crate) async fn size(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Returns a screenshot of the window as a base64-encoded PNG.
    pub(crate) async fn picture(&self) -> String {
        let picture = self.devtools("Page.captureScreenshot", json!({ "format": "png" })).await;
        picture["data"].as_str().unwrap().to_owned()
    }

    async fn devtools(&self, name: &str, params: Value) -> Value {
        self.command("/goog/cdp/execute", &json!({ "cmd": name, "params": params })).await
    }

    /// Returns the messages in the browser's console since the last call: blocked by the content security policy, not
    /// found, exceptions.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.command("/se/log", &json!({ "type": "browser" })).await;
        log.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }
}
