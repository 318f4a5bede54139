//! Tests `dev`, which runs the operator without a cluster.

use std::process::Command;

use kctl::Json;

#[test]
fn set_and_its_three_ready_pods_are_printed() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/web.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_podset"))
        .args(["dev", "-f", file, "--until-idle", "-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // JSON is valid YAML.
    assert!(text.starts_with("[\n"), "{text}");
    let objects: Vec<Json> = kctl::from_yaml(&text).unwrap();
    let objects_of = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    let (sets, pods) = (objects_of("PodSet"), objects_of("Pod"));
    assert_eq!((sets.len(), pods.len(), objects.len()), (1, 3, 4));
    assert_eq!(sets[0]["status"]["readyReplicas"], 3);
    for pod in pods {
        let owner = &pod["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&sets[0]["metadata"]["uid"], &true.into()));
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        assert!(conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"), "{pod}");
    }
}

#[test]
fn table_is_printed_where_no_format_is_given() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/web.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_podset")).args(["dev", "-f", file, "--until-idle"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["KIND", "NAME", "READY", "STATUS", "AGE", "SOURCE"]);
    assert_eq!(words.len(), 5, "{text}");
    let rows_of = |kind: &str| words.iter().filter(|line| line[0] == kind).collect::<Vec<_>>();
    let pods = rows_of("Pod");
    assert_eq!(pods.len(), 3, "{text}");
    for pod in pods {
        assert_eq!((pod[2], pod[3], pod[5]), ("1/1", "Running", "PodSet/web"), "{text}");
    }
    let set = rows_of("PodSet")[0];
    assert_eq!((set[1], set[2], *set.last().unwrap()), ("default/web", "3/3", "applied"), "{text}");
}
