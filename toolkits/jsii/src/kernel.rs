//! A connection to a kernel: one request per line, one reply per line.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::handle::Object;
use crate::refusal;
use crate::wire::{FromWire, ToWire};

/// Timeout of a reply. Loading and synthesis take seconds; a kernel that takes minutes hangs.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(180);

/// Largest reply, in bytes. Valid replies are references and short texts.
pub const REPLY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A connection to a kernel. Clones share it.
#[derive(Clone)]
pub struct Kernel(Rc<Inner>);

struct Inner {
    connection: RefCell<Connection>,
    /// The path of each construct in the tree, for messages.
    paths: RefCell<HashMap<String, String>>,
}

struct Connection {
    requests: Box<dyn Write>,
    replies: Receiver<io::Result<String>>,
    process: Option<Child>,
}

impl Kernel {
    /// Connects to a kernel that sends replies on `replies` and reads requests from `requests`.
    ///
    /// # Errors
    /// The kernel does not send its greeting.
    pub fn over(
        replies: impl Read + Send + 'static,
        requests: impl Write + 'static,
    ) -> Result<Self> {
        Self::connect(replies, Box::new(requests), None)
    }

    pub(crate) fn connect(
        replies: impl Read + Send + 'static,
        requests: Box<dyn Write>,
        process: Option<Child>,
    ) -> Result<Self> {
        let connection = Connection { requests, replies: lines(replies), process };
        let call = "starting the kernel";
        let greeting = connection.receive(call)?;
        if greeting["hello"].as_str().is_none() {
            return Err(Error::Protocol {
                call: call.to_owned(),
                what: format!("unexpected greeting {greeting}"),
            });
        }
        Ok(Self(Rc::new(Inner {
            connection: RefCell::new(connection),
            paths: RefCell::new(HashMap::new()),
        })))
    }

    /// Loads a library from its npm tarball. Load its dependencies first.
    ///
    /// # Errors
    /// The kernel cannot load it.
    pub fn load(&self, name: &str, version: &str, tarball: &Path) -> Result<()> {
        let call = format!("loading {name} {version} from {}", tarball.display());
        self.ask(
            &call,
            json!({ "api": "load", "name": name, "version": version, "tarball": tarball }),
        )?;
        Ok(())
    }

    /// Creates an object.
    ///
    /// # Errors
    /// The library rejects the call.
    pub fn create<T: FromWire>(&self, class: &str, arguments: &[&dyn ToWire]) -> Result<T> {
        let arguments = wires(arguments);
        let path = self.path_of_new(&arguments);
        let call = match &path {
            Some(path) => format!("new {class} `{path}`"),
            None => format!("new {class}"),
        };
        let reply = self.ask(&call, json!({ "api": "create", "fqn": class, "args": arguments }))?;
        if let (Some(path), Some(id)) = (path, reply["$jsii.byref"].as_str()) {
            self.0.paths.borrow_mut().insert(id.to_owned(), path);
        }
        self.read(&call, reply)
    }

    /// Calls a static method.
    ///
    /// # Errors
    /// The library rejects the call.
    pub fn call_static<T: FromWire>(
        &self,
        class: &str,
        method: &str,
        arguments: &[&dyn ToWire],
    ) -> Result<T> {
        let call = format!("{class}.{method}");
        let request =
            json!({ "api": "sinvoke", "fqn": class, "method": method, "args": wires(arguments) });
        let mut reply = self.ask(&call, request)?;
        self.read(&call, reply["result"].take())
    }

    /// Reads a static property.
    ///
    /// # Errors
    /// The class has no such property.
    pub fn get_static<T: FromWire>(&self, class: &str, property: &str) -> Result<T> {
        let call = format!("{class}.{property}");
        let mut reply =
            self.ask(&call, json!({ "api": "sget", "fqn": class, "property": property }))?;
        self.read(&call, reply["value"].take())
    }

    /// Ends the kernel and waits for it to exit.
    ///
    /// # Errors
    /// The kernel exits with a failure.
    pub fn exit(self) -> Result<()> {
        let call = "ending the kernel";
        let mut connection = self.0.connection.borrow_mut();
        connection.send(call, &json!({ "exit": 0 }))?;
        let Some(mut process) = connection.process.take() else { return Ok(()) };
        let unreachable = |cause| Error::Unreachable { call: call.to_owned(), cause };
        let status = process.wait().map_err(unreachable)?;
        if status.success() {
            return Ok(());
        }
        Err(unreachable(io::Error::other(format!("it exited with {status}"))))
    }

