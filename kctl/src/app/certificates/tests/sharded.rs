//! Certificates of a sharded program: the owner of slot 0 renews them.

use kctl_runtime::{manager::shards::ShardConfig, shard::ShardBy};
use tokio::{task::JoinHandle, time::sleep};

use super::*;

/// A replica of a sharded program, with its certificates.
struct Shard {
    maintainer: CertificateMaintainer,
    shards: ShardView,
    running: JoinHandle<()>,
}

async fn shard(server: &ApiServer, identity: &str) -> Shard {
    let client = Client::new(server.service(), "default");
    let slots = ShardConfig::new(ElectionConfig::new("web", "default", identity), 2, ShardBy::Object).unwrap();
    let manager = App::new("web").manager(client.clone()).await.unwrap().shard(client, slots).unwrap();
    let (view, (mut maintainer, _reached)) = (manager.view(), start_replica(server, ElectionRole::Leader).await);
    maintainer.leader = Leader::of(&view);
    let running = tokio::spawn(async move { drop(manager.run(std::future::pending()).await) });
    Shard { maintainer, shards: view.shards().unwrap().clone(), running }
}

fn leads(shard: &Shard) -> bool {
    matches!(shard.maintainer.leader.authority(), Authority::Leader(_))
}

fn version(server: &ApiServer) -> String {
    let secret = server.object("", "secrets", "default", "web-webhook-tls").unwrap();
    secret["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn only_current_owner_of_slot_0_renews_certificates() {
    let server = ApiServer::new();
    let reached = ClientConfig::Url("https://127.0.0.1:1".into());
    let configuration = Configurations { name: "web", client: &reached, authority: None };
    let configuration = configuration.objects(&app().webhook_functions.admission).remove(0);
    install(&server, roles(&configuration).into_iter().chain([configuration])).await;
    let mut shards = vec![shard(&server, "a").await, shard(&server, "b").await, shard(&server, "c").await];
    sleep(Duration::from_secs(5)).await;
    let now = Timestamp::now();
    for shard in &shards {
        shard.maintainer.pass(now).await.unwrap();
    }
    shards.sort_by_key(|shard| shard.shards.leader_permit().is_none());
    assert_eq!(shards.iter().filter(|shard| leads(shard)).count(), 1);
    let owner = shards.remove(0);
    for other in &shards {
        let before = version(&server);
        other.maintainer.pass(now + DAY * 61).await.unwrap();
        assert_eq!(version(&server), before, "only the owner of slot 0 renews");
    }
    let before = version(&server);
    owner.maintainer.pass(now + DAY * 61).await.unwrap();
    assert_ne!(version(&server), before);

    owner.running.abort();
    sleep(Duration::from_secs(10)).await;
    assert!(!shards.iter().any(leads), "the Lease of slot 0 lasts for 15 s");
    sleep(Duration::from_secs(7)).await;
    shards.sort_by_key(|shard| shard.shards.leader_permit().is_none());
    let [next, other] = &shards[..] else { panic!("two are left") };
    assert!(leads(next) && !leads(other));
    let before = version(&server);
    other.maintainer.pass(now + DAY * 122).await.unwrap();
    assert_eq!(version(&server), before);
    next.maintainer.pass(now + DAY * 122).await.unwrap();
    assert_ne!(version(&server), before);
    // The crashed replica doesn't know that it lost the slot, as after SIGSTOP. Its write permit has ended.
    let before = version(&server);
    let late = owner.maintainer.pass(now + DAY * 183).await;
    assert!(late.is_err(), "it wrote after its Lease");
    assert_eq!(version(&server), before);
}
