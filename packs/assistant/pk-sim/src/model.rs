//! Model files: their format and validation.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kinetics::{Disposition, Input, Regimen};
use super::parameter::{self, ParameterPath};

use ParameterPath as P;

/// Longest name of a model, in characters.
pub(super) const NAME_CHARS_MAX: usize = 64;

/// Largest model file, in bytes. The largest bundled one has less than 3 KiB.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Most models in a folder.
const MODELS_MAX: usize = 200;

/// The bundled models, by name.
const SHIPPED: [(&str, &str); 3] = [
    ("gentamicin-bolus", include_str!("models/gentamicin-bolus.json")),
    ("theophylline-oral", include_str!("models/theophylline-oral.json")),
    ("vancomycin-infusion", include_str!("models/vancomycin-infusion.json")),
];

/// Route of administration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Route {
    IvBolus,
    IvInfusion,
    Oral,
}

/// Number of compartments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub(super) enum Compartments {
    One,
    Two,
}

impl TryFrom<u8> for Compartments {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            _ => Err(format!("`compartments` must be 1 or 2, not {number}")),
        }
    }
}

impl From<Compartments> for u8 {
    fn from(compartments: Compartments) -> u8 {
        match compartments {
            Compartments::One => 1,
            Compartments::Two => 2,
        }
    }
}

/// A parameter in a file. All three numbers are in its unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    value: f64,
    unit: String,
    min: f64,
    max: f64,
}

/// A model file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    drug: String,
    description: String,
    source: String,
    route: Route,
    compartments: Compartments,
    parameters: BTreeMap<String, Entry>,
}

/// A parameter's default value and its range, in the canonical unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub initial: f64,
    pub min: f64,
    pub max: f64,
}

/// A valid model: it has every parameter that its kind needs, and no other.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub name: String,
    pub drug: String,
    pub description: String,
    /// Source of its numbers.
    pub source: String,
    pub route: Route,
    pub compartments: Compartments,
    pub ranges: BTreeMap<ParameterPath, Range>,
    /// The source text of the file.
    pub text: String,
}

/// Why a text is not a valid model.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{0}")]
pub(super) struct NotAModel(String);

impl Model {
    /// Reads a model file.
    ///
    /// # Errors
    /// [`NotAModel`], which names the field.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, NotAModel> {
        let written: Written =
            serde_json::from_str(text).map_err(|error| NotAModel(error.to_string()))?;
        let needed = needed(written.route, written.compartments);
        let mut ranges = BTreeMap::new();
        for (path, entry) in &written.parameters {
            let known = ParameterPath::of(path).filter(|path| needed.contains(path));
            let path = known.ok_or_else(|| {
                NotAModel(format!(
                    "`parameters` has `{path}`, which this kind of model does not have"
                ))
            })?;
            ranges.insert(path, range(path, entry)?);
        }
        if let Some(missing) = needed.iter().find(|path| !ranges.contains_key(path)) {
            return Err(NotAModel(format!("`parameters` lacks `{missing}`")));
        }
        Ok(Self {
            name: name.to_owned(),
            drug: written.drug,
            description: written.description,
            source: written.source,
            route: written.route,
            compartments: written.compartments,
            ranges,
            text: text.to_owned(),
        })
    }

    /// The values of a newly loaded simulation.
    pub(super) fn initial(&self) -> BTreeMap<ParameterPath, f64> {
        self.ranges.iter().map(|(path, range)| (*path, range.initial)).collect()
    }

    /// The regimen of these values, which must include every parameter of the model.
    pub(super) fn regimen(&self, values: &BTreeMap<ParameterPath, f64>) -> Regimen {
        let of = |path: ParameterPath| values[&path];
        let (clearance, central) = (of(P::Clearance), of(P::CentralVolume));
        let disposition = match self.compartments {
            Compartments::One => Disposition::one_compartment(clearance, central),
            Compartments::Two => {
                let (exchange, peripheral) =
                    (of(P::IntercompartmentalClearance), of(P::PeripheralVolume));
                Disposition::two_compartments(clearance, central, exchange, peripheral)
            }
        };
        let (input, absorbed) = match self.route {
            Route::IvBolus => (Input::Bolus, 1.0),
            Route::IvInfusion => (Input::Infusion { duration: of(P::InfusionDuration) }, 1.0),
            Route::Oral => {
                let input = Input::FirstOrder { rate: of(P::AbsorptionRate), lag: of(P::LagTime) };
                (input, of(P::Bioavailability))
            }
        };
        let doses = whole(of(P::Doses));
        Regimen {
            disposition,
            input,
            dose: of(P::Dose) * absorbed,
            interval: of(P::Interval),
            doses,
        }
    }
}

/// A validated count as an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked where it came in"
)]
pub(super) fn whole(count: f64) -> u32 {
    count as u32
}

/// The parameters that this kind of model needs.
fn needed(route: Route, compartments: Compartments) -> Vec<ParameterPath> {
    let is_of = |path: &ParameterPath| match path {
        P::InfusionDuration => route == Route::IvInfusion,
        P::AbsorptionRate | P::Bioavailability | P::LagTime => route == Route::Oral,
        P::IntercompartmentalClearance | P::PeripheralVolume => compartments == Compartments::Two,
        _ => true,
    };
    parameter::ALL.into_iter().filter(is_of).collect()
}

