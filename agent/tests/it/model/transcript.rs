//! Transcripts: recorded from a model, replayed without it, refused when a request does not match.

use agent::model::Models;
use agent::model::settings::Settings;
use files::Roots;
use journal::step::Ending;
use serde_json::json;

use super::server::{Server, Wire};
use super::world::{World, detail, good_replies, models_with};

#[tokio::test]
async fn a_recorded_session_replays_and_a_miss_fails() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("transcript.jsonl");
        let says = good.clone();
        let server = Server::start(move |heard, _| says[heard.turn()].clone()).await;
        let settings = Settings { record: Some(file.clone()), ..Settings::default() };
        let recording = World::new(models_with(&server.url, settings));
        let recorded = recording.work(&detail(wire.model(), &json!({})), 0).await;
        let name = format!("transcript:{}", file.display());
        let models = || Models::default().with_roots(Roots::new([folder.path().to_owned()]));
        let replaying = World::new(models());
        let replayed = replaying.work(&detail(&name, &json!({})), 0).await;
        let by = |went: &super::world::Went| {
            let (ending, _, mut result) = went.end();
            result["diagnosed_by"] = json!(null);
            (ending, result)
        };
        assert_eq!(by(&replayed), by(&recorded));
        assert_eq!(replayed.end().2["diagnosed_by"], json!(name));

        let mut other = detail(&name, &json!({}));
        other["input"] = json!({"lambda_name": "data-processor", "error_type": "Throttled"});
        let missed = World::new(models()).work(&other, 0).await;
        let (ending, category, _) = missed.end();
        assert_eq!((ending, category.as_deref()), (Ending::Failed, Some("transcript_miss")));
        let said = &missed.failures()[0].message;
        assert!(said.contains("differs in message 1 of "), "{said}");
    }
}

#[tokio::test]
async fn a_trigger_reads_no_transcript_outside_of_the_roots() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "hunter2").unwrap();
    std::os::unix::fs::symlink(&secret, root.path().join("link")).unwrap();
    let models = Models::default().with_roots(Roots::new([root.path().to_owned()]));
    for path in
        [secret, outside.path().join("absent"), root.path().join("link"), "/dev/ptmx".into()]
    {
        let name = format!("transcript:{}", path.display());
        let went = World::new(models.clone()).work(&detail(&name, &json!({})), 0).await;
        let (ending, category, _) = went.end();
        assert_eq!((ending, category.as_deref()), (Ending::Failed, Some("model_unavailable")));
        let said = &went.failures()[0].message;
        assert!(said.contains("outside of the folders that a trigger may name"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}
