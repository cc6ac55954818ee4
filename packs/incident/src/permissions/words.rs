//! What the sentences about denied calls name.

use super::{Case, bucket_of, iam};

impl<'a> Case<'a> {
    pub(super) fn actions(&self) -> Vec<String> {
        self.denied.iter().filter_map(|denied| denied.denial.action.clone()).collect()
    }

    /// The actions, for a sentence.
    pub(super) fn named(&self) -> String {
        let actions = self.actions();
        if actions.is_empty() {
            "a call that the error does not name".to_owned()
        } else {
            actions.join(", ")
        }
    }

    /// The resources of the calls; whole buckets where no statement allows the actions.
    pub(super) fn resource(&self) -> String {
        let statements = self.iam.map(iam::statements).unwrap_or_default();
        let actions = self.actions();
        let is_whole = !statements.iter().any(|s| actions.iter().any(|a| s.allows_action(a)));
        let mut resources: Vec<String> = Vec::new();
        for arn in self.denied.iter().filter_map(|denied| denied.denial.resource.as_deref()) {
            let resource = match bucket_of(arn) {
                Some(bucket) if is_whole && arn.contains('/') => format!("arn:aws:s3:::{bucket}/*"),
                _ => arn.to_owned(),
            };
            if !resources.contains(&resource) {
                resources.push(resource);
            }
        }
        resources.join(", ")
    }

    pub(super) fn resource_or_all(&self) -> String {
        let resource = self.resource();
        if resource.is_empty() { "the resources of the function".to_owned() } else { resource }
    }

    /// The actions and their resources, for a sentence.
    pub(super) fn denied_calls(&self) -> String {
        let resource = self.resource();
        if resource.is_empty() { self.named() } else { format!("{} on {resource}", self.named()) }
    }

    /// That a policy allows the calls on another resource only, for a sentence.
    pub(super) fn other_resource(&self) -> Option<String> {
        let statements = iam::statements(self.iam?);
        let actions = self.actions();
        let statement = statements
            .iter()
            .find(|statement| actions.iter().any(|action| statement.allows_action(action)))?;
        let allowed = statement.resources();
        let denied = self.denied.iter().find_map(|denied| denied.denial.resource.as_deref())?;
        let list = allowed.join(", ");
        let policy = &statement.place.policy;
        let is_suffix = |pattern: &&&str| {
            pattern.contains(":secret:")
                && denied.strip_prefix(**pattern).is_some_and(|suffix| suffix.starts_with('-'))
        };
        Some(if allowed.iter().any(|pattern| is_suffix(&pattern)) {
            format!(
                "policy {policy} of role {} allows it on {list} only, and the secret's ARN ends with six \
                 more characters that the policy's ARN lacks: write -?????? at its end",
                self.role()
            )
        } else if list.is_empty() {
            return None;
        } else {
            format!("policy {policy} of role {} allows it on {list} only", self.role())
        })
    }

    pub(super) fn role(&self) -> &'a str {
        let of_denial = || self.denied[0].denial.role.as_deref();
        self.iam.map(|iam| iam.role_name.as_str()).or_else(of_denial).unwrap_or("of the function")
    }

    /// The service's display name.
    pub(super) fn service_name(&self) -> String {
        match self.denied[0].service() {
            "" => "AWS".to_owned(),
            "s3" => "S3".to_owned(),
            "logs" => "CloudWatch Logs".to_owned(),
            "cloudwatch" => "CloudWatch".to_owned(),
            "dynamodb" => "DynamoDB".to_owned(),
            "secretsmanager" => "Secrets Manager".to_owned(),
            other => other.to_uppercase(),
        }
    }
}
