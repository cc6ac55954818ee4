//! State machines of users: created, changed and removed through the API, kept in the journal's file.
//!
//! A machine is a JSON text that names the row of its definition. A running execution keeps the row
//! that it started with, so a change or a removal of its machine does not touch it.

use std::sync::{Arc, Mutex};

use asl::definition::{Definition, DefinitionError, Workflow};
use asl::history::Failure;
use asl::time::Timestamp;
use journal::store::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{
    ExecutionStore, Executions, Inserted, NewExecution, Request, StartError, Started, call,
    until_known,
};
use crate::functions::Functions;
use crate::names;
use crate::rules::UserRule;

/// The kind of its resources.
const KIND: &str = "state machine";

/// Most state machines of users on one stack.
pub const MACHINES_MAX: usize = 1_000;

/// A state machine that a user created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserMachine {
    pub name: String,
    /// `STANDARD` or `EXPRESS`. Both run as standard ones.
    #[serde(rename = "type")]
    pub machine_type: String,
    pub role_arn: String,
    /// JSON text.
    pub definition: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub revision_id: String,
    /// How many versions were published.
    #[serde(default)]
    pub(super) versions: u32,
    row: i64,
}

/// Why a machine is not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("Invalid Name: '{0}'")]
    Name(String),
    /// Another machine has the name, with another definition or role.
    #[error("State Machine Already Exists: '{0}'")]
    Exists(String),
    #[error("State Machine Does Not Exist: '{0}'")]
    DoesNotExist(String),
    #[error("{}", .0.iter().map(DefinitionError::in_words_of_aws).collect::<Vec<_>>().join(", "))]
    Definition(Vec<DefinitionError>),
    #[error("the stack has {MACHINES_MAX} state machines, and no more may be created")]
    TooMany,
    #[error(transparent)]
    Store(#[from] Error),
}

impl UserMachine {
    pub fn arn(&self) -> String {
        names::machine_arn(&self.name)
    }
}

