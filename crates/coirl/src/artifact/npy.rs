//! One NumPy array in a stream of bytes, read in pieces.
//!
//! Only the element types come from `npyz`; the header is parsed here, because that crate's parser recurses into nested
//! literals, allocates the length a header claims and multiplies shapes unchecked.

use super::allowance::Allowance;
use super::{NPY_MAGIC, Place};
use crate::error::Result;
use npyz::{Endianness, TypeChar, TypeStr};
use std::io::Read;

/// NumPy itself refuses headers beyond 10,000 characters.
const MAX_HEADER_BYTES: usize = 1 << 16;
/// Bytes decoded at a time.
const CHUNK_BYTES: usize = 1 << 16;
/// Largest integer up to which every integer is a double.
const EXACT_INTEGERS: u64 = 1 << 53;

/// An opened array whose data has not been read yet.
#[derive(Debug)]
pub(super) struct Array<R> {
    place: Place,
    element: TypeStr,
    fortran_order: bool,
    shape: Vec<usize>,
    len: usize,
    data: R,
    allowance: Allowance,
}

/// The elements of an array as numbers, in the order of the file.
#[derive(Debug)]
pub(super) struct Stream<T, R> {
    array: Array<R>,
    /// Elements not yet decoded.
    remaining: usize,
    bytes: Vec<u8>,
    decoded: Vec<T>,
    /// How many of `decoded` have been handed out.
    taken: usize,
}

/// The rows of an array along its last axis, in C order whatever the order of the file.
#[derive(Debug)]
pub(super) enum Rows<T, R> {
    Streamed { stream: Stream<T, R>, row_len: usize },
    // Fortran order: the last axis varies slowest, so the first row is complete only at the end of the file.
    Gathered { values: Vec<T>, shape: Vec<usize>, next: usize },
}

/// What elements are read as.
pub(super) trait Number: Copy {
    /// Appends the elements in `bytes`, or says which element was refused and what it is.
    fn decode(element: &TypeStr, bytes: &[u8], out: &mut Vec<Self>) -> Result<(), (usize, String)>;
    /// What an element must be, for messages.
    const EXPECTED: &'static str;
}

