// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// soakFigures are what a process has when it is at rest.
type soakFigures struct {
	heap       float64 // MB of a million bytes, after a collection
	goroutines float64
	files      float64 // open
}

// soakBounds are how much more than at the start each may be at the end: a share of
// it and a number.
var soakBounds = struct {
	heap, goroutines, files struct{ share, number float64 }
}{
	heap:       struct{ share, number float64 }{0.25, 2},
	goroutines: struct{ share, number float64 }{0.10, 10},
	files:      struct{ share, number float64 }{0.10, 10},
}

// leaks says which figures have grown beyond their bounds.
func (f soakFigures) leaks(start soakFigures) []string {
	var found []string
	for _, m := range []struct {
		what       string
		start, end float64
		bound      struct{ share, number float64 }
	}{
		{"heap", start.heap, f.heap, soakBounds.heap},
		{"goroutines", start.goroutines, f.goroutines, soakBounds.goroutines},
		{"open files", start.files, f.files, soakBounds.files},
	} {
		if most := m.start*(1+m.bound.share) + m.bound.number; m.end > most {
			found = append(found, fmt.Sprintf("%s: %.1f, which was %.1f and may be %.1f", m.what, m.end, m.start, most))
		}
	}
	return found
}

// openFiles counts those of a process. The folder that is read for it is one of them
// where the process is this one.
func openFiles(pid int) (float64, error) {
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("counting open files: %w", err)
	}
	return float64(len(files)), nil
}

// soakOwnFigures are those of this process.
func soakOwnFigures() (f soakFigures, err error) {
	runtime.GC()
	runtime.GC() // what was weak goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap, f.goroutines = float64(m.HeapAlloc)/1e6, float64(runtime.NumGoroutine())
	f.files, err = openFiles(os.Getpid())
	return f, err
}

// soakFiguresOf are those of a process that serves its profiles on a port.
func soakFiguresOf(ctx context.Context, name string, pid, port int) (f soakFigures, err error) {
	for range 2 {
		text, err := askLocal(ctx, name, port, "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return f, err
		}
		if f.heap, err = heapOf(string(text)); err != nil {
			return f, err
		}
	}
	text, err := askLocal(ctx, name, port, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return f, err
	}
	if f.goroutines, err = goroutinesOf(string(text)); err != nil {
		return f, err
	}
	f.files, err = openFiles(pid)
	return f, err
}

func goroutinesOf(text string) (float64, error) {
	line, _, _ := strings.Cut(text, "\n")
	count, found := strings.CutPrefix(line, "goroutine profile: total ")
	if !found {
		return 0, fmt.Errorf("counting goroutines: %q is not the begin of their profile", line)
	}
	return strconv.ParseFloat(count, 64)
}

// soakProcess is one of the processes that are measured: at the start and at the end.
type soakProcess struct {
	name       string
	start, end soakFigures
}

func printFigures(out io.Writer, all []soakProcess) {
	fmt.Fprintf(out, "%-24s %18s %18s %18s\n", "process", "heap MB", "goroutines", "open files")
	for _, p := range all {
		fmt.Fprintf(out, "%-24s %8.1f →%8.1f %8.0f →%8.0f %8.0f →%8.0f\n", p.name,
			p.start.heap, p.end.heap, p.start.goroutines, p.end.goroutines, p.start.files, p.end.files)
	}
}
