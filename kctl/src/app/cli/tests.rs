//! Tests of the command line: which options contradict each other, and the manifests that they select.

use std::{path::Path, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kctl_apimachinery::validation::LABEL_LEN_MAX;
use kctl_runtime::{
    manifest::Resources,
    reconcile::{Action, Context},
    shard::ShardBy,
};
use serde_json::Value;

use super::*;
use crate::app::run_options::namespace;

#[test]
fn version_lists_the_app_before_kctl_and_build() {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let kctl = format!("kctl {}, debug build for {arch} {os}", env!("CARGO_PKG_VERSION"));
    let app = || App::new("web");
    let cases = [
        (app(), String::new()),
        (app().version("1.2.3"), "1.2.3\n".to_owned()),
        (app().commit(Some("abc1234")), "commit abc1234\n".to_owned()),
        (app().version("1.2.3").commit(Some("abc1234")), "1.2.3, commit abc1234\n".to_owned()),
        // A build without version and commit.
        (app().version("1.2.3").commit(Some("")), "1.2.3\n".to_owned()),
    ];
    for (app, expected) in cases {
        let command = Cli::command().name(app.name.clone()).version(version(&app));
        assert_eq!(command.render_version(), format!("web {expected}{kctl}\n"));
    }
}

#[test]
fn invalid_app_name_is_reported() {
    for name in ["", "My App", "web_site", &"a".repeat(LABEL_LEN_MAX + 1)] {
        let error = App::new(name).check().unwrap_err().to_string();
        assert!(error.starts_with(&format!("App::new(\"{name}\"): `{name}` is not a valid name: ")), "{error}");
    }
    for name in ["web", "web.v1", &"a".repeat(LABEL_LEN_MAX)] {
        App::new(name).check().unwrap();
    }
}

#[test]
fn usage_shows_that_a_command_is_optional() {
    assert_eq!(Cli::command().name("web").render_usage().to_string(), "Usage: web [COMMAND]");
}

#[test]
fn contradicting_options_are_wrong_usage() {
    let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
    let cases = [
        ("--leader-elect --leader-elect-lease-duration=5s", "--leader-elect-lease-duration (5s) has to be longer"),
        ("--metrics-bind-address=here", "--metrics-bind-address=here: not an address"),
        ("--proxy-url=ftp://proxy.corp", "--proxy-url: `ftp` is not a proxy scheme"),
        ("--namespace=", "`` is not a valid namespace name"),
        ("--namespace=Shop", "`Shop` is not a valid namespace name"),
    ];
    for (options, part) in cases {
        let error = parse(Cli::command(), arguments(&format!("app run {options}"))).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{options}");
        assert!(error.to_string().contains(part), "{options}: {error}");
    }
}

#[test]
fn own_errors_show_usage_of_the_subcommand() {
    for (command, options) in [
        ("run", "--metrics-bind-address=here"),
        ("generate-crds", "--check"),
        ("generate-rbac", "--check"),
        ("generate-manifests", "--helm chart --check other"),
    ] {
        let arguments = format!("app {command} {options}").split(' ').map(OsString::from).collect();
        let error = parse(settings::with_environment(Cli::command()), arguments).err().unwrap().to_string();
        assert!(error.contains(&format!("Usage: app {command} [OPTIONS]")), "{error}");
    }
}

#[test]
fn wrong_key_of_shards_is_wrong_usage() {
    let arguments = |key: &str| ["app", "shards", "--key", key].map(OsString::from).to_vec();
    let cases = [
        ("", "the key is empty: write NAMESPACE/NAME"),
        ("pods/shop/web", "has more than one `/`: write NAMESPACE/NAME"),
        ("Shop/web", "`Shop` is not a valid namespace name"),
        ("shop/..", "`..` is not a valid object name"),
    ];
    for (key, part) in cases {
        let error = parse(Cli::command(), arguments(key)).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{key}");
        assert!(error.to_string().contains(part), "{key}: {error}");
    }
    for key in ["shop/web", "node-1"] {
        assert!(parse(Cli::command(), arguments(key)).is_ok(), "{key}");
    }
}

#[test]
fn namespaces_are_given_as_to_kubectl() {
    let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
    let cli = parse(Cli::command(), arguments("app run -n shop -n bar")).unwrap();
    let Command::Run(options) = cli.command else { panic!("another command") };
    assert_eq!(options.namespace, ["shop", "bar"]);
    assert!(parse(Cli::command(), arguments("app generate-rbac -n ops")).is_ok());
}

#[test]
fn groups_with_commas_are_not_split() {
    let line = "app run --namespace shop,bar --as jane --as-group CN=ops,OU=staff --as-group dev";
    let command = settings::with_environment(Cli::command());
    let cli = parse(command, line.split(' ').map(OsString::from).collect()).unwrap();
    let Command::Run(options) = cli.command else { panic!("another command") };
    assert_eq!(options.namespace, ["shop", "bar"]);
    assert_eq!(options.as_group, ["CN=ops,OU=staff", "dev"]);
}

#[test]
fn shards_without_number_are_equal_in_every_command() {
    let parsed = |line: &str| parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap().command;
    for (line, slots) in [("run --shards --namespace shop", 24), ("run --shards 4 --namespace shop", 4)] {
        let Command::Run(options) = parsed(&format!("app {line}")) else { panic!("another command") };
        assert_eq!((options.manager.slots(), &*options.namespace), (Some(slots), &["shop".to_owned()][..]), "{line}");
    }
    let Command::GenerateRbac(options) = parsed("app generate-rbac --shards --namespace ops") else {
        panic!("another command")
    };
    assert_eq!((options.deploy.shards, options.names.namespace.as_deref()), (Some(24), Some("ops")));
    let Command::GenerateManifests(options) = parsed("app generate-manifests --shards --metrics") else {
        panic!("another command")
    };
    assert_eq!((options.deploy.shards, options.deploy.metrics), (Some(24), true));
}

#[test]
fn namespaces_have_to_be_dns_labels() {
    let longest = "a".repeat(LABEL_LEN_MAX);
    for (text, good) in
        [("a", true), ("a-1", true), (&longest, true), ("", false), ("a_b", false), ("-a", false), ("a-", false)]
    {
        assert_eq!(namespace(text).is_ok(), good, "{text}");
    }
    assert!(namespace(&"a".repeat(LABEL_LEN_MAX + 1)).is_err());
}

#[test]
fn chart_has_its_folder_and_no_namespace() {
    let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
    let parsed =
        |options: &str| parse(Cli::command(), arguments(&format!("app generate-manifests --helm chart {options}")));
    let limited = "--objects-in shop --objects-in blog";
    for options in
        ["--check", "--leader-elect --requests cpu=1 --limits memory=1Gi", "--shards 4 --since main", limited]
    {
        assert!(parsed(options).is_ok(), "{options}");
    }
    for (options, part) in [
        ("--check other", "--check takes no folder with --helm"),
        ("--out other", "cannot be used with"),
        ("--namespace web", "cannot be used with"),
        ("--controller-ring web", "a chart has no values for the ring"),
        ("--limits memory=1GB", "`1GB` is not a quantity of memory"),
    ] {
        let error = parsed(options).err().unwrap();
        assert!(error.exit_code() == 2 && error.to_string().contains(part), "{options}: {error}");
    }
}

#[crate::controller(crate = crate)]
async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    Ok(Action::await_change())
}

