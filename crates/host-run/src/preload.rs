//! The simulated kernel as a shared object: `corsair-host run` preloads it into programs.
#![allow(unsafe_code, reason = "runs before the program")]
#![allow(missing_docs, reason = "programs do not call it")]

extern "C" fn begin() {
    corsair_host::preload();
}

// SAFETY: the C library calls the functions of this section once, with one thread, before the program's own code.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
