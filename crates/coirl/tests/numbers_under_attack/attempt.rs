//! One attempt: on a thread of its own, so that a hang and a panic are told with the name of what caused them.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Far beyond what any attempt takes: it tells a hang from work, and says nothing about speed.
const HANG: Duration = Duration::from_secs(120);

/// What an attempt returns. One that does not come back, or panics, fails the test under its own name.
pub(crate) fn attempt<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = channel();
    let worker = std::thread::spawn(move || {
        let result = work();
        // Nobody waits any more for what came too late.
        let _ = done.send(result);
    });
    match wait.recv_timeout(HANG) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{name}: no answer within {HANG:?}"),
        Err(RecvTimeoutError::Disconnected) => {
            let payload = worker.join().err();
            let text = payload.as_ref().and_then(|p| {
                p.downcast_ref::<String>().map(String::as_str).or_else(|| p.downcast_ref::<&str>().copied())
            });
            panic!("{name}: {}", text.unwrap_or("panicked"));
        }
    }
}
