//! Which simulations there are: in memory, or one file each in a folder.
//!
//! In memory they end with the server. An agent that waits for a person is stopped with its
//! servers, and one that crashed is started again with new ones; to find its simulations there
//! again, the server needs a folder. A file is replaced as a whole and is on disk before the reply,
//! so that a call that was cut off has happened or has not, and the reading tools say which.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::arguments::SimulationId;
use super::model::Model;
use super::refusal::Refusal;
use super::simulation::{Saved, Simulation};

/// Most simulations. A further one takes the place of the one that was changed longest ago. At the
/// most points that each can have it is some 50 MiB of memory, or three times that on disk.
pub(super) const SIMULATIONS_MAX: usize = 128;

/// What a simulation's file name ends with.
const ENDING: &str = "json";

/// Held while the folder is read and changed, for several servers may share it.
const LOCK: &str = "lock";

/// How a load went.
#[derive(Debug)]
pub(super) struct Loaded {
    pub simulation: Simulation,
    /// Whether it was not there before.
    pub created: bool,
    /// The simulation that made room for it.
    pub evicted: Option<SimulationId>,
}

/// The simulations.
#[derive(Debug)]
pub(super) struct State {
    place: Mutex<Place>,
}

#[derive(Debug)]
enum Place {
    Memory(Memory),
    Folder(PathBuf),
}

#[derive(Debug, Default)]
struct Memory {
    /// Each with the number of the change that it was last part of.
    simulations: BTreeMap<SimulationId, (u64, Simulation)>,
    changes: u64,
}

impl State {
    /// None yet, and none that outlives the server.
    pub(super) fn in_memory() -> Self {
        Self { place: Mutex::new(Place::Memory(Memory::default())) }
    }

    /// Those of a folder, which is made if it is not there.
    pub(super) fn in_folder(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        File::create(folder.join(LOCK))?;
        Ok(Self { place: Mutex::new(Place::Folder(folder.to_owned())) })
    }

    /// The simulation as it is.
    pub(super) fn read(&self, id: &SimulationId) -> Result<Simulation, Refusal> {
        self.open(|place| place.get(id)?.ok_or_else(|| Refusal::NoSuchSimulation(id.clone())))
    }

    /// The simulation of this id, new if there is none; with no id, always a new one.
    pub(super) fn load(&self, id: Option<SimulationId>, model: &Model) -> Result<Loaded, Refusal> {
        self.open(|place| {
            let ids = place.ids()?;
            let id = id.unwrap_or_else(|| unused(&ids));
            if let Some(simulation) = place.get(&id)? {
                if simulation.model.name != model.name {
                    let (loaded, asked) = (simulation.model.name, model.name.clone());
                    return Err(Refusal::OtherModel { id, loaded, asked });
                }
                return Ok(Loaded { simulation, created: false, evicted: None });
            }
            let oldest = ids.into_iter().next().filter(|_| place.len() >= SIMULATIONS_MAX);
            let simulation = Simulation::new(id, model.clone());
            place.put(&simulation)?;
            if let Some(oldest) = &oldest {
                place.remove(oldest)?;
            }
            Ok(Loaded { simulation, created: true, evicted: oldest })
        })
    }

    /// Changes a simulation, if `change` goes well.
    pub(super) fn change<T>(
        &self,
        id: &SimulationId,
        change: impl FnOnce(&mut Simulation) -> Result<T, Refusal>,
    ) -> Result<(T, Simulation), Refusal> {
        self.open(|place| {
            let simulation = place.get(id)?;
            let mut simulation = simulation.ok_or_else(|| Refusal::NoSuchSimulation(id.clone()))?;
            let changed = change(&mut simulation)?;
            place.put(&simulation)?;
            Ok((changed, simulation))
        })
    }

