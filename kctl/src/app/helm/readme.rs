//! `README.md` of a chart: how it is installed, and the table of its values that users of helm-docs expect.

use serde_json::Value;

use super::{
    Chart,
    line_ends::with_line_ends_of,
    values::{self, Row},
};

/// The line before the generated section. A `README.md` without it belongs to people.
const BEGIN: &str = "<!-- `generate-manifests --helm` writes the lines up to the end of the values. -->";
/// The line after the generated section.
const END: &str = "<!-- End of the values. -->";

/// Returns the next `README.md`: a new one, or the old one with the current values. `None` if people wrote the old one.
///
/// The defaults come from `values.yaml`, so that the table is right after an edit by hand.
pub(super) fn readme(chart: &Chart, old: Option<&str>, values: &Value) -> Option<String> {
    let section = format!("{BEGIN}\n\n{}\n{END}", table(&values::rows(&chart.items, values)));
    let Some(old) = old else { return Some(head(chart) + &section + "\n") };
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{}{after}", with_line_ends_of(old, &section)))
}

/// Returns `true` if two versions of the file are equal except for the defaults of values.
///
/// People edit `values.yaml`: `--check` accepts that, and the next run writes the new defaults into the table.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let without_default = |line: &str| {
        let mut cells: Vec<String> = line.split(" | ").map(str::to_owned).collect();
        if line.starts_with("| ") && cells.len() == 4 {
            cells.remove(2);
        }
        cells
    };
    one.lines().map(without_default).eq(other.lines().map(without_default))
}

/// Returns the text before the values.
fn head(chart: &Chart) -> String {
    let name = &chart.name;
    let crds = if chart.definitions.is_empty() {
        ""
    } else {
        "\nThe CRDs are upgraded with the release (`crds.enabled`), and kept at an uninstall (`crds.keep`).\n"
    };
    let secret = if chart.needs_secret {
        format!(
            "\nWithout cert-manager (`certManager.enabled`), the Pods start when you have created the Secret of their certificate, with the\n\
             keys `tls.crt` and `tls.key`. The certificate has to be valid for `{name}.{name}.svc`.\n\n\
             ```sh\nkubectl --namespace {name} create secret tls {name}-webhook-tls --cert tls.crt --key tls.key\n```\n"
        )
    } else {
        String::new()
    };
    format!(
        "# {name}\n\nInstalls {name} with the roles that it needs.\n\n\
         ```sh\nhelm upgrade --install {name} . --namespace {name} --create-namespace\n```\n{secret}{crds}\n## Values\n\n"
    )
}

fn table(rows: &[Row]) -> String {
    let escaped = |text: &str| text.replace('\n', " ").replace('|', "\\|");
    let mut text = "| Key | Type | Default | Description |\n|---|---|---|---|\n".to_owned();
    for Row { key, kind, default, doc } in rows {
        text += &format!("| {key} | {kind} | `{}` | {} |\n", escaped(default), escaped(doc));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::values::{list, section, string, switch, value},
        *,
    };
    use crate::app::helm::values::Switch;

    fn chart() -> Chart {
        Chart {
            files: Vec::new(),
            items: vec![
                value("replicaCount", "Replicas.", json!(2), json!({ "type": "integer" })),
                section("image", "The image.", vec![string("tag", "The tag: a | b.\nOr none.", "")]),
                list("extraArgs", "Arguments."),
                switch("debug", "More logs.", Switch::Off),
            ],
            name: "web".into(),
            version: None,
            needs_secret: false,
            definitions: Vec::new(),
        }
    }

    #[test]
    fn table_has_each_value_with_its_default() {
        let text = readme(&chart(), None, &json!({ "replicaCount": 3 })).unwrap();
        let expected = "| Key | Type | Default | Description |\n|---|---|---|---|\n\
            | replicaCount | int | `3` | Replicas. |\n\
            | image.tag | string | `\"\"` | The tag: a \\| b. Or none. |\n\
            | extraArgs | list | `[]` | Arguments. |\n\
            | debug | bool | `false` | More logs. |\n";
        assert!(text.starts_with("# web\n") && text.contains(expected), "{text}");
        assert!(!text.contains("crds.") && !text.contains("create secret"), "it has no CRD and no webhook: {text}");
    }

    #[test]
    fn hand_edits_around_the_table_are_kept() {
        let text = readme(&chart(), None, &json!({})).unwrap();
        let edited = text.replace("# web\n", "# Our site\n") + "\n## Support\n";
        let next = readme(&chart(), Some(&edited), &json!({ "debug": true })).unwrap();
        assert!(next.starts_with("# Our site\n") && next.ends_with("\n## Support\n"), "{next}");
        assert!(next.contains("| debug | bool | `true` |"), "{next}");
        assert!(is_same(&edited, &next) && !is_same(&edited, &next.replace("More logs", "Fewer logs")));
        assert_eq!(readme(&chart(), Some("# Mine\n"), &json!({})), None);
    }
}
