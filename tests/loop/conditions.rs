//! Conditions in a status are written when they change, and only then.

use kctl::{
    k8s::{
        api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus},
        apimachinery::pkg::util::intstr::IntOrString,
    },
    kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    },
    manager::Manager,
    prelude::*,
    reconcile::bounds::FunctionController,
};

use crate::world::{World, advance_seconds, metadata_named};

/// Sets a condition that says whether a budget allows disruptions.
#[controller(primary(status))]
async fn says(budget: Arc<PodDisruptionBudget>, cx: Context<says>) -> Result<Action> {
    let allowed = budget.spec.as_ref().and_then(|spec| spec.max_unavailable.clone());
    let conditions = match &allowed {
        Some(IntOrString::Int(n)) => cx.conditions().with("Lets", *n > 0, "Counted", ""),
        _ => cx.conditions().unknown("Lets", "NoNumber", ""),
    };
    let conditions = Some(conditions.with("Seen", true, "Seen", "").into_vec()?);
    cx.patch_status(PodDisruptionBudgetStatus { conditions, ..PodDisruptionBudgetStatus::default() }).await?;
    Ok(Action::await_change())
}

/// Sets a condition after a delay in which other clients can write.
#[controller(primary(status))]
async fn takes_long(_budget: Arc<PodDisruptionBudget>, cx: Context<takes_long>) -> Result<Action> {
    let conditions = cx.conditions().with("Seen", true, "Seen", "");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let conditions = Some(conditions.into_vec()?);
    cx.patch_status(PodDisruptionBudgetStatus { conditions, ..PodDisruptionBudgetStatus::default() }).await?;
    Ok(Action::await_change())
}

/// Patches the generation after a delay in which other clients can write, and then a condition.
#[controller(primary(status))]
async fn patches_twice(_budget: Arc<PodDisruptionBudget>, cx: Context<patches_twice>) -> Result<Action> {
    let conditions = cx.conditions();
    tokio::time::sleep(Duration::from_secs(5)).await;
    for conditions in [conditions.clone(), conditions.with("Seen", true, "Seen", "")] {
        let conditions = Some(conditions.into_vec()?).filter(|conditions| !conditions.is_empty());
        let status = PodDisruptionBudgetStatus { conditions, observed_generation: Some(1), ..Default::default() };
        cx.patch_status(status).await?;
    }
    Ok(Action::await_change())
}

/// Applies the conditions of another client by server-side apply without force.
async fn apply(world: &World, conditions: &[(&str, bool)]) {
    let condition = |(kind, holds): &(&str, bool)| {
        kctl::json!({
            "type": kind, "status": if *holds { "True" } else { "False" }, "reason": "Theirs", "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z", "observedGeneration": 1,
        })
    };
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    let budgets = Api::<PodDisruptionBudget>::default_namespaced(world.client.clone());
    let patch = kctl::json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "a" },
        "status": { "conditions": conditions },
    });
    budgets.patch_status("a", &PatchParams::apply("theirs"), &Patch::Apply(&patch)).await.unwrap();
}

/// Returns the types of all conditions with their status.
async fn kinds(world: &World) -> Vec<String> {
    let budget = Api::<PodDisruptionBudget>::default_namespaced(world.client.clone()).get("a").await.unwrap();
    let conditions = budget.status.and_then(|status| status.conditions).unwrap_or_default();
    let mut kinds: Vec<_> =
        conditions.iter().map(|condition| format!("{} {}", condition.type_, condition.status)).collect();
    kinds.sort();
    kinds
}

/// Creates a world with a `PodDisruptionBudget`, and runs this controller.
async fn world<C: FunctionController>() -> World {
    let world = World::new();
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(1)),
        selector: Some(LabelSelector::default()),
        ..PodDisruptionBudgetSpec::default()
    };
    let budget = PodDisruptionBudget { metadata: metadata_named("a"), spec: Some(spec), status: None };
    let budgets = Api::<PodDisruptionBudget>::default_namespaced(world.client.clone());
    budgets.create(&PostParams::default(), &budget).await.unwrap();
    let server = world.server.clone();
    let manager = Manager::new(world.faults.client(&world.server), "loop", Arc::new(|_report| {}));
    let mut manager = manager.clock(Arc::new(move || server.now()));
    manager.add(C::instance());
    tokio::spawn(manager.run(std::future::pending()));
    world
}

