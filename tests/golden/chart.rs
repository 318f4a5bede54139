//! Compares the chart of a program with `tests/golden/NAME-chart`. The tests of the examples include this file.
//!
//! `--check` would accept another default in `values.yaml`, as an edit by hand, so a new chart is compared.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Checks that the chart of a program is the golden one. `GOLDEN=overwrite` updates the golden one. `scratch` is a folder
/// for a new chart.
pub(crate) fn check(name: &str, program: &str, scratch: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/{name}-chart"));
    if std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite") {
        fs::remove_dir_all(&golden).unwrap();
        write_chart(name, program, &golden);
    }
    let new = Path::new(scratch).join(format!("{name}-chart"));
    let _earlier = fs::remove_dir_all(&new);
    write_chart(name, program, &new);
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    read_files(&golden, &golden, &mut expected);
    read_files(&new, &new, &mut found);
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (path, text) in expected {
        assert_eq!(text, found[&path], "{}", path.display());
    }
}

/// Writes the chart into a folder that has none.
fn write_chart(name: &str, program: &str, folder: &Path) {
    let output = Command::new(program)
        .args(["generate-manifests", "--leader-elect", "--metrics", "--image"])
        .arg(format!("example.com/{name}:1"))
        .arg("--helm")
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Collects the files below a folder with their content, by their paths below `root`.
fn read_files(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_files(root, &path, found);
        } else {
            found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
}
