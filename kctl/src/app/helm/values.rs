//! The values of a chart: their defaults, `values.yaml`, its JSON schema, and the merge with a file that was
//! edited by hand.
//!
//! Names follow `helm create`, and cert-manager's chart where `helm create` has none (`crds.enabled`, `crds.keep`), so
//! that a reader of other charts finds them. Comments start with `# --`, from which helm-docs makes a table.

use kctl_runtime::reconcile::{Error, Result};
use serde_json::{Map, Value, json};

use super::line_ends::with_line_ends_of;
use crate::yaml;

/// The dialect that Helm's validator reads in every version.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// A value, or a section of values.
///
/// One tree of items is the source of `values.yaml`, its comments, `values.schema.json` and the table of `README.md`, so they cannot disagree.
pub(super) struct Item {
    /// The key within its section, in camel case as Helm's conventions ask for.
    key: &'static str,
    /// The comment in `values.yaml` and the description in the schema. Its first line gets the `# --` of helm-docs.
    doc: String,
    node: Node,
    /// `true` if an option of this run sets the default, so that another value in `values.yaml` is worth a note.
    is_given: bool,
}

enum Node {
    /// A leaf: templates read it as a whole, and [`merge`] never looks into it.
    Value { default: Value, schema: Value },
    /// A mapping whose keys are known, and to which [`merge`] adds missing ones.
    Section(Vec<Item>),
}

/// Creates a value. `schema` has the JSON schema of its type.
pub(super) fn value(key: &'static str, doc: impl Into<String>, default: Value, schema: Value) -> Item {
    Item { key, doc: doc.into(), node: Node::Value { default, schema }, is_given: false }
}

/// Creates a value that is `true` or `false`.
pub(super) fn switch(key: &'static str, doc: impl Into<String>, default: Switch) -> Item {
    value(key, doc, (default == Switch::On).into(), json!({ "type": "boolean" }))
}

/// Creates a switch that an option turns on.
pub(super) fn switch_of_option(key: &'static str, doc: impl Into<String>, option: Switch) -> Item {
    switch(key, doc, option).mark_given(option)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// The default is `true`.
    On,
    /// The default is `false`.
    Off,
}

