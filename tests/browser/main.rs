//! The debug page in a real browser: live updates, keyboard, themes, and no findings of an accessibility checker.

mod driver;

use std::time::Duration;

use base64::Engine as _;
use driver::{Browser, ENTER, TAB};
use kctl::{
    Error,
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
    },
    manager::{Manager, lease::ElectionConfig},
    prelude::*,
};
use kctl_runtime::{manager::shards::ShardConfig, shard::ShardBy};
use kctl_tests::Faults;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// Owns a Secret for each `ConfigMap`. Fails for names that begin with `shop` or `legacy`.
#[controller(name = "site", owns = Secret(apply), reads = Namespace, concurrency = 4)]
async fn site(config: Arc<ConfigMap>, cx: Context<site>) -> Result<Action> {
    let name = config.metadata.name.clone().unwrap_or_default();
    if name.starts_with("shop") {
        return Err("the disk of <b>node-3</b> is full: 0 of 40 GiB are free".into());
    }
    if name.starts_with("legacy") {
        return Err(Error::from("spec.theme: there is no theme `blink`")).terminal();
    }
    tokio::time::sleep(Duration::from_millis(10 + 7 * name.len() as u64)).await;
    cx.owned::<Secret>().apply(json!({ "metadata": { "name": name } })).await?;
    Ok(Action::requeue(Duration::from_millis(2_500)))
}

/// Reconciles Secrets without any writes.
#[controller(name = "audit")]
async fn audit(_secret: Arc<Secret>, _cx: Context<audit>) -> Result<Action> {
    Ok(Action::await_change())
}

struct Site {
    url: String,
    api: Api<ConfigMap>,
    running: JoinHandle<()>,
}

async fn serve(names: &[&str]) -> Site {
    serve_by(names, |manager, _client| manager).await
}

async fn serve_by(names: &[&str], set_up: impl FnOnce(Manager, Client) -> Manager) -> Site {
    let server = kctl_apiserver::ApiServer::new();
    let client = Faults::default().client(&server);
    let api = Api::namespaced(client.clone(), "default");
    for name in names {
        create(&api, name).await;
    }
    let app = App::new("web-sites").controller::<site>().controller::<audit>();
    let manager = set_up(app.manager(client.clone()).await.unwrap(), client);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/debug/", listener.local_addr().unwrap());
    let running = manager.serve_debug(listener, Vec::new()).run(std::future::pending());
    Site { url, api, running: tokio::spawn(async move { running.await.unwrap() }) }
}

