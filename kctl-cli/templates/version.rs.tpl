//! Version `{{version}}` of `{{kind}}`, and the conversions between it and `{{old}}`, which remains the stored version.
use kctl::prelude::*;
{{imports}}
{{attributes}}
#[resource({{options}})]
pub struct {{spec}} {
    {{fields}}
}

/// Converts a `{{kind}}` of version `{{old}}` to `{{version}}`.
#[conversion]
pub fn {{snake}}_to_{{version}}(object: {{path}}::{{root}}) -> {{root}} {
    {{root}} {
        metadata: object.metadata,
        spec: {{spec}} {
            {{copied}}
        },
        {{status}}
    }
}

/// Converts a `{{kind}}` of version `{{version}}` to `{{old}}`. A field that `{{old}}` lacks has to be kept somewhere, for
/// example in an annotation, or it is lost when the object is stored. A conversion can't remove an annotation: overwrite the
/// one of an earlier conversion, for example with an empty string, or a removed value comes back.
#[conversion]
pub fn {{snake}}_from_{{version}}(object: {{root}}) -> {{path}}::{{root}} {
    {{path}}::{{root}} {
        metadata: object.metadata,
        spec: {{path}}::{{spec}} {
            {{copied}}
        },
        {{status}}
    }
}

#[cfg(test)]
mod tests {
    use kctl::{
        kube::{Api, api::{Patch, PatchParams}},
        testing::TestServer,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn both_versions_show_the_same_spec() {
        let app = App::new("test").kind::<{{path}}::{{root}}>().kind::<{{root}}>();
        let app = app.conversion::<({{snake}}_to_{{version}}, {{snake}}_from_{{version}})>();
        let server = TestServer::start_with(app, include_str!("{{sample}}")).await.unwrap();
        let (old, new): (Api<{{path}}::{{root}}>, Api<{{root}}>) =
            ({{api}}(server.client()), {{api}}(server.client()));
        let stored = old.get("{{object}}").await.unwrap();
        let shown = new.get("{{object}}").await.unwrap();
        assert_eq!(kctl::json!(stored.spec), kctl::json!(shown.spec));

        // A write in the new version is converted to the stored one.
        let change = Patch::Merge(kctl::json!({ "metadata": { "labels": { "written": "{{version}}" } } }));
        new.patch("{{object}}", &PatchParams::default(), &change).await.unwrap();
        assert_eq!(old.get("{{object}}").await.unwrap().labels()["written"], "{{version}}");
    }
}
