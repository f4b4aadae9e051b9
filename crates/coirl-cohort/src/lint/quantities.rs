//! What clinical columns measure, by their names: the units that each comes in, and what its median can be.

/// A quantity with its units.
#[derive(Debug)]
pub(super) struct Quantity {
    /// Words of column names.
    names: &'static [&'static str],
    /// The first is the one that the others are relative to.
    pub(super) units: &'static [Unit],
    /// Where the median over stays lies, in the first unit; of doses and volumes that of what is not zero.
    pub(super) typical: [f64; 2],
    /// Whether people honestly have a thousandth of what others have, so that a second unit cannot be told from them.
    pub(super) tailed: bool,
}

/// A unit: x in it is `scale` · x + `offset` of x in the first unit of the quantity.
#[derive(Debug)]
pub(super) struct Unit {
    names: &'static [&'static str],
    pub(super) scale: f64,
    pub(super) offset: f64,
}

impl Unit {
    pub(super) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// From the first unit of the quantity.
    pub(super) fn in_it(&self, x: f64) -> f64 {
        self.scale * x + self.offset
    }

    /// To the first unit of the quantity.
    pub(super) fn in_first(&self, x: f64) -> f64 {
        (x - self.offset) / self.scale
    }
}

const fn unit(names: &'static [&'static str], scale: f64) -> Unit {
    Unit { names, scale, offset: 0.0 }
}

const MG_PER_DL: &[&str] = &["mg/dL"];
const MICROMOLES: &[&str] = &["µmol/L", "umol/L", "micromol/L"];
const MILLIMOLES: &[&str] = &["mmol/L", "mM"];
const GRAMS_PER_DL: &[&str] = &["g/dL"];
const GRAMS_PER_L: &[&str] = &["g/L"];
const MMHG: &[&str] = &["mmHg"];
const KILOPASCAL: &[&str] = &["kPa"];
const BILLIONS: &[&str] = &["10^9/L", "E9/L", "K/uL", "K/µL", "x1000", "G/L"];
const PER_MICROLITRE: &[&str] = &["/µL", "/uL", "/mm3"];

const QUANTITIES: [Quantity; 22] = [
    Quantity {
        names: &["temp", "temperature"],
        units: &[
            unit(&["°C", "C", "celsius"], 1.0),
            Unit { names: &["°F", "F", "fahrenheit"], scale: 1.8, offset: 32.0 },
        ],
        typical: [34.0, 40.0],
        tailed: false,
    },
    Quantity {
        names: &["weight", "wt"],
        units: &[unit(&["kg"], 1.0), unit(&["lb", "lbs", "pounds"], 2.204_62), unit(&["g"], 1000.0)],
        typical: [40.0, 125.0],
        tailed: false,
    },
    Quantity {
        names: &["height"],
        units: &[unit(&["cm"], 1.0), unit(&["m"], 0.01), unit(&["in", "inch", "inches"], 0.393_7)],
        typical: [110.0, 200.0],
        tailed: false,
    },
    Quantity {
        names: &["fio2"],
        units: &[unit(&["fraction", "share"], 1.0), unit(&["%", "percent"], 100.0)],
        typical: [0.2, 0.95],
        tailed: false,
    },
    Quantity {
        names: &["spo2", "sao2", "o2saturation"],
        units: &[unit(&["%", "percent"], 1.0), unit(&["fraction", "share"], 0.01)],
        typical: [80.0, 100.0],
        tailed: false,
    },
    Quantity {
        names: &["creatinine", "creat", "crea"],
        units: &[unit(MG_PER_DL, 1.0), unit(MICROMOLES, 88.42)],
        typical: [0.3, 8.0],
        tailed: false,
    },
    Quantity {
        names: &["bilirubin", "bili"],
        units: &[unit(MG_PER_DL, 1.0), unit(MICROMOLES, 17.1)],
        typical: [0.2, 4.0],
        tailed: false,
    },
    Quantity {
        names: &["glucose"],
        units: &[unit(MG_PER_DL, 1.0), unit(MILLIMOLES, 1.0 / 18.016)],
        typical: [60.0, 350.0],
        tailed: false,
    },
    Quantity {
        names: &["lactate"],
        units: &[unit(MILLIMOLES, 1.0), unit(MG_PER_DL, 9.008)],
        typical: [0.5, 7.0],
        tailed: false,
    },
    Quantity {
        names: &["hb", "hgb", "hemoglobin", "haemoglobin"],
        units: &[unit(GRAMS_PER_DL, 1.0), unit(GRAMS_PER_L, 10.0), unit(MILLIMOLES, 0.620_6)],
        typical: [6.0, 18.0],
        tailed: false,
    },
    Quantity {
        names: &["calcium"],
        units: &[unit(MG_PER_DL, 1.0), unit(MILLIMOLES, 0.249_5)],
        typical: [6.0, 12.0],
        tailed: false,
    },
    Quantity {
        names: &["magnesium"],
        units: &[unit(MG_PER_DL, 1.0), unit(MILLIMOLES, 0.411_4)],
        typical: [1.3, 4.0],
        tailed: false,
    },
    Quantity {
        names: &["albumin"],
        units: &[unit(GRAMS_PER_DL, 1.0), unit(GRAMS_PER_L, 10.0)],
        typical: [1.2, 5.5],
        tailed: false,
    },
    Quantity {
        names: &["pao2", "po2"],
        units: &[unit(MMHG, 1.0), unit(KILOPASCAL, 0.133_32)],
        typical: [40.0, 300.0],
        tailed: false,
    },
    Quantity {
        names: &["paco2", "pco2"],
        units: &[unit(MMHG, 1.0), unit(KILOPASCAL, 0.133_32)],
        typical: [20.0, 90.0],
        tailed: false,
    },
    Quantity {
        names: &["sysbp", "meanbp", "diabp", "sbp", "dbp", "mbp", "systolic", "diastolic"],
        units: &[unit(MMHG, 1.0), unit(KILOPASCAL, 0.133_32)],
        typical: [35.0, 200.0],
        tailed: false,
    },
    Quantity {
        names: &["wbc"],
        units: &[unit(BILLIONS, 1.0), unit(PER_MICROLITRE, 1000.0)],
        typical: [1.0, 60.0],
        tailed: false,
    },
    Quantity {
        names: &["platelet", "platelets"],
        units: &[unit(BILLIONS, 1.0), unit(PER_MICROLITRE, 1000.0)],
        typical: [15.0, 900.0],
        tailed: false,
    },
    Quantity {
        names: &["input", "fluid", "fluids", "output", "urine", "urineoutput"],
        units: &[unit(&["mL", "ml"], 1.0), unit(&["L", "litre", "liter"], 0.001)],
        typical: [15.0, 15_000.0],
        tailed: true,
    },
    Quantity {
        names: &["vaso", "vasopressor", "norepinephrine", "noradrenaline", "norepinephrineequivalentdose"],
        units: &[
            unit(&["µg/kg/min", "mcg/kg/min", "ug/kg/min"], 1.0),
            // By a body of 80 kg.
            unit(&["µg/min", "mcg/min", "ug/min"], 80.0),
            unit(&["ng/kg/min"], 1000.0),
        ],
        typical: [0.005, 2.5],
        tailed: false,
    },
    Quantity {
        names: &["hba1c"],
        units: &[unit(&["mmol/mol"], 1.0), Unit { names: &["%", "percent"], scale: 0.091_48, offset: 2.152 }],
        typical: [25.0, 120.0],
        tailed: false,
    },
    Quantity {
        names: &["age"],
        units: &[unit(&["years", "y"], 1.0), unit(&["months"], 12.0), unit(&["days", "d"], 365.25)],
        typical: [0.0, 110.0],
        tailed: false,
    },
];

