//! The way in for incidents that somebody reports: a topic, its subscription, the queue behind it and
//! both their policies are the template's, and ministack runs them. Its pipes read no queue and put no
//! event, so that what the pipe does is done here, by the values that the template has for it.

use serde_json::{Value, json};

use super::account::{ACCOUNT, Account, REGION, kept};

/// The parts of the way in, as the template joins them.
struct Way {
    topic: String,
    queue: String,
    /// The pipe's `TargetParameters`.
    target: Value,
}

impl Way {
    fn read() -> Self {
        let template = kept();
        let resources = template["Resources"].as_object().unwrap();
        let one = |kind: &str| {
            let mut found = resources.values().filter(|resource| resource["Type"] == kind);
            (&found.next().unwrap()["Properties"], found.next())
        };
        let ((subscription, None), (pipe, None)) =
            (one("AWS::SNS::Subscription"), one("AWS::Pipes::Pipe"))
        else {
            panic!("there is one way in")
        };
        assert_eq!(subscription["Endpoint"], pipe["Source"]);
        let named = |resource: &Value, property: &str| {
            let name = &resources[resource.as_str().unwrap()]["Properties"][property];
            name.as_str().unwrap().to_owned()
        };
        Self {
            topic: named(&subscription["TopicArn"]["Ref"], "TopicName"),
            queue: named(&pipe["Source"]["Fn::GetAtt"][0], "QueueName"),
            target: pipe["TargetParameters"].clone(),
        }
    }

    /// What the pipe makes of a message. A body that is JSON stands in the template as such.
    ///
    /// Source: Amazon EventBridge User Guide, "Amazon EventBridge Pipes input transformation".
    fn transformed(&self, message: &Value) -> Value {
        let body: Value = serde_json::from_str(message["Body"].as_str().unwrap()).unwrap();
        let template = self.target["InputTemplate"].as_str().unwrap();
        let text = template.replace("<$.body>", &body.to_string());
        serde_json::from_str(&text).unwrap()
    }
}

impl Account {
    /// Somebody publishes an incident, which comes through the queue to the bus; the id of its session.
    pub async fn report(&self, incident: &Value) -> String {
        let way = Way::read();
        let (topic, text) =
            (format!("arn:aws:sns:{REGION}:{ACCOUNT}:{}", way.topic), incident.to_string());
        self.form(&[("Action", "Publish"), ("TopicArn", &topic), ("Message", &text)]).await;
        let named = json!({ "QueueName": way.queue });
        let queue = self.ask("sqs", "AmazonSQS.GetQueueUrl", &named).await;
        let wait = json!({ "QueueUrl": queue["QueueUrl"], "WaitTimeSeconds": 10 });
        let received = self.ask("sqs", "AmazonSQS.ReceiveMessage", &wait).await;
        let detail = way.transformed(&received["Messages"][0]);
        let bus = &way.target["EventBridgeEventBusParameters"];
        let (source, kind) = (bus["Source"].as_str().unwrap(), bus["DetailType"].as_str().unwrap());
        self.put_event(source, kind, &detail).await
    }
}