impl Switch {
    /// Returns `On` for `true`.
    pub(super) fn from_flag(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

/// Creates a string. `--set image.tag=7` turns it into an integer, which templates write as a string again.
pub(super) fn string(key: &'static str, doc: impl Into<String>, default: &str) -> Item {
    value(key, doc, default.into(), json!({ "type": ["string", "integer"] }))
}

/// Creates a map that is copied into a manifest as it is.
pub(super) fn map(key: &'static str, doc: impl Into<String>, default: Value) -> Item {
    value(key, doc, default, json!({ "type": "object" }))
}

/// Creates a list that is copied into a manifest as it is; empty by default.
pub(super) fn list(key: &'static str, doc: impl Into<String>) -> Item {
    value(key, doc, json!([]), json!({ "type": "array" }))
}

pub(super) fn section(key: &'static str, doc: impl Into<String>, items: Vec<Item>) -> Item {
    Item { key, doc: doc.into(), node: Node::Section(items), is_given: false }
}

impl Item {
    /// Marks the default as the value of an option, if the option was given.
    pub(super) fn mark_given(self, option: Switch) -> Self {
        Self { is_given: option == Switch::On, ..self }
    }

    /// Returns the lines of `values.yaml` at an indentation.
    ///
    /// # Errors
    /// A default cannot be written as YAML.
    fn render(&self, indent: usize, text: &mut String) -> Result<()> {
        let pad = " ".repeat(indent);
        for (number, line) in self.doc.lines().enumerate() {
            *text += &if number == 0 { format!("{pad}# -- {line}\n") } else { format!("{pad}# {line}\n") };
        }
        match &self.node {
            Node::Section(items) => {
                *text += &format!("{pad}{}:\n", self.key);
                items.iter().try_for_each(|item| item.render(indent + 2, text))?;
            }
            Node::Value { default, .. } => {
                let is_nested = match default {
                    Value::Object(fields) => !fields.is_empty(),
                    Value::Array(items) => !items.is_empty(),
                    _ => false,
                };
                let yaml = serde_saphyr::to_string(default)?;
                if is_nested {
                    *text += &format!("{pad}{}:\n", self.key);
                    for line in yaml.lines() {
                        *text += &format!("{pad}  {line}\n");
                    }
                } else {
                    *text += &format!("{pad}{}: {}\n", self.key, yaml.trim_end());
                }
            }
        }
        Ok(())
    }

    /// Returns the schema of this value. `values` has the user's value, whose extra keys are accepted in sections.
    fn schema(&self, values: Option<&Value>) -> Value {
        let mut schema = match &self.node {
            Node::Value { schema, .. } => schema.clone(),
            Node::Section(items) => properties(items, values),
        };
        schema["description"] = self.doc.replace('\n', " ").into();
        schema
    }
}

/// A value in the table of `README.md`.
pub(super) struct Row {
    /// The path of keys, as `--set` takes it.
    pub(super) key: String,
    /// The type, by the names of helm-docs.
    pub(super) kind: &'static str,
    pub(super) default: String,
    /// The description, which may have several lines.
    pub(super) doc: String,
}

/// Returns the values in the order of a new `values.yaml`, without their sections. The defaults come from `values`, or
/// from the item if `values` lacks one.
pub(super) fn rows(items: &[Item], values: &Value) -> Vec<Row> {
    let rows_of_item = |item: &Item| {
        let value = values.get(item.key);
        match &item.node {
            Node::Section(items) => {
                let mut inner = rows(items, value.unwrap_or(&Value::Null));
                for row in &mut inner {
                    row.key = format!("{}.{}", item.key, row.key);
                }
                inner
            }
            Node::Value { default, .. } => {
                let default = value.unwrap_or(default);
                let kind = match default {
                    Value::Null => "any",
                    Value::Bool(_) => "bool",
                    Value::Number(number) if number.is_f64() => "float",
                    Value::Number(_) => "int",
                    Value::String(_) => "string",
                    Value::Array(_) => "list",
                    Value::Object(_) => "object",
                };
                vec![Row { key: item.key.into(), kind, default: default.to_string(), doc: item.doc.clone() }]
            }
        }
    };
    items.iter().flat_map(rows_of_item).collect()
}

/// Returns `values.yaml` with all defaults.
///
/// Values are separated by empty lines, and each has its comment.
///
/// # Errors
/// A default cannot be written as YAML.
pub(super) fn defaults(items: &[Item], head: &str) -> Result<String> {
    let mut text = head.to_owned();
    for item in items {
        text += "\n";
        item.render(0, &mut text)?;
    }
    Ok(text)
}

/// Returns `values.schema.json`.
///
/// Helm rejects values that it does not list, so that a misspelt `--set` is an error. Keys that were added to
/// `values.yaml` by hand are listed, for templates of the user. `dependencies` has the keys of values that Helm passes
/// to the chart's dependencies.
pub(super) fn schema(items: &[Item], values: &Value, dependencies: &[String]) -> Result<String> {
    let mut schema = properties(items, Some(values));
    schema["$schema"] = DIALECT.into();
    // Helm passes the values of a parent chart under this name.
    schema["properties"]["global"] = json!({ "type": "object" });
    // By convention, a parent chart turns a dependency on and off by this value: `condition: NAME.enabled`.
    let enabled_key = std::iter::once(("enabled", "boolean"));
    // Helm reads this key itself, to turn on dependencies with `tags`.
    let tags = (!dependencies.is_empty()).then_some(("tags", "object"));
    for (key, kind) in enabled_key.chain(tags).chain(dependencies.iter().map(|key| (key.as_str(), "object"))) {
        if values.get(key).is_none() {
            schema["properties"][key] = json!({ "type": kind });
        }
    }
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

/// Returns the schema of a mapping that accepts these items and the keys that `values` has already.
fn properties(items: &[Item], values: Option<&Value>) -> Value {
    let mut fields = Map::new();
    for key in values.and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        fields.insert(key.clone(), json!({}));
    }
    for item in items {
        fields.insert(item.key.into(), item.schema(values.and_then(|values| values.get(item.key))));
    }
    json!({ "type": "object", "properties": fields, "additionalProperties": false })
}

/// Adds the values that a hand-edited `values.yaml` lacks, and leaves everything else as it is.
///
/// The text is edited and not regenerated, because YAML libraries lose comments and layout. The result is parsed again
/// and compared: an edit that changed a given value is an error and never written.
///
/// # Errors
/// The text is not YAML, or a section has another form than a block mapping, so that no place for a value can be
/// found. The error has the lines to add.
pub(super) fn merge(items: &[Item], text: &str) -> Result<String> {
    let before = parse(text)?;
    let mut merged = text.to_owned();
    merge_section(items, &mut Vec::new(), &before, &mut merged)?;
    let after = parse(&merged)?;
    // Finds lines that only look like a mapping, such as lines of a block scalar.
    if !contains_all(&before, &after) || !has_all(items, &after) {
        let mut lines = String::new();
        items.iter().filter(|item| before.get(item.key).is_none()).try_for_each(|item| item.render(0, &mut lines))?;
        return Err(Error::from(format!("no place was found for new values; add them by hand:\n{lines}")));
    }
    Ok(merged)
}

/// Adds the missing values of one section and of the sections in it. `path` has the keys of the enclosing sections.
fn merge_section(items: &[Item], path: &mut Vec<&'static str>, values: &Value, text: &mut String) -> Result<()> {
    for item in items {
        path.push(item.key);
        match (values.get(item.key), &item.node) {
            (None, _) => insert(item, path, text)?,
            (Some(section), Node::Section(items)) if section.is_object() => {
                merge_section(items, path, section, text)?;
            }
            (Some(_), Node::Section(_)) => {
                return Err(Error::from(format!(
                    "`{}` must be a mapping: templates read values in it",
                    path.join(".")
                )));
            }
            (Some(_), Node::Value { .. }) => {}
        }
        path.pop();
    }
    Ok(())
}

/// Adds a value at the end of its section.
///
/// The new lines take the indentation of the section's first key.
///
/// # Errors
/// The section is not a block mapping, such as `image: {tag: x}`.
fn insert(item: &Item, path: &[&str], text: &mut String) -> Result<()> {
    let parents = &path[..path.len() - 1];
    let mut lines = String::new();
    if parents.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            lines.push('\n');
        }
        lines.push('\n');
        item.render(0, &mut lines)?;
        let added = with_line_ends_of(text, &lines);
        text.push_str(&added);
        return Ok(());
    }
    let Some((at, indent)) = end_of(text, parents) else {
        item.render(2, &mut lines)?;
        return Err(Error::from(format!(
            "no place was found for the new value `{}`; write `{}` as a block mapping, or add by hand:\n{lines}",
            path.join("."),
            parents.join("."),
        )));
    };
    item.render(indent, &mut lines)?;
    let offset: usize = text.split_inclusive('\n').take(at).map(str::len).sum();
    if !text[..offset].ends_with('\n') {
        lines.insert(0, '\n');
    }
    let added = with_line_ends_of(text, &lines);
    text.insert_str(offset, &added);
    Ok(())
}

