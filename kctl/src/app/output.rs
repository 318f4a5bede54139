//! The output of the `generate-…` commands: one stream, a file for each object, or a comparison
//! with files.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use kctl_runtime::{
    manifest::{self, APPLY_BYTES_MAX, Manifest},
    reconcile::{Error, Result, ResultExt},
};
use serde_json::Value;

use super::difference::{Difference, describe};

/// The destination of manifests.
#[derive(clap::Args)]
pub(super) struct OutputOptions {
    /// Write a file for each object into this folder instead of one stream
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write nothing; fail if the files in this folder (or in the folder of --out) differ
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "absent, alone, or with a folder")]
    check: Option<Option<PathBuf>>,
}

/// `--check` without a folder takes the folder of `--out`, so that a job of CI can add it to the command that writes.
impl OutputOptions {
    /// Returns the folder that is written or compared with.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.check.as_ref().and_then(Option::as_deref).or(self.out.as_deref())
    }

    /// Returns `true` if files are compared and not written.
    pub(super) fn is_check(&self) -> bool {
        self.check.is_some()
    }

    /// Returns `true` if `--check` has no folder to compare with.
    pub(super) fn lacks_folder(&self) -> bool {
        self.check.is_some() && self.folder().is_none()
    }
}

/// The handling of breaking changes of CRDs.
#[derive(clap::Args)]
pub(super) struct BreakingOptions {
    /// Also allow CRD changes that break stored objects or clients
    #[arg(long)]
    allow_breaking: bool,
    /// Compare CRDs with the files of this git revision instead of those in the folder
    #[arg(long, value_name = "REV")]
    since: Option<String>,
}

impl BreakingOptions {
    /// Returns an option that was set: each needs a folder with older files.
    pub(super) fn option(&self) -> Option<&'static str> {
        if self.since.is_some() {
            return Some("--since");
        }
        self.allow_breaking.then_some("--allow-breaking")
    }
}

/// Suffixes of the names of generated objects. A file with such a name that the current options
/// don't generate is left over from other options.
///
/// The empty suffix belongs to the app's main objects.
pub(super) const OWN_SUFFIXES: [&str; 10] = [
    "",
    "-controller-ring",
    "-leader-election",
    "-metrics",
    "-metrics-auth",
    "-metrics-reader",
    "-webhook",
    "-webhook-tls",
    "-dashboard",
    "-shards",
];

/// Folders of `generate-manifests`. All of them are searched for stale files, including folders of options that are no
/// longer given.
pub(super) const OWN_FOLDERS: [&str; 5] = ["manager", "monitoring", "rbac", RING_FOLDER, "webhook"];

/// The folder of a controller ring's objects.
const RING_FOLDER: &str = "sharding";
/// The kinds of a controller ring's objects, as in the names of their files.
const RING_KINDS: [&str; 3] = ["controllerring", "clusterrole", "clusterrolebinding"];

/// The files that a command generates in a folder. Other files there are stale.
pub(super) struct Owned<'a> {
    pub(super) name: &'a str,
    /// The suffixes of the names of all objects.
    pub(super) suffixes: &'a [&'a str],
    /// Folders that belong to this command alone. Other folders are searched if the command writes a file into them.
    pub(super) folders: &'a [&'a str],
}

/// Prints manifests as one stream, writes them as files, or compares them with files.
///
/// Stale files of generated objects are reported and never deleted.
///
/// # Errors
/// A file cannot be written, or with `--check` files differ, are missing or are stale. All are reported at once.
pub(super) fn write_manifests(manifests: &[Manifest], options: &OutputOptions, owned: &Owned<'_>) -> Result<()> {
    hint_at_size(manifests);
    let Some(folder) = options.folder() else { return super::stdout::print(&manifest::stream(manifests)) };
    if options.is_check() {
        check_folder("--check", folder)?;
        return compare_files(manifests, folder, owned);
    }
    check_folder("--out", folder)?;
    for manifest in manifests {
        let file = folder.join(&manifest.file);
        std::fs::create_dir_all(file.parent().unwrap_or(folder)).context(folder.display())?;
        std::fs::write(&file, &manifest.yaml).context(file.display())?;
        print_or_log!("{}", file.display());
    }
    for file in stale_files(manifests, folder, owned)? {
        print_or_log!("{file}: left over, these options do not make it: remove it yourself");
    }
    Ok(())
}

