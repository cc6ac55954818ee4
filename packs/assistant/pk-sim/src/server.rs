//! The MCP server: seven tools, their schemas, and the progress and cancellation of a run.

use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ProgressNotificationParam};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};

use super::arguments::{Fetch, Get, Load, Nothing, One, Set, TIMES_MAX};
use super::model::Library;
use super::refusal::Refusal;
use super::response::{self, Fetched, Loaded, Models, ParameterSet, ParameterValue, Quantity, Ran};
use super::simulation::{Results, Run};
use super::state::State;
use mcp::hints::{Effect, Hint, annotated};
use mcp::reply::{answered, reply};

/// Clones share their simulations.
#[derive(Debug, Clone)]
pub struct Server {
    library: Arc<Library>,
    state: Arc<State>,
    tool_router: ToolRouter<Self>,
}

const HINTS: [Hint; 7] = [
    ("list_models", "Models", Effect::Reads),
    ("load_simulation", "Load a simulation", Effect::Creates),
    ("list_parameters", "Parameters", Effect::Reads),
    ("get_parameter_value", "Parameter value", Effect::Reads),
    ("set_parameter_value", "Set a parameter", Effect::Overwrites),
    ("run_simulation", "Run a simulation", Effect::Overwrites),
    ("get_results", "Results", Effect::Reads),
];

#[tool_router]
impl Server {
    pub(super) fn new(library: Library, state: State) -> Self {
        Self {
            library: Arc::new(library),
            state: Arc::new(state),
            tool_router: annotated(Self::tool_router(), false, &HINTS),
        }
    }

    #[tool(
        description = "List the pharmacokinetic models that can be loaded, each with its drug, route and source of data.",
        output_schema = schema_for_output::<Models>(),
    )]
    async fn list_models(&self, Parameters(Nothing {}): Parameters<Nothing>) -> CallToolResult {
        answered("list_models", &Models::of(self.library.models()))
    }

    #[tool(
        description = "Load a model as a new simulation with the model's default values. With simulation_id the call is idempotent: an existing simulation of this name and model is left unchanged.",
        output_schema = schema_for_output::<Loaded>(),
    )]
    async fn load_simulation(&self, Parameters(load): Parameters<Load>) -> CallToolResult {
        reply("load_simulation", self.load(load))
    }

    #[tool(
        description = "List the parameters of a loaded simulation, each with value, unit, range and accepted units.",
        output_schema = schema_for_output::<response::Parameters>(),
    )]
    async fn list_parameters(&self, Parameters(one): Parameters<One>) -> CallToolResult {
        let simulation = self.state.read(&one.simulation_id);
        let listed = simulation.map(|simulation| response::Parameters::of(&simulation));
        reply("list_parameters", listed)
    }

    #[tool(
        description = "Read the value of one parameter of a loaded simulation.",
        output_schema = schema_for_output::<ParameterValue>(),
    )]
    async fn get_parameter_value(&self, Parameters(get): Parameters<Get>) -> CallToolResult {
        reply("get_parameter_value", self.get(&get))
    }

    #[tool(
        description = "Set one parameter of a loaded simulation, in a unit accepted according to list_parameters. Results of an earlier run stay and are marked as not current.",
        output_schema = schema_for_output::<ParameterSet>(),
    )]
    async fn set_parameter_value(&self, Parameters(set): Parameters<Set>) -> CallToolResult {
        reply("set_parameter_value", self.set(&set))
    }

    #[tool(
        description = "Run a loaded simulation with its current values: Cmax, Tmax, AUC and half-life; get_results has the time series. The same values give the same results. A long run reports its progress and can be cancelled.",
        output_schema = schema_for_output::<Ran>(),
    )]
    async fn run_simulation(
        &self,
        Parameters(one): Parameters<One>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        reply("run_simulation", self.run(&one, &context).await)
    }

    #[tool(
        description = "Read the results of a simulation's last run: Cmax, Tmax, AUC, half-life, troughs, the concentration over time and at times, the time above a level, and whether they are current.",
        output_schema = schema_for_output::<Fetched>(),
    )]
    async fn get_results(&self, Parameters(fetch): Parameters<Fetch>) -> CallToolResult {
        reply("get_results", self.fetch(&fetch))
    }
}

