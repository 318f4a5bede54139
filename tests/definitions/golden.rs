//! Golden manifests of all examples: each example's own test compares them with what it generates, and API servers
//! accept them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use kctl::{Json, from_yaml};

/// Returns the folders in `golden` that have a kustomization.
fn examples() -> Vec<PathBuf> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut found: Vec<_> = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|folder| folder.join("kustomization.yaml").is_file());
    found.sort();
    assert!(found.len() >= 4, "{found:?}");
    found
}

/// Examples without an `App` have no manifests.
const WITHOUT_APP: [&str; 1] = ["pod-events"];

/// Prefix of files for Karmada's API server, which the kustomization does not list.
const FOR_KARMADA: &str = "webhook/resourceinterpreterwebhookconfiguration-";

/// Returns the names of the files and folders in a folder.
fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// Returns the files in a folder and its subfolders, as relative paths.
fn files_in(folder: &Path, below: &str) -> BTreeSet<String> {
    let names = names_in(&folder.join(below)).into_iter().map(|name| format!("{below}{name}"));
    let (folders, files): (Vec<_>, Vec<_>) = names.partition(|name| folder.join(name).is_dir());
    let inner = folders.iter().flat_map(|name| files_in(folder, &format!("{name}/")));
    inner.chain(files).collect()
}

#[test]
fn every_example_has_golden_manifests() {
    let golden: BTreeSet<_> = examples().iter().map(|folder| folder.file_name().unwrap().to_owned()).collect();
    for name in names_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")) {
        if !WITHOUT_APP.contains(&name.as_str()) {
            assert!(golden.contains(name.as_ref() as &std::ffi::OsStr), "{name} has no folder in tests/golden");
        }
    }
}

#[test]
fn golden_folder_matches_kustomization_resources() {
    for folder in examples() {
        let text = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
        let kustomization: Json = from_yaml(&text).unwrap();
        let named = kustomization["resources"].as_array().unwrap().iter().filter_map(Json::as_str);
        let wanted: BTreeSet<_> = named.chain(["kustomization.yaml"]).map(str::to_owned).collect();
        let mut files = files_in(&folder, "");
        files.retain(|file| !file.starts_with(FOR_KARMADA));
        assert_eq!(files, wanted, "{}: a file too many or too few", folder.display());
    }
}

#[test]
fn kustomization_lists_all_manifests_of_a_program() {
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
#[ignore = "needs KUBECONFIG and kubectl: cargo xtask conformance"]
fn example_manifests_apply_to_real_server() {
    let definitions = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/cert-manager.yaml");
    // If cert-manager is already installed, `create` fails and its CRDs must not be deleted.
    let are_ours = kubectl(&["create", "-f", definitions]).is_ok();
    kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", definitions]).unwrap();
    let mut folders = examples();
    // The monitoring kinds belong to the Prometheus operator, whose CRDs are not installed here.
    folders.retain(|folder| !folder.join("monitoring").is_dir());
    let results: Vec<_> =
        folders.iter().map(|folder| kubectl(&[&APPLY[..], &[folder.to_str().unwrap()]].concat())).collect();
    if are_ours {
        kubectl(&["delete", "-f", definitions]).unwrap();
    }
    for result in results {
        result.unwrap();
    }
}

const APPLY: [&str; 6] =
    ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--field-manager=golden", "-k"];

fn kubectl(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("kubectl").args(arguments).output().unwrap();
    let failure = || format!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    output.status.success().then_some(()).ok_or_else(failure)
}
