// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
)

// Aims of many informers of small kinds: kilobytes and goroutines of each.
const (
	informerKB         = 20
	informerGoroutines = 2
)

// runInformers is the case "informers".
func runInformers(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("informers", flag.ContinueOnError)
	flags.SetOutput(out)
	informers := flags.Int("informers", 1_000, "informers, each of another namespace")
	objects := flags.Int("objects", 10, "ConfigMaps of each")
	turns := flags.Int("turns", 3, "turns of each side")
	verbose := flags.Bool("v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *informers < 1 || *objects < 1 || *turns < 1 {
		return fmt.Errorf("measuring informers: --informers %d, --objects %d, --turns %d: all must be at least 1", *informers, *objects, *turns)
	}
	printMachine(out)
	fmt.Fprintf(out, "# %d informers of %d ConfigMaps each, with a handler each, over HTTP/2; %d turns, medians\n", *informers, *objects, *turns)
	t, err := tapeOf(configMapKind, *objects)
	if err != nil {
		return err
	}
	found := map[string][]readings{}
	sides := []string{setpointSide, clientGoSide}
	for range *turns {
		for _, side := range sides {
			r, err := newReplay(t, *objects)
			if err != nil {
				return err
			}
			server := secureServer(compressing{r}, 2**informers)
			s := sideSpec{Case: "informers", Side: side, Kind: configMapKind.name, Server: server.URL, Objects: *informers}
			one, err := s.run(ctx)
			server.Close()
			if err != nil {
				return err
			}
			found[side] = append(found[side], one)
		}
		slices.Reverse(sides) // neither is always first
	}
	for _, l := range []struct {
		name, unit, reading string
		aim                 aim
	}{
		{"informers-memory-of-each", "KB", "memory", aim{value: informerKB}},
		{"informers-goroutines-of-each", "", "goroutines", aim{value: informerGoroutines}},
		{"informers-resident-of-each", "KB", "resident", aim{}},
		{"informers-seconds-to-sync", "s", "sync", aim{}},
		{"informers-cpu-to-sync", "s", "cpu", aim{}},
		{"informers-goroutines-left", "", "left", aim{none: true}},
		{"informers-memory-left-of-each", "KB", "left-memory", aim{}},
	} {
		m := measure{name: l.name, unit: l.unit, aim: l.aim}
		for _, one := range found[setpointSide] {
			m.ours = append(m.ours, one[l.reading])
		}
		for _, one := range found[clientGoSide] {
			m.theirs = append(m.theirs, one[l.reading])
		}
		m.print(out, *verbose)
	}
	return nil
}

// secureServer serves as kube-apiserver does, with TLS and over HTTP/2, but with room for all streams on one connection.
func secureServer(h http.Handler, streams int) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.StartTLS()
	return server
}
