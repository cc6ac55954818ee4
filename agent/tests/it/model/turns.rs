//! Sessions wait for the turns of their calls.

use std::num::NonZeroU32;
use std::time::Duration;

use agent::model::settings::Settings;
use journal::id::SessionId;
use serde_json::json;

use super::server::{Say, Server, Wire};
use super::world::{DEADLINE, World, detail, models_with};

/// Long enough for the first chat of a session.
const FIRST_CHAT: Duration = Duration::from_secs(1);

async fn bounded() -> (Server, World, agent::model::Models) {
    let server = Server::start(|_, _| Say::Refused).await;
    let settings = Settings { calls_max: NonZeroU32::new(1), ..Settings::default() };
    let models = models_with(&server.url, settings);
    (server, World::new(models.clone()), models)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_its_providers_turn() {
    for wire in Wire::ALL.iter().copied() {
        let (server, world, models) = bounded().await;
        let held = models.turn(wire.model(), &SessionId::fresh()).await;
        let detail = detail(wire.model(), &json!({}));
        let mut working = Box::pin(world.work(&detail, 0));
        assert!(tokio::time::timeout(FIRST_CHAT, &mut working).await.is_err(), "{wire:?}");
        assert_eq!(server.heard().len(), 0, "{wire:?}");
        drop(held);
        let went = working.await;
        assert!(!server.heard().is_empty(), "{wire:?}");
        assert!(!went.attempts().is_empty(), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_a_turn() {
    let (server, world, models) = bounded().await;
    let held = models.turn(Wire::OpenAi.model(), &SessionId::fresh()).await;
    let detail = detail(Wire::OpenAi.model(), &json!({}));
    let working = async {
        let mut working = Box::pin(world.work(&detail, 0));
        assert!(tokio::time::timeout(FIRST_CHAT, &mut working).await.is_err());
        world.host.shutdown().await;
        working.await
    };
    let went = tokio::time::timeout(DEADLINE, working).await.unwrap();
    assert!(went.attempts().is_empty(), "its call was not made");
    assert_eq!(server.heard().len(), 0);
    drop(held);
}
