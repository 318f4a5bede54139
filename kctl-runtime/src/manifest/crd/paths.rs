//! Checks JSON paths in a CRD: printer columns, the scale subresource, selectable fields and rules.
//!
//! A path starts at the object and has the names of JSON: `.spec.minReplicas`, not `spec.min_replicas`. The most common
//! mistake is harmless to an API server and confusing to people: a path that leads to no field makes an empty column.
//! So problems have two classes:
//!
//! | Class | Example | API server |
//! |---|---|---|
//! | rejected | a scale path outside of `.spec` and `.status`, more than 8 selectable fields | rejects the CRD |
//! | useless | a column with the path `.spec.replica` of a type without this field | accepts the CRD, and shows nothing |
//!
//! Only paths of plain names are followed. Filters, wildcards and indexes (`.status.conditions[?(@.type=="Ready")].status`)
//! are left to the API server, which evaluates them per object.

use serde_json::Value;

use super::Problem;

/// Maximum number of selectable fields of a version (`MaxSelectableFields` of apiextensions-apiserver).
const SELECTABLE_MAX: usize = 8;
const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Checks the paths of a version: those that API servers reject, and those that lead to no field.
pub(super) fn check(version: &Value, schema: &Value, rejected: &mut Vec<Problem>, useless: &mut Vec<Problem>) {
    for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
        check_column(column, schema, rejected, useless);
    }
    check_scale(&version["subresources"]["scale"], schema, rejected, useless);
    let mut seen = Vec::new();
    for field in version["selectableFields"].as_array().into_iter().flatten() {
        check_selectable(field["jsonPath"].as_str().unwrap_or_default(), schema, &mut seen, rejected);
    }
    if seen.len() > SELECTABLE_MAX {
        let what = format!("{} fields are selectable, and {SELECTABLE_MAX} are allowed", seen.len());
        rejected.push(Problem::new("selectable", what, "leave some of them out"));
    }
}

/// Checks a printer column: name, type, format and path.
fn check_column(column: &Value, schema: &Value, rejected: &mut Vec<Problem>, useless: &mut Vec<Problem>) {
    let text = |key: &str| column[key].as_str().unwrap_or_default();
    let problem = |what: String, help: &str| Problem::new(&format!("printcolumn `{}`", text("name")), what, help);
    if text("name").is_empty() {
        rejected.push(problem("it has no name".into(), "write `name = \"…\"`"));
    }
    if !TYPES.contains(&text("type")) {
        let help = format!("write one of {}", TYPES.join(", "));
        rejected.push(problem(format!("`{}` is not a type of printer columns", text("type")), &help));
    }
    if !text("format").is_empty() && !FORMATS.contains(&text("format")) {
        let help = format!("write one of {}", FORMATS.join(", "));
        rejected.push(problem(format!("`{}` is not a format of printer columns", text("format")), &help));
    }
    let path = text("jsonPath");
    if !path.starts_with('.') {
        let what = format!("the path `{path}` does not start with a dot");
        // kubectl's JSONPath has braces around the path, the paths of a CRD have none.
        let inner = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
        let written = inner.trim_start_matches('.');
        rejected.push(problem(what, &format!("write `json_path = \".{written}\"`")));
    } else if let Some(what) = path_error(path, schema) {
        useless.push(problem(what, "write it from the object, as `.spec.name`, with the names of JSON"));
    }
}

/// Returns why a path cannot be read or leads to no field. Only paths of names are followed.
///
/// The search ends without a problem where the schema ends: at `metadata`, in a map, and where unknown fields are kept.
fn path_error(path: &str, schema: &Value) -> Option<String> {
    let count = |chars: &[char]| path.matches(chars).count();
    if count(&['[', '(', '{']) != count(&[']', ')', '}']) || count(&['\'', '"']) % 2 != 0 || path.contains("[]") {
        return Some(format!("the path `{path}` is not closed"));
    }
    let mut schema = schema;
    let mut resolved = String::new();
    for name in path.trim_start_matches('.').split('.') {
        let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true
            || schema["x-kubernetes-embedded-resource"] == true
            || schema["additionalProperties"] == true;
        let is_meta = resolved.is_empty() && ["metadata", "apiVersion", "kind"].contains(&name);
        if is_open || is_meta || name.is_empty() || name.contains(['[', ']', '\\', '?', '*', '(', '@']) {
            return None;
        }
        schema = match schema["properties"].get(name) {
            Some(field) => field,
            None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
            None => {
                return Some(format!(
                    "the path `{path}` names no field: `{}` has no field `{name}`",
                    if resolved.is_empty() { "." } else { &resolved }
                ));
            }
        };
        resolved = format!("{resolved}.{name}");
    }
    None
}