/// Returns the number of the line after a block mapping, and the indentation of its keys.
///
/// `None` if a key of the path is missing or has its value in the same line. Trailing comments and empty lines are left
/// after the section, because they usually belong to the next key.
fn end_of(text: &str, path: &[&str]) -> Option<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut start, mut end, mut level) = (0, lines.len(), None);
    for key in path {
        let first = (start..end).find(|&at| is_content(lines[at]) && lines[at].trim_end() != "---")?;
        let here = indent(lines[first]);
        let is_key = |line: &str| {
            let names = [format!("{key}:"), format!("\"{key}\":"), format!("'{key}':")];
            let rest = names.iter().find_map(|name| line.trim_start().strip_prefix(name.as_str()));
            indent(line) == here && rest.is_some_and(|rest| !is_content(rest))
        };
        let at = (first..end).find(|&at| is_content(lines[at]) && is_key(lines[at]))?;
        let next = (at + 1..end).find(|&next| is_content(lines[next]) && indent(lines[next]) <= here);
        (start, end) = (at + 1, next.unwrap_or(end));
        level = Some(here);
    }
    let last = (start..end).rev().find(|&at| is_content(lines[at]));
    let first = (start..end).find(|&at| is_content(lines[at]));
    let inner = first.map_or(level? + 2, |first| indent(lines[first]));
    Some((last.map_or(start, |last| last + 1), inner))
}

