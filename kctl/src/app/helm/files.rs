//! The files of a chart in a folder: written, or compared with `--check`.

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use kctl_runtime::reconcile::{Error, Result, ResultExt};
use serde_json::Value;

use super::{
    Chart,
    readme::{is_same, readme},
    template::{self, GENERATED},
    values,
};
use crate::app::output::check_folder;

/// First lines of a new `values.yaml`.
///
/// Written once: a later run keeps the file's lines, also if this comment was edited or deleted.
const VALUES_HEAD: &str = "\
# Values of the chart. Edit this file as you like: `generate-manifests --helm` only adds values that it lacks.
";
/// Text of a new `.helmignore`: the files that `helm package` leaves out.
///
/// Packages of this chart are beside `Chart.yaml`. A pattern without a slash would also match those of dependencies, in `charts/`.
const IGNORED: &str = "\
# Files that `helm package` leaves out.
.git/
/*.tgz
";

/// A generated file of a chart.
pub(super) struct File {
    /// Path relative to the chart.
    ///
    /// Uses `/` on every system and never begins with one.
    pub(super) path: String,
    pub(super) text: String,
}

/// Writes a chart or compares it.
///
/// Both modes compute the same files, so a chart that was just written passes a check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Mode {
    /// Writes all files that belong to the generator, and merges the shared ones.
    Write,
    /// Writes nothing, and fails if a file is missing, differs or is stale.
    Check,
}

/// Returns the folder of a chart in which its CRDs are.
///
/// CRDs are templates: Helm installs the files in a chart's own `crds/` once and never upgrades them.
pub(in crate::app) fn crd_folder(chart: &Path) -> PathBuf {
    chart.join("templates/crds")
}

/// Reads a CRD of a chart as an object, for a comparison with its next version. Returns `Null` for a template without the
/// generator's first line, which belongs to the user and need not be YAML.
///
/// # Errors
/// The file is not YAML after its template actions are replaced.
pub(in crate::app) fn parse_crd(text: &str) -> Result<Value> {
    if text.starts_with(GENERATED) { template::object(text) } else { Ok(Value::Null) }
}

/// Writes the chart into a folder, or fails if the folder's chart differs.
///
/// Stale templates are reported and never deleted, and templates without the generator's first line are kept.
///
/// # Errors
/// A file cannot be read or written, `values.yaml` has no place for a new value, or with [`Mode::Check`] a file differs.
pub(in crate::app) fn write_chart(chart: &Chart, folder: &Path, mode: Mode) -> Result<()> {
    check_folder("--helm", folder)?;
    let mut files = chart.files.iter().map(|file| (file.path.clone(), file.text.clone())).collect::<Vec<_>>();
    let values_file = folder.join("values.yaml");
    let values = match read(&values_file)? {
        Some(text) => values::merge(&chart.items, &text).context(values_file.display())?,
        None => values::defaults(&chart.items, VALUES_HEAD)?,
    };
    let parsed = values::parse(&values)?;
    let head_file = folder.join("Chart.yaml");
    let head = read(&head_file)?;
    let dependencies = dependencies(head.as_deref().unwrap_or_default()).context(head_file.display())?;
    for key in values::unknown_keys(&chart.items, &parsed).into_iter().filter(|key| !is_of(key, &dependencies)) {
        say!("{}: `{key}` is kept, and no generated template reads it", values_file.display());
    }
    for values::Overridden { key, kept, given } in values::overridden(&chart.items, &parsed) {
        let file = values_file.display();
        say!("{file}: `{key}` is kept as {kept}, and the options give {given}; change it there to take that");
    }
    files.push(("values.schema.json".into(), values::schema(&chart.items, &parsed, &dependencies)?));
    let old = read(&folder.join("README.md"))?;
    files.extend(readme(chart, old.as_deref(), &parsed).map(|text| ("README.md".into(), text)));
    files.push(("values.yaml".into(), values));
    files.push(("Chart.yaml".into(), chart.head(head.as_deref())?));
    if mode == Mode::Write && !folder.join(".helmignore").exists() {
        files.push((".helmignore".into(), IGNORED.into()));
    }
    let mut different = Vec::new();
    for (path, text) in &files {
        let file = folder.join(path);
        let old = read(&file)?;
        let is_foreign = old.as_ref().is_some_and(|old| path.starts_with("templates/") && !old.starts_with(GENERATED));
        if is_foreign {
            say!("{}: kept, because it does not begin with the comment of generated templates", file.display());
        } else if mode == Mode::Write {
            std::fs::create_dir_all(file.parent().unwrap_or(folder)).context(file.display())?;
            std::fs::write(&file, text).context(file.display())?;
            say!("{}", file.display());
        } else if old.is_none() {
            different.push(format!("{} (missing)", file.display()));
        } else if path == "README.md" && old.as_ref().is_some_and(|old| is_same(old, text)) {
            // The table has the defaults of `values.yaml`, which people edit, so its rows may differ.
        } else if old.as_ref() != Some(text) {
            different.push(file.display().to_string());
        }
    }
    let stale = stale(chart, folder)?;
    if mode == Mode::Write {
        for file in &stale {
            say!("{file}: stale file, not generated by these options; delete it if it is unused");
        }
        return Ok(());
    }
    let mut problems = Vec::new();
    if !different.is_empty() {
        problems.push(format!("the chart differs from the declarations: {}", different.join(", ")));
    }
    if !stale.is_empty() {
        problems.push(format!("stale templates, which are no longer generated: {}", stale.join(", ")));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::from(format!("{}\nhelp: run the same without --check, and delete stale templates", problems.join("\n"))))
}

/// Returns a file's text; `None` if there is no such file.
///
/// Any other error stops the run, because a file that cannot be read must not be taken for a missing one.
fn read(file: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(file.display()),
    }
}

/// Returns the keys of `values.yaml` under which Helm passes values to the dependencies in a `Chart.yaml`.
///
/// An alias takes the place of a dependency's name.
///
/// # Errors
/// The text is not YAML.
fn dependencies(head: &str) -> Result<Vec<String>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(head)?;
    let listed = documents.iter().filter_map(|head| head["dependencies"].as_array()).flatten();
    let key = |dependency: &Value| Some(dependency["alias"].as_str().or(dependency["name"].as_str())?.to_owned());
    Ok(listed.filter_map(key).collect())
}

fn is_of(key: &str, dependencies: &[String]) -> bool {
    dependencies.iter().any(|dependency| dependency == key)
}

/// Returns templates that an earlier run generated and this one did not.
///
/// Looks at all folders below `templates/`. A file without the generator's first line belongs to the user and is never
/// stale. The result is sorted, since the order of a directory listing is not defined.
fn stale(chart: &Chart, folder: &Path) -> Result<Vec<String>> {
    let generated: BTreeSet<PathBuf> = chart.files.iter().map(|file| folder.join(&file.path)).collect();
    let mut found = Vec::new();
    let mut folders = vec![folder.join("templates")];
    while let Some(parent) = folders.pop() {
        if !parent.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&parent).context(parent.display())? {
            let path = entry.context(parent.display())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if !generated.contains(&path)
                && std::fs::read(&path).is_ok_and(|bytes| bytes.starts_with(GENERATED.as_bytes()))
            {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    Ok(found)
}

impl Chart {
    /// Returns `Chart.yaml`: a new one, or the old one with the version of the app.
    ///
    /// The chart's own version is the user's to raise, so only `appVersion` changes; comments and order stay. A
    /// `Chart.yaml` without an `appVersion` line does not get one.
    ///
    /// # Errors
    /// The name cannot be written as YAML.
    fn head(&self, old: Option<&str>) -> Result<String> {
        let Some(old) = old else {
            let version = self.version.as_ref().map_or(String::new(), |version| {
                format!("# The version of the program, and the default tag of its image.\nappVersion: {version:?}\n")
            });
            let name = &self.name;
            // YAML reads some names as another type than a string, such as `2024`.
            let quoted = serde_saphyr::to_string(name)?;
            return Ok(format!(
                "apiVersion: v2\nname: {}\ndescription: Installs {name}\ntype: application\n\
                 # The version of the chart. Raise it with each release.\nversion: 0.1.0\n{version}",
                quoted.trim_end()
            ));
        };
        let Some(version) = &self.version else { return Ok(old.to_owned()) };
        let line = |line: &str| match line.strip_prefix("appVersion:") {
            Some(app_version) if app_version.trim().trim_matches(['"', '\'']) != version => {
                format!("appVersion: {version:?}\n")
            }
            _ => line.to_owned(),
        };
        Ok(old.split_inclusive('\n').map(line).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::values::{section, string},
        *,
    };

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kctl-helm-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn text(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).unwrap()
        }

        fn change(&self, file: &str, from: &str, to: &str) {
            let text = self.text(file);
            assert!(text.contains(from), "{file}: {text}");
            std::fs::write(self.0.join(file), text.replace(from, to)).unwrap();
        }

        fn check(&self, chart: &Chart) -> String {
            write_chart(chart, &self.0, Mode::Check).err().map(|error| error.to_string()).unwrap_or_default()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn chart(keys: &[&'static str], version: &str) -> Chart {
        let file = |path: &str| File { path: path.into(), text: format!("{GENERATED} */ -}}}}\nkind: Pod\n") };
        let image = keys.iter().map(|key| string(key, "A key.", "")).collect();
        Chart {
            files: vec![file("templates/a.yaml"), file("templates/rbac/b.yaml")],
            items: vec![section("image", "The image.", image)],
            name: "web".into(),
            version: Some(version.into()),
            definitions: Vec::new(),
        }
    }

    #[test]
    fn second_run_keeps_hand_edits_and_adds_values() {
        let folder = Folder::new("edits");
        write_chart(&chart(&["tag"], "1.0.0"), &folder.0, Mode::Write).unwrap();
        assert_eq!(folder.check(&chart(&["tag"], "1.0.0")), "");
        folder.change("values.yaml", "  tag: \"\"", "  tag: \"7\" # pinned");
        folder.change("Chart.yaml", "version: 0.1.0", "version: 0.4.0");
        assert_eq!(folder.check(&chart(&["tag"], "1.0.0")), "", "edits of values are not a difference");
        let next = chart(&["tag", "digest"], "1.1.0");
        let different = folder.check(&next);
        for file in ["values.yaml", "values.schema.json", "Chart.yaml", "README.md"] {
            assert!(different.contains(file), "{different}");
        }
        write_chart(&next, &folder.0, Mode::Write).unwrap();
        let (values, head) = (folder.text("values.yaml"), folder.text("Chart.yaml"));
        assert!(values.contains("  tag: \"7\" # pinned\n") && values.contains("  digest: \"\"\n"), "{values}");
        let table = folder.text("README.md");
        assert!(table.contains("| image.tag | string | `\"7\"` |") && table.contains("| image.digest |"), "{table}");
        assert!(head.contains("\nversion: 0.4.0\n") && head.contains("\nappVersion: \"1.1.0\"\n"), "{head}");
        assert_eq!(folder.check(&next), "");
    }

    #[test]
    fn templates_are_overwritten_unless_users_edited_them() {
        let folder = Folder::new("templates");
        let chart = chart(&["tag"], "1.0.0");
        write_chart(&chart, &folder.0, Mode::Write).unwrap();
        folder.change("templates/a.yaml", "kind: Pod", "kind: Job");
        assert!(folder.check(&chart).contains("the chart differs from the declarations: "));
        write_chart(&chart, &folder.0, Mode::Write).unwrap();
        assert!(folder.text("templates/a.yaml").contains("kind: Pod"));

        std::fs::write(folder.0.join("templates/a.yaml"), "kind: Job\n").unwrap();
        std::fs::write(folder.0.join("templates/mine.yaml"), "kind: Service\n").unwrap();
        write_chart(&chart, &folder.0, Mode::Write).unwrap();
        assert_eq!(folder.text("templates/a.yaml"), "kind: Job\n");
        assert_eq!(folder.check(&chart), "");

        std::fs::copy(folder.0.join("templates/rbac/b.yaml"), folder.0.join("templates/rbac/old.yaml")).unwrap();
        assert!(folder.check(&chart).contains("stale templates, which are no longer generated: "));
    }

    #[test]
    fn values_of_dependencies_are_accepted() {
        let folder = Folder::new("dependencies");
        let chart = chart(&["tag"], "1");
        write_chart(&chart, &folder.0, Mode::Write).unwrap();
        let head = folder.text("Chart.yaml");
        let more = "dependencies:\n- { name: redis, version: 1 }\n- { name: postgresql, version: 1, alias: db }\n";
        std::fs::write(folder.0.join("Chart.yaml"), format!("{head}{more}")).unwrap();
        assert!(folder.check(&chart).contains("values.schema.json"));
        write_chart(&chart, &folder.0, Mode::Write).unwrap();
        let schema: Value = serde_json::from_str(&folder.text("values.schema.json")).unwrap();
        let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["db", "enabled", "global", "image", "redis", "tags"]);
        // Packages of dependencies are in `charts/`.
        assert!(folder.text(".helmignore").contains("\n/*.tgz\n"));
    }

    #[test]
    fn crd_template_of_user_is_not_compared() {
        assert_eq!(
            parse_crd("{{ if .Values.mine }}\nkind: CustomResourceDefinition\n{{ end }}\n").unwrap(),
            Value::Null
        );
        let text = format!("{GENERATED} */ -}}}}\nkind: CustomResourceDefinition\n");
        assert_eq!(parse_crd(&text).unwrap()["kind"], "CustomResourceDefinition");
    }

    #[test]
    fn chart_name_is_quoted_if_yaml_needs_it() {
        let name = |name: &str| {
            let head = Chart { name: name.into(), ..chart(&[], "1") }.head(None).unwrap();
            serde_saphyr::from_str::<Value>(&head).unwrap()["name"].clone()
        };
        for text in ["web", "2024", "null", "1.5"] {
            assert_eq!(name(text), text);
        }
    }

    #[test]
    fn values_without_a_place_name_the_file() {
        let folder = Folder::new("flow");
        std::fs::write(folder.0.join("values.yaml"), "image: {tag: a}\n").unwrap();
        let error = write_chart(&chart(&["tag", "digest"], "1"), &folder.0, Mode::Write).unwrap_err().to_string();
        assert!(error.contains("values.yaml: no place was found for the new value `image.digest`"), "{error}");
        assert_eq!(folder.text("values.yaml"), "image: {tag: a}\n");
    }
}
