//! Memory for things that wait, used again by size.
//!
//! What waits for a time far ahead begins in a small buffer, and moves to one of twice the capacity
//! when that is full. So what buffers take depends on what is in them, not on what once was in
//! others.

/// Emptied buffers by the logarithm of their capacity.
pub(super) struct Spare<T> {
    classes: Vec<Vec<Vec<T>>>,
}

impl<T> Spare<T> {
    /// The capacity with which buffers begin.
    const LEAST: usize = 16;

    pub(super) fn new() -> Spare<T> {
        Spare {
            classes: Vec::new(),
        }
    }

    /// Takes back a buffer, which is empty.
    pub(super) fn push(&mut self, buffer: Vec<T>) {
        debug_assert!(buffer.is_empty());
        let Some(class) = buffer.capacity().checked_ilog2() else {
            return;
        };
        let class = class as usize;
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        self.classes[class].push(buffer);
    }

    /// A buffer with room for so many, which is a power of two.
    pub(super) fn take(&mut self, capacity: usize) -> Vec<T> {
        let spare = self.classes.get_mut(capacity.ilog2() as usize);
        spare
            .and_then(Vec::pop)
            .unwrap_or_else(|| Vec::with_capacity(capacity))
    }

    /// Moves what is in a buffer that is full to one with twice the room.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, buffer: &mut Vec<T>) {
        let capacity = (2 * buffer.len())
            .next_power_of_two()
            .max(Spare::<T>::LEAST);
        let spare = self.classes.get_mut(capacity.ilog2() as usize);
        match spare.and_then(Vec::pop) {
            Some(mut larger) => {
                larger.append(buffer);
                self.push(std::mem::replace(buffer, larger));
            }
            // The allocator extends a large block by mapping pages, without a copy.
            None => buffer.reserve_exact(capacity - buffer.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_in_spare_memory_and_keeps_its_order() {
        let mut spare = Spare::<u32>::new();
        let fill = |spare: &mut Spare<u32>, count: u32| {
            let mut buffer = Vec::new();
            for seq in 0..count {
                if buffer.len() == buffer.capacity() {
                    spare.make_room(&mut buffer);
                }
                buffer.push(seq);
            }
            buffer
        };
        let mut large = fill(&mut spare, 1000);
        assert!(large.iter().copied().eq(0..1000));
        assert_eq!(large.capacity(), 1024);
        let place = large.as_ptr();
        large.clear();
        spare.push(large);
        let small = fill(&mut spare, 100);
        assert_eq!(
            small.capacity(),
            128,
            "a large buffer is left for what needs it"
        );
        let again = fill(&mut spare, 600);
        assert_eq!(again.as_ptr(), place, "memory is used again");
        spare.push(Vec::new());
    }
}
