//! A stopped manager leaves no tasks behind.

use kctl::{apiserver::ApiServer, kube::Client, manager::lease::ElectionConfig, prelude::*};
use tokio::{runtime::Handle, sync::oneshot};

use crate::lease_candidates::advance_seconds;

#[controller(owns = Secret)]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn no_task_is_left_after_the_stop() {
    let server = ApiServer::new();
    // The client has a task that lives as long as the client.
    let client = Client::new(server.service(), "default");
    advance_seconds(1).await;
    let before = Handle::current().metrics().num_alive_tasks();
    let manager = App::new("configs").controller::<configs>().manager(client.clone()).await.unwrap();
    let manager = manager.elect(ElectionConfig::new("configs", "default", "a")).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async { drop(stopped.await) }));
    advance_seconds(10).await;
    assert!(Handle::current().metrics().num_alive_tasks() > before + 3, "it runs");
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    advance_seconds(1).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
}