#[tokio::test(start_paused = true)]
async fn conditions_of_two_writers_merge_by_type() {
    let world = world::<says>().await;
    let budgets = Api::<PodDisruptionBudget>::default_namespaced(world.client.clone());
    // The other client's conditions, the value of `maxUnavailable`, and the resulting conditions.
    for (theirs, unavailable, wanted) in [
        (&[("Theirs", true)][..], 1, &["Lets True", "Seen True", "Theirs True"][..]),
        (&[("Theirs", false)], 0, &["Lets False", "Seen True", "Theirs False"]),
        (&[("Theirs", false), ("Alike", true)], 1, &["Alike True", "Lets True", "Seen True", "Theirs False"]),
        (&[("Alike", false)], 1, &["Alike False", "Lets True", "Seen True"]),
        (&[], 0, &["Lets False", "Seen True"]),
    ] {
        apply(&world, theirs).await;
        advance_seconds(5).await;
        let change = kctl::json!({ "spec": { "maxUnavailable": unavailable } });
        budgets.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        advance_seconds(5).await;
        assert_eq!(kinds(&world).await, wanted);
    }
}

/// Checks that a controller keeps a condition that another client sets while it reconciles.
async fn keeps_condition_of_others<C: FunctionController>() {
    let world = world::<C>().await;
    advance_seconds(2).await;
    apply(&world, &[("Theirs", true)]).await;
    advance_seconds(60).await;
    assert_eq!(kinds(&world).await, ["Seen True", "Theirs True"]);
}

#[tokio::test(start_paused = true)]
async fn condition_set_by_others_during_a_reconcile_survives() {
    keeps_condition_of_others::<takes_long>().await;
    keeps_condition_of_others::<patches_twice>().await;
}

/// Returns each stored condition: type, status, generation, and the second of its last transition.
async fn stored_conditions(world: &World, from: kctl::k8s::jiff::Timestamp) -> Vec<(String, String, i64, i64)> {
    let budget = Api::<PodDisruptionBudget>::default_namespaced(world.client.clone()).get("a").await.unwrap();
    let conditions = budget.status.unwrap().conditions.unwrap();
    let one = |condition: Condition| {
        let since = condition.last_transition_time.0.as_second() - from.as_second();
        (condition.type_, condition.status, condition.observed_generation.unwrap(), since)
    };
    conditions.into_iter().map(one).collect()
}

#[tokio::test(start_paused = true)]
async fn last_transition_time_changes_only_with_condition_status() {
    let world = world::<says>().await;
    let start = world.server.now();
    let budgets = Api::<PodDisruptionBudget>::default_namespaced(world.client.clone());

    // A patch, the total number of status writes after it, and the conditions with seconds since the start. The API
    // server restores numbers in the status that a patch leaves out, so each change causes a second write.
    let steps = [
        (kctl::json!({}), 2, [("Lets", "True", 1, 0), ("Seen", "True", 1, 0)]),
        (kctl::json!({ "metadata": { "labels": { "a": "b" } } }), 2, [("Lets", "True", 1, 0), ("Seen", "True", 1, 0)]),
        (kctl::json!({ "spec": { "maxUnavailable": 2 } }), 4, [("Lets", "True", 2, 0), ("Seen", "True", 2, 0)]),
        (kctl::json!({ "spec": { "maxUnavailable": 0 } }), 6, [("Lets", "False", 3, 30), ("Seen", "True", 3, 0)]),
        (kctl::json!({ "spec": { "maxUnavailable": "10%" } }), 8, [("Lets", "Unknown", 4, 40), ("Seen", "True", 4, 0)]),
        (
            kctl::json!({ "spec": { "maxUnavailable": "20%" } }),
            10,
            [("Lets", "Unknown", 5, 40), ("Seen", "True", 5, 0)],
        ),
    ];
    for (change, n_writes, expected) in steps {
        if change != kctl::json!({}) {
            budgets.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        }
        advance_seconds(10).await;
        assert_eq!(world.n_requests("patch", "poddisruptionbudgets/status"), n_writes, "{change}");
        let expected =
            expected.map(|(kind, status, generation, since)| (kind.into(), status.into(), generation, since));
        assert_eq!(stored_conditions(&world, start).await, expected, "{change}");
    }
}