/// Compares manifests with the files of a folder.
///
/// # Errors
/// The folder is missing, or files differ, are missing or are stale. All files are reported at once.
fn compare_files(manifests: &[Manifest], folder: &Path, owned: &Owned<'_>) -> Result<()> {
    let shown = folder.display();
    let help = format!("help: run the same with --out {shown} instead of --check");
    if !folder.is_dir() {
        return Err(Error::from(format!("{shown}: there is no such folder\n{help}")));
    }
    let different: Vec<Difference> = manifests.iter().filter_map(|manifest| difference(manifest, folder)).collect();
    let left = stale_files(manifests, folder, owned)?;
    let mut wrong = Vec::new();
    if !different.is_empty() {
        wrong.push(format!("not what the declarations say: {}\n{help}", describe(&different)));
    }
    if !left.is_empty() {
        wrong.push(format!(
            "left over: {}\nhelp: remove them, or run with the options that they were made with",
            left.join(", ")
        ));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::from(wrong.join("\n"))) }
}

/// Returns the difference of a file from its manifest, if there is one.
fn difference(manifest: &Manifest, folder: &Path) -> Option<Difference> {
    let file = folder.join(&manifest.file);
    let shown = file.display();
    let reason = match std::fs::read_to_string(&file) {
        Ok(text) => {
            // Git for Windows checks files out with CRLF.
            let text = text.replace("\r\n", "\n");
            return (text != manifest.yaml).then(|| Difference::new(shown.to_string(), &manifest.yaml, &text));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "missing".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(Difference::without_line(format!("{shown} ({reason})")))
}

/// Fails if a folder, or one that contains it, is a file. A missing folder is created later.
///
/// # Errors
/// A part of the path exists and is not a folder; the error names it and the option.
pub(super) fn check_folder(option: &str, folder: &Path) -> Result<()> {
    match folder.ancestors().find(|path| path.exists()) {
        Some(existing) if !existing.is_dir() => {
            let (folder, existing) = (folder.display(), existing.display());
            Err(Error::from(format!("{option} {folder}: {existing} is a file and must be a folder; name another path")))
        }
        _ => Ok(()),
    }
}

/// Returns stale files: named like generated ones (`KIND-NAME.yaml` or `KIND-NAME.NAMESPACE.yaml`),
/// and not generated by these options.
///
/// CRDs are compared by [`reject_breaking`].
///
/// Only folders of the command and those with a generated file are searched. The objects of a controller ring have the
/// ring's name, which is unknown once the option is gone, so in `sharding/` any name counts.
fn stale_files(manifests: &[Manifest], folder: &Path, owned: &Owned<'_>) -> Result<Vec<String>> {
    let names: Vec<String> = owned.suffixes.iter().map(|suffix| format!("{}{suffix}", owned.name)).collect();
    let folders: BTreeSet<PathBuf> = manifests
        .iter()
        .filter(|manifest| manifest.object["kind"] != "CustomResourceDefinition")
        .filter_map(|manifest| Path::new(&manifest.file).parent())
        .filter(|parent| !parent.as_os_str().is_empty())
        .chain(owned.folders.iter().map(Path::new))
        .map(|parent| folder.join(parent))
        .collect();
    let made: BTreeSet<PathBuf> = manifests.iter().map(|manifest| folder.join(&manifest.file)).collect();
    let is_named = |file: &Path| {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name = stem.split('.').next().unwrap_or_default();
        let object = name.split_once('-').map_or("", |(_kind, object)| object);
        // The name of an app can have a dot.
        let whole = stem.split_once('-').map_or("", |(_kind, object)| object);
        let is_ring_manifest = owned.folders.contains(&RING_FOLDER)
            && file.parent() == Some(&folder.join(RING_FOLDER))
            && RING_KINDS.iter().any(|kind| stem.strip_prefix(kind).is_some_and(|name| name.starts_with('-')));
        is_ring_manifest || names.iter().any(|name| name == object || name == whole)
    };
    let mut left = Vec::new();
    for parent in folders {
        left.extend(yaml_files(&parent)?.into_iter().filter(|file| !made.contains(file) && is_named(file)));
    }
    Ok(left.iter().map(|file| file.display().to_string()).collect())
}

/// Reports each object that client-side apply would reject, before a user meets the error of the API server.
fn hint_at_size(manifests: &[Manifest]) {
    manifests.iter().filter_map(size_hint).for_each(|hint| print_or_log!("{hint}"));
}

/// Returns a hint for an object that is too large for the annotation of client-side `kubectl
/// apply`.
///
/// The annotation `kubectl.kubernetes.io/last-applied-configuration` holds the whole object as JSON. So the size of the
/// JSON is compared, and not the size of the YAML file.
fn size_hint(manifest: &Manifest) -> Option<String> {
    let bytes = manifest.object.to_string().len();
    let (file, help) = (&manifest.file, "write `kubectl apply --server-side`");
    (bytes > APPLY_BYTES_MAX)
        .then(|| format!("{file}: {bytes} bytes are more than the {APPLY_BYTES_MAX} of `kubectl apply`; {help}"))
}

/// Compares the CRDs with those in the folder or at a git revision.
///
/// Does nothing for a stream, which has no older version to compare with. `--since` is rejected there.
///
/// # Errors
/// A change breaks stored objects or clients, or a CRD is no longer generated, and `--allow-breaking` is not set. Or a file
/// or the revision can't be read.
pub(super) fn reject_breaking(manifests: &[Manifest], out: &OutputOptions, options: &BreakingOptions) -> Result<()> {
    let Some(folder) = out.folder() else { return Ok(()) };
    let parse = |text: &str| serde_saphyr::from_str(text).map_err(Error::from);
    reject_breaking_in(manifests, &CrdFiles { folder: &folder.join("crds"), parse }, options)
}

/// The files of CRDs, and how the object of one is read.
///
/// A chart has its CRDs as templates, which need another parser than plain YAML.
pub(super) struct CrdFiles<'a> {
    /// The folder with one file for each CRD. It may be missing, as before the first run.
    pub(super) folder: &'a Path,
    /// Reads the object of a file.
    pub(super) parse: fn(&str) -> Result<Value>,
}

/// Compares the CRDs with the CRDs of a folder, now or at a git revision.
///
/// # Errors
/// As [`reject_breaking`].
pub(super) fn reject_breaking_in(
    manifests: &[Manifest],
    files: &CrdFiles<'_>,
    options: &BreakingOptions,
) -> Result<()> {
    if options.allow_breaking {
        return Ok(());
    }
    let mut changes = Vec::new();
    for (file, old) in read_crds(files, options.since.as_deref())? {
        let is_same =
            |object: &Value| object["kind"] == old["kind"] && object["metadata"]["name"] == old["metadata"]["name"];
        let Some(new) = manifests.iter().find(|manifest| is_same(&manifest.object)) else {
            let what = "the program no longer generates this CRD; deleting a CRD deletes all objects of its kind, so delete the file yourself";
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

/// Returns the CRDs in a folder, now or at a git revision.
///
/// Files with other objects are skipped. The name of each file is kept for the error message.
fn read_crds(files: &CrdFiles<'_>, revision: Option<&str>) -> Result<Vec<(String, Value)>> {
    let texts = match revision {
        Some(revision) => read_revision(files.folder, revision)?,
        None => in_folder(files.folder)?,
    };
    let mut found = Vec::new();
    for (file, text) in texts {
        let object = (files.parse)(&text).context(&file)?;
        if object["kind"] == "CustomResourceDefinition" {
            found.push((file, object));
        }
    }
    Ok(found)
}

/// Returns the name and content of each `.yaml` file that the folder has now.
fn in_folder(folder: &Path) -> Result<Vec<(String, String)>> {
    let read = |file: &PathBuf| {
        let name = file.display().to_string();
        std::fs::read_to_string(file).map(|text| (name.clone(), text)).context(&name)
    };
    yaml_files(folder)?.iter().map(read).collect()
}

/// Returns the `.yaml` files of a folder by name; none if the folder does not exist.
fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).context(folder.display())? {
        files.push(entry.context(folder.display())?.path());
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    Ok(files)
}

/// Returns the files that a folder had at a git revision, even if the folder no longer exists.
///
/// # Errors
/// git is not installed, the folder is in no repository, or the revision is unknown.
fn read_revision(folder: &Path, revision: &str) -> Result<Vec<(String, String)>> {
    let exists = |folder: &&Path| folder.as_os_str().is_empty() || folder.is_dir();
    let existing = folder.ancestors().find(exists).unwrap_or(folder);
    let below = folder.strip_prefix(existing).unwrap_or(Path::new(""));
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    let prefix = below.join("");
    // With `-C`, names are relative to the existing folder, wherever the program was started.
    let git = |arguments: &[&str]| -> Result<String> {
        let output =
            std::process::Command::new("git").arg("-C").arg(existing).args(arguments).output().context("git")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(Error::from(format!("git {}: {}", arguments.join(" "), text.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let names = git(&["ls-tree", "--name-only", revision, "--", &format!("./{}", prefix.display())])?;
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

        fn out(&self) -> OutputOptions {
            OutputOptions { out: Some(self.0.clone()), check: None }
        }

        fn check(&self) -> OutputOptions {
            OutputOptions { out: None, check: Some(Some(self.0.clone())) }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    const OWNED: Owned<'_> = Owned { name: "web", suffixes: &OWN_SUFFIXES, folders: &OWN_FOLDERS };

    const STRICT: BreakingOptions = BreakingOptions { allow_breaking: false, since: None };

    #[test]
    fn breaking_change_is_rejected_unless_allowed() {
        let folder = Folder::new("breaking");
        let (old, new) = (crd(&json!({ "host": { "type": "string" } })), crd(&json!({})));
        write_manifests(std::slice::from_ref(&old), &folder.out(), &OWNED).unwrap();
        write_manifests(std::slice::from_ref(&old), &folder.check(), &OWNED).unwrap();
        reject_breaking(std::slice::from_ref(&old), &folder.check(), &STRICT).unwrap();
        for out in [folder.out(), folder.check()] {
            let rejected = reject_breaking(std::slice::from_ref(&new), &out, &STRICT).unwrap_err().to_string();
            assert!(
                rejected.contains("webs.example.com.yaml: v1 host: is gone; what objects have in host"),
                "{rejected}"
            );
            let allowed = BreakingOptions { allow_breaking: true, since: None };
            reject_breaking(std::slice::from_ref(&new), &out, &allowed).unwrap();
        }
        let gone = reject_breaking(&[], &folder.check(), &STRICT).unwrap_err().to_string();
        assert!(gone.contains("the program no longer generates this CRD"), "{gone}");
        // The reverse change breaks nothing, but the files differ.
        write_manifests(std::slice::from_ref(&new), &folder.out(), &OWNED).unwrap();
        reject_breaking(std::slice::from_ref(&old), &folder.check(), &STRICT).unwrap();
        let different = write_manifests(&[old], &folder.check(), &OWNED).unwrap_err().to_string();
        assert!(different.starts_with("not what the declarations say: "), "{different}");
    }

    #[test]
    fn new_crd_is_compared_with_the_committed_one() {
        let folder = Folder::new("committed");
        let git = |arguments: &[&str]| {
            let name = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            let output = std::process::Command::new("git").arg("-C").arg(&folder.0).args(name).args(arguments).output();
            assert!(output.unwrap().status.success(), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        write_manifests(&[crd(&json!({ "host": { "type": "string" } }))], &folder.out(), &OWNED).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", "first"]);
        let new = crd(&json!({}));
        write_manifests(std::slice::from_ref(&new), &folder.out(), &OWNED).unwrap();
        // The files on disk are new already, so only a comparison with the commit finds the breaking change.
        reject_breaking(std::slice::from_ref(&new), &folder.check(), &STRICT).unwrap();
        let found = read_revision(&folder.0.join("crds"), "HEAD").unwrap();
        assert_eq!(found.len(), 1);
        let since = BreakingOptions { allow_breaking: false, since: Some("HEAD".into()) };
        let rejected = reject_breaking(&[new], &folder.check(), &since).unwrap_err().to_string();
        assert!(rejected.contains("host: is gone"), "{rejected}");
        // The result is the same after the folder was deleted.
        std::fs::remove_dir_all(folder.0.join("crds")).unwrap();
        let gone = reject_breaking(&[], &folder.check(), &since).unwrap_err().to_string();
        assert!(gone.contains("webs.example.com.yaml: the program no longer generates this CRD"), "{gone}");
        let since = BreakingOptions { allow_breaking: false, since: Some("nothing".into()) };
        let unknown = reject_breaking(&[], &folder.check(), &since).unwrap_err().to_string();
        assert!(unknown.contains("git ls-tree"), "{unknown}");
    }

    #[test]
    fn objects_of_a_dropped_ring_are_left_over() {
        let folder = Folder::new("ring");
        let sharding = folder.0.join("sharding");
        std::fs::create_dir_all(&sharding).unwrap();
        for file in ["controllerring-pods.yaml", "clusterrolebinding-pods.yaml", "notes-pods.yaml"] {
            std::fs::write(sharding.join(file), "kind: Any\n").unwrap();
        }
        let stale = write_manifests(&[], &folder.check(), &OWNED).unwrap_err().to_string();
        assert!(stale.contains("controllerring-pods") && stale.contains("clusterrolebinding-pods"), "{stale}");
        assert!(!stale.contains("notes-pods"), "{stale}");
    }

    #[test]
    fn file_in_place_of_a_folder_is_named() {
        let folder = Folder::new("file");
        let file = folder.0.join("taken");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("deploy")] {
            let options = OutputOptions { out: Some(path.clone()), check: None };
            let error = write_manifests(&[], &options, &OWNED).unwrap_err().to_string();
            let (path, file) = (path.display(), file.display());
            assert_eq!(error, format!("--out {path}: {file} is a file and must be a folder; name another path"));
        }
        check_folder("--helm", &folder.0.join("missing/chart")).unwrap();
    }

    #[test]
    fn check_reports_missing_and_different_objects() {
        let folder = Folder::new("missing");
        let role = |file: &str| Manifest::new(file.into(), json!({ "kind": "Role" })).unwrap();
        let both = [role("rbac/role-web.yaml"), role("rbac/role-web.a.yaml")];
        let check = || write_manifests(&both, &folder.check(), &OWNED).unwrap_err().to_string();
        let gone = folder.0.display().to_string();
        std::fs::remove_dir_all(&folder.0).unwrap();
        assert_eq!(
            check(),
            format!("{gone}: there is no such folder\nhelp: run the same with --out {gone} instead of --check")
        );
        std::fs::create_dir_all(folder.0.join("rbac")).unwrap();
        std::fs::write(folder.0.join("rbac/role-web.yaml"), "kind: Rolle\n").unwrap();
        let expected = format!(
            "not what the declarations say: {gone}/rbac/role-web.yaml, {gone}/rbac/role-web.a.yaml (missing)\n  \
             {gone}/rbac/role-web.yaml:1: expected `kind: Role`, found `kind: Rolle`\nhelp: "
        );
        assert!(check().starts_with(&expected), "{}", check());
    }

    #[test]
    fn file_with_crlf_passes_the_check() {
        let folder = Folder::new("crlf");
        let role = Manifest::new("rbac/role-web.yaml".into(), json!({ "kind": "Role" })).unwrap();
        write_manifests(std::slice::from_ref(&role), &folder.out(), &OWNED).unwrap();
        let file = folder.0.join("rbac/role-web.yaml");
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace('\n', "\r\n")).unwrap();
        write_manifests(&[role], &folder.check(), &OWNED).unwrap();
    }

    #[test]
    fn file_of_other_options_fails_the_check_unchanged() {
        let folder = Folder::new("left");
        let role = |file: &str| Manifest::new(file.into(), json!({ "kind": "Role" })).unwrap();
        let now = [role("rbac/clusterrole-web.yaml"), role("kustomization.yaml")];
        let cases = [
            ("rbac/role-web.a.yaml", true),
            ("rbac/rolebinding-web-leader-election.a.yaml", true),
            ("rbac/clusterrole-web-metrics-reader.yaml", true),
            ("rbac/role-web-shards.a.yaml", true),
            // No manifest is in these folders now.
            ("monitoring/configmap-web-dashboard.yaml", true),
            ("webhook/service-web.yaml", true),
            // These files belong to another program or to people, or are in folders that the run does not write.
            ("rbac/role-website.a.yaml", false),
            ("rbac/clusterrole-web-admin.yaml", false),
            ("rbac/README.md", false),
            ("rbac-edge/clusterrole-web.yaml", false),
            ("role-web.a.yaml", false),
        ];
        for (file, is_reported) in cases {
            let path = folder.0.join(file);
            write_manifests(&now, &folder.out(), &OWNED).unwrap();
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "kind: Role\n").unwrap();
            let checked = write_manifests(&now, &folder.check(), &OWNED);
            assert_eq!(checked.is_err(), is_reported, "{file}");
            if let Err(error) = checked {
                let expected = format!("left over: {}\nhelp: remove them", path.display());
                assert!(error.to_string().starts_with(&expected), "{error}");
            }
            // A run that writes reports it as well, and deletes nothing.
            write_manifests(&now, &folder.out(), &OWNED).unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn large_crd_hint_suggests_server_side_apply() {
        let small = crd(&json!({}));
        assert_eq!(size_hint(&small), None);
        let large = crd(&json!({ "a": { "description": "x".repeat(APPLY_BYTES_MAX) } }));
        let hint = size_hint(&large).unwrap();
        assert!(hint.ends_with("of `kubectl apply`; write `kubectl apply --server-side`"), "{hint}");
    }
}