impl<R: Read> Array<R> {
    /// Reads the header. `size` is how many bytes the stream holds; it must be exactly what the header implies.
    pub(super) fn open(place: Place, mut data: R, size: u64, allowance: Allowance) -> Result<Self> {
        let damaged = |place: &Place, error: std::io::Error| place.refuse(format_args!("cannot be read: {error}"));
        let mut start = [0; 8];
        if size < 10 {
            return Err(place.refuse(format_args!("is no NumPy array: it has only {size} bytes")));
        }
        data.read_exact(&mut start).map_err(|error| damaged(&place, error))?;
        if !start.starts_with(NPY_MAGIC) {
            return Err(place.refuse("is no NumPy array: it does not begin with NumPy's mark"));
        }
        let length_bytes = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                return Err(place.refuse(format_args!("has version {version} of the .npy format; known are 1 to 3")));
            }
        };
        let mut length = [0; 4];
        data.read_exact(&mut length[..length_bytes]).map_err(|error| damaged(&place, error))?;
        let header_bytes = u32::from_le_bytes(length) as usize;
        let data_start = (start.len() + length_bytes + header_bytes) as u64;
        if header_bytes > MAX_HEADER_BYTES || data_start > size {
            return Err(place.refuse(format_args!("claims a header of {header_bytes} bytes in an entry of {size}")));
        }
        let mut header = vec![0; header_bytes];
        data.read_exact(&mut header).map_err(|error| damaged(&place, error))?;
        let header = Header::parse(&header).map_err(|reason| place.refuse(reason))?;
        let element = element_type(&header.descr).map_err(|reason| place.refuse(reason))?;

        let len = header.shape.iter().try_fold(1_usize, |product, &axis| product.checked_mul(axis));
        let implied = len.zip(element.num_bytes()).and_then(|(len, bytes)| len.checked_mul(bytes)).map(|n| n as u64);
        let present = size - data_start;
        let (Some(len), true) = (len, implied == Some(present)) else {
            let shape = &header.shape;
            return Err(place.refuse(format_args!(
                "has shape {shape:?} of {element}, which does not fit its {present} bytes of data"
            )));
        };
        Ok(Self { place, element, fortran_order: header.fortran_order, shape: header.shape, len, data, allowance })
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether the elements are 32-bit floats.
    pub(super) fn is_single_precision(&self) -> bool {
        self.element.type_char() == TypeChar::Float && self.element.size_field() == 4
    }

    /// Counts `n` elements that are kept of the array, where it is not kept as a whole.
    pub(super) fn keep<T>(&self, n: usize) -> Result<()> {
        self.allowance.keep::<T>(&self.place, n)
    }

    /// For counting what is kept while the array is read.
    pub(super) fn allowance(&self) -> Allowance {
        self.allowance.clone()
    }

    /// The error for a shape that is not `expected`.
    pub(super) fn wrong_shape(&self, expected: impl std::fmt::Display) -> crate::Error {
        self.place.refuse(format_args!("has shape {:?}; expected {expected}", self.shape))
    }

    /// Refuses anything but a vector.
    pub(super) fn vector(self) -> Result<Self> {
        if self.shape.len() == 1 { Ok(self) } else { Err(self.wrong_shape("a vector")) }
    }

    /// Refuses anything but a vector of `len` elements.
    pub(super) fn vector_of(self, len: usize) -> Result<Self> {
        if self.shape == [len] { Ok(self) } else { Err(self.wrong_shape(format_args!("[{len}]"))) }
    }

    /// The elements in the order of the file.
    pub(super) fn stream<T: Number>(mut self) -> Result<Stream<T, R>> {
        if !matches!(self.element.type_char(), TypeChar::Bool | TypeChar::Int | TypeChar::Uint | TypeChar::Float) {
            return Err(self.place.refuse(format_args!("holds {} elements; expected numbers", self.element)));
        }
        if self.len == 0 {
            self.expect_end()?;
        }
        Ok(Stream { remaining: self.len, array: self, bytes: Vec::new(), decoded: Vec::new(), taken: 0 })
    }

    /// The elements along the last axis, row by row.
    pub(super) fn rows<T: Number>(self) -> Result<Rows<T, R>> {
        let shape = self.shape.clone();
        let gathered = self.fortran_order && shape.len() > 1;
        if !gathered {
            self.keep::<T>(shape.last().copied().unwrap_or(1))?;
        }
        let stream = self.stream()?;
        Ok(if gathered {
            Rows::Gathered { values: stream.collect()?, shape, next: 0 }
        } else {
            Rows::Streamed { stream, row_len: shape.last().copied().unwrap_or(1) }
        })
    }

    /// All elements in C order.
    pub(super) fn numbers<T: Number>(self) -> Result<Vec<T>> {
        let row_len = self.shape.last().copied().unwrap_or(1);
        let len = self.len;
        match self.rows()? {
            Rows::Streamed { stream, .. } => stream.collect(),
            mut rows @ Rows::Gathered { .. } => {
                let mut numbers = Vec::with_capacity(len);
                for _ in 0..len.checked_div(row_len).unwrap_or(0) {
                    rows.next_row(&mut numbers)?;
                }
                Ok(numbers)
            }
        }
    }

    /// The one element of an array of shape `[]` or `[1]`.
    pub(super) fn scalar<T: Number>(self) -> Result<T> {
        let wrong = self.wrong_shape("a single number");
        if self.len != 1 || self.shape.len() > 1 {
            return Err(wrong);
        }
        self.stream()?.collect()?.first().copied().ok_or(wrong)
    }

    /// The one string of an array of shape `[]` or `[1]`, without the zeros that fill it up.
    pub(super) fn text(mut self) -> Result<String> {
        if self.len != 1 || self.shape.len() > 1 {
            return Err(self.wrong_shape("a single string"));
        }
        // `open` has compared this with the size of the entry, and reading stops at its end.
        let size = self.element.num_bytes().unwrap_or(0) as u64;
        self.keep::<u8>(size as usize)?;
        let mut bytes = Vec::new();
        let read = self.data.by_ref().take(size).read_to_end(&mut bytes);
        read.map_err(|error| self.place.refuse(format_args!("cannot be read: {error}")))?;
        self.expect_end()?;
        let text = match self.element.type_char() {
            TypeChar::UnicodeStr => {
                let (code_points, _) = bytes.as_chunks::<4>();
                let little = self.element.endianness() != Endianness::Big;
                let of = |b: &[u8; 4]| if little { u32::from_le_bytes(*b) } else { u32::from_be_bytes(*b) };
                code_points.iter().map(|b| char::from_u32(of(b))).collect::<Option<String>>()
            }
            TypeChar::ByteStr => String::from_utf8(bytes).ok(),
            _ => return Err(self.place.refuse(format_args!("holds {} elements; expected a string", self.element))),
        };
        let text = text.ok_or_else(|| self.place.refuse("is not valid Unicode"))?;
        Ok(text.trim_end_matches('\0').to_owned())
    }

    /// Reading on to the end is what makes an archive compare its checksum.
    fn expect_end(&mut self) -> Result<()> {
        match self.data.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.place.refuse("goes on after its last element")),
            Err(error) => Err(self.place.refuse(format_args!("cannot be read: {error}"))),
        }
    }
}

