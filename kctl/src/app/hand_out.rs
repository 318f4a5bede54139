//! Where manifests go: one stream, a file for each object, or nowhere but into a comparison with files.

use std::path::{Path, PathBuf};

use kctl_runtime::{
    manifest::{self, APPLY_BYTES_MAX, Manifest},
    reconcile::{Error, Result, ResultExt},
};
use serde_json::Value;

/// Where manifests go.
#[derive(clap::Args)]
pub(super) struct OutOptions {
    /// Write a file for each object into this folder instead of one stream
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write nothing; fail when the files in the folder (or in that of --out) are not these
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not said, said, and said with a folder")]
    check: Option<Option<PathBuf>>,
}

impl OutOptions {
    /// The folder that is written, or compared with.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.check.as_ref().and_then(Option::as_deref).or(self.out.as_deref())
    }
}

/// Which changes of definitions are let through.
#[derive(clap::Args)]
pub(super) struct BreakingOptions {
    /// Also changes of definitions that break stored objects or clients
    #[arg(long)]
    allow_breaking: bool,
    /// Compare definitions with the files of this git revision rather than with those in the folder
    #[arg(long, value_name = "REV")]
    since: Option<String>,
}

/// Prints manifests as one stream, writes them as files, or compares them with files.
pub(super) fn hand_out(manifests: &[Manifest], options: &OutOptions) -> Result<()> {
    hint_at_size(manifests);
    let Some(folder) = options.folder() else {
        if options.check.is_some() {
            return Err(Error::from("--check needs a folder: `--check DIR`, or --out beside it"));
        }
        return super::cli::print(&manifest::stream(manifests));
    };
    let mut different = Vec::new();
    for manifest in manifests {
        let file = folder.join(&manifest.file);
        if options.check.is_some() {
            if !std::fs::read_to_string(&file).is_ok_and(|text| text == manifest.yaml) {
                different.push(file.display().to_string());
            }
            continue;
        }
        std::fs::create_dir_all(file.parent().unwrap_or(folder)).context(folder.display())?;
        std::fs::write(&file, &manifest.yaml).context(file.display())?;
        eprintln!("{}", file.display());
    }
    if different.is_empty() {
        return Ok(());
    }
    Err(Error::from(format!(
        "not what the declarations say: {}\nhelp: run the same with --out {} instead of --check",
        different.join(", "),
        folder.display()
    )))
}

fn hint_at_size(manifests: &[Manifest]) {
    manifests.iter().filter_map(size_hint).for_each(|hint| eprintln!("{hint}"));
}

/// `kubectl apply` keeps the whole object in an annotation, which has a limit.
fn size_hint(manifest: &Manifest) -> Option<String> {
    let bytes = manifest.object.to_string().len();
    let (file, help) = (&manifest.file, "write `kubectl apply --server-side`");
    (bytes > APPLY_BYTES_MAX)
        .then(|| format!("{file}: {bytes} bytes are more than the {APPLY_BYTES_MAX} of `kubectl apply`; {help}"))
}

/// Compares definitions with those that are there, and refuses what breaks objects or clients.
pub(super) fn refuse_breaking(manifests: &[Manifest], out: &OutOptions, options: &BreakingOptions) -> Result<()> {
    let Some(folder) = out.folder() else { return Ok(()) };
    if options.allow_breaking {
        return Ok(());
    }
    let mut changes = Vec::new();
    for (file, old) in known(folder, options.since.as_deref())? {
        let Some(new) =
            manifests.iter().find(|manifest| manifest.object["metadata"]["name"] == old["metadata"]["name"])
        else {
            let what = "the definition is no longer made; removing it removes all objects of the kind; remove the file yourself";
            changes.push(format!("{file}: {what}, or add the kind by `App::kind`"));
            continue;
        };
        changes.extend(manifest::breaking(&old, &new.object).iter().map(|change| format!("{file}: {change}")));
    }
    if changes.is_empty() {
        return Ok(());
    }
    Err(Error::from(format!(
        "changes that break stored objects or clients:\n  {}\nhelp: add --allow-breaking when no such objects are stored",
        changes.join("\n  ")
    )))
}

/// The definitions in a folder, now or at a revision.
fn known(folder: &Path, revision: Option<&str>) -> Result<Vec<(String, Value)>> {
    let folder = folder.join("crds");
    let texts = match revision {
        Some(revision) => committed(&folder, revision)?,
        None => in_folder(&folder)?,
    };
    let mut found = Vec::new();
    for (file, text) in texts {
        let object: Value = serde_saphyr::from_str(&text).context(&file)?;
        if object["kind"] == "CustomResourceDefinition" {
            found.push((file, object));
        }
    }
    Ok(found)
}

fn in_folder(folder: &Path) -> Result<Vec<(String, String)>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).context(folder.display())? {
        files.push(entry.context(folder.display())?.path());
    }
    files.sort();
    let is_yaml = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "yaml");
    let read = |file: &PathBuf| {
        let name = file.display().to_string();
        std::fs::read_to_string(file).map(|text| (name.clone(), text)).context(&name)
    };
    files.iter().filter(is_yaml).map(read).collect()
}

