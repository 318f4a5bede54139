//! Writes the list of the built-in kinds, which `src/kinds/mod.rs` includes. A kind is a file with a `static KIND` in the
//! folder of its group. Apart from that, only the `mod` line of the group names it.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
};

/// The folder of the groups. Build scripts run in the folder of their package.
const KINDS: &str = "src/kinds";
/// The code that makes a file a kind.
const STATIC: &str = "pub(crate) static KIND: Kind";

fn main() -> Result<(), Box<dyn Error>> {
    let mut statics = Vec::new();
    for group in entries(Path::new(KINDS))?.into_iter().filter(|entry| entry.is_dir()) {
        let is_code = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "rs");
        for file in entries(&group)?.into_iter().filter(is_code) {
            if fs::read_to_string(&file)?.contains(STATIC) {
                statics.push(format!("&{}::KIND", module(&file)?));
            }
        }
    }
    let list = PathBuf::from(env::var("OUT_DIR")?).join("kinds.rs");
    fs::write(list, format!("&[\n    {},\n]\n", statics.join(",\n    ")))?;
    rerun_if_changed(KINDS);
    Ok(())
}

/// Returns the files and folders of a folder, sorted.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// Returns the path of a module below `kinds`: `core::pod` for `src/kinds/core/pod.rs`.
fn module(file: &Path) -> Result<String, Box<dyn Error>> {
    let relative = file.strip_prefix(KINDS)?.with_extension("");
    let names = relative.iter().map(|name| name.to_str().ok_or("the name of a kind's file is not UTF-8"));
    Ok(names.collect::<Result<Vec<_>, _>>()?.join("::"))
}

/// Makes Cargo run this script again when a file of the folder changes.
fn rerun_if_changed(folder: &str) {
    println!("cargo::rerun-if-changed={folder}");
}
