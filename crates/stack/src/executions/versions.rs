//! Versions and aliases of the state machines of users.
//!
//! A version is a machine as it was when it was published. An alias names one version, or two with weights. Starting
//! one of both starts its machine's definition; an execution does not record which it was.

use asl::time::Timestamp;
use journal::store::Error;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use super::machines::UserMachine;
use super::{ExecutionStore, Executions, is_name, until_known};
use crate::names;

/// Most versions and most aliases of a state machine.
///
/// Source: AWS, "Step Functions service quotas": versions, and aliases, for each state machine.
pub const VERSIONS_MAX: usize = 1_000;
pub const ALIASES_MAX: usize = 100;

const KIND_VERSION: &str = "state machine version";
const KIND_ALIAS: &str = "state machine alias";

/// A published version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    pub number: u32,
    pub published_at: Timestamp,
    #[serde(default)]
    pub description: String,
    /// The machine as it was published.
    pub machine: UserMachine,
}

/// One version of an alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    pub state_machine_version_arn: String,
    /// In per cent.
    pub weight: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alias {
    pub name: String,
    /// The machine's name.
    pub machine: String,
    #[serde(default)]
    pub description: String,
    pub routes: Vec<Route>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Why a version or an alias is not changed.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    #[error("State Machine Does Not Exist: '{0}'")]
    NoMachine(String),
    #[error("Resource not found: '{0}'")]
    NotFound(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Invalid(String),
    #[error("the state machine has {0}, and no more may be created: remove some first")]
    TooMany(String),
    #[error(transparent)]
    Store(#[from] Error),
}

impl Version {
    pub fn arn(&self) -> String {
        format!("{}:{}", self.machine.arn(), self.number)
    }
}

impl Alias {
    pub fn arn(&self) -> String {
        format!("{}:{}", names::machine_arn(&self.machine), self.name)
    }

    /// The version that an execution starts, with `share` from 0 to 99.
    fn route(&self, share: u32) -> Option<&str> {
        let mut below = 0;
        let found = self.routes.iter().find(|route| {
            below += route.weight;
            share < below
        });
        found.map(|route| route.state_machine_version_arn.as_str())
    }
}

impl<S: ExecutionStore> Executions<S> {
    /// The machine that an ARN names: as it is, or as the ARN's version or alias has it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn machine_to_start(&self, arn: &str) -> Result<Option<UserMachine>, Error> {
        let Some((machine, qualifier)) = names::qualified(arn) else {
            return self.user_machine(arn).await;
        };
        let mut number = qualifier.to_owned();
        if let Some(alias) = self.aliases(machine).await?.into_iter().find(|it| it.name == number) {
            let share = u32::try_from(Uuid::new_v4().as_u128() % 100).unwrap_or_default();
            let Some((_, routed)) = alias.route(share).and_then(names::qualified) else {
                return Ok(None);
            };
            number = routed.to_owned();
        }
        let versions = self.versions(machine).await?;
        let found = versions.into_iter().find(|version| version.number.to_string() == number);
        Ok(found.map(|version| version.machine))
    }

    /// Publishes a machine. The same machine again is the same version.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub async fn publish(&self, arn: &str, description: &str) -> Result<Version, VersionError> {
        let machine = self.user_machine(arn).await?;
        let mut machine = machine.ok_or_else(|| VersionError::NoMachine(arn.to_owned()))?;
        let versions = self.versions(&machine.name).await?;
        let same = |it: &&Version| it.machine.revision_id == machine.revision_id;
        if let Some(version) = versions.iter().find(same) {
            return Ok(version.clone());
        }
        if versions.len() >= VERSIONS_MAX {
            return Err(VersionError::TooMany(format!("{VERSIONS_MAX} versions")));
        }
        // The number of a deleted version is not used again.
        machine.versions += 1;
        self.keep_machine(&machine).await?;
        let (number, published_at) = (machine.versions, self.shared.wall());
        let version =
            Version { number, published_at, description: description.to_owned(), machine };
        let name = format!("{}:{number}", version.machine.name);
        self.keep_resource(KIND_VERSION, &name, Some(&version)).await?;
        Ok(version)
    }

    /// The versions of a machine, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn versions(&self, machine: &str) -> Result<Vec<Version>, Error> {
        let mut versions: Vec<Version> = self.of_machine(KIND_VERSION, machine).await?;
        versions.sort_by_key(|version| std::cmp::Reverse(version.number));
        Ok(versions)
    }

    /// Removes a version that no alias names.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub async fn delete_version(&self, arn: &str) -> Result<(), VersionError> {
        let Some((machine, number)) = names::qualified(arn) else {
            return Err(VersionError::Invalid(format!("Invalid Arn: '{arn}'")));
        };
        let aliases = self.aliases(machine).await?;
        let names_it = |alias: &&Alias| {
            alias.routes.iter().any(|route| route.state_machine_version_arn == arn)
        };
        if let Some(alias) = aliases.iter().find(names_it) {
            let alias = alias.arn();
            let why = format!(
                "Version to be deleted must not be referenced by an alias. Current list of aliases \
                 referencing this version: [{alias}]"
            );
            return Err(VersionError::Conflict(why));
        }
        Ok(self
            .keep_resource::<Version>(KIND_VERSION, &format!("{machine}:{number}"), None)
            .await?)
    }

    /// The aliases of a machine, by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn aliases(&self, machine: &str) -> Result<Vec<Alias>, Error> {
        self.of_machine(KIND_ALIAS, machine).await
    }

    /// The alias of an ARN.
    ///
    /// # Errors
    /// If it does not exist or the store cannot be read.
    pub async fn alias(&self, arn: &str) -> Result<Alias, VersionError> {
        let not_found = || VersionError::NotFound(arn.to_owned());
        let (machine, name) = names::qualified(arn).ok_or_else(not_found)?;
        let aliases = self.aliases(machine).await?;
        aliases.into_iter().find(|alias| alias.name == name).ok_or_else(not_found)
    }

    /// Creates an alias. The same request again has no effect.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub async fn create_alias(
        &self,
        name: &str,
        description: &str,
        routes: Vec<Route>,
    ) -> Result<Alias, VersionError> {
        if !is_name(name) || name.chars().all(|c| c.is_ascii_digit()) {
            return Err(VersionError::Invalid(format!("Invalid Name: '{name}'")));
        }
        let machine = self.machine_of_routes(&routes).await?;
        let aliases = self.aliases(&machine).await?;
        if let Some(known) = aliases.iter().find(|it| it.name == name) {
            if known.routes == routes && known.description == description {
                return Ok(known.clone());
            }
            let why = "Failed to create alias because an alias with the same name and a different \
                       routing configuration already exists.";
            return Err(VersionError::Conflict(why.to_owned()));
        }
        if aliases.len() >= ALIASES_MAX {
            return Err(VersionError::TooMany(format!("{ALIASES_MAX} aliases")));
        }
        let now = self.shared.wall();
        let (name, description) = (name.to_owned(), description.to_owned());
        let alias = Alias { name, machine, description, routes, created_at: now, updated_at: now };
        self.keep_alias(&alias).await?;
        Ok(alias)
    }

    /// Changes the versions or the description of an alias.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub async fn update_alias(
        &self,
        arn: &str,
        description: Option<&str>,
        routes: Option<Vec<Route>>,
    ) -> Result<Alias, VersionError> {
        let mut alias = self.alias(arn).await?;
        if let Some(routes) = routes {
            if self.machine_of_routes(&routes).await? != alias.machine {
                let why = "The versions of an alias are those of its own state machine";
                return Err(VersionError::Invalid(why.to_owned()));
            }
            alias.routes = routes;
        }
        if let Some(description) = description {
            alias.description = description.to_owned();
        }
        alias.updated_at = self.shared.wall();
        self.keep_alias(&alias).await?;
        Ok(alias)
    }

    /// Removes an alias.
    ///
    /// # Errors
    /// See [`VersionError`].
    pub async fn delete_alias(&self, arn: &str) -> Result<(), VersionError> {
        let alias = self.alias(arn).await?;
        let name = format!("{}:{}", alias.machine, alias.name);
        Ok(self.keep_resource::<Alias>(KIND_ALIAS, &name, None).await?)
    }

    /// Removes the versions and aliases of a machine that is removed.
    pub(super) async fn delete_versions(&self, machine: &str) -> Result<(), Error> {
        for alias in self.aliases(machine).await? {
            let name = format!("{machine}:{}", alias.name);
            self.keep_resource::<Alias>(KIND_ALIAS, &name, None).await?;
        }
        for version in self.versions(machine).await? {
            let name = format!("{machine}:{}", version.number);
            self.keep_resource::<Version>(KIND_VERSION, &name, None).await?;
        }
        Ok(())
    }

    /// Checks the versions of an alias; returns the name of their machine.
    async fn machine_of_routes(&self, routes: &[Route]) -> Result<String, VersionError> {
        let weights: u64 = routes.iter().map(|route| u64::from(route.weight)).sum();
        if routes.is_empty() || routes.len() > 2 || weights != 100 {
            let why = "Sum of routing configuration weights must equal 100, of one or two versions";
            return Err(VersionError::Invalid(why.to_owned()));
        }
        let mut of = None;
        for Route { state_machine_version_arn: arn, .. } in routes {
            let not_found = || VersionError::NotFound(arn.clone());
            let (machine, number) = names::qualified(arn).ok_or_else(not_found)?;
            let versions = self.versions(machine).await?;
            versions.iter().find(|it| it.number.to_string() == number).ok_or_else(not_found)?;
            if *of.get_or_insert_with(|| machine.to_owned()) != machine {
                let why = "Routing configuration must contain state machine versions of the same \
                           state machine";
                return Err(VersionError::Invalid(why.to_owned()));
            }
        }
        Ok(of.unwrap_or_default())
    }

    async fn keep_alias(&self, alias: &Alias) -> Result<(), Error> {
        let name = format!("{}:{}", alias.machine, alias.name);
        self.keep_resource(KIND_ALIAS, &name, Some(alias)).await
    }

    async fn of_machine<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        machine: &str,
    ) -> Result<Vec<T>, Error> {
        let resources = self.shared.store.resources(kind).await?;
        let of = |name: &str| name.rsplit_once(':').is_some_and(|(of, _)| of == machine);
        let parsed = resources.iter().filter(|(name, _)| of(name));
        let parsed = parsed.map(|(_, body)| serde_json::from_str(body));
        parsed.collect::<Result<_, _>>().map_err(|error| Error::Corrupt(error.into()))
    }

    /// Keeps a resource, or removes it.
    pub(super) async fn keep_resource<T: Serialize>(
        &self,
        kind: &'static str,
        name: &str,
        resource: Option<&T>,
    ) -> Result<(), Error> {
        let body = resource.map(serde_json::to_string).transpose();
        let body = body.map_err(|error| Error::Refused(error.into()))?;
        let store = &self.shared.store;
        until_known(|| store.put_resource(kind, name, body.clone())).await
    }
}
