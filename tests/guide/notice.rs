//! NOTICE attributes the data of other projects: it names each file with such data, and no file that is gone.

use std::{fs, path::Path};

use crate::links::root;

/// Data files of the packages that kctl's authors wrote.
const OWN: [&str; 3] =
    ["kctl/src/app/helm/NOTES.txt", "kctl-apiserver/data/version.txt", "kctl-runtime/tests/memory/pod.json"];

/// Collects the data files below a folder, as paths relative to the root of the repository.
fn data_files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                data_files(&path, found);
            }
        } else if path
            .extension()
            .is_some_and(|extension| ["json", "jsonl", "txt"].iter().any(|data| extension == *data))
        {
            found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
}

/// Returns the data files that a package contains, and the recorded answers of the tests.
fn files_to_attribute() -> Vec<String> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let folder = entry.unwrap().path();
        if folder.is_dir() && folder.file_name().unwrap().to_str().unwrap().starts_with("kctl") {
            data_files(&folder, &mut packages);
        }
    }
    packages.retain(|file| !OWN.contains(&file.as_str()));
    let mut recorded = Vec::new();
    data_files(&root().join("tests"), &mut recorded);
    recorded.retain(|file| file.contains("/recorded"));
    packages.append(&mut recorded);
    packages
}

/// Returns the files and folders that NOTICE names.
fn names(notice: &str) -> Vec<&str> {
    let words = notice.split_whitespace().map(|word| word.trim_end_matches([',', ';', ':', '.']));
    words.filter(|word| word.contains('/') && (word.starts_with("kctl-") || word.starts_with("tests/"))).collect()
}

/// Returns `true` if a name covers a file: it is the file, a folder with it, or a pattern with `*` for the file's name.
fn covers(name: &str, file: &str) -> bool {
    match name.split_once('*') {
        Some((folder, extension)) => {
            file.strip_prefix(folder).is_some_and(|rest| !rest.contains('/') && rest.ends_with(extension))
        }
        None => file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}

#[test]
fn notice_names_all_data_of_other_projects() {
    let notice = fs::read_to_string(root().join("NOTICE")).unwrap();
    let (names, files) = (names(&notice), files_to_attribute());
    assert!(names.len() > 10 && files.len() > 150, "{} names, {} files", names.len(), files.len());
    let missing: Vec<&String> = files.iter().filter(|file| !names.iter().any(|name| covers(name, file))).collect();
    assert!(missing.is_empty(), "name these files in NOTICE, or add them to OWN: {missing:#?}");
    let stale: Vec<&&str> = names.iter().filter(|name| !files.iter().any(|file| covers(name, file))).collect();
    assert!(stale.is_empty(), "NOTICE names files without data: {stale:?}");
}

#[test]
fn name_in_notice_covers_its_files() {
    assert!(covers("kctl-a/data/*.json", "kctl-a/data/b.json"));
    assert!(!covers("kctl-a/data/*.json", "kctl-a/data/b/c.json"));
    assert!(!covers("kctl-a/data/*.json", "kctl-a/data/b.txt"));
    assert!(covers("tests/recorded", "tests/recorded/b.json"));
    assert!(!covers("tests/recorded", "tests/recorded.json"));
    assert_eq!(names("version 1: kctl-a/b.txt (kinds),\n  tests/c; kctl-d."), ["kctl-a/b.txt", "tests/c"]);
}

#[test]
fn notice_names_the_version_of_the_data() {
    let notice = fs::read_to_string(root().join("NOTICE")).unwrap();
    let version = fs::read_to_string(root().join("kctl-apiserver/data/version.txt")).unwrap();
    let expected = format!("version {}: kctl-apiserver/data/", version.trim());
    assert!(notice.contains(&expected), "NOTICE does not say `{expected}`");
}
