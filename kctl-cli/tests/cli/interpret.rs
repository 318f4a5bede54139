//! `kctl interpret` as a process: its output and its exit status.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"prod","generation":2},"spec":{"replicas":10}}"#;
const DEPLOYMENT_YAML: &str =
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: prod}\nspec:\n  replicas: 10\n";
const SERVICE: &str =
    r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}}"#;
const SERVICE_OBSERVED: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"clusterIP":"10.96.0.7","ports":[{"port":80}]}}"#;
const CONFIG_MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}"#;
const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","uid":"u"},"spec":{"containers":[],"volumes":[{"name":"a","secret":{"secretName":"s"}}]},"status":{"phase":"Succeeded"}}"#;
const ITEMS: &str = r#"[{"clusterName":"m1","status":{"replicas":4,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":2}},{"clusterName":"m2"}]"#;

/// Runs `kctl interpret`. An argument that starts with `@` is replaced by the path of a file with the rest as its
/// content.
fn kctl(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kctl"));
    command.arg("interpret");
    for argument in arguments {
        match argument.strip_prefix('@') {
            Some(text) => command.arg(write_file(text)),
            None => command.arg(argument),
        };
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The program may exit without reading its input. The write then fails, which the test ignores.
    let _closed = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Writes a file with a name that is unique across tests, and returns its path.
fn write_file(text: &str) -> PathBuf {
    static N_FILES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("interpret-{}-{}.yaml", std::process::id(), N_FILES.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn answer(arguments: &[&str], input: &str) -> Value {
    let output = kctl(arguments, input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert_eq!(errors, "", "{arguments:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn file(text: &str) -> String {
    format!("@{text}")
}

#[test]
fn every_operation_answers_with_one_object() {
    let retained = json!({ "retained": serde_json::from_str::<Value>(SERVICE_OBSERVED).unwrap() });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "name": "s" });
    let cases: [(&str, &[&str], Value); 8] = [
        ("InterpretReplica", &["--object", &file(DEPLOYMENT)], json!({ "replica": 10, "requires": null })),
        ("Retain", &["--desired", &file(SERVICE), "--observed", &file(SERVICE_OBSERVED)], retained),
        ("InterpretStatus", &["--observed", &file(POD)], json!({ "status": { "phase": "Succeeded" } })),
        ("InterpretHealth", &["--observed", &file(POD)], json!({ "healthy": true })),
        ("InterpretDependency", &["--desired", &file(POD)], json!({ "dependencies": [secret] })),
        ("InterpretDependency", &["--desired", &file(DEPLOYMENT)], json!({ "dependencies": null })),
        (
            "Prune",
            &["--object", r#"@{"apiVersion":"v1","kind":"X","metadata":{"uid":"u"},"status":{}}"#],
            json!({ "pruned": { "apiVersion": "v1", "kind": "X", "metadata": {} } }),
        ),
        ("InterpretStatus", &["--object", &file(CONFIG_MAP)], json!({ "status": null })),
    ];
    for (operation, arguments, expected) in cases {
        assert_eq!(
            answer(&[&["--operation", operation], arguments].concat(), ""),
            expected,
            "{operation} {arguments:?}"
        );
    }
}

#[test]
fn revise_replica_sets_the_number_of_replicas() {
    let revised = answer(&["--operation", "ReviseReplica", "--object", &file(DEPLOYMENT), "--replicas", "4"], "");
    assert_eq!(revised["revised"]["spec"], json!({ "replicas": 4 }));
}

#[test]
fn statuses_of_clusters_are_aggregated() {
    let status = |arguments: &[&str]| {
        let object = file(DEPLOYMENT);
        let arguments = [&["--operation", "AggregateStatus", "--desired", &object], arguments].concat();
        answer(&arguments, "")["aggregatedStatus"]["status"].take()
    };
    assert_eq!(status(&["--status-items", &file(ITEMS)]), json!({ "replicas": 4 }));
    assert_eq!(status(&[]), json!({ "observedGeneration": 2 }));
    let documents = "@clusterName: m1\nstatus: {replicas: 4}\n---\n# no item\n---\n- clusterName: m2\n  status: {replicas: 3}\n---\nclusterName: m3\n";
    assert_eq!(status(&["--status-items", documents]), json!({ "replicas": 7 }), "several documents");
    let json = r#"@{"clusterName":"m1","status":{"replicas":1}}{"clusterName":"m2","status":{"replicas":2}}"#;
    assert_eq!(status(&["--status-items", json]), json!({ "replicas": 3 }), "several values of JSON");
}

/// Tests nil and empty slices as in Go: with nil items, scripts and the built-in rule for Pods keep the status
/// unchanged.
#[test]
fn without_status_items_scripts_get_nil() {
    let pod = file(POD);
    let aggregated = |arguments: &[&str]| {
        let arguments = [&["--operation", "AggregateStatus", "--desired", &pod], arguments].concat();
        answer(&arguments, "")["aggregatedStatus"]["status"].take()
    };
    assert_eq!(aggregated(&[]), json!({ "phase": "Succeeded" }));
    assert_eq!(aggregated(&["--status-items", "@null"]), json!({ "phase": "Succeeded" }));
    for empty in ["@[]", "@", "@# none\n"] {
        assert_eq!(aggregated(&["--status-items", empty]), json!({}), "{empty}");
    }
    let script = "function AggregateStatus(o, items) o.status = {isNil = items == nil} return o end";
    let nil = customization("pods", "Pod", script).replace("replicaResource", "statusAggregation");
    let nil = file(&nil.replace("apps/v1", "v1"));
    assert_eq!(aggregated(&["--customization", &nil]), json!({ "isNil": true }));
    assert_eq!(aggregated(&["--customization", &nil, "--status-items", "@[]"]), json!({ "isNil": false }));
}

/// The command lines of `karmadactl interpret --help` work with `kctl interpret`.
#[test]
fn karmadactl_command_lines_work_with_kctl() {
    let (deployment, items) = (file(DEPLOYMENT), file(ITEMS));
    let script = file(&customization("a", "Deployment", "function GetReplicas(o) return 7 end"));
    for arguments in [
        ["-f", &script, "--operation", "interpretReplica", "--observed-file", &deployment],
        ["--filename", &script, "--operation", "INTERPRETREPLICA", "--desired-file", &deployment],
    ] {
        assert_eq!(answer(&arguments, ""), json!({ "replica": 7, "requires": null }), "{arguments:?}");
    }
    let aggregated = ["--operation", "aggregateStatus", "--observed-file", &deployment, "--status-file", &items];
    assert_eq!(answer(&aggregated, "")["aggregatedStatus"]["status"], json!({ "replicas": 4 }));
    let revised = ["--operation", "reviseReplica", "--observed-file", &deployment, "--desired-replica", "2"];
    assert_eq!(answer(&revised, "")["revised"]["spec"]["replicas"], 2);
}

#[test]
fn result_is_printed_as_yaml_or_json() {
    let printed = |format: &[&str]| {
        let script = file(&customization("a", "Deployment", "function GetReplicas(o) return 7.0 end"));
        let object = file(DEPLOYMENT);
        let arguments = ["--operation", "InterpretReplica", "--object", &object, "-f", &script];
        let output = kctl(&[&arguments, format].concat(), "");
        assert!(output.status.success(), "{format:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(printed(&["-o", "yaml"]), "replica: 7\nrequires: null\n");
    for format in [&[][..], &["-o", "json"], &["--output=json"]] {
        assert_eq!(printed(format), "{\"replica\":7,\"requires\":null}\n");
    }
    let output = kctl(&["--operation", "InterpretReplica", "--object", "-", "-o", "table"], DEPLOYMENT);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn third_party_folder_has_karmadas_layout_and_content() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("third-party-{}", std::process::id()));
    let path = folder.to_str().unwrap();
    let operation = ["--operation", "InterpretReplica", "--object", "-", "--third-party", path];
    let fails = |expected: &str| {
        for arguments in [&operation[..], &["--check", "--third-party", path]] {
            let output = kctl(arguments, DEPLOYMENT);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
            assert!(errors.contains(path) && errors.contains(expected), "{errors} should contain {expected}");
        }
    };
    fails("give the folder that holds");
    let kind = folder.join("inner/resourcecustomizations/apps/v1/Deployment");
    std::fs::create_dir_all(kind.join("testdata")).unwrap();
    std::fs::write(folder.join("a.yaml"), customization("a", "Deployment", "function GetReplicas(o) return 1 end"))
        .unwrap();
    fails("<group>/<version>/<Kind>/customizations.yaml");
    let one = |kind: &str, n: u8| customization("a", kind, &format!("function GetReplicas(o) return {n} end"));
    std::fs::write(kind.join("customizations.yaml"), format!("{}---\n{}", one("StatefulSet", 8), one("Deployment", 9)))
        .unwrap();
    assert_eq!(answer(&operation, DEPLOYMENT), json!({ "replica": 9, "requires": null }));
    assert_eq!(kctl(&["--check", "--third-party", path], "").status.code(), Some(0));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn help_names_the_origin_of_bundled_scripts() {
    let output = kctl(&["--help"], "");
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("kctl's own"), "{help}");
    for option in ["-f", "--filename", "--desired-file", "--observed-file", "--status-file", "--desired-replica"] {
        assert!(help.contains(option), "{option}: {help}");
    }
}

#[test]
fn interpret_reads_json_or_yaml_from_stdin() {
    for text in [DEPLOYMENT, DEPLOYMENT_YAML] {
        let replicas = answer(&["--operation", "InterpretReplica", "--object", "-"], text);
        assert_eq!(replicas, json!({ "replica": 10, "requires": null }), "{text}");
    }
}

#[test]
fn octal_numbers_are_read_as_in_go() {
    let object = "apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {mode: 0644, n: 10}\n";
    let pruned = answer(&["--operation", "Prune", "--object", "-"], object);
    assert_eq!(pruned["pruned"]["spec"], json!({ "mode": 420, "n": 10 }));
    let (deployment, items) = (file(DEPLOYMENT), "@- clusterName: m1\n  status: {replicas: 010}\n");
    let arguments = ["--operation", "AggregateStatus", "--desired", &deployment, "--status-items", items];
    assert_eq!(answer(&arguments, "")["aggregatedStatus"]["status"], json!({ "replicas": 8 }));
}

#[test]
fn lists_of_kubectl_are_split() {
    let list = |items: &str| format!(r#"{{"apiVersion":"v1","kind":"List","items":[{items}]}}"#);
    let read = |text: &str| kctl(&["--operation", "InterpretReplica", "--object", "-"], text);
    for (items, n) in [(String::new(), 0), (format!("{DEPLOYMENT},{POD}"), 2)] {
        let output = read(&list(&items));
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&format!("-: a list of {n} objects: give a file with one")), "{errors}");
    }
    let one = |kind: &str, n: u8| {
        let yaml = customization(kind, kind, &format!("function GetReplicas(o) return {n} end"));
        serde_saphyr::from_str::<Value>(&yaml).unwrap().to_string()
    };
    let scripts = file(&list(&[one("Job", 8), one("Deployment", 9)].join(",")));
    let arguments = ["--operation", "InterpretReplica", "--object", "-", "--customization", &scripts];
    assert_eq!(answer(&arguments, &list(DEPLOYMENT)), json!({ "replica": 9, "requires": null }));
}

#[test]
fn failure_has_status_1_and_a_message() {
    let broken = r#"@{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":"ten"}}"#;
    let cases: [(&str, &[&str], &str); 7] = [
        (
            "InterpretHealth",
            &["--object", &file(CONFIG_MAP)],
            "default InterpretHealth interpreter for \"/v1, Kind=ConfigMap\" not found",
        ),
        ("InterpretComponent", &["--object", &file(DEPLOYMENT)], "\"apps/v1, Kind=Deployment\" not found"),
        (
            "InterpretReplica",
            &["--object", broken],
            "spec.replicas: unrecognized type: int32, and the field has a string",
        ),
        ("InterpretReplica", &["--object", "/no/such/file"], "/no/such/file: cannot be read"),
        ("InterpretReplica", &["--object", "@[1, 2"], "neither JSON nor YAML of an object"),
        ("InterpretReplica", &["--object", "@kind: X"], "not an object with apiVersion and kind"),
        ("AggregateStatus", &["--object", &file(DEPLOYMENT), "--status-items", "@a: b"], "of a list of status items"),
    ];
    for (operation, arguments, expected) in cases {
        let output = kctl(&[&["--operation", operation], arguments].concat(), "");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{operation} {arguments:?}: {errors}");
        assert!(errors.contains(expected), "{errors} should contain {expected}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{operation} {arguments:?}");
    }
}

/// Returns a `ResourceInterpreterCustomization` with a single script.
fn customization(name: &str, kind: &str, script: &str) -> String {
    format!(
        "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {{ name: {name} }}\nspec:\n  target: {{ apiVersion: apps/v1, kind: {kind} }}\n  customizations: {{ replicaResource: {{ luaScript: \"{script}\" }} }}\n"
    )
}

#[test]
fn customization_folder_works_like_its_files() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("folder-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("inner.yaml")).unwrap();
    std::fs::write(folder.join("note.txt"), "no customization").unwrap();
    let path = folder.to_str().unwrap();
    let empty = kctl(&["--check", "--customization", path], "");
    assert_eq!(empty.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("no file of it ends with .yaml, .yml or .json"));

    std::fs::write(folder.join("a.yaml"), customization("a", "Deployment", "function GetReplicas(o) return 7 end"))
        .unwrap();
    assert_eq!(kctl(&["--check", "--customization", path], "").status.code(), Some(0));
    let replicas = answer(&["--operation", "InterpretReplica", "--object", "-", "--customization", path], DEPLOYMENT);
    assert_eq!(replicas, json!({ "replica": 7, "requires": null }));

    std::fs::write(folder.join("b.yml"), customization("b", "StatefulSet", "function GetReplicas(o) return")).unwrap();
    let broken = kctl(&["--check", "--customization", path], "");
    assert_eq!(broken.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&broken.stderr);
    assert!(
        errors.contains("customization \"b\", operation InterpretReplica: script of GetReplicas, line 1: "),
        "{errors}"
    );
    assert_eq!(kctl(&["--check", "--third-party", path], "").status.code(), Some(1), "a folder of folders is meant");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn check_without_customizations_is_wrong_usage() {
    let output = kctl(&["--check"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--check needs --customization or --third-party"));
}

#[test]
fn wrong_usage_has_status_2_and_a_hint() {
    let cases: [(&str, &[&str], &str); 7] = [
        ("Interpret", &["--object", "-"], "\"Interpret\" is not an operation: use one of InterpretReplica, "),
        ("InterpretReplica", &[], "InterpretReplica needs --object"),
        ("ReviseReplica", &["--object", "-"], "ReviseReplica needs --replicas"),
        ("Retain", &["--desired", "-"], "Retain needs --observed"),
        ("Retain", &["--observed", "-"], "Retain needs --desired"),
        ("Retain", &["--desired", "-", "--observed", "-"], "give one file as -"),
        ("InterpretReplica", &["--object", "a", "--desired", "b"], "cannot be used with"),
    ];
    for (operation, arguments, expected) in cases {
        let output = kctl(&[&["--operation", operation], arguments].concat(), DEPLOYMENT);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{operation} {arguments:?}: {errors}");
        assert!(!expected.contains(" needs ") || errors.contains("Usage: kctl interpret [OPTIONS]"), "{errors}");
        assert!(errors.contains(expected), "{errors} should contain {expected}");
    }
}
