//! Tests the program without a cluster: the embedded API server calls its functions over TLS.

use std::process::Command;

#[test]
fn objects_of_both_versions_are_converted_and_reconciled() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_website")).args(["dev", "--until-idle", "-o", "yaml"]).output().unwrap();
    let (printed, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let objects: Vec<kctl::Json> = serde_saphyr::from_multiple(&printed).unwrap();
    let found: Vec<_> = objects.iter().map(|object| (&object["apiVersion"], &object["metadata"]["name"])).collect();
    let expected =
        kctl::json!([["v1", "new"], ["v1", "old"], ["example.com/v1", "new"], ["example.com/v1alpha1", "old"]]);
    assert_eq!(kctl::json!(found), expected);
    assert_eq!(objects[0]["data"]["hosts"], "new.example.com\nwww.new.example.com");
    // The object is printed in the version in which it was applied. Its default was set in the other version.
    assert_eq!(objects[3]["spec"], kctl::json!({ "host": "old.example.com", "replicas": 2 }));
    assert_eq!(objects[3]["status"]["hosts"], 1);
}

#[test]
fn violated_rule_rejects_with_its_own_message() {
    let file = std::env::temp_dir().join(format!("kctl-website-{}.yaml", std::process::id()));
    let yaml = "apiVersion: example.com/v1\nkind: Website\nmetadata: {name: none}\nspec: {hosts: []}\n";
    std::fs::write(&file, yaml).unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_website")).args(["dev", "--until-idle", "-f"]).arg(&file).output();
    std::fs::remove_file(&file).unwrap();
    let output = program.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let expected = "admission webhook \"vwebsite-v1.example.com\" denied the request: Website.example.com \"none\" is invalid: \
                    spec.hosts: Required value: no one could reach it";
    assert!(!output.status.success() && stderr.contains(expected), "{stderr}");
}
