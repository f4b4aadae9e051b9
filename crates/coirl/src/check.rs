//! Checks of input that refuse with the name of what was wrong, the value, and what was expected; for methods of your own too.

pub use crate::error::{
    LEAST_STRENGTH, MOST_NUMBERS, check_finite, check_length, check_not_negative, check_positive, check_room,
};