/// Parses `values.yaml`; an empty file has no values.
///
/// # Errors
/// The text is not YAML, or is not a mapping.
pub(super) fn parse(text: &str) -> Result<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| invalid_yaml(&error))?;
    match documents.into_iter().find(|document| !document.is_null()) {
        None => Ok(json!({})),
        Some(values @ Value::Object(_)) => Ok(values),
        Some(_) => Err("not a mapping of values\nhelp: write `key: value` lines, as `helm show values` prints".into()),
    }
}

/// Returns the error of a file that is not YAML, with the place and the parser's message. The caller adds the file.
pub(super) fn invalid_yaml(error: &serde_saphyr::Error) -> Error {
    Error::from(format!("{}\nhelp: correct the file, and run the command again", yaml::describe(error)))
}

/// Returns `true` if `after` has everything of `before` unchanged.
///
/// Mappings may have gained keys, at any depth; lists and scalars must be equal.
fn contains_all(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| after.get(key).is_some_and(|after| contains_all(value, after)))
        }
        _ => before == after,
    }
}

/// Returns `true` if `values` has a value for each item, with any content.
fn has_all(items: &[Item], values: &Value) -> bool {
    items.iter().all(|item| match (&item.node, values.get(item.key)) {
        (_, None) => false,
        (Node::Section(items), Some(section)) => has_all(items, section),
        (Node::Value { .. }, Some(_)) => true,
    })
}

/// Returns the keys of `values.yaml` that no generated template reads.
///
/// `global` is not reported: Helm reserves it for the values that a parent chart shares.
pub(super) fn unknown_keys(items: &[Item], values: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in values.as_object().into_iter().flatten().filter(|(key, _)| *key != "global") {
        match items.iter().find(|item| item.key == key).map(|item| &item.node) {
            None => found.push(key.clone()),
            Some(Node::Section(items)) => {
                found.extend(unknown_keys(items, value).iter().map(|inner| format!("{key}.{inner}")));
            }
            Some(Node::Value { .. }) => {}
        }
    }
    found
}

/// A value of `values.yaml` that differs from the default of an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overridden {
    /// The path of keys, as `--set` takes it.
    pub(super) key: String,
    /// The value in `values.yaml`, as JSON, which is YAML too.
    pub(super) kept: String,
    /// The value of the option, as JSON.
    pub(super) given: String,
}

/// Returns the values of `values.yaml` that differ from what the options of this run give. Values that no option set are
/// not among them, because a difference there is an edit alone.
pub(super) fn overridden(items: &[Item], values: &Value) -> Vec<Overridden> {
    let mut found = Vec::new();
    for item in items {
        let Some(value) = values.get(item.key) else { continue };
        match &item.node {
            Node::Section(items) => found.extend(
                overridden(items, value)
                    .into_iter()
                    .map(|of| Overridden { key: format!("{}.{}", item.key, of.key), ..of }),
            ),
            Node::Value { default, .. } if item.is_given && !is_written_same(value, default) => {
                found.push(Overridden { key: item.key.into(), kept: value.to_string(), given: default.to_string() });
            }
            Node::Value { .. } => {}
        }
    }
    found
}

/// Returns `true` for values that templates write as the same, such as the tags `1` and `"1"`.
fn is_written_same(a: &Value, b: &Value) -> bool {
    a == b || a.to_string().trim_matches('"') == b.to_string().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        vec![
            value("replicaCount", "Number of replicas.", json!(2), json!({ "type": "integer" })),
            section(
                "image",
                "The image.",
                vec![
                    string("repository", "Its name.", "example.com/web"),
                    string("tag", "Its tag.\nEmpty for the version.", ""),
                ],
            ),
            map("resources", "Requests and limits.", json!({ "limits": { "memory": "256Mi" } })),
        ]
    }

    const DEFAULTS: &str = "# Values.

# -- Number of replicas.
replicaCount: 2

# -- The image.
image:
  # -- Its name.
  repository: example.com/web
  # -- Its tag.
  # Empty for the version.
  tag: ''

# -- Requests and limits.
resources:
  limits:
    memory: 256Mi
