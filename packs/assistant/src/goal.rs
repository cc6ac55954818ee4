//! What a turn is to reach: its request with its amendments, and the plan's values.

use serde_json::Value;

use super::regimen::{self, Setting, Shown, Target, Values};
use super::request::{self, Context, Model, Question, Request, Route};
use super::state::{AgentState, LoggedStep};
use super::tool;

/// Most words of a message that only completes the request before.
const FRAGMENT_WORDS: usize = 4;

impl AgentState {
    /// The models, once they were listed.
    pub(super) fn models(&self) -> Option<Vec<Model>> {
        let entries = self.listed_models()?.get("models")?.as_array()?;
        let model = |entry: &Value| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            let path = text("model_path")?;
            Some(Model {
                drug: text("drug").unwrap_or_else(|| path.clone()),
                route: text("route").unwrap_or_default(),
                description: text("description").unwrap_or_default(),
                path,
            })
        };
        Some(entries.iter().filter_map(model).collect())
    }

    fn listed_models(&self) -> Option<&Value> {
        let is_list = |step: &&LoggedStep| step.tool == tool::LIST_MODELS && step.error.is_none();
        self.intermediate_steps.iter().rev().find(is_list).map(|step| &step.result)
    }

    /// A model's default values, if the list of models has them.
    pub(super) fn defaults(&self, model_path: &str) -> Option<Values> {
        let entries = self.listed_models()?.get("models")?.as_array()?;
        let entry = entries.iter().find(|entry| entry["model_path"] == model_path)?;
        regimen::values(entry.get("parameters")?)
    }

    /// A simulation's values after these many steps. `None` if they are not known.
    pub(super) fn values_after(&self, id: &str, steps: usize) -> Option<Values> {
        let of_it = |step: &&LoggedStep| {
            step.arguments.get("simulation_id").and_then(Value::as_str) == Some(id)
        };
        let mut values = None;
        for step in
            self.intermediate_steps[..steps.min(self.intermediate_steps.len())].iter().filter(of_it)
        {
            match (step.tool.as_str(), &step.error) {
                (tool::LIST_PARAMETERS, None) => {
                    values = regimen::values(step.result.get("parameters").unwrap_or(&Value::Null));
                }
                (tool::SET, None) => values = changed(values, &step.result),
                // Whether it was set is not known.
                (tool::SET, Some(_)) => values = None,
                _ => {}
            }
        }
        values
    }

    pub(super) fn values(&self, id: &str) -> Option<Values> {
        self.values_after(id, self.intermediate_steps.len())
    }

    /// The values that relative changes of this turn start from: those before its first change.
    pub(super) fn base(&self, id: &str) -> Option<Values> {
        let first = self.turn_steps().iter().position(|step| step.tool == tool::SET);
        let steps = first.map_or(self.intermediate_steps.len(), |at| self.turn.first_step + at);
        self.values_after(id, steps).or_else(|| self.values(id))
    }

    /// The parameter that was changed last.
    fn last_changed(&self) -> Option<&str> {
        let is_set = |step: &&LoggedStep| step.tool == tool::SET && step.error.is_none();
        let last = self.intermediate_steps.iter().rev().find(is_set)?;
        last.arguments.get("parameter_path")?.as_str()
    }

    /// The requests that this turn's one amends, as one.
    pub(super) fn amended(&self, models: &[Model]) -> Option<Request> {
        let mut goal: Option<Request> = None;
        for text in &self.turn.base {
            let context = Context { models, goal: goal.as_ref(), last: self.last_changed() };
            let Ok(request) = request::read(text, context) else { continue };
            goal = Some(match &goal {
                Some(before) if !request.stands_alone() => before.amended(&request),
                _ => request,
            });
        }
        goal
    }

    /// The turn's request with all that it amends.
    ///
    /// # Errors
    /// The question about what was not understood.
    pub(super) fn goal(&self) -> Result<Request, Question> {
        let models = self.models().unwrap_or_default();
        let goal = self.amended(&models);
        let context = Context { models: &models, goal: goal.as_ref(), last: self.last_changed() };
        let request = request::read(&self.turn.request, context)?;
        Ok(match &goal {
            Some(goal) if !request.stands_alone() => goal.amended(&request),
            _ => request,
        })
    }

    /// Takes a message that follows an open question: it completes, amends or replaces the request.
    pub(super) fn continued(&self, text: &str) -> (Vec<String>, String) {
        let models = self.models().unwrap_or_default();
        let goal = self.amended(&models);
        let read = |text: &str, goal: Option<&Request>| {
            request::read(text, Context { models: &models, goal, last: self.last_changed() })
        };
        let (before, mut base) = (&self.turn.request, self.turn.base.clone());
        match read(before, goal.as_ref()) {
            Ok(earlier) => {
                let merged = match &goal {
                    Some(goal) if !earlier.stands_alone() => goal.amended(&earlier),
                    _ => earlier,
                };
                match read(text, Some(&merged)) {
                    Ok(alone) if alone.stands_alone() => (Vec::new(), text.to_owned()),
                    _ => {
                        base.push(before.clone());
                        (base, text.to_owned())
                    }
                }
            }
            Err(question) => {
                let alone = read(text, goal.as_ref());
                if alone.as_ref().is_ok_and(Request::stands_alone) {
                    return (Vec::new(), text.to_owned());
                }
                let candidates = completions(before, text, &question);
                if let Some(whole) =
                    candidates.iter().find(|whole| read(whole, goal.as_ref()).is_ok())
                {
                    return (base, whole.clone());
                }
                let orders = request::orders(before, &models);
                if !orders && alone.is_err() {
                    // The message before has no regimen to keep: this one stands for itself.
                    return (base, text.to_owned());
                }
                if let (Ok(_), Some(rest)) = (&alone, without(before, &question))
                    && read(&rest, goal.as_ref()).is_ok()
                {
                    // An answer in place of the part: the rest of the sentence stays.
                    base.push(rest);
                    return (base, text.to_owned());
                }
                let is_fragment = text.split_whitespace().count() <= FRAGMENT_WORDS;
                match candidates.last().filter(|_| is_fragment && alone.is_err()) {
                    Some(whole) => (base, whole.clone()),
                    None => (base, text.to_owned()),
                }
            }
        }
    }

    /// The model of a request, or a question.
    pub(super) fn chosen(&self, request: &Request, models: &[Model]) -> Result<Model, Question> {
        let names = |models: &[&Model]| {
            models.iter().map(|model| model.path.as_str()).collect::<Vec<_>>().join(", ")
        };
        let is_named = |model: &&Model| match (&request.model, &request.drug) {
            (Some(path), _) => model.path == *path,
            (None, Some(drug)) => model.drug == *drug,
            (None, None) => false,
        };
        let named: Vec<&Model> = models.iter().filter(is_named).collect();
        let fits = |model: &&&Model| match request.route {
            Some(Route::Oral) => model.route == "oral",
            Some(Route::Bolus) => model.route == "iv_bolus",
            Some(Route::Infusion) => model.route == "iv_infusion",
            Some(Route::Intravenous) => model.route.starts_with("iv"),
            Some(Route::Unknown) | None => true,
        };
        let fitting: Vec<&Model> = named.iter().filter(fits).copied().collect();
        match (named.as_slice(), fitting.as_slice()) {
            (_, [model]) => Ok((*model).clone()),
            ([], _) => {
                let all: Vec<&Model> = models.iter().collect();
                Err(Question::new(format!("Which model? Available: {}.", names(&all))))
            }
            (named, []) => {
                let routes: Vec<&str> = named.iter().map(|model| model.route.as_str()).collect();
                Err(Question::new(format!(
                    "{} has a different route: {}. Which do you mean?",
                    names(named),
                    routes.join(", ")
                )))
            }
            (_, several) => {
                Err(Question::new(format!("Which of these models: {}?", names(several))))
            }
        }
    }

    /// Whether the request is about a new simulation, not the loaded one.
    pub(super) fn is_new(&self, request: &Request, models: &[Model]) -> bool {
        if request.drug.is_none() && request.model.is_none() {
            return false;
        }
        let loaded = self.loaded(models);
        let is_it = loaded.is_some_and(|model| {
            let drug = request.drug.as_ref().is_none_or(|drug| *drug == model.drug);
            drug && request.model.as_ref().is_none_or(|path| *path == model.path)
        });
        let refers = request.alters || request.changes.is_empty();
        !is_it || request.loads || request.simulates || !refers
    }

    /// The model of the current simulation.
    pub(super) fn loaded(&self, models: &[Model]) -> Option<Model> {
        let path = &self.simulation_context.as_ref()?.model_path;
        let unknown = || Model { path: path.clone(), ..Model::default() };
        Some(models.iter().find(|model| model.path == *path).cloned().unwrap_or_else(unknown))
    }

    /// The regimen of a call that loads or runs, and what a change replaces, for the confirmation.
    pub(super) fn shown(&self, tool: &str, arguments: &Value) -> Vec<String> {
        let id = arguments.get("simulation_id").and_then(Value::as_str).unwrap_or_default();
        match tool {
            tool::LOAD => self.shown_plan(arguments),
            tool::RUN => self.shown_run(id),
            tool::SET => self.shown_change(id, arguments),
            _ => Vec::new(),
        }
    }

    fn shown_plan(&self, arguments: &Value) -> Vec<String> {
        let models = self.models().unwrap_or_default();
        let path = arguments.get("model_path").and_then(Value::as_str).unwrap_or_default();
        let (Some(model), Some(defaults)) =
            (models.iter().find(|model| model.path == path), self.defaults(path))
        else {
            return vec!["Regimen: known once the model is loaded".to_owned()];
        };
        let Ok(request) = self.goal() else {
            return vec!["Regimen: the program did not read the request".to_owned()];
        };
        let Ok(targets) = regimen::targets(&request, model, &defaults, true) else {
            return vec!["Regimen: the program did not read the request".to_owned()];
        };
        let values = regimen::with_targets(&defaults, &targets);
        let defaults = Some(&defaults);
        Shown { model, values: &values, defaults, weight: request.weight, targets: &targets }
            .lines()
    }

    fn shown_run(&self, id: &str) -> Vec<String> {
        let Some(values) = self.values(id) else {
            return vec!["Warning: the regimen of this simulation is not known".to_owned()];
        };
        let models = self.models().unwrap_or_default();
        let path = self.model_of(id).unwrap_or_default();
        let model = models.iter().find(|model| model.path == path).cloned();
        let model = model.unwrap_or(Model { path, ..Model::default() });
        let request = self.goal().unwrap_or_default();
        let base = self.base(id).unwrap_or_else(|| values.clone());
        let is_new = self.turn_steps().iter().any(|step| step.tool == tool::LOAD);
        let targets = regimen::targets(&request, &model, &base, is_new);
        let targets = targets.unwrap_or_default();
        let defaults = self.defaults(&model.path);
        let (differing, kept): (Vec<Target>, Vec<Target>) =
            targets.into_iter().partition(|target| {
                values.get(target.path).is_some_and(|now| !regimen::same(now.value, target.value))
            });
        let (defaults, weight) = (defaults.as_ref(), request.weight);
        let shown = Shown { model: &model, values: &values, defaults, weight, targets: &kept };
        let mut lines = shown.lines();
        lines.extend(differing.iter().map(|target| {
            let value = request::number(target.value);
            format!("Warning: the request says {} {value}", target.path)
        }));
        lines
    }

    /// Values that the request sets, and that the simulation of this turn's last run or change has not.
    pub(super) fn unmet(&self, request: &Request) -> Vec<String> {
        let steps = self.turn_steps();
        let is_act = |step: &&LoggedStep| {
            [tool::LOAD, tool::SET, tool::RUN].contains(&step.tool.as_str()) && step.error.is_none()
        };
        let acted = steps.iter().rev().find(is_act).and_then(|step| {
            step.result.get("simulation_id").or_else(|| step.arguments.get("simulation_id"))
        });
        let Some(id) = acted.and_then(Value::as_str) else { return Vec::new() };
        let models = self.models().unwrap_or_default();
        let path = self.model_of(id).unwrap_or_default();
        let is_other = |chosen: &Model| !path.is_empty() && chosen.path != path;
        if (request.drug.is_some() || request.model.is_some())
            && let Ok(chosen) = self.chosen(request, &models)
            && is_other(&chosen)
        {
            return vec![format!("The request is about {}; {path} was used.", chosen.path)];
        }
        let model = models.iter().find(|model| model.path == path).cloned();
        let model = model.unwrap_or(Model { path: path.clone(), ..Model::default() });
        let is_new = steps.iter().any(|step| step.tool == tool::LOAD);
        let defaults = || self.defaults(&path);
        let base = if is_new { defaults().or_else(|| self.base(id)) } else { self.base(id) };
        let unknown =
            "The program does not know the values that were used, so it did not compare them.";
        let Some(values) = self.values(id).or_else(|| defaults().filter(|_| is_new)) else {
            return vec![unknown.to_owned()];
        };
        let base = base.unwrap_or_else(|| values.clone());
        let Ok(targets) = regimen::targets(request, &model, &base, is_new) else {
            return vec![unknown.to_owned()];
        };
        let differing = targets.iter().filter_map(|target| {
            let now = values.get(target.path)?;
            let (wanted, used) = (request::number(target.value), request::number(now.value));
            let unit = &now.unit;
            (!regimen::same(now.value, target.value)).then(|| {
                format!("The request says {} {wanted} {unit}; {used} {unit} was used.", target.path)
            })
        });
        differing.collect()
    }

    fn shown_change(&self, id: &str, arguments: &Value) -> Vec<String> {
        let path = arguments.get("parameter_path").and_then(Value::as_str).unwrap_or_default();
        let values = self.values(id);
        let now = values.as_ref().and_then(|values| values.get(path));
        now.map(|now| format!("Value Now: {} {}", request::number(now.value), now.unit))
            .into_iter()
            .collect()
    }

    /// The model that a simulation was loaded from.
    fn model_of(&self, id: &str) -> Option<String> {
        let loads = self.intermediate_steps.iter().rev();
        let mut loads = loads.filter(|step| step.tool == tool::LOAD && step.error.is_none());
        let load = loads.find(|step| step.result["simulation_id"] == id)?;
        load.result["model_path"].as_str().map(str::to_owned)
    }
}

