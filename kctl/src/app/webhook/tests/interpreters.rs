//! Tests the written configuration, the manifests that connect control planes with the server, and
//! the shutdown.

use super::*;
use k8s_openapi::api::apps::v1::Deployment;
use kctl_interpreter::{
    function::{FunctionInfo, IntoHealth, Rule},
    operation::Operation,
};

pub(in crate::app::webhook) fn app() -> App {
    let about = FunctionInfo::new(Operation::InterpretHealth, "health", file!(), line!());
    let rule = Rule::read::<Deployment, _, _>(about, |_object| async { IntoHealth::into_result(true) });
    let mut app = App::new("web");
    app.interpreters.push(rule);
    app
}

#[tokio::test]
async fn written_configuration_replaces_only_files_of_kctl() {
    let file = std::env::temp_dir().join(format!("kctl-webhook-config-{}.yaml", std::process::id()));
    let options = ServeOptions { write_webhook_config: Some(file.clone()), ..ServeOptions::default() };
    std::fs::write(&file, "").unwrap();
    for _start in 0..2 {
        let webhook = app().webhook(&options).await.unwrap().unwrap();
        let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let client = &object["webhooks"][0]["clientConfig"];
        assert_eq!(client["url"], format!("https://{}/interpreter-deployment", webhook.server.address()));
        assert!(client["caBundle"].as_str().is_some_and(|bundle| bundle.len() > 100), "{client}");
    }
    std::fs::write(&file, "mine").unwrap();
    let error = app().webhook(&options).await.err().unwrap().to_string();
    assert!(error.contains("kctl did not write this file"), "{error}");
    let error = App::new("none").webhook(&options).await.err().unwrap().to_string();
    assert!(error.contains("the app has no admission functions, no conversions and no interpreters"), "{error}");
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn two_functions_for_one_operation_are_rejected_first() {
    let mut app = app();
    app.interpreters.push(app.interpreters[0].clone());
    let error = app.main().await.unwrap_err().to_string();
    assert!(error.starts_with("InterpretHealth of \"apps/v1, Kind=Deployment\" has two functions"), "{error}");
    assert!(error.ends_with("code: K0070"), "{error}");
}
