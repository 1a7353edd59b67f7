// Command forkjoin adds up a range by halving it down to single numbers, both halves of every
// range a goroutine each, and their results through one channel.
//
//	go run . -low 0 -high 10000000 -rounds 10 -workers 2
//
// It is the twin of `corsair sum`, and prints the same first line.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	low := flag.Uint64("low", 0, "the first number")
	high := flag.Uint64("high", 10_000_000, "the last number")
	rounds := flag.Int("rounds", 10, "how often to do it")
	workers := flag.Int("workers", runtime.NumCPU(), "threads that run goroutines")
	flag.Parse()
	if *low > *high {
		fail("the range from %d to %d is reversed; give -low the smaller number", *low, *high)
	}
	if *high > 1<<32-1 {
		fail("-high %d: give a number below 2^32", *high)
	}
	if *rounds < 1 || *workers < 1 {
		fail("-rounds and -workers are at least 1")
	}
	runtime.GOMAXPROCS(*workers)

	// low + high and the count differ in parity, so half of their product is exact.
	expected := (*low + *high) * (*high - *low + 1) / 2
	begin := time.Now()
	for round := range *rounds {
		if result := sum(*low, *high); result != expected {
			fail("round %d gave %d instead of %d", round+1, result, expected)
		}
	}
	seconds := time.Since(begin).Seconds() / float64(*rounds)

	fmt.Printf("The result is %d, ran %d rounds, %.6f seconds per round.\n", expected, *rounds, seconds)
	if forks := *high - *low; forks > 0 {
		fmt.Printf("%d processes per round, %.2f nanoseconds per process, %s of memory at most.\n",
			2*forks, seconds*1e9/float64(2*forks), peakMemory())
	}
}

// sum runs both halves as goroutines, also the single numbers.
func sum(low, high uint64) uint64 {
	if low == high {
		return low
	}
	mid := low + (high-low)/2
	results := make(chan uint64, 2)
	go func() { results <- sum(low, mid) }()
	go func() { results <- sum(mid+1, high) }()
	return <-results + <-results
}

// peakMemory is the most memory that the process has had resident, as Linux tells it.
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "an unknown amount"
	}
	for line := range strings.Lines(string(status)) {
		if kilobytes, found := strings.CutPrefix(line, "VmHWM:"); found {
			return strings.Join(strings.Fields(kilobytes), " ")
		}
	}
	return "an unknown amount"
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "forkjoin: "+format+"\n", args...)
	os.Exit(2)
}
