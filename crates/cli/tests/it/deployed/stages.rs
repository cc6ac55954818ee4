//! The commands of DEPLOYMENT.md for a whole stage, with the real CDK in a ministack account and by the policy of that
//! page: a first deployment that fails, its repetition, an update, a removal, and a deployment afterwards.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::access::{Keys, policy_of_a_deployer};
use super::account::{ACCOUNT, Account, REGION};
use crate::harness::{Ran, tool};

/// A container engine that builds nothing. Its push brings an image if the registry is open.
const ENGINE: &str = r#"#!/usr/bin/env bash
here=$(dirname "$0")
case $1 in
    build) ;;
    login) cat >/dev/null ;;
    push)
        [ -e "$here/open" ] || exit 0
        name=${2#*/}
        "$AWS" ecr put-image --repository-name "${name%:*}" --image-tag "${name#*:}" \
            --image-manifest "{\"schemaVersion\": 2, \"tag\": \"${name#*:}\"}" >/dev/null ;;
    *) exit 1 ;;
esac
"#;

struct Stage {
    account: Account,
    deployer: Keys,
    folder: TempDir,
}

impl Stage {
    /// An account that was bootstrapped, and a person with the policy for deploying.
    async fn open() -> Option<Self> {
        let cdk = tool("DAYBOOK_TEST_CDK_CLI")?;
        let account = Account::empty().await?;
        let folder = tempfile::tempdir().unwrap();
        let engine = folder.path().join("docker");
        std::fs::write(&engine, ENGINE).unwrap();
        std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["invoker", "poller", "watchdog"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("bootstrap"), name).unwrap();
        }
        let environment = format!("aws://{ACCOUNT}/{REGION}");
        let bootstrap = [cdk.to_str().unwrap(), "bootstrap", &environment];
        let made = account.script(&["-c", &bootstrap.join(" ")]).await;
        assert_eq!(made.exit, 0, "{made:#?}");
        let deployer = account.user("deployer", &policy_of_a_deployer()).await;
        Some(Self { account, deployer, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn run(&self, command: &str, settings: &[&str]) -> Ran {
        let target = self.path("target");
        let mut arguments = vec!["scripts/deploy.sh", command, target.to_str().unwrap(), "dev"];
        arguments.extend(settings);
        self.account.script_as(&self.deployer, self.folder.path(), &arguments).await
    }

    async fn deploy(&self, settings: &[&str]) -> Ran {
        let functions = format!("functions={}", self.folder.path().display());
        self.run("deploy", &[&[functions.as_str()], settings].concat()).await
    }

    async fn tables(&self) -> Value {
        let listed = self.account.ask("dynamodb", "DynamoDB_20120810.ListTables", &json!({})).await;
        listed["TableNames"].clone()
    }

    async fn machines(&self) -> usize {
        let (target, all) = ("AWSStepFunctions.ListStateMachines", json!({}));
        let listed = self.account.ask("states", target, &all).await;
        listed["stateMachines"].as_array().unwrap().len()
    }

    /// The ids of the keys that the alias of the log names.
    async fn keys(&self) -> Vec<String> {
        let listed = self.account.ask("kms", "TrentService.ListAliases", &json!({})).await;
        let ours = listed["Aliases"].as_array().unwrap().iter();
        let ours = ours.filter(|alias| alias["AliasName"] == "alias/daybook-dev-log");
        ours.map(|alias| alias["TargetKeyId"].as_str().unwrap().to_owned()).collect()
    }

    /// Puts a record into the journal.
    async fn record(&self) {
        let item = json!({ "PK": { "S": "SESSION#1" }, "SK": { "S": "LEASE" } });
        let put = json!({ "TableName": "daybook-dev-journal", "Item": item });
        self.account.ask("dynamodb", "DynamoDB_20120810.PutItem", &put).await;
    }

    async fn records(&self) -> u64 {
        let scan = json!({ "TableName": "daybook-dev-journal" });
        let found = self.account.ask("dynamodb", "DynamoDB_20120810.Scan", &scan).await;
        found["Count"].as_u64().unwrap()
    }
}

#[ignore = "it deploys and removes a stage with the CDK again and again; run it with nextest's --run-ignored only"]
#[tokio::test(flavor = "multi_thread")]
async fn a_stage_is_deployed_again_after_a_failure_and_a_removal() {
    let Some(stage) = Stage::open().await else { return };
    // The image does not arrive: the runtime cannot be created, and the stack is rolled back.
    let failed = stage.deploy(&[]).await;
    assert_ne!(failed.exit, 0, "{failed:#?}");
    let said = format!("{}{}", failed.stdout, failed.stderr);
    assert!(said.contains("does not exist in the repository"), "{failed:#?}");
    assert_eq!(stage.tables().await, json!(["daybook-dev-journal"]));
    assert_eq!(stage.machines().await, 0);
    let key = stage.keys().await;
    assert_eq!(key.len(), 1);

    std::fs::write(stage.path("open"), "").unwrap();
    let repeated = stage.deploy(&[]).await;
    assert_eq!(repeated.exit, 0, "{repeated:#?}");
    assert_eq!(stage.machines().await, 2);
    stage.record().await;

    let updated = stage.deploy(&["incidentsPerHour=5"]).await;
    assert_eq!(updated.exit, 0, "{updated:#?}");

    // What is removed can be deployed again, over the same journal, key and images.
    std::fs::remove_file(stage.path("open")).unwrap();
    let removed = stage.run("destroy", &[]).await;
    assert_eq!(removed.exit, 0, "{removed:#?}");
    assert_eq!((stage.machines().await, stage.records().await), (0, 1));
    let again = stage.deploy(&[]).await;
    assert_eq!(again.exit, 0, "{again:#?}");
    assert_eq!((stage.machines().await, stage.records().await), (2, 1));
    assert_eq!(stage.keys().await, key);

    let dropped = stage.run("destroy", &["drop"]).await;
    assert_eq!(dropped.exit, 0, "{dropped:#?}");
    assert_eq!(stage.tables().await, json!([]));
    let anew = stage.deploy(&[]).await;
    assert_eq!(anew.exit, 0, "{anew:#?}");
    assert_eq!(stage.records().await, 0);
    let refused: Vec<_> = stage.account.asked().into_iter().filter(|it| !it.allowed).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}