    pub(crate) fn call<T: FromWire>(
        &self,
        object: &str,
        method: &str,
        arguments: &[&dyn ToWire],
    ) -> Result<T> {
        let call = format!("{}.{method}", self.name_of(object));
        let request = json!({
            "api": "invoke", "objref": { "$jsii.byref": object }, "method": method,
            "args": wires(arguments),
        });
        let mut reply = self.ask(&call, request)?;
        self.read(&call, reply["result"].take())
    }

    pub(crate) fn get<T: FromWire>(&self, object: &str, property: &str) -> Result<T> {
        let call = format!("{}.{property}", self.name_of(object));
        let request =
            json!({ "api": "get", "objref": { "$jsii.byref": object }, "property": property });
        let mut reply = self.ask(&call, request)?;
        self.read(&call, reply["value"].take())
    }

    fn read<T: FromWire>(&self, call: &str, value: Value) -> Result<T> {
        let shown = value.to_string();
        T::from_wire(self, value).ok_or_else(|| Error::Protocol {
            call: call.to_owned(),
            what: format!("{shown} where {} was expected", std::any::type_name::<T>()),
        })
    }

    fn ask(&self, call: &str, request: Value) -> Result<Value> {
        let mut connection = self.0.connection.borrow_mut();
        connection.send(call, &request)?;
        let mut reply = connection.receive(call)?;
        if let Some(error) = reply["error"].as_str() {
            let (property, message) = refusal::read(error);
            return Err(Error::Refused { call: call.to_owned(), property, message });
        }
        match reply.get_mut("ok") {
            Some(ok) => Ok(ok.take()),
            None => Err(Error::Protocol {
                call: call.to_owned(),
                what: format!("unexpected reply {reply}"),
            }),
        }
    }

    /// The first two arguments of a construct are its scope and its id.
    fn path_of_new(&self, arguments: &[Value]) -> Option<String> {
        let [scope, Value::String(id), ..] = arguments else { return None };
        let scope = scope["$jsii.byref"].as_str()?;
        match self.0.paths.borrow().get(scope) {
            Some(path) => Some(format!("{path}/{id}")),
            None => Some(id.clone()),
        }
    }

    fn name_of(&self, object: &str) -> String {
        let class = object.split('@').next().unwrap_or(object);
        match self.0.paths.borrow().get(object) {
            Some(path) => format!("{class} `{path}`"),
            None => class.to_owned(),
        }
    }

    pub(crate) fn object(&self, id: &str) -> Object {
        Object::new(self.clone(), id)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kernel")
    }
}

impl Connection {
    fn send(&mut self, call: &str, request: &Value) -> Result<()> {
        let sent = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        sent.map_err(|cause| Error::Unreachable { call: call.to_owned(), cause })
    }

    fn receive(&self, call: &str) -> Result<Value> {
        let call = || call.to_owned();
        let gone = |cause| Error::Unreachable { call: call(), cause };
        let line = match self.replies.recv_timeout(REPLY_TIMEOUT) {
            Ok(line) => line.map_err(gone)?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(Error::Silent { call: call(), after: REPLY_TIMEOUT });
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(gone(io::ErrorKind::UnexpectedEof.into()));
            }
        };
        serde_json::from_str(&line)
            .map_err(|error| Error::Protocol { call: call(), what: error.to_string() })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // A kernel that is dropped without `exit` belongs to a program that has already failed.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Reads replies in a thread of its own, so that waiting for one can time out. The thread ends with the kernel, or when
/// the receiver is dropped.
fn lines(replies: impl Read + Send + 'static) -> Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut replies = BufReader::new(replies);
        loop {
            let mut line = String::new();
            let read = (&mut replies).take(REPLY_BYTES_MAX).read_line(&mut line);
            let line = match read {
                Ok(0) => return,
                Ok(_) if !line.ends_with('\n') => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a reply is truncated or longer than {REPLY_BYTES_MAX} bytes"),
                )),
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let last = line.is_err();
            if sender.send(line).is_err() || last {
                return;
            }
        }
    });
    receiver
}

fn wires(values: &[&dyn ToWire]) -> Vec<Value> {
    values.iter().map(|value| value.to_wire()).collect()
}
