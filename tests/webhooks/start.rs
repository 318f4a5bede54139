//! Errors at startup: functions that contradict each other, or that are incomplete.

use kctl::prelude::*;

use crate::kinds::{Site, SiteSpec, v1alpha1, v1beta1};

#[conversion]
fn up(old: v1alpha1::Site) -> Site {
    Site { metadata: old.metadata, spec: SiteSpec { hosts: vec![old.spec.host], replicas: old.spec.size, extra: None } }
}

#[conversion]
fn also_up(old: v1alpha1::Site) -> Result<Site> {
    Ok(up(old))
}

#[conversion]
fn down(new: Site) -> v1alpha1::Site {
    let host = new.spec.hosts.join(" ");
    v1alpha1::Site { metadata: new.metadata, spec: v1alpha1::SiteSpec { host, size: new.spec.replicas } }
}

#[conversion]
fn to_another_kind(new: Site) -> Result<Pod> {
    Ok(Pod { metadata: new.metadata, ..Pod::default() })
}

mod first {
    use kctl::prelude::*;

    #[admission(validate)]
    pub(super) fn rules(_pod: &Pod) {}
}

mod second {
    use kctl::prelude::*;

    #[admission(validate)]
    pub(super) fn rules(_pod: &Pod) {}

    #[admission(mutate, object_selector = "team > 1")]
    pub(super) fn selected(_pod: &mut Pod) {}
}

#[tokio::test]
async fn incomplete_functions_fail_before_any_command_with_help() {
    let cases = [
        (
            App::new("a").conversion::<up>(),
            "Site.hooks.example.com: there is no conversion from v1 to v1alpha1; write `#[conversion] fn name(old: v1::Site) -> \
             Result<v1alpha1::Site>`, and add it by `App::conversion`\ncode: K0113",
        ),
        (
            App::new("a").conversion::<(up, down)>().kind::<v1beta1::Site>(),
            "Site.hooks.example.com: there is no conversion from v1 to v1beta1, nor from v1beta1 to v1; write",
        ),
        (
            App::new("a").conversion::<(up, also_up, down)>(),
            "Site.hooks.example.com v1alpha1 → v1 has two conversions: `up` (",
        ),
        (App::new("a").conversion::<to_another_kind>(), "`to_another_kind` ("),
        (
            App::new("a").admission::<(first::rules, second::rules)>(),
            "two functions validate \"v1, Kind=Pod\": `rules` (",
        ),
        (App::new("a").admission::<second::selected>(), "`selected` ("),
    ];
    for (app, expected) in cases {
        let error = app.main().await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("\ncode: K01"), "{error}");
    }
}
