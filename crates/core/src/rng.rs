//! An actor's random numbers as a generator for other crates.

use crate::contract::{Context, Message, Random};
use rand_core::RngCore;
use std::fmt;
use std::marker::PhantomData;

/// The random stream of an actor as a [`rand_core::RngCore`]; [`Context::rng`] returns it. Each call that returns up to
/// 64 bits draws one number from the actor's stream.
pub struct StreamRng<'a, M, C> {
    context: &'a mut C,
    _message: PhantomData<fn() -> M>,
}

impl<'a, M: Message, C: Context<M>> StreamRng<'a, M, C> {
    pub(crate) fn new(context: &'a mut C) -> Self {
        StreamRng {
            context,
            _message: PhantomData,
        }
    }
}

impl<M: Message, C: Context<M>> RngCore for StreamRng<'_, M, C> {
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.context.random()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        rand_core::impls::fill_bytes_via_next(self, bytes);
    }
}

impl<M, C> fmt::Debug for StreamRng<'_, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRng").finish_non_exhaustive()
    }
}

impl RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.bits()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        rand_core::impls::fill_bytes_via_next(self, bytes);
    }
}
