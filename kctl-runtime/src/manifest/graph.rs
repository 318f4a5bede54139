//! Draws the wiring: which kinds lead to which controllers, and how.
//!
//! Solid lines trigger a reconcile, dashed ones are read only:
//!
//! ```text
//! flowchart LR
//!   k0["ConfigMap"]
//!   k1["Pod"]
//!   c0(["configmap"])
//!   k0 -->|"reconciles"| c0
//!   k1 -.->|"reads"| c0
//! ```

use std::{collections::BTreeMap, fmt::Write};

use crate::spec::{ControllerSpec, RelationKind, RelationSpec};

/// The output format of [`graph()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Mermaid, which GitHub renders in Markdown.
    Mermaid,
    /// Graphviz.
    Dot,
    /// SVG, which browsers show.
    Svg,
}

/// A line from a kind to a controller.
struct Edge {
    kind: String,
    controller: String,
    label: String,
    /// `true` if a change of the kind leads to a reconcile. Other lines are dashed.
    triggers: bool,
}

/// Returns a picture with kinds, controllers and the relations between them.
///
/// ```
/// # use k8s_openapi::api::{core::v1::ConfigMap, core::v1::Secret};
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec {
/// #         SpecBuilder::<Self>::new("Settings", file!(), line!()).reads::<Secret>("reads = Secret").build()
/// #     }
/// # }
/// use kctl_runtime::manifest::{GraphFormat, graph};
///
/// let picture = graph(&[Settings::spec()], GraphFormat::Mermaid);
/// assert!(picture.starts_with("flowchart LR\n"));
/// assert!(picture.contains("-.->|\"reads\"|"));
/// ```
pub fn graph(specs: &[ControllerSpec], format: Format) -> String {
    let edges: Vec<Edge> = specs.iter().flat_map(edges).collect();
    match format {
        Format::Mermaid => mermaid(&edges),
        Format::Dot => dot(&edges),
        Format::Svg => svg(&edges),
    }
}

/// Returns the lines as rows: kind, relation, controller, and whether a change of the kind triggers.
pub(crate) fn edge_rows(specs: &[ControllerSpec]) -> impl Iterator<Item = (String, String, String, bool)> {
    specs.iter().flat_map(edges).map(|edge| (edge.kind, edge.label, edge.controller, edge.triggers))
}

fn edges(spec: &ControllerSpec) -> Vec<Edge> {
    let edge = |relation: &RelationSpec| {
        let mut label = match relation.declared_as {
            RelationKind::Primary => "reconciles",
            RelationKind::Owned => "owner reference",
            RelationKind::Watched => "mapper",
            RelationKind::Read => "reads",
            RelationKind::Live | RelationKind::LiveCluster => "reads live",
        }
        .to_owned();
        if relation.declared_as == RelationKind::Owned && relation.map.is_some() {
            label += ", mapper";
        }
        if relation.when.is_some() {
            label += ", when";
        }
        if !relation.cluster.is_empty() {
            label += &format!(", on {}", relation.cluster);
        }
        Edge {
            kind: relation.kind.to_string(),
            controller: spec.name.clone(),
            label,
            triggers: matches!(
                relation.declared_as,
                RelationKind::Primary | RelationKind::Owned | RelationKind::Watched
            ),
        }
    };
    std::iter::once(&spec.primary).chain(&spec.relations).map(edge).collect()
}

/// Numbers the names of nodes, sorted.
fn nodes<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let mut sorted: Vec<&str> = names.map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into_iter().enumerate().map(|(index, name)| (name, index)).collect()
}

fn mermaid(edges: &[Edge]) -> String {
    let (kinds, controllers) = (nodes(edges.iter().map(|e| &e.kind)), nodes(edges.iter().map(|e| &e.controller)));
    let mut text = "flowchart LR\n".to_owned();
    for (name, index) in &kinds {
        let _infallible = writeln!(text, "  k{index}[\"{}\"]", entities(name));
    }
    for (name, index) in &controllers {
        let _infallible = writeln!(text, "  c{index}([\"{}\"])", entities(name));
    }
    for edge in edges {
        let arrow = if edge.triggers { "-->" } else { "-.->" };
        let (kind, controller) = (kinds[edge.kind.as_str()], controllers[edge.controller.as_str()]);
        let _infallible = writeln!(text, "  k{kind} {arrow}|\"{}\"| c{controller}", entities(&edge.label));
    }
    text
}

