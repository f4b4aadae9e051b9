//! Experiments: which there are, running them, and what they leave behind.

mod given;
mod overview;
mod page;
mod results;
mod running;
mod scenes;
mod shipped;

pub(crate) use given::GivenArgs;
pub(crate) use overview::write_overview;
pub(crate) use page::{read_folder, write_page, write_scenes};
pub(crate) use results::{RESULT_FILES, Results};
pub(crate) use running::{SETTINGS, Task};
pub(crate) use shipped::{SHIPPED, shipped};