async fn create(api: &Api<ConfigMap>, name: &str) {
    let object = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Returns an expression that is true if the page shows this text.
fn shows(text: &str) -> String {
    format!("document.body.innerText.includes({})", json!(text))
}

const ACTIVE: &str = "document.activeElement";

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn page_follows_events_and_escapes_errors() {
    let browser = Browser::start().await;
    let site = serve(&["blog"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/blog")).await;
    assert_eq!(browser.eval("document.title").await, "web-sites – kctl debug");
    let display = "getComputedStyle(document.getElementById('slot')).display";
    assert_eq!(browser.eval(display).await, "none", "the program is not sharded");
    browser.until("document.getElementById('connection').textContent === 'no key fails'").await;
    create(&site.api, "shop").await;
    browser.until(&shows("the disk of <b>node-3</b> is full")).await;
    assert_eq!(browser.eval("document.querySelectorAll('b').length").await, 0, "an error is never markup");
    browser.until("document.getElementById('connection').textContent === '1 key fails'").await;
    site.api.delete("shop", &DeleteParams::default()).await.unwrap();
    browser.until("document.getElementById('connection').textContent === 'no key fails'").await;
    assert_eq!(browser.complaints().await, [""; 0]);
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn keyboard_reaches_everything_and_focus_survives_updates() {
    let browser = Browser::start().await;
    let site = serve(&["blog", "docs"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/docs")).await;
    browser.press(TAB).await;
    assert_eq!(browser.eval(&format!("{ACTIVE}.className")).await, "skip");
    let mut reached = Vec::new();
    for _ in 0..60 {
        let text = format!("{ACTIVE}.tagName + ' ' + ({ACTIVE}.textContent || {ACTIVE}.id).trim().slice(0, 40)");
        let Value::String(what) = browser.eval(&text).await else { unreachable!("a string") };
        let done = what == "BUTTON default/blog";
        reached.push(what);
        if done {
            break;
        }
        browser.press(TAB).await;
    }
    for wanted in
        ["BUTTON Pause updates", "A Failing keys", "INPUT filter-key", "INPUT filter-failed", "BUTTON default/blog"]
    {
        assert!(reached.iter().any(|what| what == wanted), "{wanted} is not among {reached:?}");
    }
    browser.press(ENTER).await;
    browser.until(&shows("Last reconciles of default/blog")).await;
    let before = browser.eval("state.up_seconds").await.as_f64().unwrap();
    browser.until(&format!("state.up_seconds > {before} + 1")).await;
    let focused = browser.eval(&format!("[{ACTIVE}.textContent, {ACTIVE}.getAttribute('aria-expanded')]")).await;
    assert_eq!(focused, json!(["default/blog", "true"]));
    browser.press(ENTER).await;
    browser.until(&format!("!{}", shows("Last reconciles of default/blog"))).await;
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn focus_survives_a_row_that_moves() {
    let browser = Browser::start().await;
    let site = serve(&["blog"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/blog")).await;
    browser.run("window.body = document.body.appendChild(document.createElement('table')).createTBody()").await;
    let button = "(cell) => { if (!cell.firstChild) cell.append(make('button')); cell.firstChild.textContent = key; }";
    for keys in ["abcd", "bacd", "dcba", "cb", "xby", "ybx", "b"] {
        let items = format!("[...'{keys}'].map((key) => ({{ key, cells: [{button}] }}))");
        browser.run(&format!("rows(window.body, {items})")).await;
        assert_eq!(browser.eval("window.body.textContent").await, keys);
        if keys == "abcd" {
            browser.run("window.body.querySelectorAll('button')[1].focus()").await;
        }
        assert_eq!(browser.eval(&format!("{ACTIVE}.textContent")).await, "b", "{keys}");
    }
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn updates_stop_while_they_are_paused() {
    let browser = Browser::start().await;
    let site = serve(&["blog"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/blog")).await;
    browser.run("document.getElementById('pause').click()").await;
    let n_state_requests =
        "performance.getEntriesByType('resource').filter((of) => of.name.includes('state.json')).length";
    let waited = format!("new Promise((done) => setTimeout(() => done({n_state_requests}), 4500))");
    browser.until("timer !== null").await;
    let before = browser.eval(n_state_requests).await;
    assert_eq!(browser.eval_later(&waited).await, before, "twice the time between two updates");
    for _ in 0..3 {
        // Repeated clicks must not start a second update loop.
        browser.run("document.getElementById('pause').click()").await;
    }
    create(&site.api, "docs").await;
    browser.until(&shows("default/docs")).await;
    let before = browser.eval(n_state_requests).await.as_u64().unwrap();
    let after = browser.eval_later(&waited).await.as_u64().unwrap();
    assert!((1..=3).contains(&(after - before)), "{before} to {after} in 4.5 s");
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn page_reports_a_stopped_program() {
    let browser = Browser::start().await;
    let site = serve(&["blog"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/blog")).await;
    site.running.abort();
    browser.until(&shows("The program does not answer")).await;
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn page_reports_a_program_that_never_answers() {
    let browser = Browser::start().await;
    let site = serve(&["blog"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/blog")).await;
    let address = site.url.trim_start_matches("http://").trim_end_matches("/debug/").to_owned();
    site.running.abort();
    assert!(site.running.await.unwrap_err().is_cancelled());
    let silent = TcpListener::bind(address).await.unwrap();
    let _accepting = tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            held.push(silent.accept().await.unwrap());
        }
    });
    browser.until(&shows("The program does not answer: nothing came within 5.0 s; this is of ")).await;
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn reconciles_are_found_by_key_controller_and_failure() {
    let browser = Browser::start().await;
    let site = serve(&["blog", "docs", "shop"]).await;
    browser.open(&site.url).await;
    let rows = "[...document.querySelectorAll('#timeline-rows > tr')].map((row) => row.dataset.key).sort().join()";
    let all = "audit default/blog,audit default/docs,site default/blog,site default/docs,site default/shop";
    browser.until(&format!("{rows} === '{all}'")).await;
    let choose = |id: &str, change: &str| {
        format!(
            "const node = document.getElementById('{id}'); {change}; node.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        )
    };
    let steps = [
        (choose("filter-key", "node.value = 'DOCS'"), "audit default/docs,site default/docs"),
        (choose("filter-controller", "node.value = 'site'"), "site default/docs"),
        (choose("filter-failed", "node.checked = true"), ""),
        (choose("filter-key", "node.value = ''"), "site default/shop"),
    ];
    for (script, wanted) in steps {
        browser.run(&script).await;
        assert_eq!(browser.eval(rows).await, wanted, "{script}");
    }
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn slot_of_a_typed_key_is_explained() {
    let browser = Browser::start().await;
    let shard = |manager: Manager, client: Client| {
        let leases = ElectionConfig::new("web-sites", "default", "a");
        manager.shard(client, ShardConfig::new(leases, 1, ShardBy::Object).unwrap()).unwrap()
    };
    let site = serve_by(&["blog"], shard).await;
    browser.open(&site.url).await;
    browser.until(&shows("enter NAMESPACE/NAME")).await;
    let keys = [
        ("default/blog", "default/blog is in slot 0. This replica owns it"),
        ("configmaps/default/blog", "the key configmaps/default/blog has more than one `/`"),
        ("", "enter NAMESPACE/NAME"),
    ];
    // Updates would show the slot as well.
    browser.run("document.getElementById('pause').click()").await;
    for (key, text) in keys {
        browser.run(&format!("document.getElementById('slot-key').value = '{key}'")).await;
        browser.run("document.getElementById('slot').dispatchEvent(new Event('input'))").await;
        browser.until(&shows(text)).await;
    }
    assert_eq!(browser.eval("document.getElementById('slot-key').labels[0].textContent.trim()").await, "Key");
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn on_a_narrow_screen_only_tables_scroll_sideways() {
    let browser = Browser::start().await;
    let site = serve(&["blog", "shop"]).await;
    browser.size(320, 800).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/shop")).await;
    let widths = browser.eval("[document.scrollingElement.scrollWidth, document.documentElement.clientWidth]").await;
    assert_eq!(widths[0], widths[1], "as WCAG's reflow asks");
}

/// Returns the findings of axe-core, one line per rule. `KCTL_AXE` names its file, which is not in this repository.
async fn findings(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run(&format!("if (!window.axe) {{ {axe} }}")).await;
    let found = browser.eval_later("axe.run().then((result) => result.violations)").await;
    let rules = found.as_array().unwrap().iter().map(|rule| {
        format!(
            "{} ({}): {}",
            rule["id"],
            rule["impact"],
            rule["nodes"].as_array().unwrap().iter().map(|n| n["html"].to_string()).collect::<Vec<_>>().join(", ")
        )
    });
    rules.collect()
}

#[tokio::test]
#[ignore = "needs chromedriver and axe-core: cargo xtask browser"]
async fn checker_of_accessibility_finds_nothing_in_any_theme() {
    let file = std::env::var_os("KCTL_AXE").expect("KCTL_AXE names axe.min.js");
    let axe = std::fs::read_to_string(file).unwrap();
    let browser = Browser::start().await;
    let site = serve(&["blog", "docs", "shop", "legacy"]).await;
    browser.open(&site.url).await;
    browser.until(&shows("default/shop")).await;
    browser.run("document.querySelector('button.key').click(); document.querySelector('details').open = true").await;
    for theme in ["light", "dark"] {
        browser.prefer("prefers-color-scheme", theme).await;
        assert_eq!(findings(&browser, &axe).await, [""; 0], "{theme}");
    }
    browser.run("document.getElementById('pause').click()").await;
    assert_eq!(findings(&browser, &axe).await, [""; 0], "paused");
    // Break the page on purpose, to prove that the checker works.
    let key = "document.getElementById('filter-key')";
    browser.run(&format!("{key}.parentElement.replaceWith({key})")).await;
    let found = findings(&browser, &axe).await;
    assert!(found.iter().any(|rule| rule.starts_with("\"label\"")), "{found:?}");
}

#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn reduced_motion_is_respected() {
    let browser = Browser::start().await;
    let site = serve(&[]).await;
    browser.open(&site.url).await;
    let behaviour = "getComputedStyle(document.documentElement).scrollBehavior";
    assert_eq!(browser.eval(behaviour).await, "smooth");
    browser.prefer("prefers-reduced-motion", "reduce").await;
    assert_eq!(browser.eval(behaviour).await, "auto");
}

/// Writes the screenshots of the guide to the folder that `KCTL_PICTURES` names.
#[tokio::test]
#[ignore = "needs chromedriver: cargo xtask browser"]
async fn debug_page_screenshots_can_be_taken() {
    let browser = Browser::start().await;
    let site = serve(&["blog", "docs", "shop", "shop-eu", "legacy", "wiki"]).await;
    browser.size(1200, 1000).await;
    browser.open(&site.url).await;
    let folder = std::env::var_os("KCTL_PICTURES").map(std::path::PathBuf::from);
    let seconds = if folder.is_some() { 30 } else { 1 };
    browser.until(&shows("default/wiki")).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    for (file, section) in [("debug.png", "app"), ("debug-reconciles.png", "reconciles")] {
        browser.run(&format!("document.getElementById('{section}').scrollIntoView({{ behavior: 'instant' }})")).await;
        let picture = base64::engine::general_purpose::STANDARD.decode(browser.picture().await).unwrap();
        assert_eq!(&picture[1..4], b"PNG");
        if let Some(folder) = &folder {
            std::fs::write(folder.join(file), picture).unwrap();
        }
    }
}
