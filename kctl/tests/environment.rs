//! `dev` hides a real cluster that the environment names: a client that a reconcile creates finds no cluster. The test
//! binary is also the app. The last tests are about the exit status of `dev --until-idle`.

#![expect(clippy::print_stdout, reason = "the app tells the test what it found, and the test is a program")]

use std::{
    net::TcpListener,
    process::{Command, Stdio},
};

use gate::{GATES, gated};
use kctl::{kube::Client, prelude::*};

#[path = "app/gate.rs"]
mod gate;

/// Creates a client for the cluster of the environment, which the compiler can't prevent.
#[controller]
async fn bold(config: Arc<ConfigMap>, _cx: Context<bold>) -> Result<Action> {
    let found = match Client::try_default().await {
        Ok(client) => format!("a cluster: {:?}", client.apiserver_version().await.map(|version| version.git_version)),
        Err(error) => format!("none: {error}"),
    };
    println!("{} found {found}", config.name_any());
    Ok(Action::await_change())
}

/// Fails in a way that a retry can't mend.
#[controller(name = "hopeless")]
async fn hopeless(_config: Arc<ConfigMap>, _cx: Context<hopeless>) -> Result<Action> {
    let failed: Result<Action> = Err("no color".into());
    failed.terminal()
}

/// Creates a Secret that API servers reject: a space is not allowed in a data key.
#[controller(name = "rejected", owns = Secret(create))]
async fn rejected(config: Arc<ConfigMap>, cx: Context<rejected>) -> Result<Action> {
    let secret = kctl::json!({ "metadata": { "name": config.name_any() }, "data": { "no key": "" } });
    cx.owned::<Secret>().create(kctl::from_json(secret)?).await?;
    Ok(Action::await_change())
}

/// Blocks the only thread for longer than the interval of the checks plus the delay that is reported.
#[controller(name = "blocking")]
async fn blocking(_config: Arc<ConfigMap>, _cx: Context<blocking>) -> Result<Action> {
    block_thread(Duration::from_millis(3_500));
    Ok(Action::await_change())
}

#[expect(clippy::disallowed_methods, reason = "the thread has to be blocked")]
fn block_thread(time: Duration) {
    std::thread::sleep(time);
}

/// Requests an immediate requeue in every reconcile.
#[controller(name = "restless")]
async fn restless(_config: Arc<ConfigMap>, _cx: Context<restless>) -> Result<Action> {
    Ok(Action::requeue(Duration::ZERO))
}

/// Deletes its objects.
#[controller(name = "cleaner", primary(delete))]
async fn cleaner(_config: Arc<ConfigMap>, cx: Context<cleaner>) -> Result<Action> {
    cx.delete().await?;
    Ok(Action::await_change())
}

/// Does nothing.
#[controller(name = "quiet")]
async fn quiet(_config: Arc<ConfigMap>, _cx: Context<quiet>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Environment variable with the name of the app that the test binary runs.
const APP: &str = "TEST_APP";

/// Runs `dev` with these objects, for an app that reads a kind without a CRD.
fn dev_of_gated(objects: &str) -> std::process::Output {
    let file = std::env::temp_dir().join(format!("kctl-gated-test-{}.yaml", std::process::id()));
    std::fs::write(&file, format!("{CONFIG}\n---\n{objects}")).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["dev", "--until-idle", "--filename"]).arg(&file).stdin(Stdio::null()).env(APP, "gated");
    let output = program.output().unwrap();
    std::fs::remove_file(&file).unwrap();
    output
}

fn dev_without_kind_fails_with_a_fix() {
    let output = dev_of_gated("");
    let error = String::from_utf8_lossy(&output.stderr);
    let (what, help) = (
        "`reads = Gate` needs the kind Gate of other.example.com/v1, which the API server does not have",
        "help: add `.kind::<Gate>()` to the app, or pass the file of its CustomResourceDefinition with `-f`",
    );
    assert!(!output.status.success() && error.contains(what) && error.contains(help), "{error}");
    let output = dev_of_gated(GATES);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("dev_without_kind_fails_with_a_fix ... ok");
}

/// Checks the error of a `dev --until-idle` that does not succeed.
fn check_failure(name: &str, app: &str, timeout: &str, expected: &[&str]) {
    let file = std::env::temp_dir().join(format!("kctl-{app}-test-{}.yaml", std::process::id()));
    std::fs::write(&file, CONFIG).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["dev", "--until-idle", "--timeout", timeout, "--filename"]).arg(&file);
    let output = program.stdin(Stdio::null()).env(APP, app).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{name}: {error}");
    for part in expected {
        assert!(error.contains(part), "{name}: {part:?} is not in: {error}");
    }
    println!("{name} ... ok");
}

/// Returns the table that `dev --until-idle` prints for an app.
fn table(app: &str, arguments: &[&std::ffi::OsStr]) -> String {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["dev", "--until-idle"]).args(arguments).stdin(Stdio::null()).env(APP, app);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn reconcile_that_blocks_the_thread_is_reported() {
    let file = std::env::temp_dir().join(format!("kctl-blocking-test-{}.yaml", std::process::id()));
    std::fs::write(&file, CONFIG).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["dev", "--until-idle", "--filename"]).arg(&file).stdin(Stdio::null()).env(APP, "blocking");
    let output = program.env_remove("RUST_LOG").output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.contains("no task ran for "), "{error}");
    println!("reconcile_that_blocks_the_thread_is_reported ... ok");
}

