//! Checks the values of a declaration that are expressions, so that the attribute can't check them.

use kctl_apimachinery::{fields::is_field_selector, labels, validation::is_dns1123_label};

use super::{ControllerSpec, RelationKind, RelationSpec};

/// Bytes in the name of a controller, which is the `reportingInstance` of its Events: `ReportingInstanceLengthLimit` in
/// `k8s.io/kubernetes/pkg/apis/core/validation/events.go`.
const NAME_LEN_MAX: usize = 128;

/// Returns the first contradiction in a declaration, and what to write instead. Contradictions are a kind with two
/// relations, a status that is not served, a duration of zero and a backoff that begins above its maximum. A list of
/// namespaces that is empty or has an invalid name is one, and so is a controller's name that is empty or too long for
/// an `Event`. A selector that API servers can't parse is one, because the cache would never be complete.
///
/// `kctl::App` fails at the start with this message; a program that uses [`Manager`](crate::manager::Manager) checks it
/// itself. `#[controller]` reports the same mistakes in literals.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use std::time::Duration;
///
/// use kctl_runtime::spec::declaration_problem;
///
/// let mut spec = Settings::spec();
/// assert!(declaration_problem(&spec).is_none());
/// spec.timeout = Some(Duration::ZERO);
/// let (problem, _help) = declaration_problem(&spec).expect("each reconcile would be cancelled");
/// assert_eq!(problem, "`timeout` is zero");
/// ```
pub fn declaration_problem(spec: &ControllerSpec) -> Option<(String, String)> {
    let problem = name(spec).or_else(|| kinds(spec)).or_else(|| status(spec)).or_else(|| durations(spec));
    problem.or_else(|| namespaces(spec)).or_else(|| selectors(spec))
}

/// Returns the problem of a name with which API servers reject each `Event` of the controller.
fn name(spec: &ControllerSpec) -> Option<(String, String)> {
    let name = &spec.name;
    (!(1..=NAME_LEN_MAX).contains(&name.len())).then(|| {
        let what = format!(
            "the name `{name}` has {} bytes: `reportingInstance` of an Event has 1 to {NAME_LEN_MAX}",
            name.len()
        );
        (what, "write another `name`, or remove the option".to_owned())
    })
}

/// Returns the problem of a kind that two relations declare: the operations could not say which one they mean.
///
/// The attribute compares names of types, which may be aliases of one type or types of one kind.
fn kinds(spec: &ControllerSpec) -> Option<(String, String)> {
    let all: Vec<&RelationSpec> = std::iter::once(&spec.primary).chain(&spec.relations).collect();
    let is_same = |one: &RelationSpec, other: &RelationSpec| {
        one.kind == other.kind && one.by_type == other.by_type && (!one.by_type || one.cluster == other.cluster)
    };
    let (first, second) = all.iter().enumerate().find_map(|(index, relation)| {
        let first = all[..index].iter().find(|other| is_same(other, relation))?;
        Some((first, relation))
    })?;
    let first =
        if first.declared_as == RelationKind::Primary { "the primary".to_owned() } else { format!("`{}`", first.text) };
    Some((
        format!("{} is declared twice: {first} and `{}`", second.kind, second.text),
        "declare the kind once, with all verbs and options in its parentheses".to_owned(),
    ))
}

/// Returns the problem of a status that the controller would patch through a subresource that its CRD lacks.
fn status(spec: &ControllerSpec) -> Option<(String, String)> {
    (spec.has_status && !spec.has_status_subresource).then(|| {
        let kind = &spec.primary.kind;
        let what = format!("`cx.patch_status` has no subresource: `{kind}` says `status_subresource = false`");
        (what, "remove it from `#[resource]`, or write `primary(read_only)` in `#[controller]`".to_owned())
    })
}

/// Returns the problem of a duration that a controller can't work with.
fn durations(spec: &ControllerSpec) -> Option<(String, String)> {
    let (first, longest) = spec.backoff;
    let all = [("resync", spec.resync), ("timeout", spec.timeout), ("backoff", Some(first))];
    if let Some((option, _)) = all.iter().find(|(_, duration)| duration.is_some_and(|duration| duration.is_zero())) {
        return Some((format!("`{option}` is zero"), "write a longer duration, or remove the option".to_owned()));
    }
    (first > longest).then(|| {
        let what = format!("the first wait of `backoff` is longer than its `max`: {first:?} and {longest:?}");
        (what, "write `backoff(\"5ms\", max = \"1000s\")`".to_owned())
    })
}

fn namespaces(spec: &ControllerSpec) -> Option<(String, String)> {
    if !spec.declares_namespaces {
        return None;
    }
    let names = &spec.namespaces;
    if names.is_empty() {
        let what = "`namespaces` is empty, which would be all namespaces";
        let help = "remove `namespaces`, return at least one name, or start with `--namespace`";
        return Some((what.to_owned(), help.to_owned()));
    }
    let name = names.iter().find(|name| !is_dns1123_label(name))?;
    let help = "write names of namespaces: lower-case letters, digits and `-`";
    Some((format!("`{name}` in `namespaces` is not the name of a namespace"), help.to_owned()))
}

