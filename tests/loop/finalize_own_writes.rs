//! Cleanups that write the object that they clean up.

use std::sync::atomic::{AtomicI32, Ordering};

use kctl::{k8s::api::apps::v1::DeploymentStatus, kube::api::DeleteParams, prelude::*};

use crate::world::{World, advance_seconds, app};

/// Counts its cleanups in the status, so that each of them makes a new version of the object.
#[controller(of = Deployment, finalizer = "loop.example.com/counted", primary(status))]
struct Counting {
    n_cleaned: Arc<AtomicI32>,
    /// The times before and after the write of a cleanup.
    takes: [Duration; 2],
}

impl Reconcile for Counting {
    async fn reconcile(&self, _: Arc<Deployment>, _: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Counting {
    async fn finalize(&self, _: Arc<Deployment>, cx: Context<Self>) -> Result<()> {
        let replicas = Some(self.n_cleaned.fetch_add(1, Ordering::Relaxed) + 1);
        tokio::time::sleep(self.takes[0]).await;
        cx.patch_status(DeploymentStatus { replicas, ..DeploymentStatus::default() }).await?;
        tokio::time::sleep(self.takes[1]).await;
        Ok(())
    }
}

/// Starts the controller, and deletes a Deployment. Returns the number of cleanups.
async fn delete(world: &mut World, takes: [Duration; 2]) -> Arc<AtomicI32> {
    let n_cleaned = Arc::<AtomicI32>::default();
    let counted = n_cleaned.clone();
    let counting = move |_env| std::future::ready(Ok(Counting { n_cleaned: counted.clone(), takes }));
    world.run(app().controller_with(counting)).await;
    world.create_deployment("web").await;
    advance_seconds(5).await;
    world.deployments().delete("web", &DeleteParams::default()).await.unwrap();
    n_cleaned
}

#[tokio::test(start_paused = true)]
async fn cleanup_that_writes_its_object_runs_once() {
    let mut world = World::new();
    let n_cleaned = delete(&mut world, [Duration::ZERO; 2]).await;
    advance_seconds(60).await;
    assert_eq!(n_cleaned.load(Ordering::Relaxed), 1);
    assert!(world.deployments().get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn foreign_change_during_a_cleanup_repeats_it() {
    for (before, after) in [(0, 10), (10, 0)] {
        let mut world = World::new();
        let n_cleaned = delete(&mut world, [before, after].map(Duration::from_secs)).await;
        advance_seconds(5).await;
        world.patch_deployment("web", kctl::json!({ "metadata": { "annotations": { "keep": "the data" } } })).await;
        advance_seconds(60).await;
        assert_eq!(n_cleaned.load(Ordering::Relaxed), 2, "the first one has not seen the annotation");
        assert!(world.deployments().get_opt("web").await.unwrap().is_none());
    }
}
