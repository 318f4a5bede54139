//! A Secret that cert-manager or another program fills and renews.

use kctl_apiserver::ApiServer;

use super::*;

/// Fills the Secret as cert-manager does, and sets `caBundle` as cert-manager's injector does.
async fn fill(server: &ApiServer, kind: &str, certificate: Option<&str>) {
    let made = next_contents(None, &["127.0.0.1".into()], Timestamp::now(), ReplicaRole::Standby).unwrap().unwrap();
    let mut fields = made.fields().unwrap();
    fields.retain(|name, _| ["tls.crt", "tls.key", "ca.crt"].contains(&name.as_str()));
    if let Some(certificate) = certificate {
        fields.insert("tls.crt".into(), certificate.into());
    }
    let data: BTreeMap<_, _> = fields.into_iter().map(|(name, text)| (name, ByteString(text.into_bytes()))).collect();
    let meta = json!({ "name": "web-webhook-tls", "namespace": "default" });
    install(server, [json!({ "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": meta, "data": data })])
        .await;
    if certificate.is_none() {
        let bundle = ByteString(made.bundle().into_bytes());
        let add =
            |n: usize| json!({ "op": "add", "path": format!("/webhooks/{n}/clientConfig/caBundle"), "value": bundle });
        let request = Request::patch(PATH).header("content-type", "application/json-patch+json");
        let request = request.body(serde_json::to_vec(&[add(0), add(1)]).unwrap()).unwrap();
        let _patched: Value = Client::new(server.service(), "default").request(request).await.unwrap();
    }
}

/// Returns the `resourceVersion`s of the objects that kctl would otherwise write.
fn versions(server: &ApiServer) -> [Value; 2] {
    let version = |group: &str, resource: &str, namespace: &str, name: &str| {
        server.object(group, resource, namespace, name).unwrap()["metadata"]["resourceVersion"].clone()
    };
    [
        version("", "secrets", "default", "web-webhook-tls"),
        version("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "web"),
    ]
}

#[tokio::test]
async fn foreign_secret_is_served_and_never_written() {
    for kind in ["kubernetes.io/tls", "Opaque"] {
        let (server, maintainers) = world([ElectionRole::Leader, ElectionRole::Standby]).await;
        let now = Timestamp::now();
        for _renewal in 0..2 {
            fill(&server, kind, None).await;
            let before = versions(&server);
            // After 400 days kctl would have renewed its own certificates and authorities.
            for at in [now, now + DAY * 400] {
                for maintainer in &maintainers {
                    maintainer.pass(at).await.unwrap();
                }
            }
            write(&server).await.unwrap();
            assert_eq!(versions(&server), before, "{kind}");
        }
        fill(&server, kind, Some("no certificate")).await;
        let before = versions(&server);
        let error = maintainers[0].pass(now).await.unwrap_err().to_string();
        assert!(error.starts_with("Secret web-webhook-tls is managed by another program"), "{error}");
        write(&server).await.unwrap();
        assert_eq!(versions(&server), before, "what was served is served on");
    }
}
