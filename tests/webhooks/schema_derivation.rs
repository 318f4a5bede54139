//! CRDs are derived once: for a kind with a Pod template that takes a second without compiler optimization.

use std::sync::atomic::{AtomicUsize, Ordering};

use kctl::{prelude::*, testing::TestServer};

/// Number of times that a CRD or a JSON schema was derived.
static DERIVED: AtomicUsize = AtomicUsize::new(0);

fn counted(
    _generator: &mut kctl_runtime::__private_0_1::schemars::SchemaGenerator,
) -> kctl_runtime::__private_0_1::schemars::Schema {
    DERIVED.fetch_add(1, Ordering::Relaxed);
    kctl::from_json(kctl::json!({ "type": "string" })).unwrap()
}

mod v1alpha1 {
    use kctl::{k8s::api::core::v1::PodTemplateSpec, prelude::*};

    #[resource(group = "once.example.com", version = "v1alpha1", kind = "Fleet", namespaced, storage = false)]
    pub(crate) struct FleetSpec {
        #[schemars(schema_with = "super::counted")]
        pub name: String,
        pub template: PodTemplateSpec,
    }
}

#[resource(group = "once.example.com", version = "v1", kind = "Fleet", namespaced)]
pub(crate) struct FleetSpec {
    #[schemars(schema_with = "counted")]
    pub title: String,
    pub template: kctl::k8s::api::core::v1::PodTemplateSpec,
}

#[conversion]
fn up(old: v1alpha1::Fleet) -> Fleet {
    let spec = FleetSpec { title: old.spec.name, template: old.spec.template };
    Fleet { metadata: old.metadata, spec }
}

#[conversion]
fn down(new: Fleet) -> v1alpha1::Fleet {
    let spec = v1alpha1::FleetSpec { name: new.spec.title, template: new.spec.template };
    v1alpha1::Fleet { metadata: new.metadata, spec }
}

#[controller]
async fn fleets(_fleet: Arc<Fleet>, _cx: Context<fleets>) -> Result<Action> {
    Ok(Action::await_change())
}

fn app() -> App {
    let unused = || async { Err("a test has its own server".into()) };
    App::new("fleets").controller::<fleets>().conversion::<(up, down)>().cluster("edge", unused)
}

#[tokio::test(start_paused = true)]
async fn each_crd_is_derived_once_for_all_starts() {
    for _ in 0..3 {
        let server = TestServer::start(app()).await.unwrap();
        server.idle().await.unwrap();
    }
    // The CRD and the JSON schema of each of the two versions.
    assert_eq!(DERIVED.load(Ordering::Relaxed), 4);
}
