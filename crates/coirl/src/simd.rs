//! Which vector instructions are used, decided in one place for planning and clustering.

use std::sync::LazyLock;

/// Which vector instructions may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Simd {
    /// The widest that this processor has, unless the variable `COIRL_SIMD` of the environment names less.
    #[default]
    Auto,
    /// Only what every processor of this architecture has.
    Portable,
    /// AVX2, if present.
    Avx2,
    /// AVX-512, if present.
    Avx512,
}

/// Whether this processor has AVX2, and AVX-512.
static WIDTHS: LazyLock<(bool, bool)> = LazyLock::new(|| {
    let features = processor_features();
    (features.contains(&"avx2"), features.contains(&"avx512f"))
});

/// What [`Simd::Auto`] means, asked for once: the answer may not change while a program runs.
static WIDEST: LazyLock<Simd> = LazyLock::new(|| {
    let wanted = match std::env::var("COIRL_SIMD").as_deref() {
        Ok("portable") => Simd::Portable,
        Ok("avx2") => Simd::Avx2,
        _ => Simd::Avx512,
    };
    wanted.among(WIDTHS.0, WIDTHS.1)
});

impl Simd {
    /// What will really be used here.
    pub fn resolve(self) -> Simd {
        match self {
            Simd::Auto => *WIDEST,
            named => named.among(WIDTHS.0, WIDTHS.1),
        }
    }

    /// What is used of this where a processor has the one and the other.
    fn among(self, avx2: bool, avx512: bool) -> Simd {
        match self {
            Simd::Auto | Simd::Avx512 if avx2 && avx512 => Simd::Avx512,
            Simd::Auto | Simd::Avx512 | Simd::Avx2 if avx2 => Simd::Avx2,
            _ => Simd::Portable,
        }
    }
}

/// The vector instructions of this processor that this library, or the linear algebra below it, chooses by.
pub fn processor_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("avx", std::arch::is_x86_feature_detected!("avx")),
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ];
        known.into_iter().filter_map(|(name, present)| present.then_some(name)).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::Simd;

    #[test]
    fn no_more_is_used_than_is_there() {
        assert_eq!(Simd::Auto.among(true, true), Simd::Avx512);
        assert_eq!(Simd::Avx2.among(true, true), Simd::Avx2);
        assert_eq!(Simd::Portable.among(true, true), Simd::Portable);
        assert_eq!(Simd::Avx512.among(true, false), Simd::Avx2);
        assert_eq!(Simd::Avx512.among(false, true), Simd::Portable);
        assert_eq!(Simd::Auto.among(false, false), Simd::Portable);
    }
}
