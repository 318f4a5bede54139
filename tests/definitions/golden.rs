//! The manifests of all examples: `tests/golden/NAME` is what each one's own test makes, and API servers take all of it.

use std::{fs, path::PathBuf, process::Command};

use kctl::{Json, from_yaml};

/// The folders with a kustomization.
fn examples() -> Vec<PathBuf> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut found: Vec<_> = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|folder| folder.join("kustomization.yaml").is_file());
    found.sort();
    assert!(found.len() >= 4, "{found:?}");
    found
}

#[test]
fn a_kustomization_names_all_that_a_program_needs() {
    for folder in examples() {
        let text = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
        let kustomization: Json = from_yaml(&text).unwrap();
        let files: Vec<&str> = kustomization["resources"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
        let mut kinds = Vec::new();
        for file in &files {
            let object: Json = from_yaml(&fs::read_to_string(folder.join(file)).unwrap()).unwrap();
            kinds.push(object["kind"].as_str().unwrap().to_owned());
        }
        for kind in ["ServiceAccount", "Role", "RoleBinding", "Deployment", "Service", "PodDisruptionBudget"] {
            assert!(kinds.iter().any(|known| known == kind), "{}: no {kind}", folder.display());
        }
    }
}

#[test]
fn the_real_api_server_takes_all_manifests_of_all_examples() {
    if std::env::var_os("KUBECONFIG").is_none() {
        return;
    }
    for folder in examples() {
        let arguments =
            ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--field-manager=golden", "-k"];
        let output = Command::new("kubectl").args(arguments).arg(&folder).output().unwrap();
        assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    }
}