fn committed(folder: &Path, revision: &str) -> Result<Vec<(String, String)>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    // In the folder itself, names are relative to it wherever the program was started.
    let git = |arguments: &[&str]| -> Result<String> {
        let output = std::process::Command::new("git").arg("-C").arg(folder).args(arguments).output().context("git")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(Error::from(format!("git {}: {}", arguments.join(" "), text.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let names = git(&["ls-tree", "--name-only", revision, "--", "./"])?;
    let names = names.lines().filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "yaml"));
    names.map(|name| Ok((name.to_owned(), git(&["show", &format!("{revision}:./{name}")])?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(fields: &Value) -> Manifest {
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "webs.example.com" },
            "spec": { "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": fields } },
            }] },
        });
        Manifest::new("crds/webs.example.com.yaml".into(), object).unwrap()
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kctl-hand-out-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn out(&self) -> OutOptions {
            OutOptions { out: Some(self.0.clone()), check: None }
        }

        fn check(&self) -> OutOptions {
            OutOptions { out: None, check: Some(Some(self.0.clone())) }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    const STRICT: BreakingOptions = BreakingOptions { allow_breaking: false, since: None };

    #[test]
    fn a_change_that_breaks_objects_is_refused_unless_it_is_allowed() {
        let folder = Folder::new("breaking");
        let (old, new) = (crd(&json!({ "host": { "type": "string" } })), crd(&json!({})));
        hand_out(std::slice::from_ref(&old), &folder.out()).unwrap();
        hand_out(std::slice::from_ref(&old), &folder.check()).unwrap();
        refuse_breaking(std::slice::from_ref(&old), &folder.check(), &STRICT).unwrap();
        for out in [folder.out(), folder.check()] {
            let refused = refuse_breaking(std::slice::from_ref(&new), &out, &STRICT).unwrap_err().to_string();
            assert!(
                refused.contains("webs.example.com.yaml: v1 host: is gone; what objects have in host"),
                "{refused}"
            );
            let allowed = BreakingOptions { allow_breaking: true, since: None };
            refuse_breaking(std::slice::from_ref(&new), &out, &allowed).unwrap();
        }
        let gone = refuse_breaking(&[], &folder.check(), &STRICT).unwrap_err().to_string();
        assert!(gone.contains("the definition is no longer made"), "{gone}");
        // The other way round nothing breaks, but the files are not the same.
        hand_out(std::slice::from_ref(&new), &folder.out()).unwrap();
        refuse_breaking(std::slice::from_ref(&old), &folder.check(), &STRICT).unwrap();
        let different = hand_out(&[old], &folder.check()).unwrap_err().to_string();
        assert!(different.starts_with("not what the declarations say: "), "{different}");
    }

    #[test]
    fn a_definition_that_was_committed_is_compared_with() {
        let folder = Folder::new("committed");
        let git = |arguments: &[&str]| {
            let name = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            let output = std::process::Command::new("git").arg("-C").arg(&folder.0).args(name).args(arguments).output();
            assert!(output.unwrap().status.success(), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        hand_out(&[crd(&json!({ "host": { "type": "string" } }))], &folder.out()).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", "first"]);
        let new = crd(&json!({}));
        hand_out(std::slice::from_ref(&new), &folder.out()).unwrap();
        // The files are new already: only what was committed says what breaks.
        refuse_breaking(std::slice::from_ref(&new), &folder.check(), &STRICT).unwrap();
        let found = committed(&folder.0.join("crds"), "HEAD").unwrap();
        assert_eq!(found.len(), 1);
        let since = BreakingOptions { allow_breaking: false, since: Some("HEAD".into()) };
        let refused = refuse_breaking(&[new], &folder.check(), &since).unwrap_err().to_string();
        assert!(refused.contains("host: is gone"), "{refused}");
        let since = BreakingOptions { allow_breaking: false, since: Some("nothing".into()) };
        let unknown = refuse_breaking(&[], &folder.check(), &since).unwrap_err().to_string();
        assert!(unknown.contains("git ls-tree"), "{unknown}");
    }

    #[test]
    fn an_object_that_is_too_large_for_client_side_apply_is_told() {
        let small = crd(&json!({}));
        assert_eq!(size_hint(&small), None);
        let large = crd(&json!({ "a": { "description": "x".repeat(APPLY_BYTES_MAX) } }));
        let hint = size_hint(&large).unwrap();
        assert!(hint.ends_with("of `kubectl apply`; write `kubectl apply --server-side`"), "{hint}");
    }

    #[test]
    fn check_needs_a_folder() {
        let options = OutOptions { out: None, check: Some(None) };
        let error = hand_out(&[], &options).unwrap_err().to_string();
        assert_eq!(error, "--check needs a folder: `--check DIR`, or --out beside it");
    }
}
