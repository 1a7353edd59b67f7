//! A collection of values in chunks of memory that never move. The numbers of removed values are reused.

const CHUNK: usize = if cfg!(miri) { 16 } else { 1024 };

/// Values that are accessed by their numbers.
pub(super) struct Slab<T> {
    chunks: Vec<Box<[Option<T>; CHUNK]>>,
    /// The numbers of removed values.
    free: Vec<u32>,
    /// The lowest number that has never been assigned.
    used: u32,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab {
            chunks: Vec::new(),
            free: Vec::new(),
            used: 0,
        }
    }

    /// Returns the number of the value that is added next.
    pub(super) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.used)
    }

    /// Adds a value. Returns its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            if self.used as usize == self.chunks.len() * CHUNK {
                let chunk: Box<[Option<T>]> = (0..CHUNK).map(|_| None).collect();
                let chunk = chunk.try_into().ok().expect("it has that length");
                self.chunks.push(chunk);
            }
            self.used += 1;
            self.used - 1
        });
        self.chunks[number as usize / CHUNK][number as usize % CHUNK] = Some(value);
        number
    }

    /// Removes and returns the value with this number.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.chunks[number as usize / CHUNK][number as usize % CHUNK].take();
        if value.is_some() {
            self.free.push(number);
        }
        value
    }

    /// Removes and returns all values.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        let all = std::mem::replace(self, Slab::new());
        all.chunks.into_iter().flat_map(|chunk| *chunk).flatten()
    }

    /// Returns the value with this number, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let chunk = self.chunks.get(number as usize / CHUNK)?;
        chunk[number as usize % CHUNK].as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(number as usize / CHUNK)?;
        chunk[number as usize % CHUNK].as_mut()
    }

    /// Iterates over all values by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_values_stay_where_they_are() {
        let mut slab = Slab::new();
        let count = CHUNK as u32 + 10;
        let numbers: Vec<u32> = (0..count).map(|n| slab.insert(n * 3)).collect();
        assert!(numbers.iter().copied().eq(0..count));
        let place: *const u32 = slab.get(5).unwrap();
        assert_eq!(slab.remove(7), Some(21));
        assert_eq!((slab.remove(7), slab.get(7)), (None, None));
        assert_eq!(slab.insert(1), 7);
        assert_eq!(slab.insert(2), count);
        assert_eq!(slab.get(5).unwrap() as *const u32, place);
        assert_eq!(slab.get(99 * CHUNK as u32), None);
        *slab.get_mut(7).unwrap() = 4;
        assert_eq!(slab.iter().count() as u32, count + 1);
        assert_eq!(slab.get(7), Some(&4));
    }
}