impl<T: Number, R: Read> Stream<T, R> {
    /// Appends the next `n` elements to `out`.
    pub(super) fn take(&mut self, n: usize, out: &mut Vec<T>) -> Result<()> {
        let mut missing = n;
        while missing > 0 {
            let ready = self.next_chunk(missing)?;
            if ready.is_empty() {
                return Err(self.array.place.refuse("ends early"));
            }
            out.extend_from_slice(ready);
            missing -= ready.len();
        }
        Ok(())
    }

    /// Up to `most` elements that follow; none at the end.
    pub(super) fn next_chunk(&mut self, most: usize) -> Result<&[T]> {
        if self.taken == self.decoded.len() {
            self.refill()?;
        }
        let from = self.taken;
        self.taken = self.decoded.len().min(from.saturating_add(most));
        Ok(&self.decoded[from..self.taken])
    }

    /// All elements. The vector grows with what is read, never by what is claimed.
    pub(super) fn collect(mut self) -> Result<Vec<T>> {
        self.array.keep::<T>(self.remaining)?;
        let mut all = Vec::new();
        loop {
            let chunk = self.next_chunk(usize::MAX)?;
            if chunk.is_empty() {
                all.shrink_to_fit();
                return Ok(all);
            }
            all.extend_from_slice(chunk);
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.array.place
    }

    fn refill(&mut self) -> Result<()> {
        self.decoded.clear();
        self.taken = 0;
        if self.remaining == 0 {
            return Ok(());
        }
        let Array { place, element, data, len, .. } = &mut self.array;
        // `stream` admits number types only, all of which have a size.
        let size = element.num_bytes().unwrap_or(1).max(1);
        let n = self.remaining.min(CHUNK_BYTES / size);
        self.bytes.resize(n * size, 0);
        data.read_exact(&mut self.bytes).map_err(|error| place.refuse(format_args!("cannot be read: {error}")))?;
        T::decode(element, &self.bytes, &mut self.decoded).map_err(|(at, value)| {
            let index = *len - self.remaining + at;
            place.refuse_entry(index, format_args!("is {value}; expected {}", T::EXPECTED))
        })?;
        self.remaining -= n;
        if self.remaining == 0 { self.array.expect_end() } else { Ok(()) }
    }
}

impl<T: Number, R: Read> Rows<T, R> {
    /// Appends the next row to `out`.
    pub(super) fn next_row(&mut self, out: &mut Vec<T>) -> Result<()> {
        match self {
            Rows::Streamed { stream, row_len } => stream.take(*row_len, out),
            Rows::Gathered { values, shape, next } => {
                let (leading, row_len) = (&shape[..shape.len() - 1], shape[shape.len() - 1]);
                // The row's number is its leading indices in C order; in the file the first index varies fastest.
                let mut rest = *next;
                let mut stride = values.len() / row_len.max(1);
                let last_stride = stride;
                let mut start = 0;
                for &axis in leading.iter().rev() {
                    stride /= axis.max(1);
                    start += rest % axis.max(1) * stride;
                    rest /= axis.max(1);
                }
                *next += 1;
                out.extend((0..row_len).map(|j| values[start + j * last_stride]));
                Ok(())
            }
        }
    }
}

impl Number for f64 {
    const EXPECTED: &'static str = "a number that double precision holds exactly";