impl Quantity {
    /// What a column measures. Names that speak of two quantities are of a ratio.
    pub(super) fn of(column: &str) -> Option<&'static Self> {
        let words: Vec<String> = column
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let named = |quantity: &&Quantity| quantity.names.iter().any(|name| words.iter().any(|word| word == name));
        let mut found = QUANTITIES.iter().filter(named);
        match (found.next(), found.next()) {
            (Some(quantity), None) => Some(quantity),
            _ => None,
        }
    }

    /// The place of a unit as it was written, also with what follows: `mL/4h (tev)` is mL.
    pub(super) fn unit(&self, written: &str) -> Option<usize> {
        let written = written.trim();
        let names = |unit: &Unit, matches: &dyn Fn(&str) -> bool| unit.names.iter().any(|name| matches(name));
        let begins = |name: &str| {
            let rest = written
                .get(..name.len())
                .filter(|start| start.eq_ignore_ascii_case(name))
                .map(|_| &written[name.len()..]);
            rest.is_some_and(|rest| rest.is_empty() || !rest.starts_with(char::is_alphanumeric))
        };
        let exact = self.units.iter().position(|unit| names(unit, &|name| written.eq_ignore_ascii_case(name)));
        // The longest first, so that µg/kg/min is not µg.
        exact.or_else(|| self.units.iter().position(|unit| names(unit, &begins)))
    }

    /// Whether a median, in the first unit, is one of this quantity.
    pub(super) fn is_typical(&self, median: f64) -> bool {
        (self.typical[0]..=self.typical[1]).contains(&median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_units_are_known_by_name() {
        let unit = |column: &str, written: &str| {
            let quantity = Quantity::of(column)?;
            quantity.unit(written).map(|at| quantity.units[at].name())
        };
        assert_eq!(unit("o:Temp_C", "C"), Some("°C"));
        assert_eq!(unit("input_4hourly", "mL/4h (tev)"), Some("mL"));
        assert_eq!(unit("max_dose_vaso", "mcg/kg/min NE-eq"), Some("µg/kg/min"));
        assert_eq!(unit("WBC_count", "E9/L"), Some("10^9/L"));
        assert_eq!(unit("Hb", "g/dL"), Some("g/dL"));
        assert_eq!(unit("Hb", "g/L"), Some("g/L"));
        assert_eq!(unit("Creatinine", "furlongs"), None);
        assert!(Quantity::of("PaO2_FiO2").is_none() && Quantity::of("Shock_Index").is_none());
    }

    #[test]
    fn conversions_lead_back() {
        for quantity in &QUANTITIES {
            for unit in quantity.units {
                assert!((unit.in_first(unit.in_it(7.0)) - 7.0).abs() < 1e-9, "{}", unit.name());
            }
        }
    }
}