impl Server {
    fn load(&self, load: Load) -> Result<Loaded, Refusal> {
        let asked = load.model_path.0;
        let model = self.library.model(&asked).ok_or_else(|| Refusal::NoSuchModel {
            asked,
            present: self.library.models().map(|model| model.name.clone()).collect(),
        })?;
        let loaded = self.state.load(load.simulation_id, model)?;
        Ok(Loaded {
            simulation_id: loaded.simulation.id.to_string(),
            model_path: model.name.clone(),
            created: loaded.created,
            revision: loaded.simulation.revision,
            evicted: loaded.evicted.map(String::from),
        })
    }

    fn get(&self, get: &Get) -> Result<ParameterValue, Refusal> {
        let simulation = self.state.read(&get.simulation_id)?;
        let path = simulation.path(&get.parameter_path.0)?;
        Ok(ParameterValue {
            simulation_id: simulation.id.to_string(),
            parameter_path: path.as_str(),
            value: simulation.value(path)?,
            unit: path.dimension().canonical(),
        })
    }

    fn set(&self, set: &Set) -> Result<ParameterSet, Refusal> {
        let ((path, changed), simulation) =
            self.state.change(&set.simulation_id, |simulation| {
                let path = simulation.path(&set.parameter_path.0)?;
                Ok((path, simulation.set(path, set.value.0, &set.unit.0)?))
            })?;
        Ok(ParameterSet {
            simulation_id: simulation.id.to_string(),
            parameter_path: path.as_str(),
            previous: Quantity::of(path, changed.before),
            value: changed.now,
            unit: path.dimension().canonical(),
            revision: simulation.revision,
        })
    }

    async fn run(&self, one: &One, context: &RequestContext<RoleServer>) -> Result<Ran, Refusal> {
        let run = self.state.read(&one.simulation_id)?.run()?;
        let results = computed(run, context).await;
        let results = results.ok_or_else(|| Refusal::Cancelled(one.simulation_id.clone()))?;
        let (ran, _) = self.state.change(&one.simulation_id, |simulation| {
            let ran = Ran::of(simulation, &results);
            simulation.results = Some(results);
            Ok(ran)
        })?;
        Ok(ran)
    }

    fn fetch(&self, fetch: &Fetch) -> Result<Fetched, Refusal> {
        let simulation = self.state.read(&fetch.simulation_id)?;
        let Some(results) = &simulation.results else {
            return Err(Refusal::NotRun(simulation.id));
        };
        let found = Fetched::of(&simulation, results, fetch.points_max.0 as usize);
        if fetch.at_times.is_empty() && fetch.above.is_none() {
            return Ok(found);
        }
        let until = results.duration;
        let is_in = |time: &f64| (0.0..=until).contains(time);
        if fetch.at_times.len() > TIMES_MAX || !fetch.at_times.iter().all(is_in) {
            return Err(Refusal::Times { most: TIMES_MAX, until });
        }
        if let Some(level) = fetch.above.filter(|level| !(0.0..).contains(level)) {
            return Err(Refusal::Level(level));
        }
        let regimen = simulation.regimen_run(results);
        let regimen = regimen.ok_or_else(|| Refusal::RunAgain(simulation.id.clone()))?;
        Ok(found.with(&regimen, &fetch.at_times, fetch.above, until))
    }
}

/// Computes a run in parts. Between them it yields, reports progress, and stops without a result
/// when the client has cancelled.
async fn computed(mut run: Run, context: &RequestContext<RoleServer>) -> Option<Results> {
    let token = context.meta.get_progress_token();
    while !run.advance() {
        if let Some(token) = &token {
            let (done, all) = run.progress();
            #[expect(clippy::cast_precision_loss, reason = "there are fewer points than digits")]
            let progress = ProgressNotificationParam::new(token.clone(), done as f64)
                .with_total(all as f64)
                .with_message(format!("{done} of {all} points"));
            // A failed progress notification does not fail the run.
            let _ = context.peer.notify_progress(progress).await;
        }
        tokio::task::yield_now().await;
        if context.ct.is_cancelled() {
            return None;
        }
    }
    Some(run.results())
}

mcp::serve_tools! {
    Server,
    name = "pk-sim",
    instructions = "Pharmacokinetic simulations in one and two compartments. Load a model, look at its parameters, set some, run it, read the results. The values are typical and not medical advice.",
}
