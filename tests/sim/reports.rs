//! Reports of the simulator about controllers with a bug.

use kctl::{
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    prelude::*,
    testing::{Scenario, Sim},
};

/// Creates a Pod and then records that in an annotation: a crash in between creates two Pods.
#[controller(owns = Pod(create), primary(patch))]
async fn once(config: Arc<ConfigMap>, cx: Context<once>) -> Result<Action> {
    if !config.annotations().contains_key("made") {
        let metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
        let containers = vec![Container { name: "main".into(), image: Some("main".into()), ..Container::default() }];
        let spec = PodSpec { containers, ..PodSpec::default() };
        tracing::info!(config = config.name_any(), "creates a Pod");
        cx.owned::<Pod>().create(Pod { metadata, spec: Some(spec), ..Pod::default() }).await?;
        cx.patch(kctl::json!({ "metadata": { "annotations": { "made": "yes" } } })).await?;
    }
    Ok(Action::await_change())
}

fn scenario() -> Scenario {
    Scenario::new(|| App::new("once").controller::<once>())
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
        .without_kubelet()
}

#[test]
fn crash_between_two_writes_is_found_and_replayable() {
    let report = Sim::single_faults().replayed_by("again {seed}").run(&scenario()).unwrap();
    let failure = report.failure().unwrap();
    assert_eq!(failure.checker(), "the same final state");
    assert_eq!(failure.faults(), ["crash after write 1 (create pods in default) took effect"]);
    let text = failure.to_string();
    let finding = "default/pod-* is there only with these faults";
    assert!(text.contains(finding) && text.contains("app-0.1  has crashed"), "{text}");
    assert!(failure.message().ends_with("; one of the two final states is wrong"), "{text}");
    assert!(text.contains(", by configmap default/a"), "{text}");
    assert!(text.contains(r#"app-0.2  info: creates a Pod config="a""#), "the app's own log: {text}");
    assert!(text.ends_with(&format!("replay: again {}", failure.seed())), "{text}");
}

#[test]
fn simulated_seed_has_one_report() {
    let report = |seed| Sim::seeded(seed).run(&scenario()).unwrap();
    let (seed, first) =
        (0..200).map(|seed| (seed, report(seed))).find(|(_, report)| report.failure().is_some()).unwrap();
    let second = report(seed);
    assert_eq!(first.failure().unwrap().to_string(), second.failure().unwrap().to_string());
    assert_eq!(first.injected(), second.injected());
}

#[test]
fn unreadable_objects_are_an_error_and_no_finding() {
    let error = Sim::seeded(0).run(&scenario().objects("kind: [")).unwrap_err().to_string();
    assert!(error.starts_with("the objects of the scenario: "), "{error}");
}

/// Stores the trace id of its first reconcile.
#[controller(primary(patch))]
async fn stores_trace(config: Arc<ConfigMap>, cx: Context<stores_trace>) -> Result<Action> {
    if !config.labels().contains_key("trace") {
        let trace = kctl_runtime::trace::Trace::current().map(|trace| trace.to_string());
        cx.patch(kctl::json!({ "metadata": { "labels": { "trace": trace } } })).await?;
    }
    Ok(Action::await_change())
}

#[test]
fn trace_ids_repeat_in_each_run() {
    let scenario = Scenario::new(|| App::new("stores").controller::<stores_trace>())
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    let report = Sim::seeds(0..0).run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
}

/// Holds a reference that must be dropped with its process, which crashes when it writes.
#[controller(of = ConfigMap, primary(patch))]
struct Holds(Arc<()>);

impl Reconcile for Holds {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let () = *self.0;
        cx.patch(kctl::json!({ "metadata": { "labels": { "held": "yes" } } })).await?;
        Ok(Action::await_change())
    }
}

#[test]
fn nothing_of_a_run_is_left_after_it() {
    let held = Arc::new(());
    let each = held.clone();
    let app = move || {
        let each = each.clone();
        App::new("holds").controller_with(move |_env| std::future::ready(Ok(Holds(each.clone()))))
    };
    let scenario = Scenario::new(app).objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    // Single faults include crashes whose next process starts on an API server that serves an older state. The rule of
    // that fault used to keep the whole run alive.
    let report = Sim::single_faults().run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    assert!(report.injected_by_kind().contains_key("outdated list"), "{:?}", report.injected_by_kind());
    drop((scenario, report));
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Copies the color of its object into a Secret, and swallows errors.
#[controller(owns = Secret(apply))]
async fn colors(config: Arc<ConfigMap>, cx: Context<colors>) -> Result<Action> {
    let color = config.data.as_ref().and_then(|data| data.get("color"));
    let secret = kctl::json!({ "metadata": { "name": config.name_any() }, "stringData": { "color": color } });
    let _swallowed = cx.owned::<Secret>().apply(secret).await;
    Ok(Action::await_change())
}

/// Each step makes the app write the Secret again.
#[test]
fn state_that_a_step_repairs_is_found() {
    let scenario = Scenario::new(|| App::new("colors").controller::<colors>())
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red}}")
        .step("set blue", |client| async move {
            let blue = Patch::Merge(kctl::json!({ "data": { "color": "blue" } }));
            Api::<ConfigMap>::default_namespaced(client).patch("a", &PatchParams::default(), &blue).await?;
            Ok(())
        });
    let report = Sim::single_faults().run(&scenario).unwrap();
    let failure = report.failure().expect("the Secret is missing before the step");
    assert_eq!(failure.checker(), "the same final state", "{failure}");
    let message = r#"before step "set blue": secrets default/a is there only without these faults"#;
    assert!(failure.message().starts_with(message), "{failure}");
}

/// Copies the tier of its object. The change of a label has no new generation, so the predicate hides it.
#[controller(primary(patch, when = generation_changed))]
async fn tiers(deployment: Arc<Deployment>, cx: Context<tiers>) -> Result<Action> {
    let tier = deployment.labels().get("tier");
    if deployment.annotations().get("tier") != tier {
        cx.patch(kctl::json!({ "metadata": { "annotations": { "tier": tier } } })).await?;
    }
    Ok(Action::await_change())
}

/// The faults of other places are many, and only few runs are made.
#[test]
fn change_that_only_a_restart_sees_is_found() {
    let object = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: a, labels: { tier: low } }
spec:
  selector: { matchLabels: { app: a } }
  template: { metadata: { labels: { app: a } }, spec: { containers: [{ name: main, image: main }] } }
";
    let scenario = Scenario::new(|| App::new("tiers").controller::<tiers>()).objects(object).without_kubelet().step(
        "set the tier",
        |client| async move {
            let high = Patch::Merge(kctl::json!({ "metadata": { "labels": { "tier": "high" } } }));
            Api::<Deployment>::default_namespaced(client).patch("a", &PatchParams::default(), &high).await?;
            Ok(())
        },
    );
    let report = Sim::seeds(0..1).run(&scenario).unwrap();
    let failure = report.failure().expect("the run with a restart sees the label");
    assert_eq!((failure.checker(), failure.seed()), ("the same final state", "single-0"), "{failure}");
    assert!(failure.to_string().contains("the run without faults is the wrong one"), "{failure}");
}