fn dot(edges: &[Edge]) -> String {
    let mut text = "digraph controllers {\n  rankdir=LR;\n".to_owned();
    for name in nodes(edges.iter().map(|edge| &edge.kind)).keys() {
        let name = quotable(name);
        let _infallible = writeln!(text, "  \"kind {name}\" [label=\"{name}\", shape=box];");
    }
    for name in nodes(edges.iter().map(|edge| &edge.controller)).keys() {
        let name = quotable(name);
        let _infallible = writeln!(text, "  \"controller {name}\" [label=\"{name}\", shape=oval];");
    }
    for Edge { kind, controller, label, triggers } in edges {
        let style = if *triggers { "solid" } else { "dashed" };
        let [kind, controller, label] = [kind, controller, label].map(|text| quotable(text));
        let _infallible =
            writeln!(text, "  \"kind {kind}\" -> \"controller {controller}\" [label=\"{label}\", style={style}];");
    }
    text + "}\n"
}

/// Draws kinds on the left and controllers on the right.
fn svg(edges: &[Edge]) -> String {
    let (kinds, controllers) = (nodes(edges.iter().map(|e| &e.kind)), nodes(edges.iter().map(|e| &e.controller)));
    let y = |index: usize| 20 + 60 * index;
    let height = y(kinds.len().max(controllers.len()));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 {height}\" font-family=\"sans-serif\" font-size=\"13\">\n"
    );
    for (index, edge) in edges.iter().enumerate() {
        let (from, to) = (y(kinds[edge.kind.as_str()]) + 20, y(controllers[edge.controller.as_str()]) + 20);
        // Labels in the middle of crossing lines would overlap.
        let position = 2 + index % 4;
        let dashes = if edge.triggers { "" } else { " stroke-dasharray=\"4\"" };
        let _infallible = writeln!(
            text,
            "  <line x1=\"200\" y1=\"{from}\" x2=\"440\" y2=\"{to}\" stroke=\"#555\"{dashes}/>\n  \
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\" stroke=\"#fff\" stroke-width=\"4\" \
             paint-order=\"stroke\">{}</text>",
            200 + 240 * position / 8,
            (from * (8 - position) + to * position) / 8 - 4,
            escape(&edge.label)
        );
    }
    for (names, x, radius) in [(&kinds, 20, 2), (&controllers, 440, 20)] {
        for (name, index) in names {
            let _infallible = writeln!(
                text,
                "  <rect x=\"{x}\" y=\"{}\" width=\"180\" height=\"40\" rx=\"{radius}\" fill=\"#fff\" stroke=\"#222\"/>\n  \
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                y(*index),
                x + 90,
                y(*index) + 25,
                escape(name)
            );
        }
    }
    text + "</svg>\n"
}

/// Returns a string as Mermaid reads it within quotes: without line breaks, special characters as entities.
///
/// `#` begins an entity there, so it becomes one itself (Mermaid, "Entity codes to escape characters").
fn entities(text: &str) -> String {
    let one_line = text.replace('#', "#35;").replace(['\n', '\r'], " ");
    one_line.replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}

/// Returns a string as Graphviz reads it within quotes: without line breaks, `"` and `\` after a backslash.
fn quotable(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace(['\n', '\r'], " ")
}

/// Returns a string as XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_in_each_format() {
        let edge = Edge {
            kind: "Web<\"a\">#quot;".into(),
            controller: "c:\\\"x\"".into(),
            label: "mapper | on [\"b\"]\nline".into(),
            triggers: true,
        };
        let edges = [edge];
        assert_eq!(
            mermaid(&edges),
            "flowchart LR\n  k0[\"Web#lt;#quot;a#quot;#gt;#35;quot;\"]\n  c0([\"c:\\#quot;x#quot;\"])\n  \
             k0 -->|\"mapper | on [#quot;b#quot;] line\"| c0\n"
        );
        assert_eq!(
            dot(&edges),
            "digraph controllers {\n  rankdir=LR;\n  \
             \"kind Web<\\\"a\\\">#quot;\" [label=\"Web<\\\"a\\\">#quot;\", shape=box];\n  \
             \"controller c:\\\\\\\"x\\\"\" [label=\"c:\\\\\\\"x\\\"\", shape=oval];\n  \
             \"kind Web<\\\"a\\\">#quot;\" -> \"controller c:\\\\\\\"x\\\"\" \
             [label=\"mapper | on [\\\"b\\\"] line\", style=solid];\n}\n"
        );
    }
}