/// Checks the paths of the scale subresource, which have to be below `.spec` or `.status`.
///
/// `kubectl scale` and the `HorizontalPodAutoscaler` write the number at `spec_replicas_path`, and read the other two.
fn check_scale(scale: &Value, schema: &Value, rejected: &mut Vec<Problem>, useless: &mut Vec<Problem>) {
    if !scale.is_object() {
        return;
    }
    for (key, option, roots) in [
        ("specReplicasPath", "spec_replicas_path", [".spec."].as_slice()),
        ("statusReplicasPath", "status_replicas_path", &[".status."]),
        ("labelSelectorPath", "label_selector_path", &[".spec.", ".status."]),
    ] {
        let path = scale[key].as_str().unwrap_or_default();
        if path.is_empty() && key == "labelSelectorPath" {
            continue;
        }
        let option_path = format!("scale, {option}");
        let help = format!("write for example `{}replicas`", roots[0]);
        if !roots.iter().any(|root| path.starts_with(root)) {
            let what = format!("`{path}` is not a path below {}", roots.join(" or ").trim_end_matches('.'));
            rejected.push(Problem::new(&option_path, what, help));
        } else if let Some(what) = path_error(path, schema) {
            useless.push(Problem::new(&option_path, what, help));
        } else if path.contains(['[', '(', '{']) || path.contains("..") || path.ends_with('.') {
            useless.push(Problem::new(&option_path, format!("`{path}` is not made of names"), help));
        }
    }
}

/// Checks a selectable field: it exists, is a scalar, and is not below `metadata`.
///
/// Clients select by it with `--field-selector spec.color=blue` (KEP-4358).
fn check_selectable(path: &str, schema: &Value, seen: &mut Vec<String>, problems: &mut Vec<Problem>) {
    let mut push = |what: String, help: &str| problems.push(Problem::new("selectable", what, help));
    let Some(field) = schema_at_path(schema, path).filter(|_| !path.contains('[')) else {
        push(format!("`{path}` is not a field"), "write it from the object, as `.spec.name`, with the names of JSON");
        return;
    };
    if path.starts_with(".metadata") {
        push(format!("`{path}` can't be selectable"), "`metadata.name` and `metadata.namespace` always are");
    }
    let is_plain = ["string", "boolean", "integer"].contains(&field["type"].as_str().unwrap_or_default());
    if !is_plain {
        push(format!("`{path}` is not a string, an integer or a boolean"), "select by such a field");
    }
    if seen.iter().any(|earlier| earlier == path) {
        push(format!("`{path}` is there twice"), "write it once");
    } else {
        seen.push(path.to_owned());
    }
}

/// Returns the schema at a path like `.spec.hosts['a'].name`. Items of lists have no path.
pub(super) fn schema_at_path<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut schema, mut rest) = (schema, path);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (&after[..end], &after[end..])
        } else {
            let quoted = rest.strip_prefix("['")?;
            let end = quoted.find("']")?;
            (&quoted[..end], &quoted[end + 2..])
        };
        if name.is_empty() {
            return None;
        }
        schema = match schema["properties"].get(name) {
            Some(field) => field,
            None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
            None => return None,
        };
        rest = after;
    }
    Some(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn braces_of_kubectl_are_left_out_of_help() {
        for path in ["spec.a", "{.spec.a}", "{spec.a}"] {
            let column = json!({ "name": "A", "type": "string", "jsonPath": path });
            let mut rejected = Vec::new();
            check_column(&column, &json!({}), &mut rejected, &mut Vec::new());
            assert_eq!(rejected[0].help, "write `json_path = \".spec.a\"`", "{path}");
        }
    }
}