/// Returns the problem of a selector with which API servers reject each list of a cache.
fn selectors(spec: &ControllerSpec) -> Option<(String, String)> {
    std::iter::once(&spec.primary).chain(&spec.relations).find_map(|relation| {
        let (option, invalid, example) = if labels::parse(&relation.labels).is_none() {
            ("selector", &relation.labels, "selector = \"app=web,tier in (front, back),!legacy\"")
        } else if is_field_selector(&relation.fields) {
            return None;
        } else {
            ("fields", &relation.fields, "fields = \"metadata.namespace!=system,spec.nodeName=a\"")
        };
        let subject = match relation.declared_as {
            RelationKind::Primary => "the primary".to_owned(),
            _ => format!("`{}`", relation.text),
        };
        let what = format!("`{invalid}` in `{option}` of {subject} is not a selector");
        Some((what, format!("write for example `{example}`")))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;
    use crate::{
        reconcile::{Cluster, Controller},
        spec::{PrimaryStatus, SpecBuilder},
    };

    struct Test;

    impl Controller for Test {
        type Primary = ConfigMap;
        type Verbs = ();

        fn spec() -> ControllerSpec {
            builder().build()
        }
    }

    struct Edge;

    impl Cluster for Edge {
        const NAME: &'static str = "edge";
    }

    fn builder() -> SpecBuilder<Test> {
        SpecBuilder::new("Test", file!(), line!())
    }

    fn check(spec: &ControllerSpec, expected: Option<&str>) {
        let found = declaration_problem(spec).map(|(problem, _help)| problem);
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn kind_with_two_relations_is_reported() {
        let owned = || builder().owns::<Secret>("owns = Secret");
        check(&owned().build(), None);
        let twice = "Secret is declared twice: `owns = Secret` and `reads = v1::Secret(live(cluster))`";
        check(&owned().live_cluster::<Secret>("reads = v1::Secret(live(cluster))").build(), Some(twice));
        check(&owned().reads::<Secret>("reads = Secret(on = Edge)").on_cluster::<Edge>().build(), None);
        let by_string = "Secret is declared twice: `owns = Secret` and `reads = S(on = \"edge\")`";
        check(&owned().reads::<Secret>("reads = S(on = \"edge\")").on("edge").build(), Some(by_string));
        let primary = "ConfigMap is declared twice: the primary and `reads = Config`";
        check(&builder().reads::<ConfigMap>("reads = Config").build(), Some(primary));
        check(&builder().reads::<ConfigMap>("reads = ConfigMap(on = Edge)").on_cluster::<Edge>().build(), None);
    }

    #[test]
    fn name_fits_into_an_event() {
        check(&builder().named(&"n".repeat(128)).build(), None);
        let empty = "the name `` has 0 bytes: `reportingInstance` of an Event has 1 to 128";
        check(&builder().named("").build(), Some(empty));
        let name = "n".repeat(129);
        let long = format!("the name `{name}` has 129 bytes: `reportingInstance` of an Event has 1 to 128");
        check(&builder().named(&name).build(), Some(&long));
    }

    #[test]
    fn status_without_its_subresource_is_reported() {
        let plain = || builder().status(PrimaryStatus::WithoutSubresource);
        check(&builder().status(PrimaryStatus::Subresource).build(), None);
        check(&builder().status(PrimaryStatus::Absent).build(), None);
        check(&plain().read_only().build(), None);
        let problem = "`cx.patch_status` has no subresource: `ConfigMap` says `status_subresource = false`";
        check(&plain().build(), Some(problem));
    }

    #[test]
    fn durations_without_time_are_reported() {
        let (zero, second, minute) = (Duration::ZERO, Duration::from_secs(1), Duration::from_secs(60));
        check(&builder().resync(second).timeout(second).backoff(second, second).build(), None);
        check(&builder().resync(zero).build(), Some("`resync` is zero"));
        check(&builder().timeout(zero).build(), Some("`timeout` is zero"));
        check(&builder().backoff(zero, second).build(), Some("`backoff` is zero"));
        let above = "the first wait of `backoff` is longer than its `max`: 60s and 1s";
        check(&builder().backoff(minute, second).build(), Some(above));
    }

    #[test]
    fn declared_namespaces_have_valid_names() {
        check(&builder().namespaces(["team-a", "team-b"]).build(), None);
        check(
            &builder().namespaces(Vec::<String>::new()).build(),
            Some("`namespaces` is empty, which would be all namespaces"),
        );
        check(
            &builder().namespaces(["a", "Team_A"]).build(),
            Some("`Team_A` in `namespaces` is not the name of a namespace"),
        );
        check(&builder().namespaces([""]).build(), Some("`` in `namespaces` is not the name of a namespace"));
        let twice = builder().namespaces(["a", "b", "a"]).build();
        check(&twice, None);
        assert_eq!(twice.namespaces, ["a", "b"]);
    }

    #[test]
    fn selectors_that_no_server_parses_are_reported() {
        let owned = || builder().owns::<Secret>("owns = Secret");
        let valid = owned().selector("app in (web)").fields("metadata.name!=a").build();
        check(&valid, None);
        let primary_message = "`app in web` in `selector` of the primary is not a selector";
        check(&builder().primary_selector("app in web").build(), Some(primary_message));
        let owned_message = "`app=web,` in `selector` of `owns = Secret` is not a selector";
        check(&owned().selector("app=web,").build(), Some(owned_message));
        let fields_message = "`spec.nodeName` in `fields` of `owns = Secret` is not a selector";
        check(&owned().fields("spec.nodeName").build(), Some(fields_message));
    }
}