fn manager_of(app: &App, options: &str) -> (Value, Vec<String>) {
    let line = format!("app generate-manifests{options}");
    let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
    let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
    let (names, manager) = (options.names.into_rbac_options(app), options.deploy.manager(app, &options.ring));
    let deployment = manifest::deployment(&names, manager, &Resources::default(), "web:1").unwrap().object;
    let roles = manifest::manager_rbac(&names, manager).unwrap().into_iter().map(|manifest| manifest.file);
    (deployment["spec"].clone(), roles.filter(|file| file.starts_with("rbac/role-")).collect())
}

#[test]
fn manifests_use_app_shards_unless_options_override() {
    let plain = App::new("web").controller::<idle>();
    let sharded = App::new("web").controller::<idle>().sharded(8, ShardBy::Namespace);
    let (shards, elects) = ("rbac/role-web-shards.default.yaml", "rbac/role-web-leader-election.default.yaml");
    for (app, options, replicas, arg, role) in [
        (&plain, "", 1, None, None),
        (&plain, " --shards 0", 1, None, None),
        (&plain, " --shards 4", 2, Some("--shards=4"), Some(shards)),
        (&plain, " --shards", 2, Some("--shards=24"), Some(shards)),
        (&sharded, "", 2, Some("--shards=8"), Some(shards)),
        (&sharded, " --shards 4", 2, Some("--shards=4"), Some(shards)),
        (&sharded, " --shards 0", 1, Some("--shards=0"), None),
        (&sharded, " --leader-elect", 2, Some("--leader-elect"), Some(elects)),
        // `run` rejects `--controller-ring` with `--shards`.
        (&sharded, " --controller-ring web", 1, None, None),
    ] {
        let (deployment, roles) = manager_of(app, options);
        assert_eq!(deployment["replicas"], replicas, "{options:?}");
        let args = deployment["template"]["spec"]["containers"][0]["args"].to_string();
        assert!(arg.is_none_or(|arg| args.contains(&format!("{arg:?}"))), "{options:?}: {args}");
        assert_eq!(args.contains("shards"), arg.is_some_and(|arg| arg.contains("shards")), "{options:?}: {args}");
        assert_eq!(roles, role.into_iter().collect::<Vec<_>>(), "{options:?}");
    }
}