";

    fn merged(text: &str) -> String {
        merge(&items(), text).unwrap()
    }

    #[test]
    fn defaults_are_documented_and_read_back() {
        let text = defaults(&items(), "# Values.\n").unwrap().replace("\"\"", "''");
        assert_eq!(text, DEFAULTS);
        let values = parse(&text).unwrap();
        assert!(has_all(&items(), &values));
        assert_eq!(values["resources"], json!({ "limits": { "memory": "256Mi" } }));
    }

    #[test]
    fn hand_edits_survive_a_merge() {
        for text in [
            DEFAULTS.to_owned(),
            DEFAULTS.replace("replicaCount: 2", "replicaCount: 5 # five, since Monday"),
            format!("{DEFAULTS}# for my template\nextra: [1]\n"),
            DEFAULTS.replace("resources:\n  limits:\n    memory: 256Mi", "resources: {}"),
        ] {
            assert_eq!(merged(&text), text);
        }
    }

    #[test]
    fn missing_values_are_added_with_their_comments() {
        let cases = [
            ("", "\n# -- Number of replicas.\nreplicaCount: 2\n"),
            // In a section, before the comment of the next key.
            (
                "image:\n    repository: mine # kept\n\n# of mine\nreplicaCount: 1\n",
                "image:\n    repository: mine # kept\n    # -- Its tag.\n    # Empty for the version.\n    tag: ",
            ),
            (
                "replicaCount: 1\n\"image\": # ours\n  tag: '1'",
                "\"image\": # ours\n  tag: '1'\n  # -- Its name.\n  repo",
            ),
        ];
        for (text, expected) in cases {
            let merged = merged(text);
            assert!(merged.contains(expected), "{merged}");
            assert!(has_all(&items(), &parse(&merged).unwrap()), "{merged}");
            assert!(contains_all(&parse(text).unwrap(), &parse(&merged).unwrap()), "{merged}");
            assert_eq!(super::merge(&items(), &merged).unwrap(), merged, "a second merge changes nothing");
        }
    }

    #[test]
    fn values_without_a_place_are_shown() {
        let error = |text: &str| merge(&items(), text).unwrap_err().to_string();
        let flow = error("image: {repository: mine}\n");
        assert!(
            flow.contains("`image.tag`") && flow.contains("as a block mapping") && flow.contains("  tag: "),
            "{flow}"
        );
        assert!(error("image: mine\n").contains("`image` must be a mapping"));
        assert!(error("[1]\n").contains("not a mapping of values"));
        let broken = "line 1, column 4: not valid YAML: unclosed bracket '['\nhelp: correct the file";
        assert!(error("a: [\n").starts_with(broken), "{}", error("a: [\n"));
    }

    #[test]
    fn kept_values_that_differ_from_options_are_found() {
        let items = [
            value("replicaCount", "Number of replicas.", json!(2), json!({ "type": "integer" })),
            switch_of_option("metrics", "Metrics.", Switch::On),
            switch_of_option("alerts", "Alerts.", Switch::Off),
            section("image", "The image.", vec![string("tag", "Its tag.", "9").mark_given(Switch::On)]),
        ];
        let found = |text: &str| overridden(&items, &parse(text).unwrap());
        let all = found("replicaCount: 5\nmetrics: false\nalerts: true\nimage:\n  tag: \"1\"\n");
        let expected =
            |key: &str, kept: &str, given: &str| Overridden { key: key.into(), kept: kept.into(), given: given.into() };
        assert_eq!(all, [expected("metrics", "false", "true"), expected("image.tag", "\"1\"", "\"9\"")]);
        assert!(found("metrics: true\nimage:\n  tag: 9\n").is_empty(), "Helm writes both tags as 9");
        assert!(found(&defaults(&items, "").unwrap()).is_empty());
    }

    #[test]
    fn values_schema_accepts_only_keys_of_values_file() {
        let values = parse("mine: 1\nimage: {arch: arm}\n").unwrap();
        let schema: Value = serde_json::from_str(&schema(&items(), &values, &["redis".into()]).unwrap()).unwrap();
        let keys = |at: &str| schema.pointer(at).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            keys("/properties"),
            ["enabled", "global", "image", "mine", "redis", "replicaCount", "resources", "tags"]
        );
        assert_eq!(keys("/properties/image/properties"), ["arch", "repository", "tag"]);
        assert_eq!(schema["properties"]["image"]["additionalProperties"], false);
        assert_eq!(unknown_keys(&items(), &values), ["image.arch", "mine"]);
    }
}
