//! What a newcomer sees first: the operator without a cluster.

use std::process::Command;

use kctl::Json;

#[test]
fn a_set_and_its_three_pods_are_printed_once_they_are_ready() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/web.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_podset"))
        .args(["dev", "-f", file, "--until-idle", "-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // JSON is YAML, too.
    assert!(text.starts_with("[\n"), "{text}");
    let objects: Vec<Json> = kctl::from_yaml(&text).unwrap();
    let of_kind = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    let (sets, pods) = (of_kind("PodSet"), of_kind("Pod"));
    assert_eq!((sets.len(), pods.len(), objects.len()), (1, 3, 4));
    assert_eq!(sets[0]["status"]["readyReplicas"], 3);
    for pod in pods {
        let owner = &pod["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&sets[0]["metadata"]["uid"], &true.into()));
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        assert!(conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"), "{pod}");
    }
}
