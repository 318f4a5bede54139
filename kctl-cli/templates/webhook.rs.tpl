//! Defaults and validates `{{kind}}` objects before an API server stores them.
use kctl::prelude::*;

use {{path}}::{{root}};

/// Label that every `{{kind}}` has.
const TIER: &str = "{{group}}/tier";

/// Sets the label where it is missing. The response is a patch with what this function changed.
#[admission(mutate)]
pub fn default_{{snake}}(object: &mut {{root}}) {
    object.labels_mut().entry(TIER.into()).or_insert_with(|| "default".into());
}

/// Rejects what no schema can express. All invalid fields are reported at once.
#[admission(validate)]
pub fn validate_{{snake}}(object: &{{root}}) -> Result<()> {
    let mut invalid = Invalid::default();
    if object.labels().get(TIER).is_some_and(String::is_empty) {
        invalid.field(format!("metadata.labels[{TIER}]"), "", "must not be empty");
    }
    Ok(invalid.finish()?)
}

#[cfg(test)]
mod tests {
    use kctl::{
        kube::{
            Api,
            api::{Patch, PatchParams},
        },
        testing::TestServer,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn label_is_set_and_an_empty_one_is_rejected() {
        let app = App::new("test").kind::<{{root}}>().admission::<(default_{{snake}}, validate_{{snake}})>();
        let server = TestServer::start_with(app, include_str!("{{sample}}")).await.unwrap();
        let objects: Api<{{root}}> = {{api}}(server.client());
        let object = objects.get("{{object}}").await.unwrap();
        assert_eq!(object.labels()[TIER], "default");

        let change = Patch::Merge(kctl::json!({ "metadata": { "labels": { TIER: "" } } }));
        let error = objects.patch("{{object}}", &PatchParams::default(), &change).await.unwrap_err().to_string();
        assert!(error.contains("must not be empty"), "{error}");
    }
}
