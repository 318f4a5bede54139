//! Compares the generated manifests with `tests/golden/podset` of the workspace. `GOLDEN=overwrite` updates the golden
//! files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn the_manifests_are_the_golden_ones() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/podset");
    let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
    let way: &[&str] = if overwrite { &["--out", folder, "--allow-breaking"] } else { &["--check", folder] };
    let output = Command::new(env!("CARGO_BIN_EXE_podset"))
        .args(["generate-manifests", "--leader-elect", "--metrics", "--image", "example.com/podset:1"])
        .args(way)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Writes the chart into a folder that has none.
fn write_chart(folder: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_podset"))
        .args(["generate-manifests", "--leader-elect", "--metrics", "--image", "example.com/podset:1", "--helm"])
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Collects the files below a folder with their content, by their paths below `root`.
fn files(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(root, &path, found);
        } else {
            found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
}

/// The golden chart is in `tests/golden/podset-chart`. `--check` would accept another default in `values.yaml`, as that of a
/// person, so a new chart is compared.
#[test]
fn the_chart_is_the_golden_one() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/podset-chart");
    if std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite") {
        fs::remove_dir_all(&golden).unwrap();
        write_chart(&golden);
    }
    let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join("podset-chart");
    let _earlier = fs::remove_dir_all(&new);
    write_chart(&new);
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    files(&golden, &golden, &mut expected);
    files(&new, &new, &mut found);
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (path, text) in expected {
        assert_eq!(text, found[&path], "{}", path.display());
    }
}
