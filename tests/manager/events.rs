//! Events in the API server: series, lost responses, and errors of failing keys.

use kctl::{
    k8s::{
        api::{core::v1::ObjectReference, events::v1::Event},
        jiff::Timestamp,
    },
    kube::{
        Api,
        api::{DeleteParams, ListParams, PostParams},
    },
    manager::Manager,
    prelude::*,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;

use crate::lease_candidates::{Contest, advance_seconds, conflict};

/// Fails, conflicts, fails terminally or records Events, depending on the object's name.
#[controller]
async fn does(config: Arc<ConfigMap>, cx: Context<does>) -> Result<Action> {
    match config.metadata.name.as_deref().unwrap_or_default() {
        "fails" => Err("the disk is full".into()),
        "conflicts" => Err(conflict()),
        "gives-up" => Err(kctl::Error::from("it is misspelt")).terminal(),
        "relates" => {
            let owner = Pod {
                metadata: kctl::kube::api::ObjectMeta {
                    name: Some("web-0".into()),
                    namespace: Some("default".into()),
                    uid: Some("7".into()),
                    ..Default::default()
                },
                ..Default::default()
            };
            cx.events().related(&owner).action("Replace").record(EventType::Normal, "PodReplaced", "it was old");
            let field_path = Some("spec.containers{web}".into());
            cx.events()
                .related_to(ObjectReference { name: Some("web-1".into()), field_path, ..ObjectReference::default() })
                .record(EventType::Normal, "PodReplaced", "it was old");
            Ok(Action::await_change())
        }
        "tells" => {
            cx.event(EventType::Normal, "Looked", "it was looked at");
            Ok(Action::requeue(std::time::Duration::from_secs(60)))
        }
        _ => Ok(Action::await_change()),
    }
}

struct EventWorld {
    contest: Contest,
    faults: Faults,
}

/// Starts a manager with one object.
async fn world(name: &str, set_up: impl FnOnce(Manager) -> Manager) -> EventWorld {
    let (contest, faults) = (Contest::new(), Faults::default());
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    let manager = set_up(App::new("does").controller::<does>().manager(faults.client(&contest.server)).await.unwrap());
    tokio::spawn(manager.run(std::future::pending()));
    EventWorld { contest, faults }
}

impl EventWorld {
    /// Returns `type reason: note ×count` of each Event.
    async fn events(&self) -> Vec<String> {
        let all =
            Api::<Event>::default_namespaced(self.contest.client.clone()).list(&ListParams::default()).await.unwrap();
        let line = |event: Event| {
            let count = event.series.map_or(String::new(), |series| format!(" ×{}", series.count));
            format!("{} {}: {}{count}", event.type_.unwrap(), event.reason.unwrap(), event.note.unwrap())
        };
        all.items.into_iter().map(line).collect()
    }

    fn n_requests(&self, verb: &str) -> usize {
        self.contest
            .server
            .requests()
            .iter()
            .filter(|request| request.verb == verb && request.resource == "events")
            .count()
    }
}

#[tokio::test(start_paused = true)]
async fn ten_failures_in_a_row_record_one_event() {
    let world = world("fails", |manager| manager).await;
    advance_seconds(2).await;
    assert_eq!(world.events().await, [""; 0], "nine failures take 2.5 s");
    advance_seconds(4_000).await;
    assert_eq!(world.events().await, ["Warning ReconcileFailed: failed 10 times in a row: the disk is full"]);
    assert_eq!((world.n_requests("create"), world.n_requests("patch")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn event_names_the_related_object_and_the_action() {
    let world = world("relates", |manager| manager).await;
    advance_seconds(1).await;
    let events = Api::<Event>::default_namespaced(world.contest.client.clone()).list(&ListParams::default()).await;
    let seen: Vec<_> =
        events.unwrap().items.into_iter().map(|event| (event.action.unwrap(), event.related.unwrap())).collect();
    let pod = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        name: Some("web-0".into()),
        namespace: Some("default".into()),
        uid: Some("7".into()),
        ..ObjectReference::default()
    };
    let part = ObjectReference {
        name: Some("web-1".into()),
        field_path: Some("spec.containers{web}".into()),
        ..ObjectReference::default()
    };
    assert_eq!(seen, [("Replace".to_owned(), pod), ("Reconcile".to_owned(), part)]);
}

#[tokio::test(start_paused = true)]
async fn terminal_error_records_an_event_at_once() {
    let world = world("gives-up", |manager| manager).await;
    advance_seconds(1).await;
    assert_eq!(
        world.events().await,
        ["Warning ReconcileFailed: given up until the next event or resync: it is misspelt"]
    );
}

#[tokio::test(start_paused = true)]
async fn events_follow_the_configured_number_of_failures() {
    for (failures, wanted) in [(1, "1 times"), (12, "12 times"), (0, "")] {
        let world = world("fails", |manager| manager.warn_after_failures(failures)).await;
        advance_seconds(100).await;
        let events = world.events().await;
        let n_wanted = events.iter().filter(|event| event.contains(wanted)).count();
        assert_eq!((events.len(), n_wanted), if failures > 0 { (1, 1) } else { (0, 0) }, "{failures:?}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unusually_many_conflicts_record_one_event() {
    let wanted = format!("Warning ReconcileFailed: met a conflict 6 times in a row: {}", conflict());
    for (failures, n_events) in [(1, 1), (10, 1), (50, 1), (0, 0)] {
        let world = world("conflicts", |manager| manager.warn_after_failures(failures)).await;
        advance_seconds(4_000).await;
        assert_eq!(world.events().await, vec![wanted.clone(); n_events], "{failures}");
    }
}

#[tokio::test(start_paused = true)]
async fn manager_settings_apply_to_controllers_of_an_app() {
    let past: Timestamp = "2001-02-03T04:05:06Z".parse().unwrap();
    let mut all_traces = Vec::new();
    for _run in 0..2 {
        let (begun, traces) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (begins, ends) = (begun.clone(), traces.clone());
        let set_up = |manager: Manager| {
            let manager = manager.clock(Arc::new(move || past)).trace_seed(7);
            manager
                .on_begin(Arc::new(move |controller, key, _trace| begins.lock().push(format!("{controller} {key}"))))
                .on_end(Arc::new(move |report| ends.lock().push(report.trace)))
        };
        let world = world("tells", set_up).await;
        advance_seconds(30).await;
        let events = Api::<Event>::default_namespaced(world.contest.client.clone()).list(&ListParams::default()).await;
        let times: Vec<_> = events.unwrap().items.into_iter().map(|event| event.event_time.unwrap().0).collect();
        assert_eq!(times, [past]);
        assert_eq!(*begun.lock(), ["configmap default/tells"]);
        all_traces.push(traces.lock().clone());
    }
    assert_eq!((all_traces[0].len(), &all_traces[0]), (1, &all_traces[1]));
}

#[tokio::test(start_paused = true)]
async fn repeated_event_is_one_object_with_a_count() {
    let world = world("tells", |manager| manager).await;
    advance_seconds(1).await;
    assert_eq!(world.events().await, ["Normal Looked: it was looked at"]);
    advance_seconds(60).await;
    assert_eq!(world.events().await, ["Normal Looked: it was looked at ×2"]);
    advance_seconds(1_800).await;
    assert_eq!(world.events().await, ["Normal Looked: it was looked at ×32"], "every half hour");
    assert_eq!((world.n_requests("create"), world.n_requests("patch")), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn event_whose_answer_is_lost_is_there_once() {
    let world = world("nothing", |manager| manager).await;
    world.faults.add(Fault::LoseResponse, |request: &RequestSummary| request.path.ends_with("/events"));
    let mut object = ConfigMap::default();
    object.metadata.name = Some("tells".into());
    Api::default_namespaced(world.contest.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    advance_seconds(1).await;
    world.faults.clear();
    advance_seconds(30).await;
    assert_eq!(world.events().await, ["Normal Looked: it was looked at"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_event_of_a_series_is_recorded_again() {
    let world = world("tells", |manager| manager).await;
    advance_seconds(1).await;
    let api = Api::<Event>::default_namespaced(world.contest.client.clone());
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    advance_seconds(60).await;
    assert_eq!(world.events().await, ["Normal Looked: it was looked at ×2"]);
}
