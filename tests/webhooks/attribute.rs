//! `conversion(…)` of `#[resource]` combined with `App::conversion`: both may name the same converter, but not two
//! different ones.

use kctl::{
    kube::{Api, Client, api::PostParams},
    manifest::{Descriptions, definitions},
    prelude::*,
    testing::TestServer,
};

mod v1 {
    use kctl::prelude::*;

    #[resource(group = "named.example.com", version = "v1", kind = "Page", namespaced, storage = false)]
    pub(super) struct PageSpec {
        pub text: String,
    }
}

#[resource(
    group = "named.example.com",
    version = "v2",
    kind = "Page",
    namespaced,
    conversion(service = "pages-webhook", namespace = "pages")
)]
struct PageSpec {
    lines: Vec<String>,
}

#[conversion]
fn up(old: v1::Page) -> Page {
    Page { metadata: old.metadata, spec: PageSpec { lines: vec![old.spec.text] } }
}

#[conversion]
fn down(new: Page) -> v1::Page {
    v1::Page { metadata: new.metadata, spec: v1::PageSpec { text: new.spec.lines.join("\n") } }
}

fn app() -> App {
    App::new("pages").conversion::<(up, down)>()
}

/// Writes an object in one version and reads it in the other.
async fn is_converted(client: Client) {
    let old = v1::Page::new("a", v1::PageSpec { text: "hello".into() });
    Api::<v1::Page>::default_namespaced(client.clone()).create(&PostParams::default(), &old).await.unwrap();
    let new = Api::<Page>::default_namespaced(client).get("a").await.unwrap();
    assert_eq!(new.spec.lines, ["hello"]);
}

#[tokio::test]
async fn tests_convert_in_the_app_despite_a_service() {
    let server = TestServer::start(app()).await.unwrap();
    is_converted(server.client()).await;
}

mod elsewhere {
    pub(super) mod v1 {
        use kctl::prelude::*;

        #[resource(group = "named.example.com", version = "v1", kind = "Leaf", namespaced, storage = false)]
        pub(in super::super) struct LeafSpec {
            pub text: String,
        }
    }

    pub(super) mod v2 {
        use kctl::prelude::*;

        #[resource(
            group = "named.example.com",
            version = "v2",
            kind = "Leaf",
            namespaced,
            conversion(url = "https://leaves.example.com/leaves")
        )]
        pub(in super::super) struct LeafSpec {
            pub text: String,
        }
    }
}

#[conversion]
fn leaf_up(old: elsewhere::v1::Leaf) -> elsewhere::v2::Leaf {
    elsewhere::v2::Leaf { metadata: old.metadata, spec: elsewhere::v2::LeafSpec { text: old.spec.text } }
}

#[conversion]
fn leaf_down(new: elsewhere::v2::Leaf) -> elsewhere::v1::Leaf {
    elsewhere::v1::Leaf { metadata: new.metadata, spec: elsewhere::v1::LeafSpec { text: new.spec.text } }
}

#[tokio::test]
async fn attribute_with_a_foreign_path_fails_at_start() {
    let app = || App::new("leaves").conversion::<(leaf_up, leaf_down)>();
    let test_error = TestServer::start(app()).await.err().unwrap().to_string();
    let command_error = app().main().await.unwrap_err().to_string();
    for error in [test_error, command_error] {
        let both = "`conversion(url = \"https://leaves.example.com/leaves\")` in #[resource] sends conversions to the path /leaves, and \
                    the functions of `App::conversion` answer at /convert";
        assert!(error.contains(both), "{error}");
    }
}

mod divided {
    pub(super) mod v1 {
        use kctl::prelude::*;

        #[resource(
            group = "named.example.com",
            version = "v1",
            kind = "Branch",
            namespaced,
            storage = false,
            conversion(service = "old", namespace = "branches")
        )]
        pub(in super::super) struct BranchSpec {}
    }

    pub(super) mod v2 {
        use kctl::prelude::*;

        #[resource(
            group = "named.example.com",
            version = "v2",
            kind = "Branch",
            namespaced,
            conversion(service = "new", namespace = "branches")
        )]
        pub(in super::super) struct BranchSpec {}
    }
}

#[test]
fn two_versions_with_different_converters_are_an_error() {
    let app = App::new("branches").kind::<divided::v1::Branch>().kind::<divided::v2::Branch>();
    let error = definitions(&app.kinds(), Descriptions::Own).unwrap_err().to_string();
    for part in ["v1 (", "v2 (", "differ in `conversion(…)`"] {
        assert!(error.contains(part), "{error}");
    }
}
