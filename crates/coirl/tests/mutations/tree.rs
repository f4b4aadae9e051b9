//! A tree of JSON.

use super::{EDGES, EXTREMES, one_of, place};
use rand::RngExt;
use rand_chacha::ChaCha8Rng as Random;
use serde_json::{Number, Value, json};

/// Changes one node: its value, what is below it, or every number that equals it.
pub(crate) fn tree(random: &mut Random, root: &mut Value) {
    let n = count(root);
    let chosen = node(root, &mut place(random, n)).clone();
    let donor = node(root, &mut place(random, n)).clone();
    let new = hostile(random);
    let at = &mut place(random, n);
    if random.random_range(0..6) == 0 && chosen.is_number() {
        // Counts that are said in several places stay in step.
        replace_all(root, &chosen, &new);
        return;
    }
    let target = node(root, at);
    match (random.random_range(0..6), target) {
        (0, target) => *target = donor,
        (1, Value::Array(list)) if !list.is_empty() => {
            let i = place(random, list.len());
            drop(list.remove(i));
        }
        (1, Value::Object(fields)) if !fields.is_empty() => {
            let key = fields.keys().nth(place(random, fields.len())).cloned();
            drop(fields.remove(&key.unwrap_or_default()));
        }
        (2, Value::Array(list)) => {
            let times = *one_of(random, &[1, 1, 200]);
            list.extend(std::iter::repeat_n(donor, times));
        }
        (2, Value::Object(fields)) => drop(fields.insert("unheard_of".into(), donor)),
        (3, target @ (Value::Object(_) | Value::Array(_))) => *target = Value::Array(vec![target.take()]),
        (_, target) => *target = new,
    }
}

fn hostile(random: &mut Random) -> Value {
    match random.random_range(0..10) {
        0..=4 => Value::from(*one_of(random, &EDGES)),
        5 => json!(-1 - *one_of(random, &[0_i64, i64::MAX])),
        6 | 7 => Number::from_f64(*one_of(random, &EXTREMES)).map_or(Value::Null, Value::Number),
        8 => one_of(random, &[json!(null), json!(true), json!([]), json!({}), json!(""), json!([[]])]).clone(),
        _ => Value::from("x".repeat(*one_of(random, &[1, 50, 5000]))),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The node of this number, in the order of [`count`].
fn node<'a>(value: &'a mut Value, number: &mut usize) -> &'a mut Value {
    if *number == 0 || !(value.is_array() || value.is_object()) {
        return value;
    }
    *number -= 1;
    let mut below: Vec<&mut Value> = match value {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    };
    let mut chosen = 0;
    for (i, child) in below.iter().enumerate() {
        let n = count(child);
        if *number < n {
            chosen = i;
            break;
        }
        *number -= n;
    }
    node(below.swap_remove(chosen), number)
}

fn replace_all(value: &mut Value, old: &Value, new: &Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|child| replace_all(child, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|child| replace_all(child, old, new)),
        _ if value == old => *value = new.clone(),
        _ => {}
    }
}