    fn open<T>(&self, act: impl FnOnce(&mut Open<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock ends with the file.
        let lock = match &*place {
            Place::Memory(_) => None,
            Place::Folder(folder) => Some(locked(folder)?),
        };
        let done = act(&mut Open { place: &mut place });
        drop(lock);
        done
    }
}

fn locked(folder: &Path) -> Result<File, Refusal> {
    let lock = File::open(folder.join(LOCK)).and_then(|file| file.lock().map(|()| file));
    lock.map_err(|error| unusable(LOCK, &error))
}

/// An id of its own for a simulation that was given none.
fn unused(ids: &[SimulationId]) -> SimulationId {
    let taken = ids.iter().filter_map(|id| id.as_str().strip_prefix("sim-")?.parse::<u32>().ok());
    let next = taken.max().unwrap_or(0).saturating_add(1);
    match SimulationId::of(&format!("sim-{next}")) {
        Some(id) => id,
        None => unreachable!("letters, a hyphen and digits are an id"),
    }
}

/// The simulations, while nobody else changes them.
struct Open<'a> {
    place: &'a mut Place,
}

impl Open<'_> {
    fn get(&self, id: &SimulationId) -> Result<Option<Simulation>, Refusal> {
        match &*self.place {
            Place::Memory(memory) => {
                Ok(memory.simulations.get(id).map(|(_, simulation)| simulation.clone()))
            }
            Place::Folder(folder) => match fs::read(folder.join(file_name(id))) {
                Ok(bytes) => parse(id, &bytes).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(unusable(id.as_str(), &error)),
            },
        }
    }

    fn put(&mut self, simulation: &Simulation) -> Result<(), Refusal> {
        match &mut *self.place {
            Place::Memory(memory) => {
                memory.changes += 1;
                let entry = (memory.changes, simulation.clone());
                memory.simulations.insert(simulation.id.clone(), entry);
                Ok(())
            }
            Place::Folder(folder) => {
                write(folder, simulation).map_err(|error| unusable(simulation.id.as_str(), &error))
            }
        }
    }

    fn remove(&mut self, id: &SimulationId) -> Result<(), Refusal> {
        match &mut *self.place {
            Place::Memory(memory) => {
                memory.simulations.remove(id);
                Ok(())
            }
            Place::Folder(folder) => fs::remove_file(folder.join(file_name(id)))
                .map_err(|error| unusable(id.as_str(), &error)),
        }
    }

    fn len(&self) -> usize {
        self.ids().map_or(0, |ids| ids.len())
    }

    /// All ids, the one that was changed longest ago first.
    fn ids(&self) -> Result<Vec<SimulationId>, Refusal> {
        match &*self.place {
            Place::Memory(memory) => {
                let mut ids: Vec<_> =
                    memory.simulations.iter().map(|(id, (change, _))| (*change, id)).collect();
                ids.sort();
                Ok(ids.into_iter().map(|(_, id)| id.clone()).collect())
            }
            Place::Folder(folder) => {
                listed(folder).map_err(|error| unusable("the simulations", &error))
            }
        }
    }
}

fn listed(folder: &Path) -> io::Result<Vec<SimulationId>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_ours = path.extension().is_some_and(|extension| extension == ENDING);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_ours);
        if let Some(id) = stem.and_then(SimulationId::of) {
            found.push((entry.metadata()?.modified()?, id));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, id)| id).collect())
}

fn file_name(id: &SimulationId) -> String {
    format!("{id}.{ENDING}")
}

fn write(folder: &Path, simulation: &Simulation) -> io::Result<()> {
    let bytes = serde_json::to_vec(&Saved::from(simulation))?;
    // Under the lock there is one writer, so that one name does for all.
    let unfinished = folder.join("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(file_name(&simulation.id)))?;
    File::open(folder)?.sync_all()
}

fn parse(id: &SimulationId, bytes: &[u8]) -> Result<Simulation, Refusal> {
    let problem = match serde_json::from_slice::<Saved>(bytes) {
        Ok(saved) => match saved.read(id.clone()) {
            Ok(simulation) => return Ok(simulation),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    Err(Refusal::State { id: id.to_string(), problem })
}

fn unusable(id: &str, error: &io::Error) -> Refusal {
    Refusal::State { id: id.to_owned(), problem: error.to_string() }
}