#[tokio::test]
async fn dry_run_of_sharded_app_is_rejected() {
    let app = App::new("web").controller::<idle>().sharded(8, ShardBy::Namespace);
    let arguments = ["app", "run", "--dry-run"].map(OsString::from).to_vec();
    let Command::Run(options) = parse(Cli::command(), arguments).unwrap().command else { panic!("another command") };
    let error = Box::pin(run::run(app, *options)).await.unwrap_err().to_string();
    assert!(error.contains("--dry-run does not go with --shards") && error.contains("--shards=0"), "{error}");
}

#[test]
fn webhooks_alone_have_two_replicas_without_election() {
    let (deployment, roles) = manager_of(&App::new("web"), "");
    assert!(deployment["replicas"] == 2 && deployment["strategy"]["type"] == "RollingUpdate", "{deployment}");
    assert!(roles.is_empty(), "{roles:?}");
}

/// `GOLDEN=overwrite` writes the manifests again.
#[test]
fn manifests_of_sharded_app_match_golden_files() {
    // `cargo package` writes this file: a published crate has no golden files.
    if Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.cargo_vcs_info.json")).exists() {
        return print_or_log!("skipped: the published crate has no golden files");
    }
    let all = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");
    let app = App::new("web").controller::<idle>().sharded(8, ShardBy::Namespace);
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let flag = if overwrite { "--allow-breaking --out" } else { "--check" };
    let line = format!("app generate-manifests --with monitoring --image web:1 {flag} {all}/sharded");
    let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
    let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
    generate_manifests(app, options).unwrap();
}

#[test]
fn check_needs_a_folder() {
    let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
    for command in ["generate-crds", "generate-rbac", "generate-manifests"] {
        let error = parse(Cli::command(), arguments(&format!("app {command} --check"))).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--check needs a folder: write `--check DIR`, or add --out"), "{error}");
        for line in ["--check deploy", "--check --out deploy", "--out deploy"] {
            assert!(parse(Cli::command(), arguments(&format!("app {command} {line}"))).is_ok(), "{command} {line}");
        }
    }
}

