//! The store of simulations: in memory, or one file each in a folder.
//!
//! In memory, simulations end with the server. An agent that waits for a person stops its servers,
//! and a crashed agent starts new ones; only a folder lets it find its simulations again. A file is
//! replaced as a whole and is on disk before the reply, so an interrupted call either happened or
//! did not, and the reading tools show which.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use files::private;

use super::arguments::SimulationId;
use super::model::Model;
use super::refusal::Refusal;
use super::simulation::{Saved, Simulation};

/// Most simulations. One more evicts the least recently changed one. With the largest results this
/// is about 50 MiB of memory, or three times that on disk.
pub(super) const SIMULATIONS_MAX: usize = 128;

/// File name suffix of a simulation.
const ENDING: &str = "json";

/// Lock file, held while the folder is read and changed: several servers may share it.
const LOCK: &str = "lock";

/// Result of a load.
#[derive(Debug)]
pub(super) struct Loaded {
    pub simulation: Simulation,
    /// Whether the simulation is new.
    pub created: bool,
    /// The simulation that was evicted for it.
    pub evicted: Option<SimulationId>,
}

#[derive(Debug)]
pub(super) struct State {
    storage: Mutex<Storage>,
}

#[derive(Debug)]
enum Storage {
    Memory(Memory),
    Folder(PathBuf),
}

#[derive(Debug, Default)]
struct Memory {
    /// Each with the number of its last change.
    simulations: BTreeMap<SimulationId, (u64, Simulation)>,
    changes: u64,
}

impl State {
    /// An empty store that ends with the server.
    pub(super) fn in_memory() -> Self {
        Self { storage: Mutex::new(Storage::Memory(Memory::default())) }
    }

    /// The simulations of a folder, which is created if missing.
    pub(super) fn in_folder(folder: &Path) -> io::Result<Self> {
        private::folder(folder)?;
        private::file(&folder.join(LOCK))?;
        Ok(Self { storage: Mutex::new(Storage::Folder(folder.to_owned())) })
    }

    /// A copy of the simulation.
    pub(super) fn read(&self, id: &SimulationId) -> Result<Simulation, Refusal> {
        self.open(|storage| storage.get(id)?.ok_or_else(|| Refusal::NoSuchSimulation(id.clone())))
    }

    /// Returns the simulation with this id, or creates it. Without an id, always creates one.
    pub(super) fn load(&self, id: Option<SimulationId>, model: &Model) -> Result<Loaded, Refusal> {
        self.open(|storage| {
            let ids = storage.ids()?;
            let id = id.unwrap_or_else(|| unused(&ids));
            if let Some(simulation) = storage.get(&id)? {
                if simulation.model.name != model.name {
                    let (loaded, asked) = (simulation.model.name, model.name.clone());
                    return Err(Refusal::OtherModel { id, loaded, asked });
                }
                return Ok(Loaded { simulation, created: false, evicted: None });
            }
            let oldest = ids.into_iter().next().filter(|_| storage.len() >= SIMULATIONS_MAX);
            let simulation = Simulation::new(id, model.clone());
            storage.put(&simulation)?;
            if let Some(oldest) = &oldest {
                storage.remove(oldest)?;
            }
            Ok(Loaded { simulation, created: true, evicted: oldest })
        })
    }

    /// Changes a simulation, if `change` succeeds.
    pub(super) fn change<T>(
        &self,
        id: &SimulationId,
        change: impl FnOnce(&mut Simulation) -> Result<T, Refusal>,
    ) -> Result<(T, Simulation), Refusal> {
        self.open(|storage| {
            let simulation = storage.get(id)?;
            let mut simulation = simulation.ok_or_else(|| Refusal::NoSuchSimulation(id.clone()))?;
            let changed = change(&mut simulation)?;
            storage.put(&simulation)?;
            Ok((changed, simulation))
        })
    }

    fn open<T>(&self, act: impl FnOnce(&mut Open<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let mut storage = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        // Closing the file releases the lock.
        let lock = match &*storage {
            Storage::Memory(_) => None,
            Storage::Folder(folder) => Some(locked(folder)?),
        };
        let done = act(&mut Open { storage: &mut storage });
        drop(lock);
        done
    }
}

fn locked(folder: &Path) -> Result<File, Refusal> {
    let lock = File::open(folder.join(LOCK)).and_then(|file| file.lock().map(|()| file));
    lock.map_err(|error| unusable(LOCK, &error))
}

/// A unique id for a simulation without a name.
fn unused(ids: &[SimulationId]) -> SimulationId {
    let taken = ids.iter().filter_map(|id| id.as_str().strip_prefix("sim-")?.parse::<u32>().ok());
    let next = taken.max().unwrap_or(0).saturating_add(1);
    match SimulationId::of(&format!("sim-{next}")) {
        Some(id) => id,
        None => unreachable!("letters, a hyphen and digits are an id"),
    }
}

/// The simulations, under the lock.
struct Open<'a> {
    storage: &'a mut Storage,
}

impl Open<'_> {
    fn get(&self, id: &SimulationId) -> Result<Option<Simulation>, Refusal> {
        match &*self.storage {
            Storage::Memory(memory) => {
                Ok(memory.simulations.get(id).map(|(_, simulation)| simulation.clone()))
            }
            Storage::Folder(folder) => match fs::read(folder.join(file_name(id))) {
                Ok(bytes) => parse(id, &bytes).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(unusable(id.as_str(), &error)),
            },
        }
    }

    fn put(&mut self, simulation: &Simulation) -> Result<(), Refusal> {
        match &mut *self.storage {
            Storage::Memory(memory) => {
                memory.changes += 1;
                let entry = (memory.changes, simulation.clone());
                memory.simulations.insert(simulation.id.clone(), entry);
                Ok(())
            }
            Storage::Folder(folder) => {
                write(folder, simulation).map_err(|error| unusable(simulation.id.as_str(), &error))
            }
        }
    }

    fn remove(&mut self, id: &SimulationId) -> Result<(), Refusal> {
        match &mut *self.storage {
            Storage::Memory(memory) => {
                memory.simulations.remove(id);
                Ok(())
            }
            Storage::Folder(folder) => fs::remove_file(folder.join(file_name(id)))
                .map_err(|error| unusable(id.as_str(), &error)),
        }
    }

    fn len(&self) -> usize {
        self.ids().map_or(0, |ids| ids.len())
    }

    /// All ids, the least recently changed first.
    fn ids(&self) -> Result<Vec<SimulationId>, Refusal> {
        match &*self.storage {
            Storage::Memory(memory) => {
                let mut ids: Vec<_> =
                    memory.simulations.iter().map(|(id, (change, _))| (*change, id)).collect();
                ids.sort();
                Ok(ids.into_iter().map(|(_, id)| id.clone()).collect())
            }
            Storage::Folder(folder) => {
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
    // The lock admits one writer, so one temporary name is enough.
    let unfinished = folder.join("unfinished");
    let mut file = private::file(&unfinished)?;
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