    fn decode(element: &TypeStr, bytes: &[u8], out: &mut Vec<Self>) -> Result<(), (usize, String)> {
        let exact = |x: i64| if x.unsigned_abs() <= EXACT_INTEGERS { Ok(x as f64) } else { Err(x.to_string()) };
        let big = element.endianness() == Endianness::Big;
        match (element.type_char(), element.size_field()) {
            (TypeChar::Float, 8) => decode_each(bytes, big, out, |b| Ok(f64::from_le_bytes(b))),
            (TypeChar::Float, 4) => decode_each(bytes, big, out, |b| Ok(f32::from_le_bytes(b).into())),
            _ => decode_integers(element, bytes, out, exact),
        }
    }
}

impl Number for i64 {
    const EXPECTED: &'static str = "an integer of 64 bits";

    fn decode(element: &TypeStr, bytes: &[u8], out: &mut Vec<Self>) -> Result<(), (usize, String)> {
        let whole = |x: f64| {
            let exact = x.fract() == 0.0 && x.abs() <= EXACT_INTEGERS as f64;
            if exact { Ok(x as i64) } else { Err(x.to_string()) }
        };
        let big = element.endianness() == Endianness::Big;
        match (element.type_char(), element.size_field()) {
            (TypeChar::Float, 8) => decode_each(bytes, big, out, |b| whole(f64::from_le_bytes(b))),
            (TypeChar::Float, 4) => decode_each(bytes, big, out, |b| whole(f32::from_le_bytes(b).into())),
            _ => decode_integers(element, bytes, out, Ok),
        }
    }
}

fn decode_integers<T>(
    element: &TypeStr,
    bytes: &[u8],
    out: &mut Vec<T>,
    convert: impl Fn(i64) -> Result<T, String>,
) -> Result<(), (usize, String)> {
    let big = element.endianness() == Endianness::Big;
    match (element.type_char(), element.size_field()) {
        (TypeChar::Bool, _) => decode_each(bytes, big, out, |[b]| convert((b != 0).into())),
        (TypeChar::Int, 1) => decode_each(bytes, big, out, |b| convert(i8::from_le_bytes(b).into())),
        (TypeChar::Int, 2) => decode_each(bytes, big, out, |b| convert(i16::from_le_bytes(b).into())),
        (TypeChar::Int, 4) => decode_each(bytes, big, out, |b| convert(i32::from_le_bytes(b).into())),
        (TypeChar::Int, _) => decode_each(bytes, big, out, |b| convert(i64::from_le_bytes(b))),
        (TypeChar::Uint, 1) => decode_each(bytes, big, out, |[b]| convert(b.into())),
        (TypeChar::Uint, 2) => decode_each(bytes, big, out, |b| convert(u16::from_le_bytes(b).into())),
        (TypeChar::Uint, 4) => decode_each(bytes, big, out, |b| convert(u32::from_le_bytes(b).into())),
        _ => decode_each(bytes, big, out, |b| {
            let x = u64::from_le_bytes(b);
            i64::try_from(x).map_err(|_| x.to_string()).and_then(&convert)
        }),
    }
}

fn decode_each<T, const N: usize>(
    bytes: &[u8],
    big_endian: bool,
    out: &mut Vec<T>,
    convert: impl Fn([u8; N]) -> Result<T, String>,
) -> Result<(), (usize, String)> {
    let (elements, _) = bytes.as_chunks::<N>();
    out.reserve(elements.len());
    for (i, &element) in elements.iter().enumerate() {
        let mut little = element;
        if big_endian {
            little.reverse();
        }
        out.push(convert(little).map_err(|value| (i, value))?);
    }
    Ok(())
}

/// The element type of a `descr`, refused unless it is a number or a string.
fn element_type(descr: &str) -> Result<TypeStr, String> {
    let expected = "expected bool, an integer, float32 or float64";
    let element: TypeStr = descr.parse().map_err(|_| format!("has elements of type {descr:?}; {expected}"))?;
    let sized = match element.type_char() {
        TypeChar::Object => {
            return Err(
                "holds Python objects (dtype object), which only unpickling could restore, and unpickling runs \
                        code from the file; save it as numbers or a string"
                    .into(),
            );
        }
        TypeChar::Float => matches!(element.size_field(), 4 | 8),
        TypeChar::Bool | TypeChar::Int | TypeChar::Uint | TypeChar::ByteStr | TypeChar::UnicodeStr => true,
        _ => false,
    };
    if sized { Ok(element) } else { Err(format!("has elements of type {descr:?}; {expected}")) }
}

/// What the header of an array says: a Python dictionary literal of exactly three entries.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut literal = Literal { text, at: 0 };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        literal.expect(b'{')?;
        while !literal.eat(b'}') {
            let key = literal.string()?;
            literal.expect(b':')?;
            match key {
                "descr" if literal.eat(b'[') => return Err("has a structured dtype; expected plain numbers".into()),
                "descr" => descr = Some(literal.string()?.to_owned()),
                "fortran_order" => fortran_order = Some(literal.boolean()?),
                "shape" => shape = Some(literal.shape()?),
                _ => return Err(literal.unreadable()),
            }
            if !literal.eat(b',') {
                literal.expect(b'}')?;
                break;
            }
        }
        match (descr, fortran_order, shape, literal.rest().is_empty()) {
            (Some(descr), Some(fortran_order), Some(shape), true) => Ok(Self { descr, fortran_order, shape }),
            _ => Err(literal.unreadable()),
        }
    }
}

