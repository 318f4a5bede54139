//! Tests a member that becomes unreachable and recovers.

use kctl::{
    json,
    kube::{Api, api::DeleteParams},
    prelude::*,
};
use multicluster::{MemberCluster, ResourceBinding, Work};

use crate::world::Fleet;

#[tokio::test(start_paused = true)]
async fn unreachable_member_keeps_its_share_and_catches_up() {
    let fleet = Fleet::with_web().await;
    fleet.links[0].disconnect();
    fleet.until("it is known to be away", async || !fleet.is_ready("member1").await).await;
    let health = async || fleet.health("deployment-web").await;
    fleet.until("the health of the member is unknown", async || health().await == ["Unknown", "Healthy"]).await;
    fleet.patch::<Deployment>("web", json!({ "spec": { "replicas": 20 } })).await;
    fleet.until("the other member is still updated", async || fleet.ready("web").await[1] == Some(16)).await;
    assert_eq!(fleet.replicas("web").await[0], Some(2));
    fleet.patch::<ConfigMap>("web-settings", json!({ "data": { "greeting": "later" } })).await;
    fleet.rest().await;
    fleet.links[0].mend();
    fleet.until("it catches up", async || fleet.ready("web").await == [Some(4), Some(16)]).await;
    fleet.until("it is healthy", async || health().await == ["Healthy", "Healthy"]).await;
    fleet.until("the template knows", async || fleet.reported_replicas("web").await == Some(20)).await;
    let greeting = fleet.on_member::<ConfigMap>(0).get("web-settings").await.unwrap().data.unwrap();
    assert_eq!(greeting["greeting"], "later");
}

#[tokio::test(start_paused = true)]
async fn new_objects_avoid_unreachable_members_until_they_return() {
    let fleet = Fleet::new().await;
    fleet.links[1].disconnect();
    fleet.apply(crate::world::FLEET).await;
    fleet.until("all of it is on one", async || fleet.ready("web").await == [Some(10), None]).await;
    fleet.links[1].mend();
    fleet.until("it is divided", async || fleet.ready("web").await == [Some(2), Some(8)]).await;
}

#[tokio::test(start_paused = true)]
async fn deletion_reaches_a_member_once_it_returns() {
    let fleet = Fleet::with_web().await;
    fleet.links[0].disconnect();
    fleet.until("it is known to be away", async || !fleet.is_ready("member1").await).await;
    fleet.delete::<Deployment>("web").await;
    fleet.until("it is gone where it can be", async || !fleet.have::<Deployment>("web").await[1]).await;
    fleet.rest().await;
    assert!(fleet.have::<Deployment>("web").await[0]);
    assert!(fleet.api::<Work>().get_opt("deployment-web-member1").await.unwrap().is_some(), "the work waits");
    fleet.links[0].mend();
    fleet.until("it is gone", async || !fleet.have::<Deployment>("web").await[0]).await;
    let work = async || fleet.api::<Work>().get_opt("deployment-web-member1").await.unwrap();
    fleet.until("the work is done", async || work().await.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn leaving_member_loses_its_objects_to_the_others() {
    let fleet = Fleet::with_web().await;
    leave(&fleet, "member1").await;
    fleet.until("the other one takes over", async || fleet.ready("web").await == [None, Some(10)]).await;
    fleet.until("it has left", async || !is_member(&fleet, "member1").await).await;
    let binding = fleet.api::<ResourceBinding>().get("deployment-web").await.unwrap();
    assert_eq!(binding.spec.clusters.len(), 1);
    assert!(!fleet.have::<Secret>("web-password").await[0]);
    assert!(fleet.api::<Work>().get_opt("deployment-web-member1").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn member_that_leaves_while_unreachable_keeps_its_objects() {
    let fleet = Fleet::with_web().await;
    fleet.links[0].disconnect();
    // The program has not noticed yet that the member is unreachable.
    leave(&fleet, "member1").await;
    fleet.until("it has left", async || !is_member(&fleet, "member1").await).await;
    fleet.until("the other one takes over", async || fleet.ready("web").await[1] == Some(10)).await;
    fleet.rest().await;
    assert_eq!(fleet.replicas("web").await[0], Some(2));
    assert!(fleet.api::<Work>().get_opt("deployment-web-member1").await.unwrap().is_none());
}

async fn leave(fleet: &Fleet, name: &str) {
    let clusters = Api::<MemberCluster>::all(fleet.home.clone());
    clusters.delete(name, &DeleteParams::default()).await.unwrap();
}

async fn is_member(fleet: &Fleet, name: &str) -> bool {
    Api::<MemberCluster>::all(fleet.home.clone()).get_opt(name).await.unwrap().is_some()
}