/// The values with the one that a call set.
fn changed(values: Option<Values>, result: &Value) -> Option<Values> {
    let mut values = values?;
    let path = result.get("parameter_path")?.as_str()?;
    let (value, unit) = (result.get("value")?.as_f64()?, result.get("unit")?.as_str()?);
    let before = values.get(path)?;
    if before.unit != unit {
        return None;
    }
    let range = before.range;
    values.insert(path.to_owned(), Setting { value, unit: unit.to_owned(), range });
    Some(values)
}

/// The request without the part that was asked about.
fn without(before: &str, question: &Question) -> Option<String> {
    let (start, end) = question.part?;
    let part = &before[start..end];
    // A number of the part would be lost.
    if part.contains(|c: char| c.is_ascii_digit()) || request::names_tablets(part) {
        return None;
    }
    Some(format!("{}{}", &before[..start], &before[end..]))
}

/// The request with the answer in place of what was asked about, after it, and at the end.
fn completions(before: &str, text: &str, question: &Question) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((start, end)) = question.part {
        let (head, part, tail) = (&before[..start], &before[start..end], &before[end..]);
        if request::names_tablets(part) {
            // Their number and their strength belong together: neither replaces the other.
            let leads =
                ["a tablet has", "each tablet has", "each is", "each has", "they are", "of"];
            let mut answer = text.trim();
            for lead in leads {
                answer = answer.strip_prefix(lead).map_or(answer, str::trim);
            }
            let answer = answer.trim_end_matches(['.', '!']).trim_end_matches(" each");
            let answer = answer.trim_end_matches(" per tablet").trim_end_matches(" tablets");
            let whole = request::names_tablets(text).then(|| format!("{head}{text}{tail}"));
            return [
                format!("{head}{part} of {answer}{tail}"),
                format!("{head}{answer} {part}{tail}"),
            ]
            .into_iter()
            .chain(whole)
            .collect();
        }
        all.push(format!("{head}{text}{tail}"));
        let unit = part.trim_start_matches(|c: char| !c.is_ascii_digit());
        let unit = &unit[unit.rfind(|c: char| c.is_ascii_digit()).map_or(0, |last| last + 1)..];
        if text.trim().parse::<f64>().is_ok() && !unit.is_empty() {
            // Of "15-20 mg/kg", "15" is 15 mg/kg.
            all.push(format!("{head}{}{unit}{tail}", text.trim()));
        }
        all.push(format!("{head}{part} {text}{tail}"));
    }
    all.push(format!("{before}, {text}"));
    all
}