fn deleted_object_is_left_out_of_the_table() {
    let file = std::env::temp_dir().join(format!("kctl-cleaner-test-{}.yaml", std::process::id()));
    std::fs::write(&file, CONFIG).unwrap();
    let printed = table("cleaner", &["-f".as_ref(), file.as_os_str()]);
    std::fs::remove_file(&file).unwrap();
    assert!(printed.starts_with("KIND") && !printed.contains("web"), "{printed}");
    println!("deleted_object_is_left_out_of_the_table ... ok");
}

fn stored_primaries_are_printed_without_files() {
    let folder = std::env::temp_dir().join(format!("kctl-data-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, data) = (folder.join("config.yaml"), folder.join("data"));
    std::fs::write(&file, CONFIG).unwrap();
    let with_file = table("quiet", &["--data".as_ref(), data.as_os_str(), "-f".as_ref(), file.as_os_str()]);
    let without_file = table("quiet", &["--data".as_ref(), data.as_os_str()]);
    std::fs::remove_dir_all(&folder).unwrap();
    for printed in [with_file, without_file] {
        assert_eq!((printed.matches("default/web").count(), printed.lines().count()), (1, 2), "{printed}");
    }
    println!("stored_primaries_are_printed_without_files ... ok");
}

const CONFIG: &str = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: web } }";

/// Returns a kubeconfig for the cluster at this address.
fn kubeconfig(address: std::net::SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: real\n\
         clusters: [{{ name: real, cluster: {{ server: \"http://{address}\" }} }}]\n\
         users: [{{ name: me, user: {{}} }}]\n\
         contexts: [{{ name: real, context: {{ cluster: real, user: me }} }}]\n"
    )
}

/// Returns the output of `dev`, and the number of connections to the cluster of the environment.
fn dev(in_environment: impl Fn(&mut Command, &std::path::Path)) -> (String, usize) {
    let cluster = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = std::env::temp_dir().join(format!("kctl-environment-test-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(".kube")).unwrap();
    std::fs::write(folder.join(".kube/config"), kubeconfig(cluster.local_addr().unwrap())).unwrap();
    std::fs::write(folder.join("config.yaml"), CONFIG).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["dev", "--until-idle", "--filename"]).arg(folder.join("config.yaml")).stdin(Stdio::null());
    program.env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST").env_remove("HOME");
    in_environment(&mut program, &folder);
    cluster.set_nonblocking(true).unwrap();
    // A cluster that closes each connection immediately, so that the program does not hang and the attempt is counted.
    let counted = std::thread::scope(|scope| {
        let running = scope.spawn(|| program.output().unwrap());
        let mut n = 0;
        while !running.is_finished() {
            n += usize::from(cluster.accept().is_ok());
            std::thread::yield_now();
        }
        n += usize::from(cluster.accept().is_ok());
        (running.join().unwrap(), n)
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let (output, n) = counted;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), n)
}

fn check(name: &str, in_environment: impl Fn(&mut Command, &std::path::Path)) {
    let (printed, n) = dev(in_environment);
    assert_eq!(n, 0, "{name}: the cluster of the environment was called: {printed}");
    assert!(printed.contains("web found none: "), "{name}: {printed}");
    assert!(printed.contains("default/web"), "{name}: the objects are printed: {printed}");
    println!("{name} ... ok");
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("dev") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let app = match std::env::var(APP).as_deref() {
            Ok("gated") => App::new("gated").controller::<gated>(),
            Ok("hopeless") => App::new("hopeless").controller::<hopeless>(),
            Ok("cleaner") => App::new("cleaner").controller::<cleaner>(),
            Ok("quiet") => App::new("quiet").controller::<quiet>(),
            Ok("blocking") => App::new("blocking").controller::<blocking>(),
            Ok("rejected") => App::new("rejected").controller::<rejected>(),
            Ok("restless") => App::new("restless").controller::<restless>(),
            _ => App::new("bold").controller::<bold>(),
        };
        let ended = runtime.block_on(app.main());
        if let Err(error) = ended {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
    dev_without_kind_fails_with_a_fix();
    reconcile_that_blocks_the_thread_is_reported();
    deleted_object_is_left_out_of_the_table();
    stored_primaries_are_printed_without_files();
    check("cluster_of_kubeconfig_is_denied", |program, folder| {
        program.env("KUBECONFIG", folder.join(".kube/config"));
    });
    check("cluster_of_the_home_folder_is_denied", |program, folder| {
        program.env("HOME", folder);
    });
    check("cluster_of_a_pod_is_denied", |program, _folder| {
        program.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", "1");
    });
    check("no_cluster_stays_none", |_program, _folder| {});
    check_failure(
        "object_that_was_given_up_fails_dev",
        "hopeless",
        "60s",
        &["hopeless default/web: gave up: no color"],
    );
    check_failure(
        "invalid_request_fails_dev_before_the_timeout",
        "rejected",
        "60s",
        &[
            "the API server rejects requests as invalid, and nothing is left",
            "rejected default/web: failed ",
            " times in a row, the last time: create Secret default/web: ",
        ],
    );
    check_failure(
        "hot_loop_is_named_with_its_reconciles",
        "restless",
        "3s",
        &["restless default/web: reconciled ", " times"],
    );
}