#[test]
fn options_without_effect_on_roles_are_rejected() {
    let parsed = |options: &str| {
        let line = format!("app generate-rbac {options}");
        parse(Cli::command(), line.split(' ').map(OsString::from).collect())
    };
    for options in [
        "--diff-cluster --check deploy",
        "--diff-cluster --user-roles",
        "--cluster edge --leader-elect",
        "--cluster edge --shards 4",
        "--cluster edge --metrics",
        "--cluster edge --controller-ring web",
        "--cluster edge --with monitoring",
    ] {
        let error = parsed(options).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{options}");
        assert!(error.to_string().contains("cannot be used with"), "{options}: {error}");
    }
    for options in ["--diff-cluster --cluster edge", "--cluster edge --user-roles", "--diff-cluster --leader-elect"] {
        assert!(parsed(options).is_ok(), "{options}");
    }
}

#[test]
fn breaking_options_need_a_folder() {
    let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
    for command in ["generate-crds", "generate-manifests"] {
        for (options, part) in
            [("--since main", "--since needs the folder"), ("--allow-breaking", "--allow-breaking needs the folder")]
        {
            let error = parse(Cli::command(), arguments(&format!("app {command} {options}"))).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part), "{error}");
        }
        for line in [
            "--since main --check deploy",
            "--since main --out deploy",
            "--since main --check --out deploy",
            "--allow-breaking --out deploy",
        ] {
            assert!(parse(Cli::command(), arguments(&format!("app {command} {line}"))).is_ok(), "{command} {line}");
        }
    }
}

#[cfg(feature = "webhook")]
#[test]
fn wrong_webhook_options_are_wrong_usage() {
    let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
    let cases = [
        ("run --webhook-url=http://a", "'https' is the only allowed URL scheme"),
        ("generate-manifests --webhook-url=https://a?b", "query parameters are not permitted in the URL"),
        ("run --webhook-secret=", "`` is not a valid name of a Secret"),
        ("run --webhook-secret=Bad_Name!", "`Bad_Name!` is not a valid name of a Secret"),
        ("run --webhook-service=web.system.svc", "`web.system.svc` is not a valid name of a Service"),
        ("generate-manifests --with cert-manager --webhook-ca-file ca.crt", "--webhook-ca-file does not go with"),
        #[cfg(feature = "dev")]
        ("dev --webhook-secret=web", "--webhook-secret is for `run`"),
    ];
    for (line, part) in cases {
        let error = parse(Cli::command(), arguments(&format!("app {line}"))).err().unwrap();
        assert!(error.exit_code() == 2 && error.to_string().contains(part), "{line}: {error}");
    }
}

#[cfg(feature = "webhook")]
#[test]
fn cert_manager_without_webhooks_is_rejected() {
    let app = App::new("web").controller::<idle>();
    for (options, is_rejected) in [
        ("", false),
        (" --with monitoring", false),
        (" --with cert-manager", true),
        (" --helm x --with cert-manager", true),
    ] {
        let line = format!("app generate-manifests{options}");
        let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
        let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
        assert_eq!(options.unused_cert_manager(&app).is_some(), is_rejected, "{line}");
    }
}

#[test]
fn request_above_its_limit_names_both_options() {
    for options in ["--requests cpu=1 --limits cpu=500m", "--requests memory=1Gi", "--limits cpu=1m"] {
        let line = format!("app generate-manifests {options}");
        let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
        let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
        let error = options.resources.resources().unwrap_err().to_string();
        let help = "help: lower the request with --requests, or raise the limit with --limits";
        assert!(
            error.contains(" request ") && error.contains(" is greater than the ") && error.contains(help),
            "{error}"
        );
    }
}

#[test]
fn chart_with_a_dotted_name_is_rejected() {
    let folder = std::env::temp_dir().join(format!("kctl-chart-name-{}", std::process::id()));
    let line = format!("app generate-manifests --name web.v1 --helm {}", folder.display());
    let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
    let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
    let error = generate_manifests(App::new("web").controller::<idle>(), options).unwrap_err().to_string();
    assert!(error.contains("`web.v1` is not a valid name of a chart") && !folder.exists(), "{error}");
}