/// The workflow type in a request.
pub fn workflow_of(machine_type: &str) -> Workflow {
    match machine_type {
        "EXPRESS" => Workflow::Express,
        _ => Workflow::Standard,
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// The machines of users, by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn user_machines(&self) -> Result<Vec<UserMachine>, Error> {
        let resources = self.shared.store.resources(KIND).await?;
        let parsed = resources.iter().map(|(_, body)| serde_json::from_str(body));
        parsed.collect::<Result<_, _>>().map_err(|error| Error::Corrupt(error.into()))
    }

    /// The user's machine of this ARN.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn user_machine(&self, arn: &str) -> Result<Option<UserMachine>, Error> {
        let machines = self.user_machines().await?;
        Ok(machines.into_iter().find(|machine| machine.arn() == arn))
    }

    /// Creates a machine. The same request again has no effect.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub async fn create_machine(
        &self,
        name: &str,
        machine_type: &str,
        definition: &str,
        role_arn: &str,
    ) -> Result<UserMachine, MachineError> {
        if !is_name(name) {
            return Err(MachineError::Name(name.to_owned()));
        }
        let arn = names::machine_arn(name);
        if name == names::STATE_MACHINE {
            return Err(MachineError::Exists(arn));
        }
        let known = self.user_machines().await?;
        if let Some(machine) = known.iter().find(|machine| machine.name == name) {
            let same = machine.definition == definition
                && machine.role_arn == role_arn
                && machine.machine_type == machine_type;
            return if same { Ok(machine.clone()) } else { Err(MachineError::Exists(arn)) };
        }
        if known.len() >= MACHINES_MAX {
            return Err(MachineError::TooMany);
        }
        let now = self.shared.wall();
        let row = self.row_of(&arn, definition, machine_type).await?;
        let machine = UserMachine {
            name: name.to_owned(),
            machine_type: machine_type.to_owned(),
            role_arn: role_arn.to_owned(),
            definition: definition.to_owned(),
            created_at: now,
            updated_at: now,
            revision_id: Uuid::new_v4().to_string(),
            versions: 0,
            row,
        };
        self.keep_machine(&machine).await?;
        Ok(machine)
    }

    /// Changes a machine. Running executions keep the definition that they started with.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub async fn update_machine(
        &self,
        arn: &str,
        definition: Option<&str>,
        role_arn: Option<&str>,
    ) -> Result<UserMachine, MachineError> {
        let found = self.user_machine(arn).await?;
        let mut machine = found.ok_or_else(|| MachineError::DoesNotExist(arn.to_owned()))?;
        if let Some(definition) = definition {
            machine.row = self.row_of(arn, definition, &machine.machine_type).await?;
            machine.definition = definition.to_owned();
        }
        if let Some(role_arn) = role_arn {
            machine.role_arn = role_arn.to_owned();
        }
        machine.updated_at = self.shared.wall();
        machine.revision_id = Uuid::new_v4().to_string();
        self.keep_machine(&machine).await?;
        Ok(machine)
    }

    /// Removes a machine; running executions continue. Removing one that does not exist has no effect,
    /// as on AWS.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn delete_machine(&self, arn: &str) -> Result<(), Error> {
        // Not the name in the ARN: a version's or another region's ARN names this machine, too.
        let Some(machine) = self.user_machine(arn).await? else { return Ok(()) };
        self.delete_versions(&machine.name).await?;
        self.keep_resource::<UserMachine>(KIND, &machine.name, None).await
    }

    /// Starts an execution of a user's machine; it is durable when this returns.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start_of(
        &self,
        machine: &UserMachine,
        request: Request,
    ) -> Result<Started, StartError> {
        let mut started = self.start_on(&machine.name, machine.row, vec![request]).await?;
        started.pop().unwrap_or_else(|| unreachable!("one request has one answer"))
    }

    /// Starts executions of the state machine `machine`, whose definition is in the row `row`.
    pub(super) async fn start_on(
        &self,
        machine: &str,
        row: i64,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Started, StartError>>, Error> {
        let checked: Vec<_> =
            requests.into_iter().map(|request| self.check(machine, request)).collect();
        let new: Vec<_> = checked.iter().filter_map(|new| new.as_ref().ok().cloned()).collect();
        let store = &self.shared.store;
        let inserted = until_known(|| store.start_all(row, new.clone())).await?;
        self.shared.started.notify_one();
        let mut inserted = inserted.into_iter();
        let answer = |new: NewExecution, inserted| match inserted {
            Some(Inserted::Started(at)) => Ok(Started { arn: new.arn, at }),
            _ => Err(StartError::AlreadyExists(new.arn)),
        };
        Ok(checked
            .into_iter()
            .map(|new| new.and_then(|new| answer(new, inserted.next())))
            .collect())
    }

    /// Held while the rules are read into the cache, or changed.
    pub(crate) fn rules_reading(&self) -> &tokio::sync::Mutex<()> {
        &self.shared.rules_reading
    }

    /// Held while what users created is changed: a change reads first, and the next one must see it.
    pub(crate) async fn changing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.shared.changing.lock().await
    }

    /// The rules of users, once they were read.
    pub(crate) fn rules_cache(&self) -> &Mutex<Option<Arc<[UserRule]>>> {
        &self.shared.rules
    }

    /// The text of the definition that an execution runs.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn definition_text(&self, execution: &super::Record) -> Result<String, Error> {
        self.shared.store.definition(execution.machine).await
    }

    /// Calls a service as a state machine of a user does.
    ///
    /// # Errors
    /// The failure of the task.
    pub(crate) async fn call(&self, resource: &str, arguments: Value) -> Result<Value, Failure> {
        let caller = names::execution_arn("TestState", &Uuid::new_v4().to_string());
        call::perform(&self.shared, &caller, resource, arguments).await
    }

    /// The Lambda functions of the stack.
    pub(crate) fn functions(&self) -> &Functions {
        &self.shared.services.functions
    }

    async fn row_of(
        &self,
        arn: &str,
        definition: &str,
        machine_type: &str,
    ) -> Result<i64, MachineError> {
        Definition::check(definition, workflow_of(machine_type))
            .map_err(MachineError::Definition)?;
        let now = self.shared.wall();
        let store = &self.shared.store;
        let opened = until_known(|| store.open_machine(arn, definition, now)).await?;
        Ok(opened.id)
    }

    pub(super) async fn keep_machine(&self, machine: &UserMachine) -> Result<(), Error> {
        self.keep_resource(KIND, &machine.name, Some(machine)).await
    }
}

/// Source: AWS, `StartExecution`, `name`.
pub(super) fn is_name(name: &str) -> bool {
    let forbidden =
        |c: char| c.is_whitespace() || c.is_control() || "<>{}[]?*\"#%\\^|~`$&,;:/".contains(c);
    (1..=80).contains(&name.chars().count()) && !name.contains(forbidden)
}
