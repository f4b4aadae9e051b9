//! Work beside the interpreter: on threads of our own, interruptible, and safe after a fork.
//!
//! Signals reach the main thread of Python only. It therefore waits for the work, detached from the interpreter, and looks for signals from time to time. Work
//! that can stop is asked to and gives back what it has; work that cannot is left to end by itself, and its result is dropped.

use crate::errors;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The threads of a process. A forked process has the memory of its parent but not its threads, so it starts its own.
struct Pool {
    process: u32,
    wanted: Option<usize>,
    threads: Option<Arc<rayon::ThreadPool>>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { process: 0, wanted: None, threads: None });

fn pool() -> PyResult<Arc<rayon::ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let (Some(threads), true) = (&pool.threads, pool.process == process) {
        return Ok(threads.clone());
    }
    let mut builder = rayon::ThreadPoolBuilder::new();
    if let Some(n) = pool.wanted {
        builder = builder.num_threads(n);
    }
    let threads =
        Arc::new(builder.build().map_err(|error| errors::internal(format!("starting the threads: {error}")))?);
    // Threads of a parent cannot be joined here; they are forgotten.
    if let (Some(old), true) = (pool.threads.take(), pool.process != process) {
        std::mem::forget(old);
    }
    (pool.process, pool.threads) = (process, Some(threads.clone()));
    Ok(threads)
}

/// How many threads work; `None` for one per processor. Results do not depend on it.
#[pyfunction]
#[pyo3(signature = (n))]
pub(crate) fn set_threads(n: Option<usize>) -> PyResult<()> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    pool.wanted = n;
    pool.threads = None;
    Ok(())
}

/// How many threads work.
#[pyfunction]
pub(crate) fn threads() -> PyResult<usize> {
    Ok(pool()?.current_num_threads())
}

/// Whether work is asked to stop.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does something short with the interpreter released, on this thread.
pub(crate) fn at_once<T: Send>(py: Python<'_>, work: impl FnOnce() -> coirl::Result<T> + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|_| errors::panicked())?.map_err(|error| errors::raised(py, error))
}

/// Does something on the threads, dropped at a signal.
pub(crate) fn on_threads<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> coirl::Result<T> + Send + 'static,
) -> PyResult<T> {
    on_threads_until(py, &Stop::default(), work)
}

/// Runs work that looks at `stop` from time to time, so that what was dropped does not go on for long.
pub(crate) fn on_threads_until<T: Send + 'static>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> coirl::Result<T> + Send + 'static,
) -> PyResult<T> {
    let mut running = start(work)?;
    loop {
        match wait(py, running) {
            Waited::Done(done) => return done?.map_err(|error| errors::raised(py, error)),
            Waited::Still(still) => running = still,
        }
        if let Err(error) = py.check_signals() {
            stop.0.store(true, Ordering::Relaxed);
            return Err(error);
        }
    }
}

/// Runs work whose part is worth keeping: at the first signal it is asked to stop, and its result comes with the error that the signal
/// raised; a second one drops it.
pub(crate) fn stoppable<T: Send + 'static>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> coirl::Result<T> + Send + 'static,
) -> PyResult<(coirl::Result<T>, Option<PyErr>)> {
    let mut running = start(work)?;
    let mut signalled: Option<PyErr> = None;
    loop {
        match wait(py, running) {
            Waited::Done(done) => return Ok((done?, signalled)),
            Waited::Still(still) => running = still,
        }
        if let Err(error) = py.check_signals() {
            if signalled.is_some() {
                return Err(error);
            }
            signalled = Some(error);
            stop.0.store(true, Ordering::Relaxed);
        }
    }
}

type Running<T> = Receiver<std::thread::Result<coirl::Result<T>>>;

fn start<T: Send + 'static>(work: impl FnOnce() -> coirl::Result<T> + Send + 'static) -> PyResult<Running<T>> {
    let (sender, receiver) = channel();
    pool()?.spawn(move || {
        // Nobody may be waiting any more.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    Ok(receiver)
}

enum Waited<T> {
    Done(PyResult<coirl::Result<T>>),
    Still(Running<T>),
}

fn wait<T: Send>(py: Python<'_>, running: Running<T>) -> Waited<T> {
    let (received, running) = py.detach(move || (running.recv_timeout(LOOK_EVERY), running));
    match received {
        Ok(done) => Waited::Done(done.map_err(|_| errors::panicked())),
        Err(RecvTimeoutError::Timeout) => Waited::Still(running),
        Err(RecvTimeoutError::Disconnected) => Waited::Done(Err(errors::panicked())),
    }
}
