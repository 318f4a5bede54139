//! A temporary folder that is removed at the end of the test.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use kctl::Json;

/// A new temporary folder, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static N_FOLDERS: AtomicUsize = AtomicUsize::new(0);
        static SWEEP: Once = Once::new();
        SWEEP.call_once(remove_abandoned);
        let number = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kctl-deploy-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes folders whose test processes were killed, for example by Ctrl-C: these never dropped them.
///
/// Only Linux has `/proc`, which shows the processes that live.
fn remove_abandoned() {
    if !Path::new("/proc/self").exists() {
        return;
    }
    let process_of = |name: &str| name.strip_prefix("kctl-deploy-")?.split('-').next()?.parse::<u32>().ok();
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let process = entry.file_name().to_str().and_then(process_of);
        if process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            let _left = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn folders_of_killed_tests_are_removed() {
    // The highest process id of Linux is 2^22.
    let abandoned = std::env::temp_dir().join(format!("kctl-deploy-{}-0", u32::MAX));
    std::fs::create_dir_all(&abandoned).unwrap();
    let kept = Folder::new();
    remove_abandoned();
    assert!(!abandoned.exists() && kept.exists());
}

/// Returns the objects of a YAML stream.
pub(crate) fn objects(yaml: &str) -> Vec<Json> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// Returns the objects that a kustomization lists, in its order.
pub(crate) fn kustomization_objects(folder: &Path) -> Vec<Json> {
    let read = |file: &str| objects(&std::fs::read_to_string(folder.join(file)).unwrap());
    let files = read("kustomization.yaml").remove(0)["resources"].take();
    files.as_array().unwrap().iter().flat_map(|file| read(file.as_str().unwrap())).collect()
}