fn range(path: ParameterPath, entry: &Entry) -> Result<Range, NotAModel> {
    let dimension = path.dimension();
    let convert = |value| dimension.convert(value, &entry.unit);
    let (Some(initial), Some(min), Some(max)) =
        (convert(entry.value), convert(entry.min), convert(entry.max))
    else {
        let (unit, accepted) = (&entry.unit, dimension.accepted());
        return Err(NotAModel(format!("`{path}` has the unit `{unit}`; accepted is {accepted}")));
    };
    let (least, most) = path.widest();
    if !(least <= min && min <= initial && initial <= max && max <= most) {
        let unit = dimension.canonical();
        return Err(NotAModel(format!(
            "`{path}` must have min \u{2264} value \u{2264} max, all within {least} to {most} {unit}"
        )));
    }
    if dimension == super::unit::Dimension::Count && initial.fract() != 0.0 {
        return Err(NotAModel(format!("`{path}` must be a whole number, not {initial}")));
    }
    Ok(Range { initial, min, max })
}

/// Whether this is a valid model name. It is also a file name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The available models. The server reads and validates all of them at startup.
#[derive(Debug)]
pub(super) struct Library {
    models: BTreeMap<String, Model>,
}

/// Why a folder of models cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The folder or a file in it cannot be read. Name another folder.
    #[error("cannot read {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file is not a valid model. Its author must fix it.
    #[error("{} is not a valid model: {problem}", path.display())]
    Malformed { path: PathBuf, problem: String },
    /// The folder holds too many models.
    #[error("{} holds more than {MODELS_MAX} models", .0.display())]
    TooMany(PathBuf),
}

impl Library {
    pub(super) fn shipped() -> Self {
        let parse = |(name, text): (&str, &str)| match Model::parse(name, text) {
            Ok(model) => (name.to_owned(), model),
            Err(error) => unreachable!("a test reads every bundled model: {name}: {error}"),
        };
        Self { models: SHIPPED.into_iter().map(parse).collect() }
    }

    /// The bundled models and those of a folder, each in a file `NAME.json`. The folder's models
    /// take precedence.
    ///
    /// # Errors
    /// [`LibraryError`], at the first invalid file.
    pub(super) fn with_folder(folder: &Path) -> Result<Self, LibraryError> {
        let mut library = Self::shipped();
        let unreadable = |source| LibraryError::Unreadable { path: folder.to_owned(), source };
        for (index, entry) in std::fs::read_dir(folder).map_err(unreadable)?.enumerate() {
            if index >= MODELS_MAX {
                return Err(LibraryError::TooMany(folder.to_owned()));
            }
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let malformed =
                |problem: String| LibraryError::Malformed { path: path.clone(), problem };
            let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|name| is_name(name));
            let name = name.ok_or_else(|| {
                malformed(format!("its name must be 1 to {NAME_CHARS_MAX} of a to z, 0 to 9 and -"))
            })?;
            let text = read(&path)
                .map_err(|source| LibraryError::Unreadable { path: path.clone(), source })?;
            let model = Model::parse(name, &text).map_err(|error| malformed(error.to_string()))?;
            library.models.insert(name.to_owned(), model);
        }
        Ok(library)
    }

    pub(super) fn model(&self, name: &str) -> Option<&Model> {
        self.models.get(name)
    }

    /// All models, by name.
    pub(super) fn models(&self) -> impl Iterator<Item = &Model> {
        self.models.values()
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_models_are_valid_and_cite_their_sources() {
        let library = Library::shipped();
        let names: Vec<_> = library.models().map(|model| model.name.as_str()).collect();
        assert_eq!(names, SHIPPED.map(|(name, _)| name));
        for model in library.models() {
            assert!(is_name(&model.name) && model.source.len() > 40, "{}", model.name);
        }
    }

    #[test]
    fn what_is_wrong_with_a_model_is_named() {
        let edited = |from: &str, to: &str| {
            let text = SHIPPED[1].1;
            assert!(text.contains(from), "{from}");
            Model::parse("m", &text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        let said = [
            ("{", "["),
            ("\"oral\"", "\"nasal\""),
            ("\"compartments\": 1", "\"compartments\": 3"),
            ("\"compartments\": 1", "\"compartments\": 2"),
            ("\"oral\"", "\"iv_bolus\""),
            ("\"unit\": \"mg\"", "\"unit\": \"mL\""),
            ("Drug|LagTime", "Drug|Lag"),
            ("\"value\": 320", "\"value\": -320"),
            ("\"value\": 320", "\"value\": 1e300"),
            ("\"source\"", "\"sauce\""),
        ]
        .map(|(from, to)| edited(from, to));
        insta::assert_snapshot!(said.join("\n"), @"
        expected `,` or `]` at line 2 column 9
        unknown variant `nasal`, expected one of `iv_bolus`, `iv_infusion`, `oral` at line 5 column 18
        `compartments` must be 1 or 2, not 3 at line 6 column 19
        `parameters` lacks `Drug|IntercompartmentalClearance`
        `parameters` has `Drug|AbsorptionRate`, which this kind of model does not have
        `Dosing|Dose` has the unit `mL`; accepted is kg, g, mg, ug (mcg, µg) or ng
        `parameters` has `Drug|Lag`, which this kind of model does not have
        `Dosing|Dose` must have min ≤ value ≤ max, all within 0 to 1000000 mg
        `Dosing|Dose` must have min ≤ value ≤ max, all within 0 to 1000000 mg
        unknown field `sauce`, expected one of `drug`, `description`, `source`, `route`, `compartments`, `parameters` at line 4 column 9
        ");
    }
}
