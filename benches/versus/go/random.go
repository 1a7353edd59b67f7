package main

import "math/bits"

// random is SplitMix64, the generator of corsair.
type random struct{ state uint64 }

func (r *random) bits() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// below draws a number below bound.
func (r *random) below(bound uint32) uint32 {
	high, _ := bits.Mul64(r.bits(), uint64(bound))
	return uint32(high)
}
