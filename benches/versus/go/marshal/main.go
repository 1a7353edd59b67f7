// Command marshal is the Go twin of the marshalling benchmark: the same records, read from a file,
// marshalled one by one, by workers over channels, and by a limited pool.
//
// Every run gives one document per record, in order, each in memory of its own: no document is in a
// buffer that is used again. The documents are compared with those in the file outside of what is
// timed. Only the standard library is used.
//
//	go run ./marshal PEOPLE.json [TIME]
//
// TIME is how long each line is measured, 300ms by default.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
)

func main() {
	testing.Init()
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "marshal:", err)
		os.Exit(2)
	}
}

func run(arguments []string) error {
	if len(arguments) < 1 || len(arguments) > 2 {
		return errors.New("usage: marshal PEOPLE.json [TIME]")
	}
	time := "300ms"
	if len(arguments) == 2 {
		time = arguments[1]
	}
	if err := flag.Set("test.benchtime", time); err != nil {
		return fmt.Errorf("TIME %q: %w; give it as 300ms or 1s", time, err)
	}
	people, documents, err := read(arguments[0])
	if err != nil {
		return err
	}

	cores := runtime.GOMAXPROCS(0)
	fmt.Printf("%-20s %7s %12s %9s %8s %12s %10s\n",
		"strategy", "workers", "ns/run", "ns/value", "MB/s", "bytes/run", "allocs/run")
	if err := measure("go serial", 1, people, documents, serial); err != nil {
		return err
	}
	for times := 1; times <= 10; times++ {
		workers := times * cores
		err := measure("go parallel", workers, people, documents, func(people []person) ([][]byte, error) {
			return parallel(people, workers)
		})
		if err != nil {
			return err
		}
	}
	for times := 1; times <= 10; times++ {
		limited := newPool(times * cores)
		err := measure("go pooled", times*cores, people, documents, limited.marshal)
		limited.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// read gives the records of a file, and the documents they should become.
func read(path string) ([]person, []json.RawMessage, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var people []person
	if err := json.Unmarshal(text, &people); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	var documents []json.RawMessage
	if err := json.Unmarshal(text, &documents); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return people, documents, nil
}

// measure checks what a strategy gives, then times it and prints a line.
func measure(
	name string, workers int, people []person, documents []json.RawMessage,
	strategy func([]person) ([][]byte, error),
) error {
	given, err := strategy(people)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	size := 0
	for index, document := range documents {
		if !bytes.Equal(given[index], document) {
			return fmt.Errorf("%s with %d workers gives another document for record %d:\n%s\n%s",
				name, workers, index, given[index], document)
		}
		size += len(document)
	}
	var failed error
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := strategy(people); err != nil {
				failed = err
				b.FailNow()
			}
		}
	})
	if failed != nil {
		return fmt.Errorf("%s: %w", name, failed)
	}
	perRun := float64(result.T.Nanoseconds()) / float64(result.N)
	fmt.Printf("%-20s %7d %12.0f %9.1f %8.0f %12d %10d\n",
		name, workers, perRun, perRun/float64(max(1, len(people))), float64(size)/perRun*1e3,
		result.AllocedBytesPerOp(), result.AllocsPerOp())
	return nil
}