/// A cursor over the few kinds of Python literal that a header may hold. Nothing nests, so nothing recurses.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Literal<'a> {
    fn unreadable(&self) -> String {
        format!("has a header that cannot be read (at byte {} of {})", self.at, self.text.len())
    }

    /// What follows the white space.
    fn rest(&mut self) -> &'a [u8] {
        let blank = self.text[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += blank;
        &self.text[self.at..]
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest().first() == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.eat(byte) { Ok(()) } else { Err(self.unreadable()) }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let rest = self.rest();
        let (Some(&quote @ (b'\'' | b'"')), unquoted) = (rest.first(), rest.get(1..).unwrap_or_default()) else {
            return Err(self.unreadable());
        };
        let end = unquoted.iter().position(|&b| b == quote).ok_or_else(|| self.unreadable())?;
        let string = std::str::from_utf8(&unquoted[..end]).map_err(|_| self.unreadable())?;
        self.at += end + 2;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unreadable())
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let mut shape = Vec::new();
        self.expect(b'(')?;
        while !self.eat(b')') {
            if self.eat(b'-') {
                return Err("has a negative length in its shape".into());
            }
            let rest = self.rest();
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let number = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
            let axis = number.parse().map_err(|_| match digits {
                0 => self.unreadable(),
                _ => format!("has a length of {number} in its shape, more than this machine can address"),
            })?;
            shape.push(axis);
            self.at += digits;
            self.eat(b'L'); // Python 2 marked long integers
            if !self.eat(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, String> {
        Header::parse(text.as_bytes())
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let header = parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }          \n");
        let expected = Header { descr: "<f8".into(), fortran_order: false, shape: vec![3, 4] };
        assert_eq!(header, Ok(expected));
        let shape = |text: &str| parse(text).map(|header| header.shape);
        assert_eq!(shape("{'descr':'<f8','fortran_order':True,'shape':()}"), Ok(vec![]));
        assert_eq!(shape("{'shape': (5L,), 'descr': \"|b1\", 'fortran_order': False}"), Ok(vec![5]));
    }

    #[test]
    fn other_headers_are_refused() {
        let refused = |text: &str| parse(text).expect_err(text);
        assert!(refused("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}").contains("structured"));
        assert!(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}").contains("negative"));
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,)}";
        assert!(refused(huge).contains("99999999999999999999999"));
        for text in
            ["", "{", "{}", "{'descr'", "{'shape': (", "{'shape': (1 2)}", "[[[[", "{'descr': '<f8'} x", "\u{e9}"]
        {
            assert!(refused(text).contains("cannot be read"), "{text}");
        }
    }

    #[test]
    fn rows_of_fortran_order_are_gathered() {
        // a[i, j, k] = 100 i + 10 j + k, stored with the first index fastest.
        let (shape, mut stored) = ([2, 3, 4], Vec::new());
        for k in 0..shape[2] {
            for j in 0..shape[1] {
                stored.extend((0..shape[0]).map(|i| (100 * i + 10 * j + k) as i64));
            }
        }
        let mut rows: Rows<i64, &[u8]> = Rows::Gathered { values: stored, shape: shape.to_vec(), next: 0 };
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                let mut row = Vec::new();
                rows.next_row(&mut row).expect("values are there");
                let expected: Vec<i64> = (0..shape[2]).map(|k| (100 * i + 10 * j + k) as i64).collect();
                assert_eq!(row, expected);
            }
        }
    }
}
